/** Search, filter and order of the list of types, all of it here: 10 000 are few for a browser. */
import type { Attention, TypeRecord } from '../api/types';
import { big, usedShare } from './ids';

export const SORTS = ['name', 'load', 'range', 'used', 'changed', 'created'] as const;
export type Sort = (typeof SORTS)[number];
export const SHOWS = ['all', 'attention', 'moving', 'unused'] as const;
export type Show = (typeof SHOWS)[number];

export interface Wanted {
  /** Parts of name, prefix or description, all of which must occur. */
  text: string;
  mode: string;
  state: string;
  /** Number of an instance. */
  instance: string;
  show: Show;
  sort: Sort;
  /** The other way round. */
  back: boolean;
}

export const PLAIN: Wanted = {
  text: '',
  mode: '',
  state: '',
  instance: '',
  show: 'all',
  sort: 'name',
  back: false,
};

/** From the query of the address; what is not known there is passed over. */
export function wantedOf(search: string): Wanted {
  const query = new URLSearchParams(search);
  const one = <T extends string>(name: string, of: readonly T[], other: T): T =>
    of.find((each) => each === query.get(name)) ?? other;
  return {
    text: query.get('q') ?? '',
    mode: query.get('mode') ?? '',
    state: query.get('state') ?? '',
    instance: query.get('instance') ?? '',
    show: one('show', SHOWS, 'all'),
    sort: one('sort', SORTS, 'name'),
    back: query.get('back') === '1',
  };
}

/** The query of the address; only what is not plain. */
export function searchOf(wanted: Wanted): string {
  const query = new URLSearchParams();
  if (wanted.text !== '') query.set('q', wanted.text);
  for (const name of ['mode', 'state', 'instance'] as const) {
    if (wanted[name] !== '') query.set(name, wanted[name]);
  }
  if (wanted.show !== 'all') query.set('show', wanted.show);
  if (wanted.sort !== 'name') query.set('sort', wanted.sort);
  if (wanted.back) query.set('back', '1');
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

const keys: Record<Sort, (type: TypeRecord) => string | number | bigint> = {
  name: (type) => type.name,
  // The latest, longest, fullest first: what one looks for.
  load: (type) => -(type.last_load_ms ?? 0),
  range: (type) => -(type.last_range ?? 0),
  used: (type) => -(usedShare(type) ?? -1),
  changed: (type) => -type.updated_ms,
  created: (type) => -type.created_ms,
};

export function select(
  types: readonly TypeRecord[],
  wanted: Wanted,
  attention: readonly Attention[],
): TypeRecord[] {
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  const troubled = new Set(attention.map((item) => item.subject.type));
  const found = types.filter(
    (type) =>
      (wanted.mode === '' || type.mode === wanted.mode) &&
      (wanted.state === '' || type.state === wanted.state) &&
      (wanted.instance === '' ||
        String(type.instance) === wanted.instance ||
        String(type.moving_to) === wanted.instance) &&
      (wanted.show === 'all' ||
        (wanted.show === 'attention' && troubled.has(type.name)) ||
        (wanted.show === 'moving' && type.moving_to !== null) ||
        (wanted.show === 'unused' && !hasIssued(type))) &&
      words.every(
        (word) =>
          type.name.toLowerCase().includes(word) ||
          type.prefix.toLowerCase().includes(word) ||
          type.description.toLowerCase().includes(word),
      ),
  );
  const key = keys[wanted.sort];
  const keyed = found.map((type) => [key(type), type] as const);
  keyed.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x.name < y.name ? -1 : 1));
  const sorted = keyed.map(([, type]) => type);
  return wanted.back ? sorted.reverse() : sorted;
}

/** Whether a range was ever given away: mode and options are fixed then. */
export function hasIssued(type: TypeRecord): boolean {
  return type.last_load_ms !== null || big(type.next_id) !== big(type.first_id);
}
