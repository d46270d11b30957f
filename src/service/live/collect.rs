//! Asks everything that the live view shows, all at once and each within its time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use super::api::{
    Attention, InstanceRef, InstanceState, NodeReport, Overview, Scope, StoreState, TypeLive,
};
use super::attention::{self, ClusterFacts, NodeFacts, TypeFacts};
use super::recorder::{Busy, Latest, NodeRates, rounded};
use super::report::{Peers, merge};
use super::{LOOK_TIME, Live};
use crate::domain::instance::redact_url;
use crate::domain::{AtLimit, InstanceId, Mode, TypeName};
use crate::ports::{DispatchError, NodeEntry, NodeRegistry, ServerFacts, TypeCounts, View};
use crate::service::Parts;
use crate::service::catalogue::TypeEntry;
use crate::service::instances::Instance;

/// An overview is used for so long: a little less than the period of streams, so that
/// each of their looks finds a new one.
const FRESH: Duration = Duration::from_millis(1_900);
/// What costs more with more types is asked so often at most, and at most a
/// twentieth of the time.
const SLOW_PERIOD: Duration = Duration::from_secs(10);
const SLOW_SHARE: u32 = 20;
/// After a change it is asked again so soon.
const SLOW_AFTER_CHANGE: Duration = Duration::from_secs(1);
/// An answer does not wait longer for it.
const SLOW_WAIT: Duration = Duration::from_millis(300);
/// A view of a type that is older is asked for again.
const FRESH_VIEW: Duration = Duration::from_millis(1_500);
/// Views that are asked for at once.
const VIEWS_AT_ONCE: usize = 16;

/// The last overview.
pub(super) struct Cached {
    at: Instant,
    overview: Arc<Overview>,
}

/// What is asked seldom.
#[derive(Default)]
pub(super) struct Slow {
    known: Known,
    asked: Option<Instant>,
    took: Duration,
    running: bool,
    /// Something changed since it was asked.
    pub(super) is_outdated: bool,
}

#[derive(Clone, Default)]
struct Known {
    counts: TypeCounts,
    /// Of each instance how many types are on it, and where they go.
    instances: BTreeMap<InstanceId, (u64, Option<InstanceId>)>,
    migrations: Vec<(String, i64)>,
}

/// What is asked of every registry.
#[derive(Clone, Copy)]
pub(super) enum Ask<'a> {
    /// Keep this of the node itself.
    Report { summary: &'a str, details: &'a str },
    /// Tell what nodes reported.
    Read { with_details: bool },
    /// Forget the node itself.
    Leave,
}

/// Asks the registry of every instance that has one, all at once.
pub(super) async fn ask_all(
    parts: &Parts,
    what: Ask<'_>,
) -> Vec<Result<Vec<NodeEntry>, DispatchError>> {
    let node = parts.config.node.as_str();
    let mut calls = Vec::new();
    for instance in parts.instances.all() {
        calls.push(async move {
            let registry = instance.dispatcher.registry()?;
            let late = || DispatchError::Unavailable("no answer in time".to_owned());
            let answer = timeout(LOOK_TIME, ask(registry, node, what)).await;
            Some(answer.unwrap_or_else(|_| Err(late())))
        });
    }
    join_all(calls).await.into_iter().flatten().collect()
}

async fn ask(
    registry: &dyn NodeRegistry,
    node: &str,
    what: Ask<'_>,
) -> Result<Vec<NodeEntry>, DispatchError> {
    match what {
        Ask::Report { summary, details } => {
            registry.report(node, summary, details).await.map(|()| Vec::new())
        }
        Ask::Read { with_details } => registry.reports(with_details).await,
        Ask::Leave => registry.leave(node).await.map(|()| Vec::new()),
    }
}

/// Reads what the peers reported. Where nothing can be read, what was known stays as
/// it was: a Redis that is away says nothing about nodes.
pub(super) async fn read_peers(parts: &Parts, live: &Live, with_details: bool) {
    let answers = ask_all(parts, Ask::Read { with_details }).await;
    let any = answers.iter().any(Result::is_ok);
    let read = answers.into_iter().flatten().flatten().collect();
    let mut peers = live.peers.lock().expect("never poisoned");
    peers.is_current = any;
    if !any {
        return;
    }
    let mut all = merge(&parts.config.node, read);
    if !with_details {
        // Somebody else may be looking.
        for peer in &mut all {
            let held = peers.all.iter_mut().find(|held| held.report.node == peer.report.node);
            peer.details = held.and_then(|held| held.details.take());
        }
    }
    *peers = Peers { all, heard: Some(Instant::now()), is_current: true };
}

/// See [`LiveApi::overview`](super::LiveApi::overview).
pub(super) async fn overview(parts: &Arc<Parts>) -> Arc<Overview> {
    let Some(live) = parts.live.get() else {
        return Arc::new(empty(parts));
    };
    // One asks for all who want to know at once.
    let mut cached = live.cached.lock().await;
    if let Some(cached) = &*cached
        && cached.at.elapsed() < FRESH
    {
        return cached.overview.clone();
    }
    let at = Instant::now();
    let overview = Arc::new(collect(parts, live).await);
    *cached = Some(Cached { at, overview: overview.clone() });
    overview
}

fn empty(parts: &Parts) -> Overview {
    Overview {
        at_ms: parts.clock.now_ms(),
        node: parts.config.node.clone(),
        ids_per_s: 0.0,
        calls_per_s: 0.0,
        errors_per_s: 0.0,
        nodes: Vec::new(),
        instances: Vec::new(),
        store: StoreState {
            kind: parts.config.store_kind,
            reachable: parts.health.is_reachable("store"),
            round_trip_us: None,
            error: None,
        },
        types: TypeCounts::default(),
        attention: Vec::new(),
    }
}

async fn collect(parts: &Arc<Parts>, live: &Live) -> Overview {
    let instances = parts.instances.all();
    let looks: Vec<_> = instances.iter().map(|instance| look_at(instance)).collect();
    let (known, store, looks, ()) = tokio::join!(
        slow(parts, live),
        look_at_store(parts),
        join_all(looks),
        read_peers(parts, live, true),
    );
    let instances = states(&instances, looks, &known);
    let rates = live.recorder.rates(parts.stale_histories());
    let peers = live.peers();
    let own = live.summary(parts, rates).into_node(parts.config.node.clone(), 0, false);
    let mut nodes: Vec<NodeReport> = peers.all.iter().map(|peer| peer.report.clone()).collect();
    nodes.push(own);
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    let facts = ClusterFacts {
        store: &store,
        instances: &instances,
        nodes: &nodes,
        migrations: &known.migrations,
    };
    let mut found = attention::of_cluster(&facts);
    found.extend(own_attention(parts, rates, &live.recorder.busy()));
    let told = peers.awake().filter_map(|peer| peer.details.as_ref());
    found.extend(told.flat_map(|details| details.attention.iter().cloned()));
    let sum = |rate: fn(&NodeReport) -> f64| {
        rounded(Some(nodes.iter().filter(|node| !node.silent).map(rate).sum()))
    };
    Overview {
        at_ms: parts.clock.now_ms(),
        node: parts.config.node.clone(),
        ids_per_s: sum(|node| node.ids_per_s),
        calls_per_s: sum(|node| node.calls_per_s),
        errors_per_s: sum(|node| node.errors_per_s),
        attention: attention::ordered(found),
        types: known.counts,
        nodes,
        instances,
        store,
    }
}

/// What was found out about an instance.
struct Look {
    round_trip_us: u64,
    history: Result<String, String>,
    facts: ServerFacts,
}

async fn look_at(instance: &Instance) -> Look {
    let began = Instant::now();
    let history = match timeout(LOOK_TIME, instance.dispatcher.history()).await {
        Ok(Ok(history)) => Ok(history.as_str().to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} ms", LOOK_TIME.as_millis())),
    };
    let round_trip_us = history.as_ref().map_or(0, |_| began.elapsed().as_micros() as u64);
    let mut facts = ServerFacts::default();
    if history.is_ok()
        && let Ok(Ok(told)) = timeout(LOOK_TIME, instance.dispatcher.server_facts()).await
    {
        facts = told;
    }
    Look { round_trip_us, history, facts }
}

fn states(instances: &[Arc<Instance>], looks: Vec<Look>, known: &Known) -> Vec<InstanceState> {
    let name_of = |id: InstanceId| {
        instances.iter().find(|i| i.record.id == id).map(|i| i.record.name.clone())
    };
    let state = |(instance, look): (&Arc<Instance>, Look)| {
        let record = &instance.record;
        let (types, drain_to) = known.instances.get(&record.id).copied().unwrap_or_default();
        InstanceState {
            id: record.id.0,
            name: record.name.clone(),
            url: redact_url(&record.url),
            reachable: look.history.is_ok(),
            round_trip_us: look.round_trip_us,
            error: look.history.as_ref().err().cloned(),
            history: look.history.ok(),
            types,
            drain_to: drain_to.map(|to| InstanceRef { id: to.0, name: name_of(to) }),
            memory_bytes: look.facts.memory_bytes,
            role: look.facts.role,
            version: look.facts.version,
        }
    };
    instances.iter().zip(looks).map(state).collect()
}

async fn look_at_store(parts: &Parts) -> StoreState {
    let began = Instant::now();
    let error = match timeout(LOOK_TIME, parts.store.ping()).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} ms", LOOK_TIME.as_millis())),
    };
    let round_trip_us = error.is_none().then(|| began.elapsed().as_micros() as u64);
    StoreState { kind: parts.config.store_kind, reachable: error.is_none(), round_trip_us, error }
}

/// What is asked seldom, by a task of its own: nobody waits long for it.
async fn slow(parts: &Arc<Parts>, live: &Live) -> Known {
    let task = {
        let mut slow = live.slow.lock().expect("never poisoned");
        let pause = match slow.is_outdated {
            true => SLOW_AFTER_CHANGE,
            false => SLOW_PERIOD,
        };
        let pause = pause.max(slow.took * SLOW_SHARE);
        let is_due = slow.asked.is_none_or(|at| at.elapsed() >= pause);
        if slow.running || !is_due {
            return slow.known.clone();
        }
        (slow.running, slow.is_outdated, slow.asked) = (true, false, Some(Instant::now()));
        parts.tasks.spawn(ask_slow(parts.clone()))
    };
    let _ = timeout(SLOW_WAIT, task).await;
    live.slow.lock().expect("never poisoned").known.clone()
}

async fn ask_slow(parts: Arc<Parts>) {
    let Some(live) = parts.live.get() else { return };
    let began = Instant::now();
    let asked = async {
        tokio::join!(parts.store.instances(), parts.store.count_types(), parts.store.migrations())
    };
    let (instances, counts, migrations) = tokio::select! {
        biased;
        () = parts.stop.cancelled() => return,
        answers = asked => answers,
    };
    let mut slow = live.slow.lock().expect("never poisoned");
    // A store that is away must not be asked late when it is back.
    let is_whole = instances.is_ok() && counts.is_ok() && migrations.is_ok();
    slow.took = if is_whole { began.elapsed() } else { Duration::ZERO };
    slow.running = false;
    if let Ok(instances) = instances {
        let known = instances.into_iter().map(|i| (i.id, (i.types, i.drain_to)));
        slow.known.instances = known.collect();
    }
    if let Ok(counts) = counts {
        slow.known.counts = counts;
    }
    if let Ok(moving) = migrations {
        let since =
            |record: crate::domain::TypeRecord| (record.name.to_string(), record.updated_ms);
        slow.known.migrations = moving.into_iter().map(since).collect();
    }
}

/// What this node tells of itself and of the types that it serves.
pub(super) fn own_attention(parts: &Parts, rates: NodeRates, busy: &[Busy]) -> Vec<Attention> {
    let latest: BTreeMap<&str, &Latest> =
        busy.iter().map(|busy| (busy.name.as_str(), &busy.latest)).collect();
    let facts =
        |entry: Arc<TypeEntry>| type_facts(&entry, latest.get(entry.name.as_str()).copied());
    let types: Vec<TypeFacts> = parts.active.all().into_iter().map(facts).collect();
    let node = NodeFacts {
        node: parts.config.node.clone(),
        store_reachable: parts.health.is_reachable("store"),
        calls_last_minute: rates.calls_last_minute,
        failures_last_minute: rates.failures_last_minute,
        stale_histories: rates.stale_histories,
    };
    attention::of_one_node(parts.clock.now_ms(), &node, &types)
}

fn type_facts(entry: &TypeEntry, latest: Option<&Latest>) -> TypeFacts {
    let record = entry.record();
    let is_limited = record.mode != Mode::Snowflake
        && record.options.at_limit != AtLimit::Cycle
        && record.options.calendar.is_none();
    let used = is_limited.then(|| {
        let ends = entry.all_leases().map(|leases| leases.floor());
        let next = ends.fold(record.next_id.max(entry.supply.floor()), i64::max);
        let left = record.left_from(next);
        let all = record.left_from(record.first_id.min(record.next_id));
        let share = if all == 0 { 1.0 } else { 1.0 - left as f64 / all as f64 };
        (share, left)
    });
    let failed = entry.supply.error().or_else(|| entry.all_leases().find_map(|l| l.error()));
    TypeFacts {
        name: entry.name.to_string(),
        runway_s: latest.and_then(|latest| latest.runway_s),
        load_interval_ms: record.load_interval_ms,
        exhausted_at_ms: latest.and_then(|latest| latest.exhausted_at_ms),
        used,
        epoch_end_ms: (record.mode == Mode::Snowflake)
            .then(|| record.options.snowflake.unwrap_or_default().end_ms()),
        refill_error: failed.map(|error| error.message),
        starving: entry.supply.is_starving(),
    }
}

/// The types called `names` now, but for those that do not exist.
pub(super) async fn types(parts: &Arc<Parts>, names: &[TypeName]) -> Vec<TypeLive> {
    let Some(live) = parts.live.get() else { return Vec::new() };
    let peers = live.peers();
    let peers = &peers;
    let mut looks = Vec::with_capacity(names.len());
    for name in names {
        looks.push(async move {
            let deadline = Instant::now() + LOOK_TIME;
            let entry = parts.find(name.as_str(), deadline).await.ok()?;
            Some(look_at_type(parts, live, &entry, peers).await)
        });
    }
    let found = futures_util::stream::iter(looks).buffered(VIEWS_AT_ONCE);
    found.filter_map(std::future::ready).collect().await
}

async fn look_at_type(
    parts: &Arc<Parts>,
    live: &Live,
    entry: &Arc<TypeEntry>,
    peers: &Peers,
) -> TypeLive {
    let record = entry.record();
    let now_ms = parts.clock.now_ms();
    let is_strict = record.mode == Mode::Strict;
    let view = match is_strict {
        true => view_of(parts, live, entry, record.instance).await,
        false => None,
    };
    let local = entry.local(now_ms);
    let (rate, rate_of) = match (is_strict, &view) {
        (true, view) => {
            // Since the last publication, where nobody has looked yet.
            let average = || view.as_ref().and_then(|v| entry.supply.rate(v.used, v.age_ms));
            (live.recorder.rate(&entry.name).or_else(average), Scope::Cluster)
        }
        (false, _) => rate_of_leases(live, entry, peers),
    };
    let runway_s = match (&view, is_strict) {
        (Some(view), _) => rate.filter(|rate| *rate > 0.0).map(|rate| view.left() as f64 / rate),
        (None, true) => None,
        (None, false) => local.as_ref().and_then(|local| local.runway_s),
    };
    let published = view.as_ref().filter(|v| v.current.is_some()).map(|v| now_ms - v.age_ms as i64);
    let loads = [record.last_load_ms, published, live.recorder.last_load_ms(&entry.name)];
    TypeLive {
        name: entry.name.clone(),
        version: record.version,
        rate: rate.map(|rate| rounded(Some(rate))),
        rate_of,
        runway_s: runway_s.map(|runway| rounded(Some(runway))),
        exhausted_at_ms: parts.exhausted_at_ms(entry, view.as_ref()),
        view,
        local,
        last_load_ms: loads.into_iter().flatten().max(),
    }
}

/// What the dispatcher of a strict type holds: as was found lately, or asked now.
async fn view_of(
    parts: &Parts,
    live: &Live,
    entry: &Arc<TypeEntry>,
    instance: InstanceId,
) -> Option<View> {
    if let Some(view) = live.recorder.view(&entry.name, FRESH_VIEW) {
        return Some(view);
    }
    let instance = parts.instances.get(instance)?;
    // The types of one that is away must not wait for it one after another.
    if !parts.health.is_reachable(&instance.record.name) {
        return None;
    }
    let view = timeout(LOOK_TIME, instance.dispatcher.view(&entry.name)).await.ok()?.ok()?;
    let rate = entry.supply.rate(view.used, view.age_ms);
    let latest = Latest {
        runway_s: rate.map(|rate| view.left() as f64 / rate),
        exhausted_at_ms: parts.exhausted_at_ms(entry, Some(&view)),
    };
    live.recorder.look(entry, Some(&view), latest);
    Some(view)
}

/// What all nodes hand out of their own leases, as far as they told.
fn rate_of_leases(live: &Live, entry: &TypeEntry, peers: &Peers) -> (Option<f64>, Scope) {
    let own = live.recorder.rate(&entry.name);
    let mut all_told = peers.is_current || peers.heard.is_none();
    let mut others = None;
    for peer in peers.awake() {
        let Some(details) = &peer.details else {
            all_told = false;
            continue;
        };
        match details.types.iter().find(|told| told.n == entry.name.as_str()) {
            Some(told) => *others.get_or_insert(0.0) += told.r,
            None => all_told &= details.complete,
        }
    }
    let rate = own.into_iter().chain(others).reduce(|a, b| a + b);
    (rate, if all_told { Scope::Cluster } else { Scope::Node })
}
