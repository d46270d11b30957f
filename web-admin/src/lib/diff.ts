/** What changed between two settings, as rows that one can read. */
import { canonical } from './draft';

export interface Difference {
  /** `max_range`, `options.format`. */
  path: string;
  before: string | null;
  after: string | null;
}

/** A settings object as one level of paths; other values stand under the empty path. */
export function flatten(value: unknown, path = ''): Map<string, string> {
  const found = new Map<string, string>();
  if (value === null || value === undefined) return found;
  if (typeof value === 'object' && !Array.isArray(value)) {
    for (const [name, each] of Object.entries(value)) {
      const inner = path === '' ? name : `${path}.${name}`;
      for (const [key, text] of flatten(each, inner)) found.set(key, text);
    }
    return found;
  }
  found.set(path, typeof value === 'string' ? value : canonical(value));
  return found;
}

export function differences(before: unknown, after: unknown): Difference[] {
  const [old, now] = [flatten(before), flatten(after)];
  const rows: Difference[] = [];
  for (const path of new Set([...old.keys(), ...now.keys()])) {
    const row = { path, before: old.get(path) ?? null, after: now.get(path) ?? null };
    if (row.before !== row.after) rows.push(row);
  }
  return rows;
}

/** Who has what, where a change met another one. */
export interface Conflict {
  path: string;
  base: string | null;
  theirs: string | null;
  mine: string | null;
  /** Both changed it, to different values. */
  clash: boolean;
}

export function conflicts(base: unknown, theirs: unknown, mine: unknown): Conflict[] {
  const [b, h, m] = [flatten(base), flatten(theirs), flatten(mine)];
  const rows: Conflict[] = [];
  for (const path of new Set([...b.keys(), ...h.keys(), ...m.keys()])) {
    const row = {
      path,
      base: b.get(path) ?? null,
      theirs: h.get(path) ?? null,
      mine: m.get(path) ?? null,
    };
    if (row.base === row.theirs && row.base === row.mine) continue;
    const clash = row.theirs !== row.base && row.mine !== row.base && row.theirs !== row.mine;
    rows.push({ ...row, clash });
  }
  return rows;
}
