//! The live view: what the nodes, the Redis instances, the range store and the types
//! are doing now, for the admin page.
//!
//! - [`recorder`] counts, about once a second, from what [`super::watch`] finds
//!   anyway; [`track`] is one series.
//! - [`report`]: every 2 s the node reports itself on every Redis instance, and reads
//!   what its peers reported.
//! - [`collect`] asks everything that is shown, at most every 2 s and only while
//!   somebody looks; [`attention`] judges it.
//! - [`stream`]: one task samples for all streams, as long as there are any.
//!
//! Nothing here decides about ids, and nothing that does waits for it. What fails is
//! left out.

pub mod api;
mod attention;
mod collect;
mod recorder;
mod report;
mod stream;
mod track;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::catalogue::TypeEntry;
use super::watch::until_stopped;
use super::{Parts, Service};
use crate::domain::{Error, ErrorCode, IdRange, TypeName};
use crate::ports::{Change, Subject, View};
use api::{Changed, LiveApi, LiveConfig, Overview, Scope, Series, SeriesRange, Span, Traffic};
use collect::{Ask, Cached, Slow};
use recorder::{Latest, NodeRates, Recorder};
use report::{Details, Peers, Summary};
pub use stream::Stream;
use stream::Streams;

/// How often a node reports itself.
const REPORT_PERIOD: Duration = Duration::from_secs(2);
/// How often the counters are looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Longest time for one look at a Redis instance or the store.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// Most names in one [`Changed`].
const MOST_CHANGED: usize = 200;
/// Most ranges in a series.
const MOST_RANGES: u32 = 1_000;

/// See the module.
pub(super) struct Live {
    config: LiveConfig,
    started_ms: i64,
    recorder: Recorder,
    peers: Mutex<Peers>,
    cached: tokio::sync::Mutex<Option<Cached>>,
    slow: Mutex<Slow>,
    streams: Streams,
    changes: broadcast::Sender<Changed>,
    /// What the HTTP side served.
    http: [AtomicU64; 4],
    /// Whether the latest report went nowhere, so that this is logged once.
    unheard: AtomicBool,
}

impl Service {
    /// Starts to report this node to its peers, to count and to serve the live view.
    /// Without this call its answers are empty. Once.
    pub fn go_live(&self, config: LiveConfig) {
        let parts = &self.parts;
        let wall_ms = parts.clock.now_ms();
        let live = Live {
            config,
            started_ms: wall_ms - parts.started.elapsed().as_millis() as i64,
            recorder: Recorder::new(wall_ms),
            peers: Mutex::default(),
            cached: tokio::sync::Mutex::default(),
            slow: Mutex::default(),
            streams: Streams::default(),
            // Who lags by more is told that anything may have changed.
            changes: broadcast::channel(64).0,
            http: Default::default(),
            unheard: AtomicBool::new(false),
        };
        if parts.live.set(live).is_ok() {
            parts.tasks.spawn(count(parts.clone()));
            parts.tasks.spawn(report_for_ever(parts.clone()));
        }
    }
}

impl Parts {
    /// The supply of a type was looked at.
    pub(super) fn note_supply(
        &self,
        entry: &Arc<TypeEntry>,
        view: Option<&View>,
        runway_s: Option<f64>,
        exhausted_at_ms: Option<i64>,
    ) {
        if let Some(live) = self.live.get() {
            live.recorder.look(entry, view, Latest { runway_s, exhausted_at_ms });
        }
    }

    /// This node got a range, and that took so long.
    pub(super) fn note_refill(&self, name: &TypeName, range: IdRange, took: Duration) {
        if let Some(live) = self.live.get() {
            live.recorder.got(name, range, took, self.clock.now_ms());
        }
    }

    /// The feed showed changes.
    pub(super) fn note_changes(&self, changes: &[Change]) {
        let mut told = Changed::default();
        for change in changes {
            match &change.subject {
                Subject::Type(name) if !told.types.iter().any(|t| t == name.as_str()) => {
                    match told.types.len() < MOST_CHANGED {
                        true => told.types.push(name.to_string()),
                        false => told.all = true,
                    }
                }
                Subject::Type(_) => {}
                Subject::Instances => told.instances = true,
                // The page asks for these when somebody looks at them.
                Subject::Access => {}
            }
        }
        self.tell_changed(told);
    }

    /// Anything may have changed.
    pub(super) fn note_everything_changed(&self) {
        self.tell_changed(Changed { instances: true, all: true, ..Changed::default() });
    }

    fn tell_changed(&self, told: Changed) {
        if let Some(live) = self.live.get() {
            live.slow.lock().expect("never poisoned").is_outdated = true;
            // No receiver is no error: then nobody looks.
            let _ = live.changes.send(Changed { at_ms: self.clock.now_ms(), ..told });
        }
    }

    fn stale_histories(&self) -> u64 {
        let counters = ["dispatcher", "node", "store"];
        let count = |label| self.metrics.stale_histories.with_label_values(&[label]).get();
        counters.into_iter().map(count).sum()
    }
}

impl Live {
    fn traffic(&self) -> Traffic {
        let [ids, calls, errors, failures] =
            [0, 1, 2, 3].map(|n: usize| self.http[n].load(Ordering::Relaxed));
        (self.config.traffic)() + Traffic { ids, calls, errors, failures }
    }

    fn peers(&self) -> Peers {
        self.peers.lock().expect("never poisoned").clone()
    }

    /// What this node says of itself.
    fn summary(&self, parts: &Parts, rates: NodeRates) -> Summary {
        let status = parts.node_status();
        let part = |part: super::api::PartStatus| api::Part {
            name: part.name,
            kind: part.kind.to_owned(),
            reachable: part.reachable,
            error: part.error,
        };
        Summary {
            version: status.version.to_owned(),
            started_ms: self.started_ms,
            at_ms: parts.clock.now_ms(),
            draining: status.draining,
            thrift: self.config.thrift.clone(),
            http: self.config.http.clone(),
            ids_per_s: rates.ids_per_s,
            calls_per_s: rates.calls_per_s,
            errors_per_s: rates.errors_per_s,
            types_loaded: status.types_loaded,
            parts: status.parts.into_iter().map(part).collect(),
        }
    }

    fn details(&self, parts: &Parts, rates: NodeRates) -> Details {
        let busy = self.recorder.busy();
        let attention = collect::own_attention(parts, rates, &busy);
        Details::new(busy, attention)
    }
}

/// Looks at the counters of the node, for ever.
async fn count(parts: Arc<Parts>) {
    let Some(live) = parts.live.get() else { return };
    let mut ticks = interval(LOOK_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let work = async {
        loop {
            ticks.tick().await;
            let peers = live.peers.lock().expect("never poisoned").ids_per_s();
            live.recorder.look_at_node(live.traffic(), parts.stale_histories(), peers);
        }
    };
    until_stopped(parts.clone(), work).await;
}

/// Reports this node, and hears of its peers; takes the report away at the end.
async fn report_for_ever(parts: Arc<Parts>) {
    let Some(live) = parts.live.get() else { return };
    let mut ticks = interval(REPORT_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let work = async {
        loop {
            ticks.tick().await;
            report(&parts, live).await;
            collect::read_peers(&parts, live, false).await;
        }
    };
    until_stopped(parts.clone(), work).await;
    collect::ask_all(&parts, Ask::Leave).await;
}

async fn report(parts: &Parts, live: &Live) {
    let rates = live.recorder.rates(parts.stale_histories());
    let summary = live.summary(parts, rates).text();
    let details = live.details(parts, rates).text();
    let what = Ask::Report { summary: &summary, details: &details };
    let answers = collect::ask_all(parts, what).await;
    let error = answers.iter().find_map(|answer| answer.as_ref().err());
    match error.filter(|_| answers.iter().all(Result::is_err)) {
        Some(error) if !live.unheard.swap(true, Ordering::Relaxed) => {
            tracing::warn!(%error, "this node cannot report itself to its peers");
        }
        Some(_) => {}
        None => live.unheard.store(false, Ordering::Relaxed),
    }
}

impl LiveApi for Service {
    type Events = Stream;

    async fn overview(&self) -> Arc<Overview> {
        collect::overview(&self.parts).await
    }

    fn series(&self, span: Span) -> Series {
        let wall_ms = self.parts.clock.now_ms();
        let (from_ms, means) = match self.parts.live.get() {
            Some(live) => live.recorder.read_node(span, wall_ms),
            None => (wall_ms, Vec::new()),
        };
        series(span, Scope::Cluster, from_ms, wall_ms, means)
    }

    async fn type_series(&self, name: &str, span: Span) -> Result<Series, Error> {
        let parts = &self.parts;
        let entry = parts.find(name, parts.deadline()).await?;
        // Without the store there is what was measured here.
        let asked = parts.store.range_log(&entry.name, MOST_RANGES);
        let log = match timeout(parts.config.deadline, asked).await {
            Ok(Ok(log)) => log,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let wall_ms = parts.clock.now_ms();
        let (from_ms, mut means, refills) = match parts.live.get() {
            Some(live) => live.recorder.read_type(&entry.name, span, wall_ms),
            None => Default::default(),
        };
        let is_strict = entry.record().mode == crate::domain::Mode::Strict;
        let scope = if is_strict { Scope::Cluster } else { Scope::Node };
        let owner = (!is_strict).then_some(parts.config.node.as_str());
        let step_ms = span.step().as_millis() as i64;
        recorder::fill_from_log(&mut means, from_ms, step_ms, &log, owner);
        let of_span = log.iter().rev().filter(|entry| entry.at_ms >= from_ms);
        let ranges = of_span.map(|entry| SeriesRange {
            at_ms: entry.at_ms,
            start: entry.range.start(),
            end: entry.range.end(),
            length: entry.range.len() as i64,
            refill_ms: (entry.owner == parts.config.node)
                .then(|| refills.get(&entry.range.start()).copied())
                .flatten(),
            owner: entry.owner.clone(),
        });
        let ranges = Some(ranges.collect());
        Ok(Series { ranges, ..series(span, scope, from_ms, wall_ms, means) })
    }

    fn watch(&self, names: Vec<TypeName>) -> Stream {
        Stream::begin(self.parts.clone(), names)
    }

    fn served(&self, result: Result<u64, &Error>) {
        let Some(live) = self.parts.live.get() else { return };
        let [ids, calls, errors, failures] = &live.http;
        calls.fetch_add(1, Ordering::Relaxed);
        match result {
            Ok(count) => drop(ids.fetch_add(count, Ordering::Relaxed)),
            Err(error) => {
                errors.fetch_add(1, Ordering::Relaxed);
                failures.fetch_add(u64::from(is_failure(error.code)), Ordering::Relaxed);
            }
        }
    }
}

/// Whether a call that ended with this code failed for no fault of the caller's.
pub fn is_failure(code: ErrorCode) -> bool {
    match code {
        ErrorCode::Unavailable
        | ErrorCode::Deadline
        | ErrorCode::Overloaded
        | ErrorCode::Exhausted
        | ErrorCode::ClockBackwards
        | ErrorCode::Internal => true,
        ErrorCode::UnknownType
        | ErrorCode::UnknownInstance
        | ErrorCode::Retired
        | ErrorCode::InvalidArgument
        | ErrorCode::AlreadyExists
        | ErrorCode::Conflict
        | ErrorCode::PermissionDenied
        | ErrorCode::QuotaExceeded => false,
    }
}

fn series(
    span: Span,
    scope: Scope,
    from_ms: i64,
    to_ms: i64,
    ids_per_s: Vec<Option<f64>>,
) -> Series {
    let step = span.step().as_millis() as i64;
    let at_ms = (0..ids_per_s.len() as i64).map(|n| from_ms + n * step).collect();
    let step_ms = step as u64;
    Series { span, from_ms, to_ms, step_ms, scope, at_ms, ids_per_s, ranges: None }
}
