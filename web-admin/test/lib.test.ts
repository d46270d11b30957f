import { describe, expect, it } from 'vitest';
import type { TypeRecord } from '../src/api/types';
import { conflicts, differences } from '../src/lib/diff';
import { changes, draftOf, FRESH, newTypeOf, settingsIn, settingsOf } from '../src/lib/draft';
import { bytes, count, duration, micros, percent, short, when } from '../src/lib/format';
import { big, leftOf, numberAt, parseId, percentIn, share, usedShare } from '../src/lib/ids';
import { hasIssued, PLAIN, searchOf, select, wantedOf } from '../src/lib/type-list';
import { line } from '../src/ui/spark';

const type = (change: Partial<TypeRecord> = {}): TypeRecord => ({
  name: 'order',
  mode: 'strict',
  state: 'active',
  prefix: '',
  description: '',
  first_id: '1',
  next_id: '1',
  max_id: '9223372036854775806',
  max_position: '9223372036854775806',
  options: {},
  min_range: 1000,
  max_range: 100_000_000,
  load_interval_ms: 600_000,
  load_percentage: 0.1,
  lock_ttl_ms: 10_000,
  last_range: null,
  last_load_ms: null,
  instance: 1,
  history: null,
  generation: 0,
  moving_to: null,
  moved_from: null,
  moved_ms: null,
  version: 1,
  created_ms: 1,
  updated_ms: 1,
  ...change,
});

const units = { ms: 'ms', s: 's', min: 'min', h: 'h', d: 'd', y: 'y' };
const plain = (text: string) => text.replaceAll('\u202f', ' ');

describe('ids', () => {
  it('keeps every digit above 2^53', () => {
    expect(String(big('9007199254740993'))).toBe('9007199254740993');
    expect(parseId('9223372036854775806')).toBe(9223372036854775806n);
    for (const text of ['', '-1', '1.5', '1e3', ' 1', '0x1', '12345678901234567890']) {
      expect(parseId(text)).toBeNull();
    }
  });

  it('tells shares without rounding little to nothing', () => {
    expect(share(1n, 4n)).toBe(0.25);
    expect(share(1n, 9223372036854775806n)).toBeGreaterThan(0);
    expect(share(0n, 10n)).toBe(0);
    expect(share(20n, 10n)).toBe(1);
    expect(share(1n, 0n)).toBe(0);
    expect(percentIn(9007199254740993n, 9007199254740992n, 9007199254740996n)).toBe(25);
  });

  it('counts what is used and left, also in a period', () => {
    const half = type({ next_id: '501', max_position: '1000' });
    expect(usedShare(half)).toBe(0.5);
    expect(leftOf(half)).toBe(500n);
    const period = (12_345n << 40n) | 251n;
    const daily = type({
      options: { calendar: 'daily' },
      next_id: String(period),
      max_position: '1000',
    });
    expect(numberAt(period, daily)).toBe(251n);
    expect(leftOf(daily)).toBe(750n);
    expect(usedShare(type({ mode: 'snowflake' }))).toBeNull();
    expect(leftOf(type({ next_id: '2000', max_position: '1000' }))).toBe(0n);
  });
});

describe('format', () => {
  it('writes numbers', () => {
    expect(plain(count(1234567))).toBe('1 234 567');
    expect(plain(count('9223372036854775806'))).toBe('9 223 372 036 854 775 806');
    const cases: [number, string][] = [
      [0, '0'],
      [0.034, '0.034'],
      [0.4, '0.4'],
      [7.25, '7.25'],
      [42.04, '42'],
      [99.96, '100'],
      [999, '999'],
      [999_960, '1 M'],
      [1000, '1 k'],
      [38_812, '38.8 k'],
      [123_456_789, '123 M'],
    ];
    for (const [value, text] of cases) expect(plain(short(value)), String(value)).toBe(text);
  });

  it('writes durations in their two largest units', () => {
    const cases: [number, string][] = [
      [0, '0 s'],
      [0.25, '250 ms'],
      [5.67, '5.6 s'],
      [59.9, '59 s'],
      [60, '1 min'],
      [3_661, '1 h 1 min'],
      [86_400 * 3 + 7_200, '3 d 2 h'],
      [31_556_952 * 2.5, '2 y 182 d'],
      [31_556_952 * 50, '50 y'],
      [1e15, '> 1 000 y'],
    ];
    for (const [s, text] of cases) expect(plain(duration(s, units)), String(s)).toBe(text);
    expect(duration(Number.POSITIVE_INFINITY, units)).toBe('∞');
  });

  it('never calls little nothing, or nearly all all', () => {
    expect(plain(percent(0))).toBe('0 %');
    expect(plain(percent(0.00001))).toBe('< 0.1 %');
    expect(plain(percent(0.99999))).toBe('> 99.9 %');
    expect(plain(percent(0.123))).toBe('12 %');
    expect(plain(micros(250, 'ms'))).toBe('0.25 ms');
    expect(plain(bytes(91_000_000))).toBe('86.8 MiB');
    const noon = new Date(2026, 10, 21, 12).getTime();
    expect(when(noon, noon + 1000)).toBe('12:00:00');
    expect(when(noon, noon + 86_400_000)).toBe('2026-11-21 12:00');
  });
});

describe('drafts', () => {
  it('sends what was typed, ids as text', () => {
    const body = newTypeOf({ ...FRESH, name: 'a', max_id: '9007199254740993', opaque: true });
    expect(body.max_id).toBe('9007199254740993');
    expect(body.options).toEqual({ opaque: { slices: 16 } });
    expect(body.instance).toBeUndefined();
  });

  it('sends no option that the mode does not know', () => {
    const draft = { ...FRESH, name: 'a', cycle: true, app_id: '7', calendar: 'daily' as const };
    expect(newTypeOf({ ...draft, mode: 'snowflake' }).options).toEqual({});
    expect(newTypeOf({ ...draft, mode: 'snowflake' }).first_id).toBeUndefined();
    expect(newTypeOf({ ...draft, mode: 'sharded' }).options).toEqual({
      at_limit: 'cycle',
      app_id: 7,
    });
  });

  it('comes back as it went', () => {
    const record = type({
      mode: 'segment',
      options: { sites: { count: 4, site: 1 }, format: '{seq}' },
    });
    expect(settingsOf(draftOf(record))).toEqual(settingsIn(record));
    const flake = type({
      mode: 'snowflake',
      options: {
        snowflake: {
          time_bits: 32,
          worker_bits: 11,
          sequence_bits: 20,
          unit: 's',
          epoch_ms: 1_600_000_000_000,
        },
      },
    });
    expect(settingsOf(draftOf(flake))).toEqual(settingsIn(flake));
  });

  it('changes only what was changed', () => {
    const before = settingsIn(type({ options: { format: '{seq}', at_limit: 'cycle' } }));
    const same = { ...before, options: { at_limit: 'cycle' as const, format: '{seq}' } };
    expect(changes(before, same)).toEqual({});
    expect(changes(before, { ...same, prefix: 'x' })).toEqual({ prefix: 'x' });
  });
});

describe('differences', () => {
  it('names each field that differs', () => {
    expect(differences({ a: 1, o: { x: 'p' } }, { a: 1, o: { y: 2 } })).toEqual([
      { path: 'o.x', before: 'p', after: null },
      { path: 'o.y', before: null, after: '2' },
    ]);
    expect(differences(null, { a: true })).toEqual([{ path: 'a', before: null, after: 'true' }]);
    expect(differences(null, null)).toEqual([]);
  });

  it('tells a clash from two changes that go together', () => {
    const rows = conflicts({ a: 1, b: 1, c: 1 }, { a: 2, b: 1, c: 5 }, { a: 3, b: 4, c: 5 });
    expect(rows.map((row) => [row.path, row.clash])).toEqual([
      ['a', true],
      ['b', false],
      ['c', false],
    ]);
  });
});

describe('the list of types', () => {
  const all = [
    type({ name: 'a.1', description: 'Shop orders', last_load_ms: 5 }),
    type({ name: 'a.2', mode: 'segment', instance: 2, moving_to: 3, last_load_ms: 9 }),
    type({ name: 'B.3', state: 'retired', prefix: 'ord-' }),
  ];
  const names = (wanted: Partial<typeof PLAIN>, troubled: string[] = []) =>
    select(
      all,
      { ...PLAIN, ...wanted },
      troubled.map((name) => ({
        kind: 'errors' as const,
        severity: 'warning' as const,
        subject: { type: name },
        detail: '',
      })),
    ).map((each) => each.name);

  it('searches, filters and sorts', () => {
    expect(names({})).toEqual(['B.3', 'a.1', 'a.2']);
    expect(names({ back: true })).toEqual(['a.2', 'a.1', 'B.3']);
    expect(names({ text: 'ORD' })).toEqual(['B.3', 'a.1']);
    expect(names({ text: 'a shop' })).toEqual(['a.1']);
    expect(names({ instance: '3' })).toEqual(['a.2']);
    expect(names({ state: 'retired' })).toEqual(['B.3']);
    expect(names({ mode: 'segment' })).toEqual(['a.2']);
    expect(names({ show: 'unused' })).toEqual(['B.3']);
    expect(names({ show: 'attention' }, ['a.1'])).toEqual(['a.1']);
    expect(names({ sort: 'load' })).toEqual(['a.2', 'a.1', 'B.3']);
    expect(hasIssued(type({ next_id: '2' }))).toBe(true);
  });

  it('keeps the selection in the address', () => {
    const wanted = { ...PLAIN, text: 'a&b=c', mode: 'strict', sort: 'used' as const, back: true };
    expect(wantedOf(searchOf(wanted))).toEqual(wanted);
    expect(searchOf(PLAIN)).toBe('');
    expect(wantedOf('?sort=nonsense&show=x').sort).toBe('name');
  });
});

it('draws a gap where nothing is known', () => {
  expect(line([1, null, 2], 10, 13)).toMatch(/^M[\d. ]+M[\d. ]+$/);
  expect(line([], 10, 13)).toBe('');
});
