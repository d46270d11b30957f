/**
 * Ids and positions: decimal text of 64 bits, computed with as BigInt, because
 * JavaScript's numbers end at 2^53.
 */
import type { IdText, TypeRecord } from '../api/types';

export const HIGHEST_ID = (1n << 63n) - 2n;
/** A position of a calendar series is `period << 40 | number`. */
const PERIOD_BITS = 40n;
const SCALE = 1_000_000_000n;

/** The number that `text` writes in decimal digits; null for anything else. */
export function parseId(text: string): bigint | null {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : null;
}

/** An id of the API. Tolerates a number, where the node knows no text form. */
export function big(id: IdText | number | null | undefined): bigint {
  if (typeof id === 'number') return BigInt(Math.trunc(id));
  return id && /^-?\d+$/.test(id) ? BigInt(id) : 0n;
}

/** Which part of `whole` is `part`, from 0 to 1, to a billionth. */
export function share(part: bigint, whole: bigint): number {
  if (whole <= 0n) return 0;
  const share = Number((part * SCALE) / whole) / Number(SCALE);
  // Little is not nothing, and nearly all is not all.
  if (part > 0n && share === 0) return 1 / Number(SCALE);
  return Math.min(1, Math.max(0, share));
}

/** Whether positions of the type differ from its ids. */
export function hasPositions(type: Pick<TypeRecord, 'mode' | 'options'>): boolean {
  const { at_limit, opaque, sites, calendar } = type.options;
  return (
    type.mode === 'sharded' || at_limit === 'cycle' || !!opaque || !!sites || calendar !== undefined
  );
}

/** The number within its period of a position of a calendar series; else itself. */
export function numberAt(position: bigint, type: Pick<TypeRecord, 'options'>): bigint {
  return type.options.calendar ? position & ((1n << PERIOD_BITS) - 1n) : position;
}

/** Which part of the ids of a type is given away, from 0 to 1; null where nothing is counted. */
export function usedShare(type: TypeRecord): number | null {
  if (type.mode === 'snowflake') return null;
  const first = big(type.first_id);
  const next = numberAt(big(type.next_id), type);
  return share(next - first, big(type.max_position) - first + 1n);
}

/** How many positions are left; null where nothing is counted. */
export function leftOf(type: TypeRecord): bigint | null {
  if (type.mode === 'snowflake') return null;
  const left = big(type.max_position) + 1n - numberAt(big(type.next_id), type);
  return left > 0n ? left : 0n;
}

/** Where `at` lies between `start` and `end`, in per cent. */
export function percentIn(at: bigint, start: bigint, end: bigint): number {
  return share(at - start, end - start) * 100;
}
