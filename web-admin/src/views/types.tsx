/** All id types: found, filtered and sorted here, with live data for those in sight. */
import { useMediaQuery } from '@mantine/hooks';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { MAX_WATCHED } from '../api/live';
import {
  live,
  useInstanceNames,
  useOverview,
  useTypeLive,
  useTypes,
  useWatch,
} from '../api/queries';
import { useCan } from '../api/session';
import { MODES, type TypeRecord } from '../api/types';
import { useT } from '../i18n';
import { count, duration, percent, short } from '../lib/format';
import { usedShare } from '../lib/ids';
import { SHOWS, SORTS, searchOf, select, type Wanted, wantedOf } from '../lib/type-list';
import { Ago, Badge, Button, Empty, LinkButton, Loading, ProblemBox, Title } from '../ui/basics';
import { SelectField, TextField } from '../ui/fields';
import { Gauge } from '../ui/gauge';
import { Spark } from '../ui/spark';

const ROW = 50;
const CARD = 170;
const NARROW = '(max-width: 860px)';

export function TypesView() {
  const t = useT();
  const operate = useCan('operate');
  const { data, error, isFetching, refetch } = useTypes();
  const { data: overview } = useOverview();
  const search = useSearch();
  const [, go] = useLocation();
  const [wanted, setWanted] = useState(() => wantedOf(search));
  // The address follows what is typed, so that going back finds it again.
  const shown = searchOf(wanted);
  useEffect(() => {
    if (shown !== window.location.search) go(`/types${shown}`, { replace: true });
  }, [shown, go]);
  const lastSearch = useRef(search);
  useEffect(() => {
    // Somebody followed a link to another selection.
    if (search !== lastSearch.current) {
      lastSearch.current = search;
      setWanted((now) => (searchOf(now).slice(1) === search ? now : wantedOf(search)));
    }
  }, [search]);
  const settled = useDeferredValue(wanted);
  // Its list is new every two seconds; it counts only where it is asked for.
  const attention = settled.show === 'attention' ? overview?.attention : undefined;
  const types = useMemo(
    () => (data ? select(data, settled, attention ?? []) : []),
    [data, settled, attention],
  );
  return (
    <>
      <Title
        text={t.nav.types}
        sub={
          data && (
            <span role="status">
              {t.types.count(count(types.length), count(data.length))}
              {isFetching && data.length >= 1000 && ` ${t.types.loadingMore}`}
            </span>
          )
        }
        actions={
          operate && (
            <LinkButton href="/types/new" kind="primary" icon="plus">
              {t.types.new}
            </LinkButton>
          )
        }
      >
        {t.nav.types}
      </Title>
      <Filters wanted={wanted} change={(part) => setWanted({ ...wanted, ...part })} />
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data && types.length === 0 && (
        <Empty>{data.length === 0 ? t.types.none : t.types.nothing}</Empty>
      )}
      {types.length > 0 && (
        <Rows
          types={types}
          wanted={wanted}
          sort={(by) =>
            setWanted({ ...wanted, sort: by, back: wanted.sort === by ? !wanted.back : false })
          }
        />
      )}
    </>
  );
}

function Filters({ wanted, change }: { wanted: Wanted; change(part: Partial<Wanted>): void }) {
  const t = useT();
  const { data } = useOverview();
  const plain = searchOf({ ...wanted, sort: 'name', back: false }) === '';
  const pick = (
    label: string,
    name: 'mode' | 'state' | 'instance' | 'show' | 'sort',
    options: readonly (readonly [string, string])[],
  ) => (
    <SelectField
      label={label}
      value={wanted[name] as string}
      onChange={(value) => change({ [name]: value } as Partial<Wanted>)}
      options={options}
      searchable={name === 'instance'}
    />
  );
  return (
    <search className="filters">
      <div className="grow">
        <TextField
          label={t.types.search}
          type="search"
          value={wanted.text}
          placeholder={t.types.searchHint}
          onChange={(text) => change({ text })}
        />
      </div>
      {pick(t.common.mode, 'mode', [
        ['', t.common.all],
        ...MODES.map((mode) => [mode, t.modes[mode].name] as const),
      ])}
      {pick(t.common.state, 'state', [
        ['', t.common.all],
        ['active', t.states.active],
        ['retired', t.states.retired],
      ])}
      {pick(t.common.instance, 'instance', [
        ['', t.common.all],
        ...(data?.instances ?? []).map((each) => [String(each.id), each.name] as const),
      ])}
      {pick(
        t.types.show,
        'show',
        SHOWS.map((each) => [each, t.types.shows[each]] as const),
      )}
      {pick(
        t.types.sort,
        'sort',
        SORTS.map((each) => [each, t.types.sorts[each]] as const),
      )}
      <Button
        icon={(wanted.sort === 'name') === wanted.back ? 'back' : 'up'}
        aria-pressed={wanted.back}
        title={t.types.reverse}
        aria-label={t.types.reverse}
        onClick={() => change({ back: !wanted.back })}
      />
      {!plain && (
        <Button
          kind="quiet"
          icon="close"
          onClick={() => change({ text: '', mode: '', state: '', instance: '', show: 'all' })}
        >
          {t.types.clear}
        </Button>
      )}
    </search>
  );
}

function Rows({
  types,
  wanted,
  sort,
}: {
  types: TypeRecord[];
  wanted: Wanted;
  sort(by: Wanted['sort']): void;
}) {
  const t = useT();
  const narrow = useMediaQuery(NARROW, undefined, { getInitialValueInEffect: false });
  const list = useRef<HTMLDivElement>(null);
  const size = narrow ? CARD : ROW;
  const [margin, setMargin] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the filters wrap when it is narrow
  useEffect(() => {
    const box = list.current?.getBoundingClientRect();
    if (box) setMargin(box.top + window.scrollY);
  }, [narrow]);
  const rows = useWindowVirtualizer({
    count: types.length,
    estimateSize: () => size,
    overscan: 6,
    scrollMargin: margin,
    getItemKey: (index) => types[index]?.name ?? index,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows of another size
  useEffect(() => rows.measure(), [size]);
  const items = rows.getVirtualItems();
  const names = items.map((item) => types[item.index]?.name ?? '').slice(0, MAX_WATCHED);
  useWatch(names);
  const instanceName = useInstanceNames();
  const { data: overview } = useOverview();
  const troubled = useMemo(
    () => new Map((overview?.attention ?? []).map((item) => [item.subject.type, item])),
    [overview],
  );
  const head = (key: keyof typeof t.types.columns, by?: Wanted['sort'], className = '') => (
    <div
      role="columnheader"
      className={className}
      aria-sort={
        by && wanted.sort === by
          ? (by === 'name') === wanted.back
            ? 'descending'
            : 'ascending'
          : undefined
      }
    >
      {by ? (
        <button type="button" onClick={() => sort(by)}>
          {t.types.columns[key]}
          {wanted.sort === by && (
            <span aria-hidden="true">{(by === 'name') === wanted.back ? ' ↓' : ' ↑'}</span>
          )}
        </button>
      ) : (
        t.types.columns[key]
      )}
    </div>
  );
  return (
    <div
      role="table"
      aria-label={t.nav.types}
      aria-rowcount={types.length + 1}
      className={narrow ? 'types cards' : 'types'}
    >
      <div role="rowgroup" className={narrow ? 'hidden' : 'head'}>
        <div role="row" className="line" aria-rowindex={1}>
          {head('name', 'name')}
          {head('mode')}
          {head('instance')}
          {head('rate', undefined, 'num')}
          {head('range', 'range')}
          {head('runway', undefined, 'num')}
          {head('load', 'load', 'num')}
          {head('used', 'used', 'num')}
        </div>
      </div>
      <div
        ref={list}
        role="rowgroup"
        className="lines"
        style={{ height: rows.getTotalSize() }}
        data-live
      >
        {items.map((item) => {
          const type = types[item.index];
          return (
            type && (
              <Row
                key={item.key}
                type={type}
                index={item.index + 2}
                top={item.start - margin}
                height={narrow ? size - 8 : size}
                instance={instanceName(type.instance)}
                target={type.moving_to === null ? null : instanceName(type.moving_to)}
                trouble={troubled.get(type.name)?.severity ?? null}
              />
            )
          );
        })}
      </div>
    </div>
  );
}

const Row = memo(function Row({
  type,
  index,
  top,
  height,
  instance,
  target,
  trouble,
}: {
  type: TypeRecord;
  index: number;
  top: number;
  height: number;
  instance: string;
  target: string | null;
  trouble: 'critical' | 'warning' | 'info' | null;
}) {
  const t = useT();
  const now = useTypeLive(type.name);
  const used = usedShare(type);
  const runway = now?.runway_s ?? null;
  return (
    <div
      role="row"
      aria-rowindex={index}
      className={`line ${type.state}`}
      style={{ transform: `translateY(${top}px)`, height }}
    >
      <div role="rowheader" className="name">
        <Link href={`/types/${encodeURIComponent(type.name)}`} className="cut" title={type.name}>
          {type.name}
        </Link>
        <span className="row tight">
          {trouble && trouble !== 'info' && (
            <Badge tone={trouble === 'critical' ? 'bad' : 'warn'}>{t.types.attention}</Badge>
          )}
          {type.state === 'retired' && <Badge tone="mute">{t.states.retired}</Badge>}
          {target !== null && <Badge tone="info">{t.types.movingTo(target)}</Badge>}
          <span className="mute small cut">{type.description.slice(0, 200)}</span>
        </span>
      </div>
      <div role="cell" className="mode">
        {t.modes[type.mode].name}
      </div>
      <div role="cell" className="instance">
        <span className="cut" title={instance}>
          {type.mode === 'snowflake' ? '—' : instance}
        </span>
      </div>
      <div role="cell" className="rate num" aria-label={t.types.columns.rate}>
        <Spark values={now ? live.history(type.name) : []} width={72} height={22} />
        <b>{now?.rate == null ? '—' : short(now.rate)}</b>
        <small>
          {t.units.perS}
          {now?.rate_of === 'node' && now.rate !== null && <abbr title={t.types.nodeRate}> *</abbr>}
        </small>
      </div>
      <div role="cell" className="range">
        <Gauge type={type} dispatcher={now?.dispatcher} local={now?.local} />
      </div>
      <div
        role="cell"
        className={`runway num ${runway !== null && runway < 60 ? 'bad' : ''}`}
        title={t.types.runwayHint}
      >
        <small className="only-narrow">{t.types.columns.runway} </small>
        {runway === null ? '—' : duration(runway, t.units)}
      </div>
      <div role="cell" className="load num">
        <small className="only-narrow">{t.types.columns.load} </small>
        <Ago ms={now?.last_load_ms ?? type.last_load_ms} />
      </div>
      <div role="cell" className="used num">
        <small className="only-narrow">{t.types.columns.used} </small>
        {used === null ? '—' : percent(used)}
      </div>
    </div>
  );
});
