/**
 * The rules of a type (docs/id-types.md), for an answer while one types. The node
 * has the last word: what is missing here it refuses, and names the same field.
 */
import type { Dictionary } from '../i18n/en';
import { type Draft, FITS } from './draft';
import { HIGHEST_ID, parseId } from './ids';

/** Messages by the field that the API would name. */
export type Errors = Partial<Record<string, string>>;

const LONGEST_RANGE = 1_000_000_000_000n;
const SMALLEST_SLICE = 1_000_000n;
const MAX_PERIOD_NUMBER = (1n << 40n) - 2n;
export const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

export function check(draft: Draft, t: Dictionary): Errors {
  const errors: Errors = {};
  const r = t.rules;
  const fits = (option: keyof typeof FITS) => FITS[option].includes(draft.mode);
  const put = (field: string, text: string | null) => {
    if (text !== null) errors[field] ??= text;
  };
  const within = (field: string, text: string, low: bigint, high: bigint): bigint | null => {
    const value = parseId(text);
    if (value === null) put(field, r.whole);
    else if (value < low || value > high) put(field, r.within(String(low), String(high)));
    else return value;
    return null;
  };

  if (!NAME.test(draft.name)) put('name', draft.name === '' ? r.missing : r.name);
  if ([...draft.prefix].length > 64) put('prefix', r.length(64));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/.test(draft.prefix)) put('prefix', r.control);
  if (new TextEncoder().encode(draft.description).length > 65_535)
    put('description', r.bytes(65_535));

  const min = within('min_range', draft.min_range, 1n, LONGEST_RANGE);
  within('max_range', draft.max_range, min ?? 1n, LONGEST_RANGE);
  within('load_interval_ms', draft.load_interval_ms, 1n, 86_400_000n);
  within('lock_ttl_ms', draft.lock_ttl_ms, 1_000n, 600_000n);
  const part = Number(draft.load_percentage);
  if (draft.load_percentage.trim() === '' || !(part >= 0 && part <= 1)) {
    put('load_percentage', r.within('0', '1'));
  }

  const format = draft.format === '' ? null : parseFormat(draft.format, r);
  if (format?.error) put('format', format.error);
  const calendar = fits('calendar') && draft.calendar !== '';
  const cycle = fits('cycle') && draft.cycle;
  const opaque = fits('opaque') && draft.opaque;
  const sites = fits('sites') && draft.sites;
  if (draft.time_zone.trim() !== '' && !format?.date) put('time_zone', r.zoneNeedsDate);
  if (opaque && cycle) put('opaque', r.clash(t.option.opaque, t.option.cycle));
  if (calendar) {
    if (opaque) put('opaque', r.clash(t.option.opaque, t.option.calendar));
    if (cycle) put('at_limit', r.clash(t.option.cycle, t.option.calendar));
    if (sites) put('sites', r.clash(t.option.sites, t.option.calendar));
    if (format === null) put('format', r.calendarFormat);
    else if (!format.error) put('format', calendarDate(draft.calendar, format.date, r));
  }
  if (fits('app_id')) {
    if (draft.app_id === '') put('app_id', r.missing);
    else within('app_id', draft.app_id, 0n, 255n);
  }
  if (fits('layout') && draft.layout) checkLayout(draft, within, put, r);

  if (draft.mode === 'snowflake') {
    if (format && !format.error && format.highest !== null && format.highest < HIGHEST_ID) {
      put('format', r.snowflakeWidth);
    }
    return errors;
  }
  const first = within('first_id', draft.first_id, 1n, HIGHEST_ID);
  let count = 0n;
  if (sites) {
    const all = within('sites.count', draft.site_count, 2n, 1024n);
    count = all ?? 0n;
    within('sites.site', draft.site, 0n, (all ?? 1024n) - 1n);
  }
  const most = calendar ? MAX_PERIOD_NUMBER : HIGHEST_ID;
  const width = format?.highest ?? null;
  const given = draft.max_id === '' ? null : within('max_id', draft.max_id, first ?? 1n, most);
  if (draft.max_id !== '' && given === null) return errors;
  const highest = given ?? (width !== null && width < most ? width : most);
  if (width !== null && highest > width) put('format', r.width(String(width)));
  const number =
    draft.mode === 'sharded'
      ? ((highest + 1n) >> 14n) - 1n
      : count > 0n
        ? (highest - (parseId(draft.site) ?? 0n)) / count
        : highest;
  if (first !== null && first > number) put('max_id', r.noRoom);
  if (opaque) {
    const slices = within('opaque.slices', draft.slices, 1n, 1024n);
    if (slices !== null && number < slices * SMALLEST_SLICE) put('max_id', r.slices);
  }
  return errors;
}

function checkLayout(
  draft: Draft,
  within: (field: string, text: string, low: bigint, high: bigint) => bigint | null,
  put: (field: string, text: string | null) => void,
  r: Dictionary['rules'],
): void {
  const bits = [
    within('snowflake.time_bits', draft.time_bits, 28n, 53n),
    within('snowflake.worker_bits', draft.worker_bits, 1n, 20n),
    within('snowflake.sequence_bits', draft.sequence_bits, 1n, 24n),
  ];
  const sum = bits.reduce<bigint>((all, each) => all + (each ?? 0n), 0n);
  if (sum > 63n) put('snowflake.time_bits', r.bits(String(sum)));
  const epoch = Date.parse(draft.epoch);
  if (Number.isNaN(epoch)) put('snowflake.epoch_ms', r.time);
  else if (epoch < 0 || epoch > Date.now()) put('snowflake.epoch_ms', r.epoch);
}

export interface FormatInfo {
  error: string | null;
  /** All date patterns together; empty without a date. */
  date: string;
  /** The highest number that fits in the padding; null where there is none. */
  highest: bigint | null;
}

const CHECKS = ['luhn', 'mod11-2', 'mod37-2', 'mod97-10', 'mod37-36'];
const DATE = /^(?:yyyy|yy|MM|dd|HH|mm|ss|[-._/])+$/;

/** What the form needs to know of a format. Counts characters as the node does, from 1. */
export function parseFormat(text: string, r: Dictionary['rules']): FormatInfo {
  const info: FormatInfo = { error: null, date: '', highest: null };
  const wrong = (at: number, what: string): FormatInfo => ({ ...info, error: r.format(at, what) });
  const characters = [...text];
  if (characters.length > 255) return { ...info, error: r.length(255) };
  let radix = 0;
  let checked = false;
  for (let i = 0; i < characters.length; i += 1) {
    const c = characters[i];
    if ((c === '{' || c === '}') && characters[i + 1] === c) {
      i += 1;
      continue;
    }
    if (c === '}') return wrong(i + 1, r.braceCloses);
    if (c !== '{') continue;
    const end = characters.indexOf('}', i);
    const inside = end < 0 ? '{' : characters.slice(i + 1, end).join('');
    if (inside.includes('{')) return wrong(i + 1, r.braceOpen);
    const [name = '', argument] = split(inside);
    if (checked) return wrong(i + 1, r.afterCheck);
    if (name === 'seq' || name === 'seq36' || name === 'seq62') {
      if (radix > 0) return wrong(i + 1, r.twoNumbers);
      radix = name === 'seq' ? 10 : Number(name.slice(3));
      if (argument !== undefined) {
        const width = /^0([1-9]\d*)$/.exec(argument)?.[1];
        if (width === undefined || Number(width) > 20) return wrong(i + 1, r.seqWidth);
        const highest = BigInt(radix) ** BigInt(width) - 1n;
        info.highest = Number(width) === 1 ? null : highest < HIGHEST_ID ? highest : HIGHEST_ID;
      }
    } else if (name === 'date' && argument !== undefined) {
      if (!DATE.test(argument)) return wrong(i + 1, r.datePattern);
      info.date += argument;
    } else if (name === 'check' && argument !== undefined) {
      if (!CHECKS.includes(argument)) return wrong(i + 1, r.checkName);
      if (radix === 0) return wrong(i + 1, r.checkFirst);
      if (radix === 62 || (radix === 36 && ['luhn', 'mod11-2'].includes(argument))) {
        return wrong(i + 1, r.checkRadix);
      }
      checked = true;
    } else if (name !== 'prefix' || argument !== undefined) {
      return wrong(i + 1, r.part);
    }
    i = end;
  }
  if (radix === 0) return wrong(characters.length + 1, r.noNumber);
  return info;
}

function split(inside: string): [string, string | undefined] {
  const at = inside.indexOf(':');
  return at < 0 ? [inside, undefined] : [inside.slice(0, at), inside.slice(at + 1)];
}

function calendarDate(
  calendar: Draft['calendar'],
  date: string,
  r: Dictionary['rules'],
): string | null {
  if (/HH|mm|ss/.test(date)) return r.calendarTime;
  const needed = { daily: ['yy', 'MM', 'dd'], monthly: ['yy', 'MM'], yearly: ['yy'], '': [] };
  return needed[calendar].every((part) => date.includes(part)) ? null : r.calendarFormat;
}
