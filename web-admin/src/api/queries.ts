/** The cache of what the node answered, and how the stream feeds it. */
import { QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import { setServerClock } from '../lib/clock';
import { asProblem, call, get, Problem, typePath } from './client';
import { type Changed, LiveStore } from './live';
import type {
  AuditEntry,
  Instance,
  List,
  Overview,
  RangeEntry,
  Series,
  Span,
  TypeDetail,
  TypeRecord,
} from './types';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // Reading may be repeated, where the node says that it may help.
      retry: (failures, error) => failures < 2 && error instanceof Problem && error.retriable,
    },
    mutations: { retry: false },
  },
});

/** How many types one message of changes is followed by reading each of them. */
const READ_SINGLY = 25;
const PAGE = 1_000;

export const live = new LiveStore({
  overview: (overview) => {
    setServerClock(overview.at_ms);
    queryClient.setQueryData(['overview'], overview);
  },
  changed: (change) => note(change),
  broke: () => {
    // Tells whether the session has ended; the answer itself is not needed.
    void get('/session').catch(() => {});
  },
});

let noted = new Set<string>();
let timer: ReturnType<typeof setTimeout> | null = null;

/** Gathers changes for half a second: a drain changes hundreds of types in a row. */
function note(change: Changed): void {
  if (change.all) {
    void queryClient.invalidateQueries();
    return;
  }
  for (const name of change.types) noted.add(name);
  if (change.instances) void queryClient.invalidateQueries({ queryKey: ['instances'] });
  if (change.types.length > 0) {
    if (timer === null) timer = setTimeout(follow, 500);
  }
}

function follow(): void {
  const names = noted;
  noted = new Set();
  timer = null;
  void queryClient.invalidateQueries({ queryKey: ['audit'] });
  for (const name of names) void queryClient.invalidateQueries({ queryKey: ['type', name] });
  if (queryClient.getQueryData(['types']) === undefined) return;
  if (names.size > READ_SINGLY) {
    void queryClient.invalidateQueries({ queryKey: ['types'] });
    return;
  }
  for (const name of names) {
    get<TypeDetail>(typePath(name), { ids: 'string' })
      .then((type) => keepType(type))
      .catch((error: unknown) => {
        if (asProblem(error).status === 404) dropType(name);
      });
  }
}

/** Puts a record that the node answered into the list, in its place. */
export function keepType(type: TypeRecord): void {
  queryClient.setQueryData<TypeRecord[]>(['types'], (all) => {
    if (all === undefined) return undefined;
    const at = all.findIndex((each) => each.name === type.name);
    if (at >= 0) return all.with(at, type);
    return [...all, type].sort((a, b) => (a.name < b.name ? -1 : 1));
  });
}

function dropType(name: string): void {
  queryClient.setQueryData<TypeRecord[]>(['types'], (all) =>
    all?.filter((each) => each.name !== name),
  );
}

/** Every type, page by page. The first time, what has come is shown at once. */
async function loadTypes(signal: AbortSignal): Promise<TypeRecord[]> {
  const first = queryClient.getQueryData(['types']) === undefined;
  const all: TypeRecord[] = [];
  for (let after: string | undefined; ; ) {
    const query = { limit: PAGE, after, ids: 'string' };
    const page = await get<List<TypeRecord>>('/types', query, signal);
    all.push(...page.items);
    after = page.items.at(-1)?.name;
    if (!page.more || after === undefined) return all;
    if (first) queryClient.setQueryData(['types'], [...all]);
  }
}

export const useTypes = () =>
  useQuery({
    queryKey: ['types'],
    queryFn: ({ signal }) => loadTypes(signal),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const useLive = () => useSyncExternalStore(live.subscribe, live.snapshot);

/** The overview: from the stream, or asked for while there is none. */
export function useOverview() {
  const { link } = useLive();
  return useQuery({
    queryKey: ['overview'],
    queryFn: async ({ signal }) => {
      const overview = await get<Overview>('/overview', { ids: 'string' }, signal);
      setServerClock(overview.at_ms);
      return overview;
    },
    refetchInterval: link === 'live' ? false : 5_000,
    staleTime: 10_000,
  });
}

/** Names of the instances by their numbers. */
export function useInstanceNames(): (id: number | null) => string {
  const { data } = useOverview();
  return (id) =>
    data?.instances.find((each) => each.id === id)?.name ?? (id === null ? '—' : `#${id}`);
}

/** Follows `names` in the stream for as long as the component is there. */
export function useWatch(names: readonly string[]): void {
  const key = names.join(',');
  useEffect(() => live.watch(key === '' ? [] : key.split(',')), [key]);
}

/** The newest that the stream told about a type. */
export const useTypeLive = (name: string) =>
  useSyncExternalStore(live.subscribe, () => live.type(name));

export const useType = (name: string) =>
  useQuery({
    queryKey: ['type', name],
    queryFn: ({ signal }) => get<TypeDetail>(typePath(name), { ids: 'string' }, signal),
    refetchInterval: 15_000,
  });

export const useRanges = (name: string) =>
  useQuery({
    queryKey: ['type', name, 'ranges'],
    queryFn: ({ signal }) =>
      get<List<RangeEntry>>(typePath(name, '/ranges'), { limit: 100, ids: 'string' }, signal),
    refetchInterval: 15_000,
  });

/** The course of a type, or of all of them together. */
export const useSeries = (name: string | null, span: Span) =>
  useQuery({
    queryKey: name === null ? ['series', span] : ['type', name, 'series', span],
    queryFn: ({ signal }) =>
      get<Series>(
        name === null ? '/series' : typePath(name, '/series'),
        { span, ids: 'string' },
        signal,
      ),
    refetchInterval: span === 'hour' ? 10_000 : 60_000,
    placeholderData: (before) => before,
  });

export const useInstances = () =>
  useQuery({
    queryKey: ['instances'],
    queryFn: ({ signal }) => get<List<Instance>>('/redis-instances', {}, signal),
    refetchInterval: 10_000,
  });

/** The newest entries. Changes of types come through the stream; the rest only with `poll`. */
export const useAudit = (poll = false) =>
  useQuery({
    queryKey: ['audit'],
    queryFn: ({ signal }) => get<List<AuditEntry>>('/audit', { limit: 1_000 }, signal),
    refetchInterval: poll ? 30_000 : false,
  });

/** A list of the access view. */
export const useAccessList = <T>(
  what: 'accounts' | 'sessions' | 'tokens' | 'callers',
  every: number | false = false,
) =>
  useQuery({
    queryKey: [what],
    // Tolerates a bare list.
    queryFn: async ({ signal }) => {
      const found = await get<List<T> | T[]>(`/${what}`, {}, signal);
      return Array.isArray(found) ? found : found.items;
    },
    refetchInterval: every,
  });

export interface Action {
  method: 'POST' | 'PATCH' | 'DELETE';
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
}

/**
 * A call that changes something, and what is stale after it. Never repeated by
 * itself. After a failure everything is stale too: it may have happened.
 */
export function useAction<T = unknown>(stale: readonly (readonly string[])[]) {
  const client = useQueryClient();
  return useMutation<T, Problem, Action>({
    mutationFn: ({ method, path, query, body }) => {
      return call<T>(method, path, { query: query ?? {}, body });
    },
    onSettled: () => {
      for (const queryKey of stale) void client.invalidateQueries({ queryKey });
    },
  });
}
