/** The settings of a type as they stand in a form: all text, as typed. */
import type { Mode, NewType, Settings, TypeOptions, TypeRecord } from '../api/types';
import { HIGHEST_ID } from './ids';

export interface Draft {
  name: string;
  mode: Mode;
  instance: string;
  prefix: string;
  description: string;
  first_id: string;
  max_id: string;
  min_range: string;
  max_range: string;
  load_interval_ms: string;
  load_percentage: string;
  lock_ttl_ms: string;
  cycle: boolean;
  redisLossSegment: boolean;
  format: string;
  calendar: '' | 'daily' | 'monthly' | 'yearly';
  time_zone: string;
  opaque: boolean;
  slices: string;
  app_id: string;
  layout: boolean;
  time_bits: string;
  worker_bits: string;
  sequence_bits: string;
  unit: 'ms' | 's';
  epoch: string;
  sites: boolean;
  site_count: string;
  site: string;
}

/** 2010-11-04T01:42:54.657Z: that of Leaf and Twitter. */
export const LEAF_EPOCH_MS = 1_288_834_974_657;

export const FRESH: Draft = {
  name: '',
  mode: 'strict',
  instance: '',
  prefix: '',
  description: '',
  first_id: '1',
  max_id: '',
  min_range: '1000',
  max_range: '100000000',
  load_interval_ms: '600000',
  load_percentage: '0.1',
  lock_ttl_ms: '10000',
  cycle: false,
  redisLossSegment: false,
  format: '',
  calendar: '',
  time_zone: '',
  opaque: false,
  slices: '16',
  app_id: '',
  layout: false,
  time_bits: '41',
  worker_bits: '10',
  sequence_bits: '12',
  unit: 'ms',
  epoch: new Date(LEAF_EPOCH_MS).toISOString(),
  sites: false,
  site_count: '2',
  site: '0',
};

export function draftOf(type: TypeRecord): Draft {
  const { options } = type;
  const { snowflake, sites } = options;
  return {
    name: type.name,
    mode: type.mode,
    instance: String(type.instance),
    prefix: type.prefix,
    description: type.description,
    first_id: type.first_id,
    max_id: type.max_id,
    min_range: String(type.min_range),
    max_range: String(type.max_range),
    load_interval_ms: String(type.load_interval_ms),
    load_percentage: String(type.load_percentage),
    lock_ttl_ms: String(type.lock_ttl_ms),
    cycle: options.at_limit === 'cycle',
    redisLossSegment: options.on_redis_loss === 'segment',
    format: options.format ?? '',
    calendar: options.calendar ?? '',
    time_zone: options.time_zone ?? '',
    opaque: options.opaque !== undefined,
    slices: String(options.opaque?.slices ?? FRESH.slices),
    app_id: options.app_id === undefined ? '' : String(options.app_id),
    layout: snowflake !== undefined,
    time_bits: String(snowflake?.time_bits ?? FRESH.time_bits),
    worker_bits: String(snowflake?.worker_bits ?? FRESH.worker_bits),
    sequence_bits: String(snowflake?.sequence_bits ?? FRESH.sequence_bits),
    unit: snowflake?.unit ?? 'ms',
    epoch: new Date(snowflake?.epoch_ms ?? LEAF_EPOCH_MS).toISOString(),
    sites: sites !== undefined,
    site_count: String(sites?.count ?? FRESH.site_count),
    site: String(sites?.site ?? FRESH.site),
  };
}

/** Which options a mode knows; the others are neither shown nor sent. */
export const FITS: Record<
  'cycle' | 'opaque' | 'calendar' | 'redisLossSegment' | 'app_id' | 'sites' | 'layout',
  readonly Mode[]
> = {
  cycle: ['strict', 'segment', 'sharded'],
  opaque: ['strict', 'segment', 'sharded'],
  calendar: ['strict', 'segment'],
  redisLossSegment: ['strict'],
  app_id: ['sharded'],
  sites: ['segment'],
  layout: ['snowflake'],
};

const fits = (draft: Draft, option: keyof typeof FITS) => FITS[option].includes(draft.mode);

export function optionsOf(draft: Draft): TypeOptions {
  const options: TypeOptions = {};
  if (draft.cycle && fits(draft, 'cycle')) options.at_limit = 'cycle';
  if (draft.redisLossSegment && fits(draft, 'redisLossSegment')) options.on_redis_loss = 'segment';
  if (draft.format !== '') options.format = draft.format;
  if (draft.calendar !== '' && fits(draft, 'calendar')) options.calendar = draft.calendar;
  if (draft.time_zone.trim() !== '') options.time_zone = draft.time_zone.trim();
  if (draft.opaque && fits(draft, 'opaque')) options.opaque = { slices: whole(draft.slices) };
  if (draft.app_id !== '' && fits(draft, 'app_id')) options.app_id = whole(draft.app_id);
  if (draft.layout && fits(draft, 'layout')) {
    options.snowflake = {
      time_bits: whole(draft.time_bits),
      worker_bits: whole(draft.worker_bits),
      sequence_bits: whole(draft.sequence_bits),
      unit: draft.unit,
      epoch_ms: Date.parse(draft.epoch),
    };
  }
  if (draft.sites && fits(draft, 'sites')) {
    options.sites = { count: whole(draft.site_count), site: whole(draft.site) };
  }
  return options;
}

/** What a body holds that the rules let through; they are all below 2^53. */
const whole = (text: string): number => Number(text);

export function settingsOf(draft: Draft): Settings {
  return {
    mode: draft.mode,
    prefix: draft.prefix,
    description: draft.description,
    max_id: draft.max_id === '' ? String(HIGHEST_ID) : draft.max_id,
    min_range: whole(draft.min_range),
    max_range: whole(draft.max_range),
    load_interval_ms: whole(draft.load_interval_ms),
    load_percentage: Number(draft.load_percentage),
    lock_ttl_ms: whole(draft.lock_ttl_ms),
    options: optionsOf(draft),
  };
}

/** The body of `POST /types`. What is left out has its default there. */
export function newTypeOf(draft: Draft): NewType {
  const { max_id: _, mode, ...settings } = settingsOf(draft);
  const body: NewType = { name: draft.name, mode, ...settings };
  if (mode !== 'snowflake') {
    if (draft.first_id !== '') body.first_id = draft.first_id;
    if (draft.max_id !== '') body.max_id = draft.max_id;
  }
  if (draft.instance !== '') body.instance = draft.instance;
  return body;
}

/** The settings of a record that can be changed. */
export function settingsIn(type: TypeRecord): Settings {
  return {
    mode: type.mode,
    prefix: type.prefix,
    description: type.description,
    max_id: type.max_id,
    min_range: type.min_range,
    max_range: type.max_range,
    load_interval_ms: type.load_interval_ms,
    load_percentage: type.load_percentage,
    lock_ttl_ms: type.lock_ttl_ms,
    options: type.options,
  };
}

/** Only what `now` has otherwise than `before`. */
export function changes(before: Settings, now: Settings): Partial<Settings> {
  const found = Object.entries(now).filter(
    ([field, value]) => canonical(value) !== canonical(before[field as keyof Settings]),
  );
  return Object.fromEntries(found) as Partial<Settings>;
}

/** A text that is the same for the same value, whatever the order of its fields. */
export function canonical(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join()}}`;
}
