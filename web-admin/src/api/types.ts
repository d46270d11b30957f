/**
 * What the admin API answers (docs/admin-api.md). The page always asks for ids as
 * text (`?ids=string`): they go up to 2^63, JavaScript's numbers to 2^53.
 */

/** An id or a position: decimal text of 64 bits. Never make a number of it. */
export type IdText = string;

export const MODES = ['strict', 'segment', 'sharded', 'snowflake'] as const;
export type Mode = (typeof MODES)[number];
export type State = 'active' | 'retired';

export const ROLES = ['view', 'operate', 'administer'] as const;
export type Role = (typeof ROLES)[number];
/** Of tokens: also to take ids and nothing else. */
export const TOKEN_ROLES = ['issue', ...ROLES] as const;
export type TokenRole = (typeof TOKEN_ROLES)[number];

export interface TypeOptions {
  at_limit?: 'error' | 'cycle';
  on_redis_loss?: 'fail' | 'segment';
  format?: string;
  calendar?: 'daily' | 'monthly' | 'yearly';
  time_zone?: string;
  opaque?: { slices: number };
  app_id?: number;
  snowflake?: {
    time_bits: number;
    worker_bits: number;
    sequence_bits: number;
    unit: 'ms' | 's';
    epoch_ms: number;
  };
  sites?: { count: number; site: number };
}

export interface TypeRecord {
  name: string;
  mode: Mode;
  state: State;
  prefix: string;
  description: string;
  first_id: IdText;
  next_id: IdText;
  max_id: IdText;
  max_position: IdText;
  options: TypeOptions;
  min_range: number;
  max_range: number;
  load_interval_ms: number;
  load_percentage: number;
  lock_ttl_ms: number;
  last_range: number | null;
  last_load_ms: number | null;
  instance: number;
  history: string | null;
  generation: number;
  moving_to: number | null;
  moved_from: number | null;
  moved_ms: number | null;
  version: number;
  created_ms: number;
  updated_ms: number;
}

/** The settings that `PATCH /types/{name}` changes. */
export type Settings = Pick<
  TypeRecord,
  | 'mode'
  | 'prefix'
  | 'description'
  | 'max_id'
  | 'min_range'
  | 'max_range'
  | 'load_interval_ms'
  | 'load_percentage'
  | 'lock_ttl_ms'
  | 'options'
>;

export interface NewType extends Partial<Omit<Settings, 'max_id'>> {
  name: string;
  first_id?: IdText;
  max_id?: IdText;
  instance?: string;
}

/** `end` is one above the last position. */
export interface Range {
  start: IdText;
  end: IdText;
}

/** What Redis holds of a type. */
export interface Dispatcher {
  live: boolean;
  cursor: IdText;
  current: Range | null;
  update_id: IdText;
  second: Range | null;
  left: number;
  used: number;
  age_ms: number;
  history: string;
  sealed: { generation: number; target: number } | null;
}

/** What the node that answers holds of a type. */
export interface Local {
  left: number;
  ranges: number;
  ahead: number;
  rate: number | null;
  runway_s: number | null;
  worker: number | null;
}

export interface TypeDetail extends TypeRecord {
  dispatcher: Dispatcher | null;
  local: Local | null;
  exhausted_at_ms: number | null;
}

export interface TypeLive {
  name: string;
  version: number;
  rate: number | null;
  rate_of: 'cluster' | 'node';
  runway_s: number | null;
  exhausted_at_ms: number | null;
  dispatcher: Dispatcher | null;
  local: Local | null;
  last_load_ms: number | null;
}

export interface RangeEntry extends Range {
  at_ms: number;
  owner: string;
  instance: number | null;
  history: string | null;
  shard?: number;
}

export interface List<T> {
  items: T[];
  more: boolean;
}

export interface NodeReport {
  node: string;
  version: string;
  started_ms: number;
  at_ms: number;
  age_ms: number;
  silent: boolean;
  draining: boolean;
  thrift: string;
  http: string;
  ids_per_s: number;
  calls_per_s: number;
  errors_per_s: number;
  types_loaded: number;
  parts: { name: string; kind: string; reachable: boolean; error: string | null }[];
}

export interface InstanceState {
  id: number;
  name: string;
  url: string;
  reachable: boolean;
  round_trip_us: number | null;
  history: string | null;
  error: string | null;
  types: number;
  drain_to: { id: number; name: string | null } | null;
  memory_bytes: number | null;
  role: string | null;
  version: string | null;
}

export type AttentionKind =
  | 'store_down'
  | 'instance_down'
  | 'node_silent'
  | 'runway_short'
  | 'limit_near'
  | 'epoch_near'
  | 'stale_history'
  | 'migration_running'
  | 'drain_running'
  | 'errors'
  | 'refill_failing'
  | 'versions_differ';

export interface Attention {
  kind: AttentionKind;
  severity: 'critical' | 'warning' | 'info';
  subject: { type?: string; instance?: string; node?: string };
  /** An English sentence. */
  detail: string;
  runway_s?: number;
  at_ms?: number;
  count?: number;
  left?: string;
}

export interface Overview {
  at_ms: number;
  node: string;
  ids_per_s: number;
  calls_per_s: number;
  errors_per_s: number;
  nodes: NodeReport[];
  instances: InstanceState[];
  store: {
    kind: 'mysql' | 'embedded';
    reachable: boolean;
    round_trip_us: number | null;
    error: string | null;
  };
  types: { active: number; retired: number };
  attention: Attention[];
}

export const SPANS = ['hour', 'day', 'week'] as const;
export type Span = (typeof SPANS)[number];

export interface Series {
  span: Span;
  from_ms: number;
  to_ms: number;
  step_ms: number;
  scope: 'cluster' | 'node';
  at_ms: number[];
  ids_per_s: (number | null)[];
  ranges?: {
    at_ms: number;
    start: IdText;
    end: IdText;
    length: number;
    refill_ms: number | null;
    owner: string;
  }[];
}

export interface Instance {
  id: number;
  name: string;
  url: string;
  types: number;
  drain_to: { id: number; name: string | null } | null;
  check?: Check;
}

export interface Check {
  reachable: boolean;
  history: string | null;
  round_trip_us: number;
  error: string | null;
}

export interface Place {
  instance: number;
  name: string;
  reachable: boolean;
  history: string | null;
  dispatcher: Dispatcher | null;
}

export interface Plan {
  record: TypeRecord;
  from: Place;
  to: Place;
  rest: number;
  keeps_rest: boolean;
  problems: string[];
}

export interface Migrated {
  record: TypeRecord;
  kept: number;
  burnt: number;
  took_ms: number;
}

export interface Decoded {
  id_type: string;
  mode: Mode;
  id?: IdText;
  text: string;
  position?: IdText;
  period?: string;
  shard?: number;
  app_id?: number;
  worker?: number;
  sequence?: number;
  at_ms?: number;
  node?: string;
  range_first?: IdText;
  range_count?: number;
  issued: boolean;
}

export interface Preview {
  ids: { id: IdText | null; text: string }[];
  ascending: boolean;
  growth: { at_s: number; length: number | IdText; end: number | IdText }[];
  lasts_s: number | null;
  note: string | null;
}

export interface AuditEntry {
  seq: number;
  at_ms: number;
  actor: string;
  action: string;
  subject: string;
  before: unknown;
  after: unknown;
}

export interface Session {
  account: { name: string; role: Role };
  csrf: string;
  expires_ms: number | null;
  how: 'session' | 'token';
}

export interface Access {
  setup_needed: boolean;
  accounts: boolean;
  closed: string | null;
}

export interface Account {
  name: string;
  role: Role;
  disabled: boolean;
  created_ms: number;
  updated_ms: number;
  last_login_ms: number | null;
  version: number;
}

export interface SessionInfo {
  id: string | number;
  account: string;
  created_ms: number;
  last_used_ms: number;
  expires_ms: number;
  agent: string;
  address: string;
  current: boolean;
}

export interface Token {
  id: string | number;
  name: string;
  role: TokenRole;
  types: string[];
  /** Ids per second on each node. */
  quota: number | null;
  /** The name of a client's certificate, without a secret. */
  certificate: boolean;
  created_by: string;
  created_ms: number;
  expires_ms: number | null;
  last_used_ms: number | null;
  revoked: boolean;
}

/** What a program with a token took of the node that answers. */
export interface Caller {
  name: string;
  id: string | number;
  quota: number | null;
  taken: number;
  calls: number;
  refused: Record<string, number>;
}

export interface ImportItem {
  name: string;
  source: { highest: IdText; step: IdText | null; note: string | null };
  /** Empty where nothing can be made of it. */
  first_id: IdText;
  min_range: number | IdText | null;
  mode?: Mode | null;
  /** Of a type that is there already. */
  existing_next_id?: IdText | null;
  description: string;
  state: 'new' | 'exists' | 'created' | 'failed';
  problem: string | null;
}

export interface ImportResult {
  format: string;
  items: ImportItem[];
  create: number;
  skip: number;
  fail: number;
  /** How many there was no time for: import again. */
  left?: number;
}
