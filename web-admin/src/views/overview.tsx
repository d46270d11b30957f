/** Everything in one look: what needs attention, how much, and on what it runs. */
import { Table } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { Link } from 'wouter';
import { useOverview, useSeries } from '../api/queries';
import type { Attention, InstanceState, NodeReport, Overview } from '../api/types';
import { useT } from '../i18n';
import { serverNow } from '../lib/clock';
import { bytes, count, duration, micros, short } from '../lib/format';
import { Badge, Card, Empty, Loading, ProblemBox, Title } from '../ui/basics';
import { Icon } from '../ui/icons';

const Chart = lazy(() => import('../ui/chart'));

export function OverviewView() {
  const t = useT();
  const { data, error, refetch } = useOverview();
  return (
    <>
      <Title text={t.nav.overview}>{t.nav.overview}</Title>
      {!data && error && <ProblemBox error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading />}
      {data && <Board data={data} />}
    </>
  );
}

function Board({ data }: { data: Overview }) {
  const t = useT();
  return (
    <div className="board">
      <dl className="figures" data-live>
        <Figure label={t.overview.rate} value={short(data.ids_per_s)} unit={t.units.perS} main />
        <Figure label={t.overview.calls} value={short(data.calls_per_s)} unit={t.units.perS} />
        <Figure
          label={t.overview.errors}
          value={short(data.errors_per_s)}
          unit={t.units.perS}
          bad={data.errors_per_s > 0}
        />
        <Figure
          label={t.overview.active}
          value={count(data.types.active)}
          href="/types?state=active"
        />
        <Figure
          label={t.overview.retired}
          value={count(data.types.retired)}
          href="/types?state=retired"
        />
        <Figure
          label={t.overview.nodes}
          value={count(data.nodes.filter((node) => !node.silent).length)}
          unit={t.overview.of(data.nodes.length)}
          bad={data.nodes.some((node) => node.silent)}
        />
      </dl>
      <div className="column">
        <AttentionList items={data.attention} />
        <StoreAndRedis data={data} />
      </div>
      <div className="column">
        <RateCard now={data} />
        <Nodes nodes={data.nodes} answering={data.node} />
      </div>
    </div>
  );
}

function Figure({
  label,
  value,
  unit,
  main,
  bad,
  href,
}: {
  label: string;
  value: string;
  unit?: string;
  main?: boolean;
  bad?: boolean;
  href?: string;
}) {
  return (
    <div className={`figure ${main ? 'main' : ''} ${bad ? 'bad' : ''}`}>
      <dt>{href ? <Link href={href}>{label}</Link> : label}</dt>
      <dd>
        {value}
        {unit && <small> {unit}</small>}
      </dd>
    </div>
  );
}

const tone = { critical: 'bad', warning: 'warn', info: 'info' } as const;
const icon = { critical: 'down', warning: 'alert', info: 'info' } as const;
const weight = { critical: 0, warning: 1, info: 2 } as const;

/** Where one acts on it. */
export function placeOf({ subject, kind }: Attention): string {
  if (subject.type) return `/types/${encodeURIComponent(subject.type)}`;
  if (subject.instance) return `/redis#${encodeURIComponent(subject.instance)}`;
  if (kind === 'migration_running') return '/types?show=moving';
  if (kind === 'store_down') return '/#store';
  return '/#nodes';
}

function AttentionList({ items }: { items: Attention[] }) {
  const t = useT();
  // The node sorts; this keeps what is worst first even if it did not.
  const sorted = [...items].sort((a, b) => weight[a.severity] - weight[b.severity]);
  return (
    <Card title={t.attention.title} className="attention" flush>
      {items.length === 0 ? (
        <p className="calm">
          <Icon name="ok" />
          {t.attention.none}
        </p>
      ) : (
        <ul data-live>
          {sorted.map((item) => (
            <li
              key={`${item.kind} ${JSON.stringify(item.subject)}`}
              className={tone[item.severity]}
            >
              <Link href={placeOf(item)}>
                <Icon name={icon[item.severity]} />
                <span className="hidden">{t.attention.severities[item.severity]}: </span>
                <span className="grow">
                  <b>{t.attention.kinds[item.kind] ?? item.kind}</b>{' '}
                  <span className="subject">
                    {item.subject.type ?? item.subject.instance ?? item.subject.node ?? ''}
                  </span>
                  <span className="detail">{item.detail}</span>
                </span>
                {item.runway_s !== undefined && (
                  <span className="nowrap">{duration(item.runway_s, t.units)}</span>
                )}
                {item.left !== undefined && item.runway_s === undefined && (
                  <span className="nowrap">{t.attention.left(item.left)}</span>
                )}
                <Icon name="arrow" />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function RateCard({ now }: { now: Overview }) {
  const t = useT();
  const { data, error, refetch } = useSeries(null, 'hour');
  return (
    <Card title={t.overview.hour} className="hour">
      {error && !data && <ProblemBox error={error} retry={() => void refetch()} />}
      {data && (
        <Suspense fallback={<div className="chart-space" />}>
          <Chart
            title={t.overview.hour}
            unit={t.units.perS}
            at={[...data.at_ms, now.at_ms]}
            values={[...data.ids_per_s, now.ids_per_s]}
            from={data.from_ms}
            height={170}
          />
        </Suspense>
      )}
      {data?.scope === 'node' && <p className="hint">{t.overview.nodeOnly}</p>}
    </Card>
  );
}

function StoreAndRedis({ data }: { data: Overview }) {
  const t = useT();
  const { store } = data;
  return (
    <Card title={t.overview.stores} className="stores" flush>
      <Table id="store" data-live>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t.common.name}</Table.Th>
            <Table.Th scope="col">{t.common.state}</Table.Th>
            <Table.Th scope="col" className="num">
              {t.redis.latency}
            </Table.Th>
            <Table.Th scope="col" className="num">
              {t.redis.types}
            </Table.Th>
            <Table.Th scope="col" className="num wide-only">
              {t.redis.memory}
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          <Table.Tr>
            <Table.Th scope="row">{t.overview.store[store.kind]}</Table.Th>
            <Table.Td>
              <Reach reachable={store.reachable} error={store.error} />
            </Table.Td>
            <Table.Td className="num">
              {store.round_trip_us === null ? '—' : micros(store.round_trip_us, t.units.ms)}
            </Table.Td>
            <Table.Td className="num">{count(data.types.active + data.types.retired)}</Table.Td>
            <Table.Td className="num wide-only">—</Table.Td>
          </Table.Tr>
          {data.instances.map((each) => (
            <InstanceRow key={each.id} each={each} />
          ))}
        </Table.Tbody>
      </Table>
      {data.instances.length === 0 && <Empty>{t.redis.none}</Empty>}
    </Card>
  );
}

function InstanceRow({ each }: { each: InstanceState }) {
  const t = useT();
  return (
    <Table.Tr>
      <Table.Th scope="row">
        <Link href={`/redis#${encodeURIComponent(each.name)}`} className="cut">
          {each.name}
        </Link>
      </Table.Th>
      <Table.Td>
        <Reach reachable={each.reachable} error={each.error} />{' '}
        {each.drain_to && (
          <Badge tone="info">
            {t.redis.drainsTo(each.drain_to.name ?? `#${each.drain_to.id}`)}
          </Badge>
        )}
      </Table.Td>
      <Table.Td className="num">
        {each.reachable && each.round_trip_us !== null
          ? micros(each.round_trip_us, t.units.ms)
          : '—'}
      </Table.Td>
      <Table.Td className="num">{count(each.types)}</Table.Td>
      <Table.Td className="num wide-only">
        {each.memory_bytes === null ? '—' : bytes(each.memory_bytes)}
      </Table.Td>
    </Table.Tr>
  );
}

/** Whether something answers, and why not. */
export function Reach({ reachable, error }: { reachable: boolean; error: string | null }) {
  const t = useT();
  return (
    <>
      <Badge tone={reachable ? 'ok' : 'bad'}>{reachable ? t.common.answers : t.common.down}</Badge>
      {!reachable && error && <span className="why">{error}</span>}
    </>
  );
}

function Nodes({ nodes, answering }: { nodes: NodeReport[]; answering: string }) {
  const t = useT();
  const versions = new Set(nodes.map((node) => node.version));
  // The largest unit is enough here.
  const span = (ms: number) => duration(ms / 1000, t.units).split(' ')[0];
  return (
    <Card title={t.overview.nodes} className="nodes" flush>
      <Table id="nodes" data-live>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t.overview.node}</Table.Th>
            <Table.Th scope="col">{t.common.state}</Table.Th>
            <Table.Th scope="col" className="num">
              {t.overview.idsPerS}
            </Table.Th>
            <Table.Th scope="col" className="num wide-only">
              {t.overview.errors}
            </Table.Th>
            <Table.Th scope="col">{t.overview.version}</Table.Th>
            <Table.Th scope="col" className="num wide-only">
              {t.overview.started}
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {nodes.map((node) => {
            const away = node.parts.filter((part) => !part.reachable);
            return (
              <Table.Tr key={node.node} className={node.silent ? 'dim' : undefined}>
                <Table.Th scope="row" title={`${t.overview.http}: ${node.http}`}>
                  <span className="cut">{node.node}</span>
                  {node.node === answering && <small className="mute"> {t.overview.this}</small>}
                </Table.Th>
                <Table.Td>
                  {node.silent ? (
                    <Badge tone="bad">
                      {t.overview.silent(duration(node.age_ms / 1000, t.units))}
                    </Badge>
                  ) : node.draining ? (
                    <Badge tone="info">{t.overview.stopping}</Badge>
                  ) : away.length > 0 ? (
                    <Badge
                      tone="warn"
                      title={away.map((p) => `${p.name}: ${p.error ?? ''}`).join('\n')}
                    >
                      {t.overview.lacks(away.map((part) => part.name).join(', '))}
                    </Badge>
                  ) : (
                    <Badge tone="ok">{t.overview.fine}</Badge>
                  )}
                </Table.Td>
                <Table.Td className="num">{node.silent ? '—' : short(node.ids_per_s)}</Table.Td>
                <Table.Td className="num wide-only">
                  {node.silent ? '—' : short(node.errors_per_s)}
                </Table.Td>
                <Table.Td className="nowrap">
                  {node.version} {versions.size > 1 && <Icon name="alert" />}
                </Table.Td>
                <Table.Td className="num wide-only">{span(serverNow() - node.started_ms)}</Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Card>
  );
}
