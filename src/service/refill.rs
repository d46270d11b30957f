//! Refill: allocate the next range in the store, publish it in the dispatcher.
//!
//! 1. Get the type's refill lock. It only saves work: safety lies in the
//!    checks of the store (row lock, history, floor) and of the publication
//!    (history, token, order).
//! 2. Look whether the range is still due: somebody may have been faster. Where the
//!    store does not know this history of Redis yet, a new connection must lead to it.
//! 3. Allocate, showing a sign of life all the while, so that nobody takes a
//!    living holder for a dead one, however slow the store is.
//! 4. Publish under the history and the token that the refill began with.
//!    A refused range is burnt, and so is one whose fate is unknown.
//! 5. Release the lock, whatever happened.
//!
//! One refill per type and node at a time, a bounded number per node.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::{Instrument, info_span};

use super::catalogue::TypeEntry;
use super::instances::Instance;
use super::{Parts, unavailable};
use crate::domain::{Error, TypeName, Usage};
use crate::ports::{
    Allocation, Dispatcher, LockOutcome, NextRange, Publication, PublishOutcome, StoreError, View,
};

/// Starts a refill of the type, unless one runs or has just failed.
pub(super) fn start(parts: &Arc<Parts>, entry: &Arc<TypeEntry>) {
    if parts.stop.is_cancelled() || !entry.supply.try_start() {
        return;
    }
    let (parts, entry) = (parts.clone(), entry.clone());
    let tasks = parts.tasks.clone();
    tasks.spawn(async move {
        // At a stop those that wait for their turn give up; those that run are
        // finished, so that no lock is left behind.
        let permit = tokio::select! {
            biased;
            () = parts.stop.cancelled() => None,
            permit = parts.refill_permits.acquire() => permit.ok(),
        };
        let result = match permit {
            Some(_permit) => {
                let span = info_span!(parent: None, "refill", id_type = %entry.name);
                run(&parts, &entry).instrument(span).await
            }
            None => Ok(Outcome::Held),
        };
        let label = match &result {
            Ok(outcome) => outcome.label(),
            Err(_) => "failed",
        };
        parts.metrics.refills.with_label_values(&[label]).inc();
        if let Err(error) = &result {
            tracing::warn!(id_type = %entry.name, %error, "refill failed");
        }
        entry.supply.finished(result.map(|outcome| outcome.has_ids()));
        entry.sequence.wake();
    });
}

/// How a refill ended.
enum Outcome {
    /// It published a range.
    Published,
    /// Its range was refused and burnt.
    Refused,
    /// Another node holds the lock, and nobody here is in need.
    Held,
    /// Another node was faster.
    Done,
}

impl Outcome {
    fn label(&self) -> &'static str {
        match self {
            Outcome::Published => "published",
            Outcome::Refused => "refused",
            Outcome::Held => "held",
            Outcome::Done => "done",
        }
    }

    /// Whether there are ids at hand now; `None` where nothing was tried.
    fn has_ids(&self) -> Option<bool> {
        match self {
            Outcome::Published | Outcome::Done => Some(true),
            Outcome::Refused => Some(false),
            Outcome::Held => None,
        }
    }
}

async fn run(parts: &Arc<Parts>, entry: &Arc<TypeEntry>) -> Result<Outcome, Error> {
    let began = Instant::now();
    let record = entry.record();
    let instance = parts
        .instances
        .get(record.instance)
        .ok_or_else(|| unavailable(format!("Redis instance {} is not known", record.instance)))?;
    let token = parts.entropy.token();
    let ttl = Duration::from_millis(record.lock_ttl_ms as u64);
    if let Some(outcome) = lock(parts, entry, &instance, &token, ttl).await? {
        return Ok(outcome);
    }
    let result = refill_under_lock(parts, entry, &instance, &token, (ttl, began)).await;
    // A lock that cannot be released ends by itself, or is taken over.
    let _ = instance.dispatcher.unlock(&entry.name, &token).await;
    if let Ok(Outcome::Published) = result {
        parts.metrics.refill_duration.observe(began.elapsed().as_secs_f64());
    }
    result
}

/// Gets the lock; otherwise says why this refill need not go on.
async fn lock(
    parts: &Parts,
    entry: &TypeEntry,
    instance: &Instance,
    token: &str,
    ttl: Duration,
) -> Result<Option<Outcome>, Error> {
    let grace = parts.config.takeover_grace;
    loop {
        // Only when callers are in need is a silent holder worth a takeover.
        let take_over_after = entry.supply.is_starving().then_some(grace);
        match instance.dispatcher.lock(&entry.name, token, ttl, take_over_after).await? {
            LockOutcome::Acquired => return Ok(None),
            LockOutcome::TakenOver => {
                parts.metrics.lock_takeovers.inc();
                tracing::warn!(id_type = %entry.name, "took the refill lock over from a silent holder");
                return Ok(None);
            }
            LockOutcome::Held => parts.metrics.lock_contention.inc(),
        }
        if !entry.supply.is_starving() || parts.stop.is_cancelled() {
            return Ok(Some(Outcome::Held));
        }
        tokio::time::sleep(grace / 10).await;
        let view = instance.dispatcher.view(&entry.name).await?;
        if view.left() > 0 {
            return Ok(Some(Outcome::Done));
        }
    }
}

async fn refill_under_lock(
    parts: &Arc<Parts>,
    entry: &TypeEntry,
    instance: &Instance,
    token: &str,
    (ttl, began): (Duration, Instant),
) -> Result<Outcome, Error> {
    let view = instance.dispatcher.view(&entry.name).await?;
    entry.supply.raise_floor(view.highest_end());
    if let Some(seal) = view.sealed {
        parts.settle(&entry.name, instance.record.id, seal).await?;
        return Ok(Outcome::Done);
    }
    // The store takes a history that it does not know for the newest. It may be that
    // of a server that was replaced before it ever asked for a range of this type.
    let is_recorded = entry.record().history.as_ref() == Some(&view.history);
    if !is_recorded && !instance.is_current(&entry.name, &view.history).await? {
        return Err(unavailable("the Redis instance was replaced by another server"));
    }
    let period = parts.current_period(entry).await?;
    let least = entry.least_position(period);
    let is_outdated = view.next().is_some_and(|position| position < least);
    let replaces = entry.supply.is_distrusted() || is_outdated;
    if !view.is_due() && !replaces {
        return Ok(Outcome::Done);
    }
    let generation = entry.record().placement.generation;
    let request = NextRange {
        name: &entry.name,
        shard: None,
        period,
        target: Some((instance.record.id, &view.history)),
        usage: usage(&view, entry.sequence.demand()),
        floor: entry.supply.floor(),
        owner: &parts.config.node,
    };
    let allocation = allocate(parts, entry, instance, token, ttl, request)
        .instrument(info_span!("allocate"))
        .await?;
    entry.supply.raise_floor(allocation.range.end());
    let publication = Publication {
        range: allocation.range,
        update_id: allocation.update_id,
        history: &view.history,
        token,
        generation,
        replaces,
    };
    let burn = |reason: &str| {
        parts.metrics.burnt_ranges.with_label_values(&[reason]).inc();
        parts.metrics.burnt_ids.inc_by(allocation.range.len());
        tracing::warn!(
            id_type = %entry.name, range = %allocation.range, reason, "a range was burnt"
        );
    };
    let publish = instance.dispatcher.publish(&entry.name, publication);
    match publish.instrument(info_span!("publish")).await {
        Ok(PublishOutcome::Published) => {
            parts.metrics.refill_length.observe(allocation.range.len() as f64);
            entry.supply.distrust(false);
            parts.note_refill(&entry.name, allocation.range, began.elapsed());
            tracing::info!(id_type = %entry.name, range = %allocation.range, "published a range");
            Ok(Outcome::Published)
        }
        Ok(PublishOutcome::Refused(refusal)) => {
            burn(refusal.as_str());
            Ok(Outcome::Refused)
        }
        Err(error) => {
            burn("unknown");
            Err(error.into())
        }
    }
}

/// The use since the last publication, and what callers wait for on top.
/// Unknown after Redis lost its data.
fn usage(view: &View, demand: u64) -> Option<Usage> {
    view.is_live()
        .then(|| Usage { consumed: view.used.saturating_add(demand), elapsed_ms: view.age_ms })
}

impl Parts {
    /// Does `work` of the store's, and shows a sign of life under the lock until it
    /// is done.
    pub(super) async fn showing_life<T>(
        &self,
        dispatcher: &Arc<dyn Dispatcher>,
        name: &TypeName,
        token: &str,
        ttl: Duration,
        work: impl Future<Output = T>,
    ) -> T {
        let period = self.config.takeover_grace / 4;
        let mut signs = interval_at(Instant::now() + period, period);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = work.as_mut() => return done,
                _ = signs.tick() => {
                    // Lost or not: the publication finds out. A sign must not hold
                    // the answer of the store up.
                    let _ = timeout(period, dispatcher.renew(name, token, ttl)).await;
                }
            }
        }
    }
}

/// Asks the store, and shows a sign of life until it has answered.
async fn allocate(
    parts: &Parts,
    entry: &TypeEntry,
    instance: &Instance,
    token: &str,
    ttl: Duration,
    request: NextRange<'_>,
) -> Result<Allocation, Error> {
    let answer = parts.store.next_range(request);
    let result = parts.showing_life(&instance.dispatcher, &entry.name, token, ttl, answer).await;
    match &result {
        Err(StoreError::NotAssigned { .. }) => {
            parts.find_again(&entry.name, instance.record.id).await;
        }
        Err(StoreError::Superseded { .. }) => drop(parts.refresh(&entry.name).await),
        _ => {}
    }
    match &result {
        Ok(allocation) => parts.store_clock.learn(allocation.load_ms),
        Err(StoreError::WrongPeriod { now_ms }) => parts.store_clock.learn(*now_ms),
        Err(_) => {}
    }
    if let Err(StoreError::Superseded { .. }) = &result {
        parts.metrics.stale_histories.with_label_values(&["store"]).inc();
        instance.dispatcher.reset().await;
    }
    Ok(result?)
}
