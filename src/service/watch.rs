//! Keeping the node's view of the world fresh.
//!
//! Three tasks: the feed of changes of the range store, the news of each
//! dispatcher, and a look at the health of everything. Each survives errors;
//! what it missed it makes up for when the other side is back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{MissedTickBehavior, interval};

use super::api::PartStatus;
use super::catalogue::Source;
use super::instances::Instance;
use super::{Parts, idle, migration};
use crate::domain::{Error, InstanceRecord, Mode, TypeName};
use crate::ports::{Announcement, Change, StoreError, Subject};

/// Half of the second within which every change must be known to every node.
const FEED_PERIOD: Duration = Duration::from_millis(500);
/// How old a statement about health may be.
const HEALTH_PERIOD: Duration = Duration::from_secs(1);
/// A type without a take for so long has no runway.
const RUNWAY_SPAN: Duration = Duration::from_secs(60);

/// What the last look at the parts found.
#[derive(Default)]
pub(super) struct Health {
    parts: RwLock<BTreeMap<String, PartStatus>>,
}

impl Health {
    /// Whether the part called `name` answered at the last look.
    pub(super) fn is_reachable(&self, name: &str) -> bool {
        let parts = self.parts.read().expect("never poisoned");
        parts.get(name).is_none_or(|part| part.reachable)
    }

    pub(super) fn parts(&self) -> Vec<PartStatus> {
        self.parts.read().expect("never poisoned").values().cloned().collect()
    }
}

/// Reads where the feed is, connects the instances, and starts the tasks.
pub(super) async fn start(parts: &Arc<Parts>) -> Result<(), Error> {
    let seen = newest_change(parts).await?;
    parts.catalogue.feed_is_at(&seen);
    refresh_instances(parts).await?;
    check_health(parts).await;
    parts.tasks.spawn(until_stopped(parts.clone(), follow_feed(parts.clone(), seen)));
    parts.tasks.spawn(until_stopped(parts.clone(), look_after_health(parts.clone())));
    parts.tasks.spawn(until_stopped(parts.clone(), look_after_supply(parts.clone())));
    parts.tasks.spawn(until_stopped(parts.clone(), migration::look_after(parts.clone())));
    parts.tasks.spawn(until_stopped(parts.clone(), idle::look_for_idle(parts.clone())));
    Ok(())
}

/// Does `task` until the node stops.
pub(super) async fn until_stopped(parts: Arc<Parts>, task: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = parts.stop.cancelled() => {}
        () = task => {}
    }
}

/// The newest change of the store, from which on its feed is read; `None` if there
/// is none yet.
async fn newest_change(parts: &Parts) -> Result<Option<Change>, StoreError> {
    let latest = parts.store.latest_change().await?;
    let newest = parts.store.changes_since(latest - 1).await?;
    Ok(newest.into_iter().next())
}

async fn follow_feed(parts: Arc<Parts>, mut seen: Option<Change>) {
    let mut ticks = interval(FEED_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        ticks.tick().await;
        match catch_up(&parts, &mut seen).await {
            Ok(()) => failing = false,
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "the range store's feed of changes cannot be read");
            }
            Err(_) => {}
        }
    }
}

/// Reads what changed since `seen`, the newest change that is known.
async fn catch_up(parts: &Arc<Parts>, seen: &mut Option<Change>) -> Result<(), StoreError> {
    // What was read before this look must be in the feed by now.
    let ahead = parts.catalogue.take_ahead();
    let caught_up = async {
        follow(parts, seen).await?;
        match confirm(parts, &ahead).await? {
            true => Ok(()),
            false => begin_anew(parts, seen).await,
        }
    };
    let caught_up = caught_up.await;
    if caught_up.is_err() {
        parts.catalogue.put_back_ahead(ahead);
    }
    caught_up
}

async fn follow(parts: &Arc<Parts>, seen: &mut Option<Change>) -> Result<(), StoreError> {
    loop {
        // The newest one that is known comes again. If it does not, or another has its
        // number, the store was restored from a backup.
        let from = seen.as_ref().map_or(0, |change| change.seq - 1);
        let mut changes = parts.store.changes_since(from).await?.into_iter();
        if seen.is_some() && changes.next() != *seen {
            return begin_anew(parts, seen).await;
        }
        let changes: Vec<Change> = changes.collect();
        if changes.is_empty() {
            return Ok(());
        }
        for change in &changes {
            match &change.subject {
                Subject::Type(name) => parts.read_again(name, Source::Feed).await?,
                Subject::Instances => refresh_instances(parts).await?,
                // Looked up whenever somebody asks; see `service::access`.
                Subject::Access => {}
            }
            *seen = Some(change.clone());
            parts.catalogue.feed_is_at(seen);
        }
        // Whoever asks now is told of them.
        parts.note_changes(&changes);
    }
}

/// Reads again what was read `ahead` of the feed, which has caught up since. False
/// where the store holds less than what was read: it went back in time in between, and
/// its feed cannot tell.
async fn confirm(parts: &Arc<Parts>, ahead: &[(TypeName, i64)]) -> Result<bool, StoreError> {
    for (name, version) in ahead {
        match parts.store.find_type(name).await? {
            Some(record) if record.version >= *version => {
                parts.catalogue.put(record, Source::Feed);
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The store went back in time: everything that this node knows is read again.
async fn begin_anew(parts: &Arc<Parts>, seen: &mut Option<Change>) -> Result<(), StoreError> {
    tracing::warn!(
        "the range store went back in time, or its log of changes was cut: reading everything again"
    );
    let newest = newest_change(parts).await?;
    parts.snowflakes.store_went_back();
    for entry in parts.catalogue.all() {
        parts.read_again(&entry.name, Source::WentBack).await?;
    }
    refresh_instances(parts).await?;
    parts.note_everything_changed();
    parts.catalogue.feed_is_at(&newest);
    *seen = newest;
    Ok(())
}

/// Makes the live instances those of the store.
pub(super) async fn refresh_instances(parts: &Arc<Parts>) -> Result<(), StoreError> {
    let records = parts.store.connections().await?;
    let (added, failed) = parts.instances.replace(records);
    for (name, error) in failed {
        tracing::error!(instance = name, %error, "a Redis instance cannot be used");
    }
    for instance in added {
        tracing::info!(instance = instance.record.name, "connected a Redis instance");
        parts.tasks.spawn(until_stopped(parts.clone(), hear_news(parts.clone(), &instance)));
    }
    Ok(())
}

/// Acts on the news of one instance, until it is gone.
fn hear_news(parts: Arc<Parts>, instance: &Arc<Instance>) -> impl Future<Output = ()> + use<> {
    let mut news = instance.dispatcher.subscribe();
    let gone = instance.gone.clone();
    async move {
        loop {
            let heard = tokio::select! {
                biased;
                () = gone.cancelled() => return,
                heard = news.recv() => heard,
            };
            match heard {
                Ok(Announcement::Range(name)) => {
                    if let Some(entry) = parts.catalogue.get(name.as_str()) {
                        entry.sequence.wake();
                    }
                }
                Ok(Announcement::Type(name)) => {
                    // The feed brings it again; an error here loses nothing.
                    let _ = parts.refresh(&name).await;
                }
                Ok(Announcement::Resumed) | Err(RecvError::Lagged(_)) => {
                    for entry in parts.catalogue.all() {
                        entry.sequence.wake();
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}

async fn look_after_health(parts: Arc<Parts>) {
    let mut ticks = interval(HEALTH_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        check_health(&parts).await;
    }
}

/// Apart from health, because it asks for each type in use, which takes long
/// where an instance is slow.
async fn look_after_supply(parts: Arc<Parts>) {
    let mut ticks = interval(HEALTH_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        measure_supply(&parts).await;
    }
}

async fn check_health(parts: &Arc<Parts>) {
    let mut found = BTreeMap::new();
    let mut put = |name: &str, kind, error: Option<String>| {
        let up = parts.metrics.part_up.with_label_values(&[name]);
        up.set(i64::from(error.is_none()));
        let status = PartStatus { name: name.to_owned(), kind, reachable: error.is_none(), error };
        found.insert(name.to_owned(), status);
    };
    // All at once: one that is out of reach must not make the others look old.
    let instances = parts.instances.all();
    let asked = instances.iter().map(|instance| instance.dispatcher.history());
    let (store, answers) = tokio::join!(parts.store.ping(), join_all(asked));
    if let Ok(now_ms) = store {
        parts.store_clock.learn(now_ms);
    }
    put("store", parts.config.store_kind, store.err().map(|e| e.to_string()));
    for (instance, answer) in instances.iter().zip(answers) {
        let kind = match instance.record.url == InstanceRecord::MEMORY_URL {
            true => "memory",
            false => "redis",
        };
        put(&instance.record.name, kind, answer.err().map(|e| e.to_string()));
    }
    let mut parts_found = parts.health.parts.write().expect("never poisoned");
    for gone in parts_found.keys().filter(|name| !found.contains_key(*name)) {
        let _ = parts.metrics.part_up.remove_label_values(&[gone]);
    }
    for (name, now) in &found {
        let before = parts_found.get(name).is_none_or(|p| p.reachable);
        match (&now.error, before) {
            (Some(error), true) => tracing::error!(part = name, error, "lost"),
            (None, false) => tracing::info!(part = name, "is back"),
            _ => {}
        }
    }
    *parts_found = found;
}

/// For types in use: how much is at hand, how long it lasts, and until when
/// there will be any. Of a strict type as the dispatcher, and so the whole
/// cluster, sees it; else of this node's own leases.
async fn measure_supply(parts: &Arc<Parts>) {
    let metrics = &parts.metrics;
    // An instance that does not answer for one type is not asked for the others.
    let mut silent = BTreeSet::new();
    for entry in parts.active.all() {
        let labels = [entry.name.as_str()];
        let record = entry.record();
        let mut view = None;
        let (left, runway) = match record.mode {
            Mode::Strict => {
                let instance = parts.instances.get(record.instance);
                let Some(instance) = instance else { continue };
                if !silent.contains(&record.instance) {
                    view = instance.dispatcher.view(&entry.name).await.ok();
                }
                if view.is_none() {
                    silent.insert(record.instance);
                }
                match &view {
                    Some(view) => {
                        let rate = entry.supply.rate(view.used, view.age_ms);
                        (view.left(), rate.map(|rate| view.left() as f64 / rate))
                    }
                    // Nobody gets an id from there now.
                    None => (0, Some(0.0)),
                }
            }
            _ => {
                let local = entry.local(parts.clock.now_ms()).unwrap_or_default();
                (local.left, local.runway_s)
            }
        };
        metrics.left.with_label_values(&labels).set(left as i64);
        if let Some(runway) = runway {
            metrics.runway.with_label_values(&labels).set(runway);
        }
        let exhausted_at_ms = parts.exhausted_at_ms(&entry, view.as_ref());
        parts.note_supply(&entry, view.as_ref(), runway, exhausted_at_ms);
        match exhausted_at_ms {
            Some(at_ms) => {
                let seconds = (at_ms - parts.clock.now_ms()) as f64 / 1_000.0;
                metrics.exhaustion.with_label_values(&labels).set(seconds);
            }
            None => {
                let _ = metrics.exhaustion.remove_label_values(&labels);
            }
        }
    }
    parts.active.keep(|entry| {
        let used = !entry.is_closed() && entry.used_within(RUNWAY_SPAN);
        if !used {
            let labels = [entry.name.as_str()];
            let _ = metrics.runway.remove_label_values(&labels);
            let _ = metrics.left.remove_label_values(&labels);
            let _ = metrics.exhaustion.remove_label_values(&labels);
        }
        used
    });
}
