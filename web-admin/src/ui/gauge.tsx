/** Where a type stands in its current range: start, now, when the next is loaded, end. */
import type { Dispatcher, Local, TypeRecord } from '../api/types';
import { useT } from '../i18n';
import { count, short } from '../lib/format';
import { big, hasPositions, numberAt, percentIn } from '../lib/ids';

export function Gauge({
  type,
  dispatcher,
  local,
  large,
}: {
  type: Pick<TypeRecord, 'mode' | 'options' | 'state'>;
  dispatcher: Dispatcher | null | undefined;
  local: Local | null | undefined;
  large?: boolean;
}) {
  const t = useT();
  if (type.mode === 'snowflake') {
    return (
      <span className="mute">
        {local?.worker != null ? t.gauge.worker(local.worker) : t.gauge.clock}
      </span>
    );
  }
  const range = dispatcher?.current;
  if (dispatcher && range) {
    const shown = (position: bigint) => String(numberAt(position, type));
    const [start, end] = [big(range.start), big(range.end)];
    const cursor = big(dispatcher.cursor);
    const used = percentIn(cursor, start, end);
    const due = percentIn(big(dispatcher.update_id), start, end);
    const label = t.gauge.label(
      shown(start),
      shown(cursor),
      shown(big(dispatcher.update_id)),
      shown(end - 1n),
    );
    const sealed = dispatcher.sealed !== null;
    return (
      <div className={large ? 'gauge large' : 'gauge'} title={label}>
        <div
          className={`track ${dispatcher.live && !sealed ? '' : 'off'}`}
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(used)}
        >
          <span className="used" style={{ width: `${used}%` }} />
          <span className="due" style={{ left: `${due}%` }} />
          <span className="now" style={{ left: `${used}%` }} />
        </div>
        {large ? (
          <div className="marks">
            <span>
              <small>{t.gauge.start}</small>
              <b className="mono">{shown(start)}</b>
            </span>
            <span>
              <small>{hasPositions(type) ? t.gauge.position : t.gauge.now}</small>
              <b className="mono">{shown(cursor)}</b>
            </span>
            <span>
              <small>{t.gauge.due}</small>
              <b className="mono">{shown(big(dispatcher.update_id))}</b>
            </span>
            <span>
              <small>{t.gauge.end}</small>
              <b className="mono">{shown(end - 1n)}</b>
            </span>
          </div>
        ) : (
          <div className="marks">
            <span className="mono">{shown(start)}</span>
            <b className="mono">{shown(cursor)}</b>
            <span className="mono">{shown(end - 1n)}</span>
          </div>
        )}
        {large && (
          <p className="hint">
            {sealed
              ? t.gauge.sealed
              : dispatcher.live
                ? t.gauge.left(count(dispatcher.left))
                : t.gauge.dead}
            {dispatcher.second &&
              ` ${t.gauge.second(shown(big(dispatcher.second.start)), shown(big(dispatcher.second.end) - 1n))}`}
          </p>
        )}
      </div>
    );
  }
  if (local && (local.ranges > 0 || local.left > 0)) {
    return (
      <span>
        {large
          ? t.gauge.local(count(local.left), String(local.ranges), String(local.ahead))
          : t.gauge.localShort(short(local.left), String(local.ranges))}
      </span>
    );
  }
  return <span className="mute">{dispatcher ? t.gauge.none : '—'}</span>;
}
