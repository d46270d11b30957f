/** One type: where it stands, how it got there, and what can be done about it. */
import { Table } from '@mantine/core';
import { lazy, Suspense, useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { asProblem } from '../../api/client';
import {
  useAudit,
  useInstanceNames,
  useOverview,
  useRanges,
  useSeries,
  useType,
  useTypeLive,
  useWatch,
} from '../../api/queries';
import { useCan } from '../../api/session';
import { SPANS, type Span, type TypeDetail } from '../../api/types';
import { useT } from '../../i18n';
import { count, dateTime, duration, percent, short } from '../../lib/format';
import { big, hasPositions, leftOf, numberAt, usedShare } from '../../lib/ids';
import { AuditTable } from '../../ui/audit-table';
import {
  Ago,
  Badge,
  Button,
  Card,
  CopyButton,
  Empty,
  Loading,
  LongText,
  Notice,
  ProblemBox,
  TextButton,
  Time,
  Title,
} from '../../ui/basics';
import { Choice } from '../../ui/fields';
import { Gauge } from '../../ui/gauge';
import { ChangeDialog } from './change';
import { MoveDialog, UndoDialog } from './move';
import { Decode, Issue } from './probe';
import { ReserveDialog, RetireDialog, RotateDialog } from './small-actions';

const Chart = lazy(() => import('../../ui/chart'));

export default function TypeView({ name }: { name: string }) {
  const t = useT();
  const { data, error, refetch } = useType(name);
  if (data === undefined) {
    return (
      <>
        <Title text={name}>{name}</Title>
        {error ? (
          <>
            <ProblemBox error={error} retry={() => void refetch()} />
            {asProblem(error).status === 404 && <Link href="/types">{t.type.back}</Link>}
          </>
        ) : (
          <Loading />
        )}
      </>
    );
  }
  return (
    <>
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      <Whole type={data} />
    </>
  );
}

type Open = 'change' | 'retire' | 'rotate' | 'move' | 'undo' | 'reserve' | null;

function Whole({ type }: { type: TypeDetail }) {
  const t = useT();
  const operate = useCan('operate');
  const instanceName = useInstanceNames();
  const [open, setOpen] = useState<Open>(null);
  const names = useMemo(() => [type.name], [type.name]);
  useWatch(names);
  const close = () => setOpen(null);
  const needs = operate ? undefined : t.common.needs(t.roles.operate);
  const action = (what: Exclude<Open, null>, label: string, danger = false) => (
    <Button
      kind={danger ? 'danger' : 'plain'}
      disabled={!operate}
      title={needs}
      onClick={() => setOpen(what)}
    >
      {label}
    </Button>
  );
  const moving = type.moving_to !== null;
  return (
    <>
      <Title
        text={type.name}
        sub={
          <>
            {t.modes[type.mode].name} · {instanceName(type.instance)}
            {moving && ` → ${instanceName(type.moving_to)}`} · {t.type.version(type.version)}
          </>
        }
        actions={
          <>
            {action('change', t.type.change)}
            {type.mode !== 'snowflake' && !moving && action('move', t.type.move)}
            {(moving || type.moved_from !== null) && action('undo', t.type.undo)}
            {type.state === 'active' &&
              type.mode !== 'sharded' &&
              type.mode !== 'snowflake' &&
              !type.options.calendar &&
              action('reserve', t.type.reserve)}
            {type.options.opaque && action('rotate', t.type.rotate)}
            {type.state === 'active'
              ? action('retire', t.type.retire, true)
              : action('retire', t.type.restore)}
          </>
        }
      >
        {type.name} <CopyButton text={type.name} />
        <Badge tone={type.state === 'active' ? 'ok' : 'mute'}>{t.states[type.state]}</Badge>
        {moving && <Badge tone="info">{t.types.movingTo(instanceName(type.moving_to))}</Badge>}
      </Title>
      <Warnings name={type.name} />
      <div className="grid">
        <div className="column">
          <Now type={type} />
          <Course name={type.name} mode={type.mode} />
          <Ranges type={type} />
          <Changes name={type.name} />
        </div>
        <div className="column">
          <SettingsCard type={type} />
          <Issue type={type} />
          <Decode type={type} />
        </div>
      </div>
      {open === 'change' && <ChangeDialog type={type} onClose={close} />}
      {open === 'retire' && <RetireDialog type={type} onClose={close} />}
      {open === 'rotate' && <RotateDialog type={type} onClose={close} />}
      {open === 'reserve' && <ReserveDialog type={type} onClose={close} />}
      {open === 'move' && <MoveDialog type={type} onClose={close} />}
      {open === 'undo' && <UndoDialog type={type} onClose={close} />}
    </>
  );
}

function Warnings({ name }: { name: string }) {
  const t = useT();
  const { data } = useOverview();
  const items = data?.attention.filter((item) => item.subject.type === name) ?? [];
  return items.map((item) => (
    <Notice
      key={item.kind}
      tone={item.severity === 'critical' ? 'bad' : item.severity === 'warning' ? 'warn' : 'info'}
    >
      <b>{t.attention.kinds[item.kind] ?? item.kind}</b> {item.detail}
    </Notice>
  ));
}

function Now({ type }: { type: TypeDetail }) {
  const t = useT();
  const now = useTypeLive(type.name);
  // What the stream told, else what was answered to the request.
  const dispatcher = now ? now.dispatcher : type.dispatcher;
  const local = now ? now.local : type.local;
  const rate = now ? now.rate : (type.local?.rate ?? null);
  const runway = now ? now.runway_s : (type.local?.runway_s ?? null);
  const ends = now?.exhausted_at_ms ?? type.exhausted_at_ms;
  const used = usedShare(type);
  const left = leftOf(type);
  return (
    <Card title={t.type.now}>
      <div data-live>
        <dl className="live-figures">
          <div>
            <dt>
              {t.types.columns.rate}
              {now?.rate_of === 'node' && ` (${t.type.thisNode})`}
            </dt>
            <dd>
              {rate === null ? '—' : short(rate)} <small>{t.units.perS}</small>
            </dd>
          </div>
          <div>
            <dt>{t.types.columns.runway}</dt>
            <dd title={t.types.runwayHint}>{runway === null ? '—' : duration(runway, t.units)}</dd>
          </div>
          <div>
            <dt>{t.types.columns.load}</dt>
            <dd>
              <Ago ms={now?.last_load_ms ?? type.last_load_ms} />
            </dd>
          </div>
          {used !== null && left !== null && (
            <div>
              <dt>{t.types.columns.used}</dt>
              <dd title={t.type.leftOf(count(left))}>{percent(used)}</dd>
            </div>
          )}
          {ends !== null && (
            <div>
              <dt>{t.type.ends}</dt>
              <dd>
                <Time ms={ends} />
              </dd>
            </div>
          )}
        </dl>
        <Gauge type={type} dispatcher={dispatcher} local={local} large />
        {dispatcher && local && local.ranges > 0 && (
          <p className="hint">
            {t.type.thisNode}:{' '}
            {t.gauge.local(count(local.left), String(local.ranges), String(local.ahead))}
          </p>
        )}
        {hasPositions(type) && <p className="hint">{t.type.positions}</p>}
      </div>
    </Card>
  );
}

function Course({ name, mode }: { name: string; mode: TypeDetail['mode'] }) {
  const t = useT();
  const [span, setSpan] = useState<Span>('hour');
  const { data, error, refetch } = useSeries(name, span);
  const ranges = useMemo(() => [...(data?.ranges ?? [])].sort((a, b) => a.at_ms - b.at_ms), [data]);
  const at = useMemo(() => ranges.map((range) => range.at_ms), [ranges]);
  const lengths = useMemo(() => ranges.map((range) => Number(range.length)), [ranges]);
  const refills = useMemo(() => ranges.map((range) => range.refill_ms), [ranges]);
  const common = data && { from: data.from_ms, to: data.to_ms, height: 140 };
  return (
    <Card
      title={t.type.course}
      actions={
        <Choice
          label={t.type.span}
          value={span}
          onChange={setSpan}
          options={SPANS.map((each) => [each, t.type.spans[each]] as const)}
        />
      }
    >
      {error && !data && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data && common && (
        <Suspense fallback={<div className="chart-space" />}>
          <div className={mode === 'snowflake' ? '' : 'charts'}>
            <div>
              <h3>{t.types.columns.rate}</h3>
              <Chart
                title={t.types.columns.rate}
                unit={t.units.perS}
                at={data.at_ms}
                values={data.ids_per_s}
                {...common}
              />
            </div>
            {mode !== 'snowflake' && (
              <>
                <div>
                  <h3>{t.type.rangeLength}</h3>
                  <Chart
                    title={t.type.rangeLength}
                    unit={t.units.ids}
                    at={at}
                    values={lengths}
                    kind="points"
                    {...common}
                  />
                </div>
                <div>
                  <h3>{t.type.refill}</h3>
                  <Chart
                    title={t.type.refill}
                    unit={t.units.ms}
                    at={at}
                    values={refills}
                    kind="points"
                    {...common}
                  />
                </div>
              </>
            )}
          </div>
        </Suspense>
      )}
      {data?.scope === 'node' && <p className="hint">{t.overview.nodeOnly}</p>}
    </Card>
  );
}

function Ranges({ type }: { type: TypeDetail }) {
  const t = useT();
  const instanceName = useInstanceNames();
  const { data, error, refetch } = useRanges(type.name);
  if (type.mode === 'snowflake') return null;
  const shown = (position: string) => String(numberAt(big(position), type));
  return (
    <Card title={t.type.ranges} flush>
      {error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data?.items.length === 0 && <Empty>{t.type.noRanges}</Empty>}
      {data && data.items.length > 0 && (
        <div className="scroll" tabIndex={0} role="group" aria-label={t.type.ranges}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">{t.common.time}</Table.Th>
                <Table.Th scope="col" className="num">
                  {t.gauge.start}
                </Table.Th>
                <Table.Th scope="col" className="num">
                  {t.gauge.end}
                </Table.Th>
                <Table.Th scope="col" className="num">
                  {t.preview.length}
                </Table.Th>
                <Table.Th scope="col">{t.type.owner}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {data.items.map((range) => (
                <Table.Tr key={`${range.start} ${range.shard ?? ''} ${range.at_ms}`}>
                  <Table.Td className="nowrap">
                    <Time ms={range.at_ms} full />
                  </Table.Td>
                  <Table.Td className="num mono">{shown(range.start)}</Table.Td>
                  <Table.Td className="num mono">{shown(String(big(range.end) - 1n))}</Table.Td>
                  <Table.Td className="num">{count(big(range.end) - big(range.start))}</Table.Td>
                  <Table.Td className="any">
                    {range.owner}
                    {range.instance !== null && (
                      <span className="mute"> · {instanceName(range.instance)}</span>
                    )}
                    {range.shard !== undefined && (
                      <span className="mute"> · {t.type.shard(range.shard)}</span>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </Card>
  );
}

function Changes({ name }: { name: string }) {
  const t = useT();
  const { data, error, refetch } = useAudit();
  const items = data?.items.filter((entry) => entry.subject === name).slice(0, 50);
  return (
    <Card title={t.type.changes} flush>
      {error && !data && <ProblemBox error={error} retry={() => void refetch()} />}
      {items?.length === 0 && <Empty>{t.type.noChanges}</Empty>}
      {items && items.length > 0 && <AuditTable items={items} subject={false} />}
    </Card>
  );
}

function SettingsCard({ type }: { type: TypeDetail }) {
  const t = useT();
  const instanceName = useInstanceNames();
  const [, go] = useLocation();
  const { options } = type;
  const rows: [string, React.ReactNode][] = [
    [t.form.description, type.description ? <LongText key="d" text={type.description} /> : '—'],
    [t.common.mode, t.modes[type.mode].name],
    [
      t.common.instance,
      <TextButton
        key="instance"
        onClick={() => go(`/redis#${encodeURIComponent(instanceName(type.instance))}`)}
      >
        {instanceName(type.instance)}
      </TextButton>,
    ],
    [t.form.prefix, type.prefix ? <code key="p">{type.prefix}</code> : '—'],
  ];
  if (type.mode !== 'snowflake') {
    rows.push(
      [t.form.first_id, <code key="f">{type.first_id}</code>],
      [t.type.nextId, <code key="n">{String(numberAt(big(type.next_id), type))}</code>],
      [t.form.max_id, <code key="m">{type.max_id}</code>],
    );
  }
  rows.push(
    [t.form.min_range, count(type.min_range)],
    [t.form.max_range, count(type.max_range)],
    [t.form.load_interval_ms, duration(type.load_interval_ms / 1000, t.units)],
    [t.form.load_percentage, percent(type.load_percentage)],
    [t.form.lock_ttl_ms, duration(type.lock_ttl_ms / 1000, t.units)],
  );
  const layout = options.snowflake;
  const known: [string, React.ReactNode | undefined][] = [
    [t.option.format, options.format && <code key="f">{options.format}</code>],
    [t.option.calendar, options.calendar && t.form[options.calendar]],
    [t.option.time_zone, options.time_zone],
    [t.option.cycle, options.at_limit === 'cycle' ? t.common.yes : undefined],
    [t.option.on_redis_loss, options.on_redis_loss === 'segment' ? t.common.yes : undefined],
    [t.option.opaque, options.opaque && t.type.slices(options.opaque.slices)],
    [t.option.app_id, options.app_id],
    [t.option.sites, options.sites && t.type.site(options.sites.site, options.sites.count)],
    [
      t.option.snowflake,
      layout &&
        `${layout.time_bits}/${layout.worker_bits}/${layout.sequence_bits} ${layout.unit}, ${dateTime(layout.epoch_ms)}`,
    ],
  ];
  for (const [label, value] of known)
    if (value !== undefined && value !== '') rows.push([label, value]);
  rows.push(
    [t.common.created, <Time key="c" ms={type.created_ms} full />],
    [t.type.updated, <Time key="u" ms={type.updated_ms} full />],
  );
  return (
    <Card title={t.type.settings}>
      <dl className="facts">
        {rows.map(([label, value]) => (
          <div key={label} className="contents">
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
