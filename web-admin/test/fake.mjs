// A small stand-in for a node, for looking at the page while developing. It keeps to
// the form of the admin API, not to its rules. The end-to-end tests use a real node.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';

const dist = new URL('../dist/', import.meta.url).pathname;
const HOUR = 3_600_000;
const kinds = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** The policy that a node sends with the page. */
export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

export function world(count = 10_000) {
  const now = Date.now();
  const modes = ['strict', 'segment', 'strict', 'sharded', 'snowflake', 'strict'];
  const words = ['order', 'user', 'invoice', 'event', 'trace', 'parcel', 'coupon', 'login', 'item'];
  const types = new Map();
  for (let i = 0; i < count; i += 1) {
    const mode = modes[i % modes.length];
    const name = i === 0 ? 'order' : `${words[i % words.length]}.${String(i).padStart(5, '0')}`;
    const next = BigInt(1 + i * 7_919) * (i % 97 === 0 ? 1_000_000_000_000n : 1n);
    types.set(name, {
      name,
      mode,
      state: i % 50 === 49 ? 'retired' : 'active',
      prefix: i % 9 === 2 ? 'R' : '',
      description: i % 4 === 0 ? `Ids of ${words[i % words.length]}s of shop ${i}` : '',
      first_id: '1',
      next_id: i % 23 === 7 ? '1' : String(next),
      max_id: i % 31 === 5 ? '2147483647' : '9223372036854775806',
      max_position: i % 31 === 5 ? '2147483647' : '9223372036854775806',
      options:
        i % 9 === 2 && mode === 'strict'
          ? { format: '{prefix}{seq:09}' }
          : mode === 'sharded'
            ? { app_id: i % 256 }
            : {},
      min_range: 1000,
      max_range: 100000000,
      load_interval_ms: 600000,
      load_percentage: 0.1,
      lock_ttl_ms: 10000,
      last_range: i % 23 === 7 ? null : 1000 * (1 + (i % 40)),
      last_load_ms: i % 23 === 7 || mode === 'snowflake' ? null : now - (i % 600) * 1000,
      instance: 1 + (i % 3),
      history: 'h1',
      generation: 0,
      moving_to: i === 12 ? 2 : null,
      moved_from: i === 18 ? 2 : null,
      moved_ms: null,
      version: 1 + (i % 5),
      created_ms: now - 90 * 24 * HOUR,
      updated_ms: now - (i % 500) * HOUR,
    });
  }
  const odd = types.get('order');
  odd.description = `<img src=x onerror="document.title='owned'"> ${'Sehr lange Beschreibung. '.repeat(2600)}`;
  return {
    types,
    instances: [
      {
        id: 1,
        name: 'main',
        url: 'redis://idgen:***@cache.example:6379',
        types: count / 3,
        drain_to: null,
        up: true,
      },
      {
        id: 2,
        name: 'spare',
        url: 'redis://idgen:***@spare.example:6379',
        types: count / 3,
        drain_to: null,
        up: true,
      },
      {
        id: 3,
        name: 'old-rack-7',
        url: 'rediss://idgen:***@10.1.2.3:6380',
        types: count / 3,
        drain_to: null,
        up: false,
      },
    ],
    accounts: [
      {
        name: 'alice',
        role: 'administer',
        disabled: false,
        created_ms: now - 9e9,
        updated_ms: now - 9e9,
        last_login_ms: now - 60_000,
        version: 1,
        password: 'correct horse battery',
      },
      {
        name: 'bob',
        role: 'view',
        disabled: false,
        created_ms: now - 8e9,
        updated_ms: now - 8e9,
        last_login_ms: null,
        version: 1,
        password: 'correct horse battery',
      },
    ],
    tokens: [
      {
        id: 1,
        name: 'billing',
        role: 'operate',
        types: ['invoice.*'],
        quota: 5000,
        certificate: false,
        created_by: 'alice',
        created_ms: now - 5e9,
        expires_ms: now + 5e9,
        last_used_ms: now - 7000,
        revoked: false,
      },
      {
        id: 2,
        name: 'old-script',
        role: 'view',
        types: [],
        quota: null,
        certificate: false,
        created_by: 'alice',
        created_ms: now - 7e9,
        expires_ms: null,
        last_used_ms: null,
        revoked: true,
      },
    ],
    sessions: new Map(),
    audit: Array.from({ length: 230 }, (_, i) => ({
      seq: 1000 - i,
      at_ms: now - i * 1_700_000,
      actor: i % 3 === 0 ? 'alice' : i % 3 === 1 ? 'token billing' : 'admin token',
      action: ['alter_type', 'create_type', 'retire_type', 'add_instance'][i % 4],
      subject: i % 4 === 3 ? 'spare' : i % 5 === 0 ? 'order' : `user.0${String(1000 + i)}`,
      before:
        i % 4 === 1
          ? null
          : i % 4 === 3
            ? null
            : { max_range: 1000 * i, options: { at_limit: 'error' }, prefix: 'a' },
      after:
        i % 4 === 2
          ? { max_range: 1000 * i, options: { at_limit: 'error' }, prefix: 'a', state: 'retired' }
          : i % 4 === 3
            ? { url: 'redis://idgen:***@spare.example:6379' }
            : {
                max_range: 1000 * (i + 1),
                options: { at_limit: 'error', format: '<b>{seq}</b>' },
                prefix: 'a',
              },
    })),
    setup: false,
    started: now - 5 * HOUR,
  };
}

const wave = (seed, at) =>
  40 + (seed % 90) + 30 * Math.sin(at / 40_000 + seed) + 6 * Math.sin(at / 3_000);

function dispatcher(type, at) {
  if (type.mode !== 'strict' || type.instance === 3 || type.last_range === null) return null;
  const next = BigInt(type.next_id);
  const length = BigInt(type.last_range);
  const used = (BigInt(Math.floor(at / 100)) * 7n) % length;
  const start = next - length > 0n ? next - length : 1n;
  return {
    live: true,
    cursor: String(start + used),
    current: { start: String(start), end: String(start + length) },
    update_id: String(start + length / 10n),
    second:
      used > length / 2n
        ? { start: String(start + length), end: String(start + 2n * length) }
        : null,
    left: Number(length - used),
    used: Number(used),
    age_ms: 1200,
    history: 'h1',
    sealed: null,
  };
}

function liveOf(type, at) {
  const seed = type.name.length * 31 + Number(BigInt(type.next_id) % 97n);
  const rate = type.state === 'retired' ? 0 : Math.max(0, wave(seed, at));
  const view = dispatcher(type, at);
  return {
    name: type.name,
    version: type.version,
    rate,
    rate_of: 'cluster',
    exhausted_at_ms: type.max_id === '2147483647' ? at + 9e8 : null,
    runway_s: view ? view.left / rate : type.mode === 'snowflake' ? null : 540 + (seed % 300),
    dispatcher: view,
    local: localOf(type, rate),
    last_load_ms: type.last_load_ms,
  };
}

const localOf = (type, rate) =>
  type.mode === 'strict' || type.last_range === null
    ? null
    : {
        left: type.mode === 'snowflake' ? 0 : 41_500,
        ranges: type.mode === 'snowflake' ? 0 : 2,
        ahead: 2,
        rate,
        runway_s: 600,
        worker: type.mode === 'snowflake' ? 17 : null,
      };

function overview(w) {
  const at = Date.now();
  const rate = 48_000 + 9_000 * Math.sin(at / 60_000) + 800 * Math.sin(at / 2_000);
  const node = (n, more) => ({
    node: `10.0.0.${n}:5900`,
    version: '0.2.0',
    started_ms: w.started,
    at_ms: at - 900,
    age_ms: 900,
    silent: false,
    draining: false,
    thrift: `10.0.0.${n}:5900`,
    http: `10.0.0.${n}:5980`,
    ids_per_s: rate / 3,
    calls_per_s: rate / 300,
    errors_per_s: 0,
    types_loaded: 8412,
    parts: [{ name: 'main', kind: 'redis', reachable: true, error: null }],
    ...more,
  });
  const active = [...w.types.values()].filter((type) => type.state === 'active').length;
  return {
    at_ms: at,
    node: '10.0.0.1:5900',
    ids_per_s: rate,
    calls_per_s: rate / 100,
    errors_per_s: 0.4,
    nodes: [
      node(1),
      node(2, {
        parts: [
          { name: 'old-rack-7', kind: 'redis', reachable: false, error: 'connection refused' },
        ],
      }),
      node(3, { silent: true, age_ms: 84_000, version: '0.1.0' }),
    ],
    instances: w.instances.map(({ up, ...each }) => ({
      ...each,
      reachable: up,
      round_trip_us: up ? 210 + each.id * 40 : 0,
      history: up ? 'h1' : null,
      error: up ? null : 'connection refused',
      memory_bytes: up ? 91_000_000 : null,
      role: up ? 'master' : null,
      version: up ? '7.2.4' : null,
    })),
    store: { kind: 'mysql', reachable: true, round_trip_us: 830, error: null },
    types: { active, retired: w.types.size - active },
    attention: w.calm
      ? []
      : [
          {
            kind: 'instance_down',
            severity: 'critical',
            subject: { instance: 'old-rack-7' },
            detail:
              'Redis instance old-rack-7 does not answer: connection refused; 3333 id types are on it',
          },
          {
            kind: 'runway_short',
            severity: 'critical',
            subject: { type: 'order' },
            detail: 'at 120 ids/s the ids at hand last 41 s, and no refill succeeded for 3 min',
            runway_s: 41,
          },
          {
            kind: 'node_silent',
            severity: 'warning',
            subject: { node: '10.0.0.3:5900' },
            detail: 'node 10.0.0.3:5900 has not reported for 84 s',
          },
          {
            kind: 'limit_near',
            severity: 'warning',
            subject: { type: 'trace.00005' },
            detail: '1 200 000 of 2 147 483 647 ids are left, which last 11 days at 1.2 ids/s',
            left: '1200000',
            runway_s: 990_000,
          },
          {
            kind: 'versions_differ',
            severity: 'warning',
            subject: {},
            detail: 'nodes run versions 0.1.0 and 0.2.0',
          },
          {
            kind: 'migration_running',
            severity: 'info',
            subject: { type: 'invoice.00012' },
            detail: 'invoice.00012 is on its way from main to spare',
            at_ms: at - 4000,
          },
        ],
  };
}

function series(span, ranges) {
  const steps = 120;
  const length = { hour: HOUR, day: 24 * HOUR, week: 168 * HOUR }[span];
  const to = Date.now();
  const step = length / steps;
  const at = Array.from({ length: steps }, (_, i) => Math.round(to - length + (i + 1) * step));
  return {
    span,
    from_ms: to - length,
    to_ms: to,
    step_ms: step,
    scope: 'cluster',
    at_ms: at,
    ids_per_s: at.map((ms, i) =>
      i > 40 && i < 46 ? null : (ranges ? 100 : 45_000) * (1.2 + Math.sin(ms / (length / 9))),
    ),
    ...(ranges
      ? {
          ranges: at
            .filter((_, i) => i % 6 === 0)
            .map((ms, i) => ({
              at_ms: ms,
              start: String(1 + i * 60_000),
              end: String(60_001 + i * 60_000),
              length: 60_000 + 9_000 * (i % 4),
              refill_ms: 3 + (i % 5) * 2.5,
              owner: '10.0.0.1:5900',
            })),
        }
      : {}),
  };
}

const problem = (status, code, detail, field) => ({
  status,
  body: {
    type: `urn:idgen:error:${code}`,
    title: code,
    status,
    detail,
    code,
    ...(field ? { field } : {}),
    retriable: status === 503,
  },
});
const ok = (body, status = 200) => ({ status, body });

function checkOf(each) {
  return {
    reachable: each.up,
    history: each.up ? 'h1' : null,
    round_trip_us: each.up ? 250 : 0,
    error: each.up ? null : 'connection refused',
  };
}

function answer(w, method, path, query, body, session) {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  const [a, name, b] = parts;
  const type = a === 'types' ? w.types.get(name) : undefined;
  if (a === 'overview') return ok(overview(w));
  if (a === 'series') return ok(series(query.get('span'), false));
  if (a === 'audit') return ok({ items: w.audit, more: false });
  if (a === 'callers') {
    const ids = Math.round((Date.now() % 1e9) * 1.2);
    const billing = { name: 'billing', id: 1, quota: 5000, taken: ids, calls: ids, refused: {} };
    return ok({ items: [billing], more: false });
  }
  if (a === 'accounts' || a === 'tokens' || a === 'sessions') {
    if (a !== 'sessions' && session.role !== 'administer')
      return problem(403, 'PERMISSION_DENIED', 'this needs the role administer');
    if (method === 'GET') {
      if (a === 'sessions')
        return ok({
          items: [...w.sessions.values()].map((s) => ({ ...s, current: s.id === session.id })),
          more: false,
        });
      return ok({ items: w[a].map(({ password: _, ...each }) => each), more: false });
    }
    if (a === 'tokens' && method === 'POST') {
      const token = {
        id: 100 + w.tokens.length,
        types: [],
        quota: null,
        certificate: false,
        expires_ms: null,
        ...body,
        created_by: session.account,
        created_ms: Date.now(),
        last_used_ms: null,
        revoked: false,
      };
      w.tokens.push(token);
      return ok({ token, secret: `idg_${'x7Yq'.repeat(10)}` }, 201);
    }
    if (a === 'tokens') {
      w.tokens.find((t) => String(t.id) === name).revoked = true;
      return ok(undefined, 204);
    }
    if (a === 'accounts' && method === 'POST') {
      if (body.password.length < 10)
        return problem(
          400,
          'INVALID_ARGUMENT',
          'password has 3 characters; it must have at least 10',
          'password',
        );
      w.accounts.push({
        ...body,
        disabled: false,
        created_ms: Date.now(),
        updated_ms: Date.now(),
        last_login_ms: null,
        version: 1,
      });
      return ok(w.accounts.at(-1), 201);
    }
    if (a === 'accounts' && method === 'PATCH') {
      const { version, ...change } = body;
      Object.assign(
        w.accounts.find((each) => each.name === name),
        change,
      );
      return ok(w.accounts.find((each) => each.name === name));
    }
    if (a === 'accounts') {
      if (name === 'alice')
        return problem(409, 'CONFLICT', 'alice is the last enabled administrator');
      w.accounts = w.accounts.filter((each) => each.name !== name);
      return ok(undefined, 204);
    }
    for (const [key, s] of w.sessions) if (String(s.id) === name) w.sessions.delete(key);
    return ok(undefined, 204);
  }
  if (a === 'redis-instances') {
    if (name === 'test')
      return ok(
        body.url?.includes('down')
          ? { reachable: false, history: null, round_trip_us: 0, error: 'connection refused' }
          : body.name
            ? checkOf(w.instances.find((i) => i.name === body.name))
            : { reachable: true, history: 'h9', round_trip_us: 320, error: null },
      );
    if (method === 'GET')
      return ok({
        items: w.instances.map((each) => ({ ...each, check: checkOf(each) })),
        more: false,
      });
    if (!name) {
      w.instances.push({
        id: w.instances.length + 1,
        name: body.name,
        url: body.url.replace(/:[^:@/]+@/, ':***@'),
        types: 0,
        drain_to: null,
        up: true,
      });
      return ok(w.instances.at(-1), 201);
    }
    const each = w.instances.find((i) => i.name === name);
    if (b === 'drain') {
      each.drain_to =
        method === 'POST'
          ? { id: w.instances.find((i) => i.name === body.to).id, name: body.to }
          : null;
      return ok(each);
    }
    if (each.types > 0)
      return problem(409, 'CONFLICT', `Redis instance ${name} has ${each.types} id types`);
    w.instances = w.instances.filter((i) => i !== each);
    return ok(undefined, 204);
  }
  if (a === 'imports') {
    const names = String(body.source.text ?? '')
      .split('\n')
      .map((line) => line.split(',')[0].trim())
      .filter(Boolean);
    const items = names
      .filter((n) => !body.only || body.only.includes(n))
      .map((n) => ({
        name: n,
        source: { highest: '9007199254740993', step: '1000', note: null },
        first_id: '9007199254741993',
        min_range: 1000,
        description: 'from leaf',
        state: w.types.has(n)
          ? 'exists'
          : /^[A-Za-z0-9]/.test(n)
            ? query.get('dry_run') === 'true'
              ? 'new'
              : 'created'
            : 'failed',
        problem: /^[A-Za-z0-9]/.test(n) ? null : 'name is not legal',
      }));
    const many = (...s) => items.filter((i) => s.includes(i.state)).length;
    return ok({
      format: 'leaf',
      items,
      create: many('new', 'created'),
      skip: many('exists'),
      fail: many('failed'),
    });
  }
  if (a !== 'types') return problem(404, 'NO_SUCH_ADDRESS', `there is nothing at ${path}`);
  if (!name) {
    if (method === 'POST') {
      if (w.types.has(body.name))
        return problem(409, 'ALREADY_EXISTS', `id type ${body.name} exists`, 'name');
      const made = {
        ...w.types.values().next().value,
        description: '',
        ...body,
        first_id: body.first_id ?? '1',
        next_id: body.first_id ?? '1',
        max_id: body.max_id ?? '9223372036854775806',
        max_position: '9223372036854775806',
        last_range: null,
        last_load_ms: null,
        version: 1,
        created_ms: Date.now(),
        updated_ms: Date.now(),
        instance: 1,
      };
      w.types.set(body.name, made);
      w.audit.unshift({
        seq: w.audit[0].seq + 1,
        at_ms: Date.now(),
        actor: session.account,
        action: 'create_type',
        subject: body.name,
        before: null,
        after: body,
      });
      return ok(made, 201);
    }
    const limit = Number(query.get('limit') ?? 100);
    const contains = query.get('contains') ?? '';
    const after = query.get('after') ?? '';
    const found = [...w.types.values()]
      .filter((t) => t.name.includes(contains) && t.name > after)
      .sort((x, y) => (x.name < y.name ? -1 : 1));
    return ok({ items: found.slice(0, limit), more: found.length > limit });
  }
  if (name === 'preview') {
    if (body.type.min_range === 7)
      return problem(400, 'INVALID_ARGUMENT', 'min_range 7 is not liked here', 'min_range');
    return ok({
      ids: [1, 2, 3, 4, 5].map((n) => ({ id: String(n), text: `${body.type.prefix ?? ''}${n}` })),
      ascending: true,
      growth: [0, 10, 70, 670, 1270].map((s, i) => ({
        at_s: s,
        length: Math.min(1000 * 6 ** i, body.rate * 600),
        end: 1001 + 6000 * i,
      })),
      lasts_s: 9.2e12,
      note: null,
    });
  }
  if (!type) return problem(404, 'UNKNOWN_TYPE', `there is no id type ${name}`);
  const live = liveOf(type, Date.now());
  const detail = () => ({
    ...type,
    dispatcher: live.dispatcher,
    local: live.local,
    exhausted_at_ms: live.exhausted_at_ms,
  });
  const bump = (change, action) => {
    const before = { ...type };
    Object.assign(type, change, { version: type.version + 1, updated_ms: Date.now() });
    w.audit.unshift({
      seq: w.audit[0].seq + 1,
      at_ms: Date.now(),
      actor: session.account,
      action,
      subject: name,
      before,
      after: { ...type },
    });
    w.changed?.([name]);
    return ok(type);
  };
  if (!b && method === 'GET') return ok(detail());
  if (!b) {
    const { version, ...change } = body;
    if (version !== undefined && version !== type.version)
      return problem(
        409,
        'CONFLICT',
        `id type ${name} was changed by somebody else: it is at version ${type.version}`,
      );
    return bump(change, 'alter_type');
  }
  if (b === 'retire') return bump({ state: 'retired' }, 'retire_type');
  if (b === 'restore') return bump({ state: 'active' }, 'restore_type');
  if (b === 'rotate-key') return bump({}, 'rotate_key');
  if (b === 'series') return ok(series(query.get('span'), type.mode !== 'snowflake'));
  if (b === 'ranges')
    return ok({
      items: Array.from({ length: 40 }, (_, i) => ({
        start: String(1 + (40 - i) * 1000),
        end: String(1001 + (40 - i) * 1000),
        at_ms: Date.now() - i * 600_000,
        owner: '10.0.0.1:5900',
        instance: 1,
        history: 'h1',
      })),
      more: true,
    });
  if (b === 'ids')
    return ok({
      name,
      ids: Array.from({ length: Number(query.get('count')) }, (_, i) =>
        String(BigInt(type.next_id) + 9007199254740993n + BigInt(i)),
      ),
    });
  if (b === 'decode')
    return /^\w+$/.test(query.get('id'))
      ? ok({
          id_type: name,
          mode: type.mode,
          id: '9223372036854775000',
          text: query.get('id'),
          position: '9223372036854775000',
          at_ms: Date.now() - 5000,
          node: '10.0.0.1:5900',
          range_first: '1',
          range_count: 1000,
          issued: true,
        })
      : problem(400, 'INVALID_ARGUMENT', 'id is not one of this type', 'id');
  if (b === 'reserve')
    return ok(
      {
        name,
        start: type.next_id,
        end: String(BigInt(type.next_id) + BigInt(body.count)),
        step: '1',
        count: body.count,
      },
      201,
    );
  if (b === 'migration') {
    const target = (to) => w.instances.find((i) => i.name === to);
    const place = (i) => ({
      instance: i.id,
      name: i.name,
      reachable: i.up,
      history: 'h1',
      dispatcher: i.id === type.instance ? live.dispatcher : null,
    });
    if (method === 'GET') {
      const to = target(query.get('to'));
      return ok({
        record: type,
        from: place(w.instances.find((i) => i.id === type.instance)),
        to: place(to),
        rest: 1000,
        keeps_rest: true,
        problems: to.up ? [] : [`Redis instance ${to.name} does not answer`],
      });
    }
    if (method === 'POST') {
      bump(
        {
          moved_from: type.instance,
          instance: target(body.to).id,
          generation: type.generation + 2,
        },
        'assign_type',
      );
      return ok({
        record: type,
        kept: body.abandon ? 0 : 1000,
        burnt: body.abandon ? 1000 : 0,
        took_ms: 12,
      });
    }
    return bump(
      { instance: type.moved_from ?? type.instance, moved_from: null, moving_to: null },
      'undo_migration',
    );
  }
  return problem(404, 'NO_SUCH_ADDRESS', `there is nothing at ${path}`);
}

/** Starts it; answers `{url, world, close}`. With `page`, dist/ is served as a node does. */
export async function start({ port = 0, count = 10_000, page = true } = {}) {
  const w = world(count);
  const streams = new Set();
  w.changed = (types) => {
    for (const s of streams) s.send('changed', { types, instances: false, at_ms: Date.now() });
  };
  let next = 1;
  const login = (response, account, status) => {
    const key = `s${Math.random()}`;
    const s = {
      id: next++,
      account: account.name,
      role: account.role,
      created_ms: Date.now(),
      last_used_ms: Date.now(),
      expires_ms: Date.now() + 8 * HOUR,
      agent: 'Mozilla/5.0 (X11; Linux x86_64)',
      address: '127.0.0.1',
      csrf: `c${key}`,
    };
    w.sessions.set(key, s);
    response.setHeader('Set-Cookie', `idgen_session=${key}; HttpOnly; SameSite=Strict; Path=/`);
    return ok(
      {
        account: { name: s.account, role: s.role },
        csrf: s.csrf,
        expires_ms: s.expires_ms,
        how: 'session',
      },
      status,
    );
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://x');
    const path = url.pathname;
    if (!path.startsWith('/api/v1')) {
      if (!page) return response.writeHead(404).end();
      const file = path.startsWith('/assets/') ? path : '/index.html';
      response.writeHead(200, {
        'Content-Type': kinds[extname(file)] ?? 'text/plain',
        'Content-Security-Policy': CSP,
        'X-Content-Type-Options': 'nosniff',
      });
      return response.end(readFileSync(join(dist, file)));
    }
    let text = '';
    for await (const part of request) text += part;
    const body = text ? JSON.parse(text) : undefined;
    const api = path.slice('/api/v1'.length);
    const key = /idgen_session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1];
    const session = w.sessions.get(key);
    const send = ({ status, body: out }) => {
      response.writeHead(status, {
        'Content-Type': 'application/json',
        'Cache-Control': 'no-store',
      });
      response.end(out === undefined ? undefined : JSON.stringify(out));
    };
    if (w.broken) return send(problem(503, 'UNAVAILABLE', 'the range store is out of reach'));
    if (api === '/access')
      return send(ok({ setup_needed: w.setup, accounts: !w.setup, closed: null }));
    if (api === '/setup') {
      if (!w.setup || body.token !== 'TOKEN')
        return send(problem(403, 'PERMISSION_DENIED', 'the set-up token is wrong or used up'));
      w.setup = false;
      w.accounts.push({
        ...body,
        role: 'administer',
        disabled: false,
        version: 1,
        created_ms: Date.now(),
        updated_ms: Date.now(),
        last_login_ms: null,
      });
      return send(login(response, { name: body.name, role: 'administer' }, 201));
    }
    if (api === '/session' && request.method === 'POST') {
      const account = w.accounts.find(
        (each) => each.name === body.name && each.password === body.password,
      );
      return send(
        account
          ? login(response, account, 200)
          : problem(401, 'UNAUTHENTICATED', 'name or password is wrong'),
      );
    }
    if (!session) return send(problem(401, 'UNAUTHENTICATED', 'log in first'));
    if (request.method !== 'GET' && request.headers['x-idgen-csrf'] !== session.csrf)
      return send(problem(403, 'PERMISSION_DENIED', 'X-Idgen-Csrf is missing or wrong'));
    if (api === '/session' && request.method === 'DELETE') {
      w.sessions.delete(key);
      return send(ok(undefined, 204));
    }
    if (api === '/session')
      return send(
        ok({
          account: { name: session.account, role: session.role },
          csrf: session.csrf,
          expires_ms: session.expires_ms,
          how: 'session',
        }),
      );
    if (api === '/session/password')
      return send(
        body.old === 'wrong'
          ? problem(403, 'PERMISSION_DENIED', 'the old password is wrong', 'old')
          : ok(undefined, 204),
      );
    if (api === '/stream') {
      if (w.streamDown) return send(problem(503, 'OVERLOADED', 'there are 64 streams already'));
      const names = (url.searchParams.get('types') ?? '').split(',').filter(Boolean);
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      const event = (name, data) =>
        response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
      const report = () => {
        event('overview', overview(w));
        if (names.length)
          event('types', {
            at_ms: Date.now(),
            items: names
              .map((n) => w.types.get(n))
              .filter(Boolean)
              .map((t) => liveOf(t, Date.now())),
          });
      };
      event('hello', { node: '10.0.0.1:5900', version: w.version ?? '0.2.0', at_ms: Date.now() });
      report();
      const timer = setInterval(report, 2000);
      const stream = { send: event, end: () => response.end() };
      streams.add(stream);
      request.on('close', () => {
        clearInterval(timer);
        streams.delete(stream);
      });
      return;
    }
    if (session.role === 'view' && request.method !== 'GET' && !api.endsWith('/preview'))
      return send(problem(403, 'PERMISSION_DENIED', 'this needs the role operate'));
    send(answer(w, request.method, api, url.searchParams, body, session));
  });
  await new Promise((done) => server.listen(port, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    world: w,
    endStreams: () => {
      for (const s of streams) s.end();
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
