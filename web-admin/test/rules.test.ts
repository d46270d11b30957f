import { describe, expect, it } from 'vitest';
import { en } from '../src/i18n/en';
import { zh } from '../src/i18n/zh';
import { type Draft, FRESH } from '../src/lib/draft';
import { check, parseFormat } from '../src/lib/rules';

const wrong = (part: Partial<Draft>) => Object.keys(check({ ...FRESH, name: 'a', ...part }, en));

describe('the rules of a type', () => {
  it('lets every default of every mode through', () => {
    for (const mode of ['strict', 'segment', 'snowflake'] as const) {
      expect(wrong({ mode })).toEqual([]);
    }
    expect(wrong({ mode: 'sharded' })).toEqual(['app_id']);
    expect(wrong({ mode: 'sharded', app_id: '0' })).toEqual([]);
  });

  // [what is typed, the fields at fault]; the cases are those of docs/id-types.md.
  const cases: [Partial<Draft>, string[]][] = [
    [{ name: '' }, ['name']],
    [{ name: '_a' }, ['name']],
    [{ name: 'a'.repeat(129) }, ['name']],
    [{ name: '订单' }, ['name']],
    [{ prefix: 'x'.repeat(65) }, ['prefix']],
    [{ prefix: 'a\u0007' }, ['prefix']],
    [{ description: '€'.repeat(21_846) }, ['description']],
    [{ min_range: '0' }, ['min_range']],
    [{ min_range: '1.5' }, ['min_range']],
    [{ min_range: '5000', max_range: '4999' }, ['max_range']],
    [{ max_range: '1000000000001' }, ['max_range']],
    [{ load_interval_ms: '86400001' }, ['load_interval_ms']],
    [{ lock_ttl_ms: '999' }, ['lock_ttl_ms']],
    [{ load_percentage: '1.01' }, ['load_percentage']],
    [{ load_percentage: '' }, ['load_percentage']],
    [{ first_id: '0' }, ['first_id']],
    [{ max_id: '9223372036854775807' }, ['max_id']],
    [{ first_id: '10', max_id: '9' }, ['max_id']],
    [{ mode: 'sharded', app_id: '256' }, ['app_id']],
    [{ mode: 'sharded', app_id: '1', max_id: '16000' }, ['max_id']],
    [{ opaque: true, cycle: true }, ['opaque']],
    [{ opaque: true, max_id: '15999999' }, ['max_id']],
    [{ opaque: true, max_id: '16000000' }, []],
    [{ opaque: true, slices: '1025' }, ['opaque.slices']],
    [{ calendar: 'daily' }, ['format']],
    [{ calendar: 'daily', format: '{date:yyMM}{seq:06}' }, ['format']],
    [{ calendar: 'daily', format: '{date:yyMMddHH}{seq:06}' }, ['format']],
    [{ calendar: 'daily', format: '{date:yyMMdd}{seq:06}' }, []],
    [{ calendar: 'yearly', format: '{date:yyyy}{seq}', cycle: true }, ['at_limit']],
    [{ mode: 'segment', calendar: 'monthly', format: '{date:yyMM}{seq}', sites: true }, ['sites']],
    [{ mode: 'segment', sites: true, site_count: '2', site: '2' }, ['sites.site']],
    [{ time_zone: 'Europe/Berlin' }, ['time_zone']],
    [{ time_zone: 'Europe/Berlin', format: '{date:yy}{seq}' }, []],
    [{ format: '{seq:09}', max_id: '4000000000000' }, ['format']],
    [{ format: '{seq:09}' }, []],
    [{ mode: 'snowflake', format: '{seq:018}' }, ['format']],
    [{ mode: 'snowflake', format: '{seq:019}' }, []],
    [{ mode: 'snowflake', layout: true, time_bits: '42' }, ['snowflake.time_bits']],
    [{ mode: 'snowflake', layout: true, worker_bits: '0' }, ['snowflake.worker_bits']],
    [{ mode: 'snowflake', layout: true, epoch: '2999-01-01T00:00:00Z' }, ['snowflake.epoch_ms']],
    [{ mode: 'snowflake', layout: true, epoch: 'then' }, ['snowflake.epoch_ms']],
    // What the mode does not know is not sent, so it is not at fault either.
    [{ mode: 'snowflake', cycle: true, opaque: true, max_id: '1' }, []],
  ];
  it.each(cases)('%j', (part, fields) => expect(wrong(part)).toEqual(fields));
});

describe('formats', () => {
  const at = (text: string) => {
    const { error } = parseFormat(text, en.rules);
    return error === null ? null : Number(/^Character (\d+)/.exec(error)?.[1] ?? 0);
  };
  const cases: [string, number | null][] = [
    ['{prefix}{date:yyMMdd}{seq:09}', null],
    ['4000{seq:08}{check:luhn}', null],
    ['{seq36:08}-{check:mod37-36}', null],
    ['{{{seq}}}', null],
    ['{seq}{seq}', 6],
    ['abc', 4],
    ['{seq', 1],
    ['{seq}}', 6],
    ['{seq:9}', 1],
    ['{seq:007}', 1],
    ['{seq:021}', 1],
    ['{seq}{check:luhn}{prefix}', 18],
    ['{check:luhn}{seq}', 1],
    ['{seq62}{check:luhn}', 8],
    ['{seq36}{check:luhn}', 8],
    ['{seq}{date:yyy}', 6],
    ['{colour}{seq}', 1],
    ['😀{seq:x}', 2],
  ];
  it.each(cases)('%s', (text, character) => expect(at(text)).toBe(character));
});

describe('languages', () => {
  const leaves = (value: unknown, path = ''): string[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, each]) => leaves(each, `${path}.${key}`))
      : [`${path}: ${typeof value}`];

  it('have the same entries of the same kind', () => {
    expect(leaves(zh).sort()).toEqual(leaves(en).sort());
  });

  it('say something everywhere', () => {
    for (const language of [en, zh]) {
      const texts = JSON.stringify(language);
      expect(texts).not.toMatch(/:""/);
    }
  });

  it('take the same arguments', () => {
    const functions = (value: unknown): [string, number][] =>
      Object.entries(value as object).flatMap(([key, each]) =>
        typeof each === 'function'
          ? [[key, (each as (...all: unknown[]) => unknown).length] as [string, number]]
          : typeof each === 'object'
            ? functions(each)
            : [],
      );
    // `apply` of Chinese has no plural, but every argument must be used or named.
    expect(functions(zh)).toEqual(functions(en));
  });
});
