/**
 * The one stream of the page (`GET /stream`): a store outside React, which views
 * subscribe to. It tells how old its data are; whoever shows them greys them.
 *
 * The browser's own reconnecting is not used: it gives up for good on a 401 or a
 * 503, and says nothing about either.
 */
import { address } from './client';
import type { Overview, TypeLive } from './types';

/** The node refuses more names in one stream. */
export const MAX_WATCHED = 200;
/** The node reports every 2 s; after this long without a report, data are old. */
export const STALE_AFTER_MS = 6_500;
const REOPEN_AFTER_MS = 250;
/** Points of a small line: two minutes. */
const HISTORY = 60;
const MOST_HISTORIES = 600;

export interface LiveState {
  /** `off` before the first opening and after logging out. */
  link: 'off' | 'connecting' | 'live' | 'broken';
  /** When the last event came, by `performance.now()`; null before the first. */
  heardAt: number | null;
  node: string | null;
  version: string | null;
}

export interface Changed {
  types: string[];
  instances: boolean;
  /** There were more changes than are told: look at everything again. */
  all?: boolean;
}

type Listener = () => void;

export interface Hooks {
  overview(overview: Overview): void;
  changed(change: Changed): void;
  /** The stream was refused or broke: is the session still there? */
  broke(): void;
}

export class LiveStore {
  private state: LiveState = { link: 'off', heardAt: null, node: null, version: null };
  private readonly listeners = new Set<Listener>();
  private readonly watchers = new Map<symbol, readonly string[]>();
  private readonly types = new Map<string, TypeLive>();
  private readonly histories = new Map<string, (number | null)[]>();
  private source: EventSource | null = null;
  private next: EventSource | null = null;
  private opened = '';
  private reopening: ReturnType<typeof setTimeout> | null = null;
  private retrying: ReturnType<typeof setTimeout> | null = null;
  private failures = 0;

  constructor(
    private readonly hooks: Hooks,
    private readonly open: (url: string) => EventSource = (url) => new EventSource(url),
    private readonly now: () => number = () => performance.now(),
  ) {}

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): LiveState => this.state;

  /** What is known of a type: as of the last event about it. */
  type = (name: string): TypeLive | undefined => this.types.get(name);

  /** Its rates since it is being watched, oldest first. */
  history = (name: string): readonly (number | null)[] => this.histories.get(name) ?? NONE;

  start(): void {
    if (this.state.link !== 'off') return;
    this.set({ link: 'connecting' });
    this.connect();
  }

  stop(): void {
    for (const timer of [this.reopening, this.retrying]) if (timer) clearTimeout(timer);
    this.reopening = null;
    this.retrying = null;
    this.source?.close();
    this.next?.close();
    this.source = null;
    this.next = null;
    this.failures = 0;
    this.types.clear();
    this.histories.clear();
    this.set({ link: 'off', heardAt: null });
  }

  /** Asks now instead of at the end of the pause. */
  retryNow(): void {
    if (this.state.link !== 'broken') return;
    if (this.retrying) clearTimeout(this.retrying);
    this.retrying = null;
    this.connect();
  }

  /** Watches `names` until the returned function is called. */
  watch(names: readonly string[]): () => void {
    const key = Symbol('watch');
    this.watchers.set(key, names);
    this.reopenSoon();
    return () => {
      this.watchers.delete(key);
      this.reopenSoon();
    };
  }

  private watched(): string {
    const names = new Set<string>();
    for (const list of this.watchers.values()) for (const name of list) names.add(name);
    return [...names].slice(0, MAX_WATCHED).sort().join(',');
  }

  private reopenSoon(): void {
    if (this.reopening) clearTimeout(this.reopening);
    this.reopening = setTimeout(() => {
      this.reopening = null;
      if (this.state.link === 'live' && this.watched() !== this.opened) this.connect();
    }, REOPEN_AFTER_MS);
  }

  /** Opens a stream; the present one goes on until the new one has spoken. */
  private connect(): void {
    if (this.retrying) clearTimeout(this.retrying);
    this.retrying = null;
    this.next?.close();
    const names = this.watched();
    const source = this.open(address('/stream', { types: names, ids: 'string' }));
    this.next = source;
    this.opened = names;
    const heard = <T>(use: (data: T) => void) => {
      return (event: MessageEvent<string>) => {
        if (source !== this.source && source !== this.next) return;
        if (source === this.next) {
          this.source?.close();
          this.source = source;
          this.next = null;
          this.failures = 0;
          // What was asked for may have changed meanwhile.
          this.reopenSoon();
        }
        use(JSON.parse(event.data) as T);
        this.set({ link: 'live', heardAt: this.now() });
      };
    };
    const on = <T>(name: string, use: (data: T) => void) =>
      source.addEventListener(name, heard(use) as (event: Event) => void);
    on<{ node: string; version: string }>('hello', ({ node, version }) => {
      this.state = { ...this.state, node, version };
    });
    on<Overview>('overview', (overview) => this.hooks.overview(overview));
    on<{ items: TypeLive[] }>('types', ({ items }) => this.keep(items));
    on<Changed>('changed', (change) => this.hooks.changed(change));
    source.onerror = () => {
      source.close();
      if (source === this.next) this.next = null;
      else if (source === this.source) this.source = null;
      else return;
      // Another one is being opened already.
      if (this.next) return;
      this.failures += 1;
      // The node ends every stream after a while: the first retry is at once, and no alarm.
      if (this.source === null && this.failures > 1) {
        this.set({ link: 'broken' });
        this.hooks.broke();
      }
      const pause = this.failures === 1 ? 100 : Math.min(15_000, 500 * 2 ** this.failures);
      if (this.retrying) clearTimeout(this.retrying);
      this.retrying = setTimeout(() => this.connect(), pause * (0.75 + Math.random() / 2));
    };
  }

  private keep(items: TypeLive[]): void {
    for (const item of items) {
      this.types.set(item.name, item);
      const rates = [...(this.histories.get(item.name) ?? []), item.rate].slice(-HISTORY);
      // Moved to the end, so that the oldest is the first to go.
      this.histories.delete(item.name);
      this.histories.set(item.name, rates);
    }
    for (const name of this.histories.keys()) {
      if (this.histories.size <= MOST_HISTORIES) break;
      this.histories.delete(name);
      this.types.delete(name);
    }
  }

  private set(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }
}

const NONE: readonly (number | null)[] = [];
