/** A course over time, drawn by uPlot, with its numbers as a table beside it. */
import { Table, useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useT } from '../i18n';
import { dateTime, short } from '../lib/format';

export interface ChartProps {
  title: string;
  unit: string;
  /** Milliseconds of the Unix epoch, ascending. */
  at: readonly number[];
  /** null where nothing is known: a gap. */
  values: readonly (number | null)[];
  from?: number;
  to?: number;
  /** `points` for what happens now and then, instead of a line. */
  kind?: 'line' | 'points';
  height?: number;
}

const ROWS = 200;

export default function Chart({
  title,
  unit,
  at,
  values,
  from,
  to,
  kind = 'line',
  height = 150,
}: ChartProps) {
  const t = useT();
  const scheme = useComputedColorScheme('light');
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const pointed = useRef<HTMLParagraphElement>(null);
  const data = useRef<{ at: readonly number[]; values: readonly (number | null)[] }>(null);
  const span = useRef<[number, number]>([0, 0]);
  data.current = { at, values };
  span.current = [(from ?? at[0] ?? 0) / 1000, (to ?? at.at(-1) ?? 1) / 1000];

  // A chart is made once a scheme, a width and a kind; its data go in below.
  // biome-ignore lint/correctness/useExhaustiveDependencies: colours are read from the scheme
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    // What lies under the pointer, in words below.
    const tell = (chart: uPlot) => {
      const index = chart.cursor.idx;
      const ms = index == null ? undefined : data.current?.at[index];
      const value = index == null ? null : data.current?.values[index];
      if (pointed.current) {
        pointed.current.textContent =
          ms === undefined
            ? ''
            : `${dateTime(ms)}   ${value == null ? '—' : `${short(value)} ${unit}`}`;
      }
    };
    const make = () => {
      plot.current?.destroy();
      const style = getComputedStyle(element);
      const color = (name: string) => style.getPropertyValue(name).trim();
      const axis = {
        stroke: color('--mute'),
        grid: { stroke: color('--line'), width: 1 },
        ticks: { show: false },
        font: '11px system-ui, sans-serif',
      };
      const series: uPlot.Series = {
        label: unit,
        stroke: color('--accent'),
        width: 1.5,
        fill: kind === 'line' ? color('--accent-soft') : undefined,
        paths: kind === 'points' ? () => null : undefined,
        points: { show: kind === 'points', size: 5, fill: color('--accent') },
      } as uPlot.Series;
      plot.current = new uPlot(
        {
          width: Math.max(80, element.clientWidth),
          height,
          padding: [8, 8, 0, 0],
          legend: { show: false },
          hooks: { setCursor: [tell] },
          cursor: { y: false, drag: { x: false, y: false } },
          scales: {
            x: { time: true, range: () => span.current },
            y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
          },
          axes: [
            {
              ...axis,
              size: 26,
              space: 70,
              values: (_, ticks) => ticks.map((tick) => label(tick * 1000, span.current)),
            },
            { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => short(tick)) },
          ],
          series: [{}, series],
        },
        aligned(data.current),
        element,
      );
    };
    make();
    const resize = new ResizeObserver(() => {
      plot.current?.setSize({ width: Math.max(80, element.clientWidth), height });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [kind, unit, height, scheme]);

  useEffect(() => {
    plot.current?.setData(aligned({ at, values }));
  }, [at, values]);

  const known = values.filter((value) => value !== null);
  const highest = known.length > 0 ? Math.max(...known) : null;
  const last = values.at(-1) ?? null;
  const summary = t.chart.summary(
    title,
    last === null ? '—' : `${short(last)} ${unit}`,
    highest === null ? '—' : `${short(highest)} ${unit}`,
  );
  const from0 = Math.max(0, at.length - ROWS);
  return (
    <figure className="chart" data-live>
      <div ref={box} role="img" aria-label={summary} style={{ minHeight: height }} />
      <p ref={pointed} className="pointed" aria-hidden="true" />
      {known.length === 0 && <figcaption className="nothing">{t.chart.none}</figcaption>}
      <details>
        <summary>{t.chart.table}</summary>
        <div className="scroll" tabIndex={0} role="group" aria-label={title}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">{t.common.time}</Table.Th>
                <Table.Th scope="col" className="num">
                  {title} ({unit})
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {at
                .slice(from0)
                .map((ms, index) => ({ ms, value: values[from0 + index] ?? null }))
                .reverse()
                .map(({ ms, value }) => (
                  <Table.Tr key={ms}>
                    <Table.Td>{dateTime(ms)}</Table.Td>
                    <Table.Td className="num">{value === null ? '—' : short(value)}</Table.Td>
                  </Table.Tr>
                ))}
            </Table.Tbody>
          </Table>
        </div>
      </details>
    </figure>
  );
}

function aligned(
  data: { at: readonly number[]; values: readonly (number | null)[] } | null,
): uPlot.AlignedData {
  if (data === null) return [[], []];
  return [data.at.map((ms) => ms / 1000), [...data.values]];
}

/** Hours and minutes within a day, else the date. */
function label(ms: number, [from, to]: [number, number]): string {
  const full = dateTime(ms);
  return to - from > 2 * 86_400 ? full.slice(5, 10) : full.slice(11, 16);
}
