/**
 * One function for every request. It never repeats a request by itself: a call
 * whose answer was lost may have happened.
 */

export const BASE = '/api/v1';

type Query = Record<string, string | number | boolean | undefined>;

/** A failed request: the problem details of the node, or what happened on the way. */
export class Problem extends Error {
  constructor(
    /** HTTP status; 0 where no answer came. */
    readonly status: number,
    /** `CONFLICT`, `UNAVAILABLE` …; `NETWORK` where no answer came. */
    readonly code: string,
    readonly detail: string,
    /** The argument at fault, without a leading `options.`. */
    readonly field: string | null,
    /** Whether the same request may succeed later. */
    readonly retriable: boolean,
    /** Seconds after which to try again, if the node named some. */
    readonly retryAfter: number | null,
  ) {
    super(detail);
  }

  /** Nobody knows whether what was asked has happened. */
  get unknownOutcome(): boolean {
    return this.code === 'NETWORK' || this.code === 'DEADLINE';
  }
}

let csrf: string | null = null;
let whenLost: () => void = () => {};

/** What every further request shows beside the cookie. */
export function setCsrf(value: string | null): void {
  csrf = value;
}

/** What happens when a request tells that the session has ended. */
export function onSessionLost(action: () => void): void {
  whenLost = action;
}

export function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') params.set(name, String(value));
  }
  const text = params.toString();
  return `${BASE}${path}${text === '' ? '' : `?${text}`}`;
}

export interface Call {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** 401 is an answer here, not the end of a session. */
  open?: boolean;
}

export async function call<T>(method: string, path: string, options: Call = {}): Promise<T> {
  const session = csrf;
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (method !== 'GET' && csrf !== null) headers['X-Idgen-Csrf'] = csrf;
  const init: RequestInit = { method, headers, credentials: 'same-origin', cache: 'no-store' };
  if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(options.body);
  }
  if (options.signal) init.signal = options.signal;
  let response: Response;
  let text: string;
  try {
    response = await fetch(address(path, options.query), init);
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, 'NETWORK', '', null, true, null);
  }
  if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
  const problem = problemOf(response, text);
  // Not for a late answer to what was asked under the session before.
  if (response.status === 401 && !options.open && session === csrf) whenLost();
  throw problem;
}

function problemOf(response: Response, text: string): Problem {
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) body = parsed as typeof body;
  } catch {
    // A proxy answered in a form of its own.
  }
  const after = Number(response.headers.get('Retry-After'));
  const field = typeof body.field === 'string' ? body.field.replace(/^options\./, '') : null;
  return new Problem(
    response.status,
    typeof body.code === 'string' ? body.code : `HTTP_${response.status}`,
    typeof body.detail === 'string' ? body.detail : `${response.status} ${response.statusText}`,
    field,
    body.retriable === true || [502, 503, 504].includes(response.status),
    Number.isFinite(after) && after > 0 ? after : null,
  );
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> =>
  call<T>('GET', path, { query: query ?? {}, signal });

/** Any error as a problem, for showing it. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem(0, 'PAGE', detail, null, false, null);
}

/** The path of a type or instance. */
export const typePath = (name: string, rest = ''): string =>
  `/types/${encodeURIComponent(name)}${rest}`;
export const instancePath = (name: string, rest = ''): string =>
  `/redis-instances/${encodeURIComponent(name)}${rest}`;
