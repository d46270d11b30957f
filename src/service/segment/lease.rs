//! Leasing: allocate a range in the store, let Redis witness it, add it to the pool.
//!
//! 1. Allocate, with the node's own rate and floor. Durable when it returns.
//! 2. Let the type's Redis instance note it. If it says that some of the range
//!    was given away before, the store went back in time: the range is burnt,
//!    and the next request has the higher floor. Without Redis the range is
//!    used all the same: losing the store's latest writes *and* Redis is more
//!    than one failure.
//! 3. Add it, if it lies above everything that the pool had.
//!
//! One job per pool at a time, a bounded number per node. A job that failed
//! tries again by itself while ranges are due, so that no caller is needed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, info_span};

use super::super::catalogue::TypeEntry;
use super::super::instances::follow_loss;
use super::super::{Parts, unavailable};
use super::Leases;
use super::pool::Segment;
use crate::domain::prefetch::lease_usage;
use crate::domain::{Error, ErrorCode, PeriodSpan};
use crate::ports::{Allocation, NextRange, StoreError, Witness, WitnessedEnd};

/// Tries for one range: each miss teaches the node a higher floor or the
/// store's clock, so a second one nearly always hits.
const TRIES: usize = 4;

/// Starts to lease what is due, unless a job is at it or one has just failed.
#[cold]
pub(super) fn start(parts: &Arc<Parts>, entry: &Arc<TypeEntry>, leases: &Arc<Leases>) {
    if parts.stop.is_cancelled() || entry.is_closed() || !leases.supply.try_start() {
        return;
    }
    let (parts, entry, leases) = (parts.clone(), entry.clone(), leases.clone());
    let tasks = parts.tasks.clone();
    tasks.spawn(async move {
        loop {
            let result = lease_what_is_due(&parts, &entry, &leases).await;
            let label = match &result {
                Ok(0) => "done",
                Ok(_) => "leased",
                Err(_) => "failed",
            };
            parts.metrics.refills.with_label_values(&[label]).inc();
            match &result {
                // Once, not at every try.
                Err(error) if leases.supply.error().is_none() => {
                    tracing::warn!(id_type = %entry.name, %error, "leasing a range failed");
                }
                _ => {}
            }
            let failed = result.is_err();
            leases.supply.finished(result.map(|_| Some(true)));
            leases.pool.news.notify_waiters();
            // A mark may have been passed after the last look and before the
            // job counted as finished.
            if !failed && !leases.pool.is_due(load_interval(&entry)) {
                return;
            }
            if let Some(at) = leases.supply.not_before() {
                tokio::select! {
                    biased;
                    () = parts.stop.cancelled() => return,
                    () = sleep_until(at) => {}
                }
            }
            if leases.supply.is_final() || leases.pool.is_closed() || !leases.supply.try_start() {
                return;
            }
        }
    });
}

fn load_interval(entry: &TypeEntry) -> u64 {
    entry.record().load_interval_ms as u64
}

/// Leases until nothing is due; how many ranges that took.
async fn lease_what_is_due(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Leases,
) -> Result<usize, Error> {
    let mut leased = 0;
    while leases.pool.is_due(load_interval(entry)) {
        let permit = tokio::select! {
            biased;
            () = parts.stop.cancelled() => None,
            permit = parts.refill_permits.acquire() => permit.ok(),
        };
        if permit.is_none() {
            return Err(unavailable("the node is shutting down"));
        }
        let began = Instant::now();
        let span = info_span!(parent: None, "lease", id_type = %entry.name);
        lease_one(parts, entry, leases).instrument(span).await?;
        parts.metrics.refill_duration.observe(began.elapsed().as_secs_f64());
        leased += 1;
    }
    Ok(leased)
}

async fn lease_one(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Leases,
) -> Result<(), Error> {
    learn_what_was_leased(parts, entry, leases).await;
    let began = Instant::now();
    let mut reason = unavailable("no range could be leased");
    for _ in 0..TRIES {
        let record = entry.record();
        let period = parts.current_period(entry).await?;
        let (last, taken, elapsed_ms) = leases.pool.measure();
        let consumed = taken.saturating_add(leases.pool.wanted());
        let request = NextRange {
            shard: leases.shard,
            period,
            usage: Some(lease_usage(record.sizing(), last, consumed, elapsed_ms)),
            floor: leases.supply.floor().max(match leases.shard {
                None => entry.supply.floor(),
                Some(_) => 0,
            }),
            ..NextRange::of(&entry.name, &parts.config.node)
        };
        let allocation = match parts.store.next_range(request).await {
            Ok(allocation) => allocation,
            Err(StoreError::WrongPeriod { now_ms }) => {
                parts.store_clock.learn(now_ms);
                reason = StoreError::WrongPeriod { now_ms }.into();
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        parts.store_clock.learn(allocation.load_ms);
        match admit(parts, entry, leases, allocation, period).await {
            Ok(()) => {
                parts.note_refill(&entry.name, allocation.range, began.elapsed());
                return Ok(());
            }
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

/// Before the first lease: a node that has just started, or has forgotten the type,
/// must not give lower ids than it gave before, though the store went back in time
/// meanwhile and some of the ranges in between were never used.
async fn learn_what_was_leased(parts: &Arc<Parts>, entry: &Arc<TypeEntry>, leases: &Leases) {
    if leases.asked.load(Ordering::Relaxed) {
        return;
    }
    // A second time where the type has moved.
    for _ in 0..2 {
        let instance = parts.instances.get(entry.record().instance);
        let Some(instance) = instance.filter(|i| !i.is_lost()) else { return };
        match instance.dispatcher.witnessed_end(&entry.name, leases.shard).await {
            Ok(WitnessedEnd::Known(end)) => {
                leases.supply.raise_floor(end);
                leases.asked.store(true, Ordering::Relaxed);
                return;
            }
            Ok(WitnessedEnd::Moved(seal)) => {
                let _ = parts.settle(&entry.name, instance.record.id, seal).await;
            }
            Err(_) => return follow_loss(parts, &instance),
        }
    }
}

/// Steps 2 and 3.
async fn admit(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Leases,
    allocation: Allocation,
    period: Option<PeriodSpan>,
) -> Result<(), Error> {
    let range = allocation.range;
    leases.supply.raise_floor(range.end());
    let burn = |why: &str| {
        parts.metrics.burnt_ranges.with_label_values(&[why]).inc();
        parts.metrics.burnt_ids.inc_by(range.len());
        tracing::warn!(id_type = %entry.name, %range, reason = why, "a leased range was burnt");
    };
    loop {
        let Some(instance) =
            // Callers must not wait for a time limit that others have met already.
            parts.instances.get(entry.record().instance).filter(|i| !i.is_lost())
        else {
            parts.metrics.unwitnessed.inc();
            break;
        };
        match instance.dispatcher.witness(&entry.name, leases.shard, range).await {
            Ok(Witness::Noted) => break,
            Ok(Witness::Moved(seal)) => {
                let on = instance.record.id;
                let settled = parts.settle(&entry.name, on, seal).await;
                let is_elsewhere = entry.record().instance != on;
                if settled.is_err() || !is_elsewhere {
                    burn("moved");
                    settled?;
                    return Err(unavailable("the id type is being moved"));
                }
            }
            Ok(Witness::Overlaps { highest_end }) => {
                leases.supply.raise_floor(highest_end);
                burn("overlap");
                return Err(unavailable(
                    "the range store gave out ids again that it had given out before: it \
                         went back in time, and is being moved forward",
                ));
            }
            Err(error) => {
                parts.metrics.unwitnessed.inc();
                tracing::debug!(id_type = %entry.name, %error, "a lease without a witness");
                follow_loss(parts, &instance);
                break;
            }
        }
    }
    // The keys of opaque ids may have changed before the range was allocated.
    parts.must_know(entry, range).await?;
    let expires = period.map(|span| parts.store_clock.instant_of(span.until_ms));
    if !leases.pool.add(Segment::new(range, allocation.update_id, expires)) {
        burn("order");
        return match leases.pool.is_closed() {
            true => Err(unavailable("the id type is leaving the memory of the node")),
            false => Err(Error::new(
                ErrorCode::Unavailable,
                "the range store went back in time, and is being moved forward",
            )),
        };
    }
    parts.metrics.refill_length.observe(range.len() as f64);
    tracing::debug!(id_type = %entry.name, %range, "leased a range");
    Ok(())
}
