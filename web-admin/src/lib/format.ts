/** How numbers, times and durations are written. The same in every language, but for units. */

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `1 234 567`, with narrow no-break spaces, which no language takes for a decimal sign. */
export function count(value: number | bigint | string): string {
  const number = typeof value === 'string' ? BigInt(value) : value;
  return grouped.format(number).replaceAll(',', '\u202f');
}

const STEPS: [number, string][] = [
  [1e18, 'E'],
  [1e15, 'P'],
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** Three digits and a magnitude: `12.3 k`. For rates and lengths at a glance. */
export function short(value: number): string {
  const size = Math.abs(value);
  for (const [step, letter] of STEPS) {
    // 999 950 would be written 1000 k.
    if (size >= step * 0.99995) return `${digits(value / step)}\u202f${letter}`;
  }
  return digits(value);
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1).replace(/\.0$/, '');
  if (size === 0) return '0';
  return value.toFixed(size >= 1 ? 2 : size >= 0.1 ? 2 : 3).replace(/\.?0+$/, '');
}

export interface Units {
  ms: string;
  s: string;
  min: string;
  h: string;
  d: string;
  y: string;
}

/** The two largest units of a duration: `3 h 10 min`, `45 s`, `12 y`. */
export function duration(seconds: number, u: Units): string {
  if (!Number.isFinite(seconds)) return '∞';
  const s = Math.max(0, seconds);
  if (s === 0) return `0\u202f${u.s}`;
  if (s < 1) return `${Math.round(s * 1000)}\u202f${u.ms}`;
  if (s < 10) return `${Math.floor(s * 10) / 10}\u202f${u.s}`;
  const whole = Math.floor(s);
  const years = s / 31_556_952;
  if (years >= 1_000) return `>\u202f1\u202f000\u202f${u.y}`;
  const parts: [number, string][] =
    years >= 1
      ? [
          [Math.floor(years), u.y],
          [years < 10 ? Math.floor((years % 1) * 365) : 0, u.d],
        ]
      : [
          [Math.floor(whole / 86_400), u.d],
          [Math.floor(whole / 3_600) % 24, u.h],
          [Math.floor(whole / 60) % 60, u.min],
          [whole % 60, u.s],
        ];
  const first = parts.findIndex(([n]) => n > 0);
  return parts
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => `${n}\u202f${unit}`)
    .join(' ');
}

const two = (n: number): string => String(n).padStart(2, '0');

/** `2026-11-21 20:58:03` in the time zone of the browser. */
export function dateTime(ms: number): string {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '—';
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The time alone on the day of `now`, else date and minute. */
export function when(ms: number, now: number): string {
  const full = dateTime(ms);
  return dateTime(now).slice(0, 10) === full.slice(0, 10) ? full.slice(11) : full.slice(0, 16);
}

/** `2026-11-21T19:58:03.000Z`, for the title of a time. */
export function iso(ms: number): string {
  const d = new Date(ms);
  return Number.isNaN(d.getTime()) ? '' : d.toISOString();
}

/** A round trip in microseconds as milliseconds: `0.25 ms`. */
export function micros(us: number, unit: string): string {
  const ms = us / 1000;
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)}\u202f${unit}`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size >= 100 || unit === 0 ? size.toFixed(0) : size.toFixed(1)}\u202f${units[unit]}`;
}

/** `12.3 %`, and never 0 or 100 for what is neither. */
export function percent(share: number): string {
  const p = share * 100;
  if (p > 0 && p < 0.1) return '<\u202f0.1\u202f%';
  if (p < 100 && p > 99.9) return '>\u202f99.9\u202f%';
  return `${p.toFixed(p >= 10 || p === 0 ? 0 : 1)}\u202f%`;
}
