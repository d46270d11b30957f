import { beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveStore, MAX_WATCHED } from '../src/api/live';
import type { Overview, TypeLive } from '../src/api/types';

/** An event source in the hands of the test. */
class Source {
  closed = false;
  onerror: (() => void) | null = null;
  private readonly listeners = new Map<string, (event: { data: string }) => void>();
  constructor(readonly url: string) {}
  addEventListener(name: string, listener: (event: { data: string }) => void) {
    this.listeners.set(name, listener);
  }
  close() {
    this.closed = true;
  }
  say(name: string, data: unknown) {
    this.listeners.get(name)?.({ data: JSON.stringify(data) });
  }
  get types() {
    return new URL(this.url, 'http://x').searchParams.get('types') ?? '';
  }
}

let sources: Source[];
let store: LiveStore;
let now: number;
const overview = vi.fn<(overview: Overview) => void>();
const broke = vi.fn<() => void>();
const last = () => sources[sources.length - 1] as Source;
const hello = (source: Source) => source.say('hello', { node: 'n1', version: '1', at_ms: 1 });

beforeEach(() => {
  vi.useFakeTimers();
  vi.clearAllMocks();
  sources = [];
  now = 0;
  store = new LiveStore(
    { overview, changed: () => {}, broke },
    (url) => {
      const source = new Source(url);
      sources.push(source);
      return source as unknown as EventSource;
    },
    () => now,
  );
  return () => {
    store.stop();
    vi.useRealTimers();
  };
});

describe('the stream', () => {
  it('is live with the first event, and knows when it heard last', () => {
    store.start();
    expect(store.snapshot().link).toBe('connecting');
    now = 1234;
    hello(last());
    expect(store.snapshot()).toEqual({ link: 'live', heardAt: 1234, node: 'n1', version: '1' });
    last().say('overview', { node: 'n1' });
    expect(overview).toHaveBeenCalledOnce();
  });

  it('opens once for many changes of what is watched, and drops no data meanwhile', () => {
    store.start();
    hello(last());
    store.watch(['b', 'a']);
    const leave = store.watch(['c']);
    leave();
    store.watch(['a', 'd']);
    vi.advanceTimersByTime(1_000);
    expect(sources.length).toBe(2);
    expect(last().types).toBe('a,b,d');
    expect(sources[0]?.closed).toBe(false);
    sources[0]?.say('overview', {});
    expect(overview).toHaveBeenCalledOnce();
    hello(last());
    expect(sources[0]?.closed).toBe(true);
    vi.advanceTimersByTime(10_000);
    expect(sources.length).toBe(2);
  });

  it('never asks for more names than the node takes', () => {
    store.watch(Array.from({ length: 500 }, (_, n) => `t${n}`));
    store.start();
    expect(last().types.split(',').length).toBe(MAX_WATCHED);
  });

  it('comes back at once when the node ends it, without an alarm', () => {
    store.start();
    hello(last());
    last().onerror?.();
    expect(store.snapshot().link).toBe('live');
    vi.advanceTimersByTime(200);
    expect(sources.length).toBe(2);
    hello(last());
    expect(broke).not.toHaveBeenCalled();
  });

  it('waits longer and longer while it is refused, and says so', () => {
    store.start();
    hello(last());
    for (let n = 0; n < 8; n += 1) {
      last().onerror?.();
      vi.advanceTimersByTime(20_000);
    }
    expect(sources.length).toBe(9);
    expect(store.snapshot().link).toBe('broken');
    expect(broke).toHaveBeenCalledTimes(7);
    const before = sources.length;
    last().onerror?.();
    vi.advanceTimersByTime(5_000);
    expect(sources.length).toBe(before);
    store.retryNow();
    expect(sources.length).toBe(before + 1);
    hello(last());
    expect(store.snapshot().link).toBe('live');
  });

  it('goes on with the old one where the new one is refused', () => {
    store.start();
    hello(last());
    store.watch(['a']);
    vi.advanceTimersByTime(300);
    last().onerror?.();
    sources[0]?.say('overview', {});
    expect(overview).toHaveBeenCalledOnce();
    expect(store.snapshot().link).toBe('live');
    // … and asks again for what it does not tell.
    vi.advanceTimersByTime(200);
    expect(sources.length).toBe(3);
    expect(last().types).toBe('a');
    hello(last());
    expect(sources[0]?.closed).toBe(true);
  });

  it('keeps two minutes of rates', () => {
    store.start();
    for (let n = 0; n < 100; n += 1) {
      const item = { name: 'a', rate: n } as TypeLive;
      last().say('types', { at_ms: n, items: [item] });
    }
    expect(store.history('a').length).toBe(60);
    expect(store.history('a').at(-1)).toBe(99);
    expect(store.type('a')?.rate).toBe(99);
    store.stop();
    expect(store.type('a')).toBeUndefined();
    expect(last().closed).toBe(true);
  });
});
