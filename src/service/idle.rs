//! Types that nobody asks for leave the memory, and their unused ids go back.
//!
//! A look a few times within the idle time compares what each type has issued
//! with what it had at the look before; nothing is written where ids are handed
//! out. Ids go back from the highest end down: first Redis forgets the range,
//! then the store takes it. In between, or if one of them does not answer, the
//! ids are burnt, which is always safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Parts;
use super::catalogue::TypeEntry;
use super::instances::follow_loss;
use super::segment::Leases;
use crate::domain::IdRange;

/// Looks within the idle time: a type leaves after one to one and a half of it.
const LOOKS: u32 = 2;
/// Entries that are looked at without a pause.
const CHUNK: usize = 1_000;
/// Types that leave at once: few, because nobody is in a hurry.
const LEAVE_JOBS: usize = 4;
/// Types that give ids back at once, at a stop.
const GIVE_BACK_JOBS: usize = 16;
/// A stop must not take longer because of ids that can be burnt.
const GIVE_BACK_TIME: Duration = Duration::from_secs(3);

/// What a look at a type found.
#[derive(Default)]
pub(super) struct Idle {
    /// The mark of the type, plus one; 0 before the first look.
    seen: AtomicU64,
    /// In how many looks in a row nothing had changed.
    looks: AtomicU64,
}

impl Idle {
    /// Looks: whether nothing changed in `LOOKS` looks.
    fn look(&self, mark: u64) -> bool {
        let seen = mark.wrapping_add(1).max(1);
        if self.seen.swap(seen, Ordering::Relaxed) != seen {
            self.looks.store(0, Ordering::Relaxed);
            return false;
        }
        self.looks.fetch_add(1, Ordering::Relaxed) + 1 >= u64::from(LOOKS)
    }
}

/// Looks for idle types, for ever.
pub(super) async fn look_for_idle(parts: Arc<Parts>) {
    let period = (parts.config.idle_after / LOOKS).max(Duration::from_millis(10));
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // What leaves now could not be read again, and its ids not go back.
        if !parts.health.is_reachable("store") {
            continue;
        }
        for chunk in parts.catalogue.all().chunks(CHUNK) {
            let idle = chunk
                .iter()
                .filter(|entry| entry.idle.look(entry.mark()) && entry.sequence.is_quiet());
            futures_util::stream::iter(idle)
                .for_each_concurrent(LEAVE_JOBS, async |entry| {
                    leave(&parts, entry).await;
                    parts.metrics.evictions.inc();
                })
                .await;
            tokio::task::yield_now().await;
        }
    }
}

/// The node forgets the type and gives back what it did not use.
async fn leave(parts: &Arc<Parts>, entry: &Arc<TypeEntry>) {
    // Closed before it is forgotten: a new entry of this name must not hand out
    // ids while the old one still does.
    let tails = entry.close();
    parts.catalogue.remove(entry);
    for (leases, tails) in tails {
        give_back(parts, entry, &leases, tails).await;
    }
}

/// At a stop: gives back what no type will use any more, in a bounded time.
pub(super) async fn give_everything_back(parts: &Arc<Parts>) {
    let entries = parts.catalogue.all();
    let all = futures_util::stream::iter(&entries)
        .for_each_concurrent(GIVE_BACK_JOBS, |entry| leave(parts, entry));
    if timeout(GIVE_BACK_TIME, all).await.is_err() {
        tracing::warn!("not all unused ids could be given back in time; the rest is burnt");
    }
}

async fn give_back(parts: &Arc<Parts>, entry: &TypeEntry, leases: &Leases, tails: Vec<IdRange>) {
    // The next type must not wait for a time limit that this one has met already.
    let instance = parts.instances.get(entry.record().instance).filter(|i| !i.is_lost());
    let mut tails = tails.into_iter();
    if entry.record().options.opaque.is_some() {
        // The store takes nothing back of these.
        parts.metrics.burnt_ids.inc_by(tails.map(|tail| tail.len()).sum());
        return;
    }
    for tail in tails.by_ref() {
        let Some(instance) = &instance else { break };
        // What a witness holds on to must not be given away again.
        let forgotten = instance.dispatcher.withdraw(&entry.name, leases.shard, tail).await;
        let returned = match forgotten {
            Ok(true) => parts.store.give_back(&entry.name, leases.shard, tail).await,
            Ok(false) => Ok(false),
            Err(_) => {
                follow_loss(parts, instance);
                Ok(false)
            }
        };
        if !matches!(returned, Ok(true)) {
            // Somebody has a range after it: so with all that lie below.
            parts.metrics.burnt_ids.inc_by(tail.len());
            break;
        }
        parts.metrics.returned_ids.inc_by(tail.len());
        tracing::debug!(id_type = %entry.name, range = %tail, "gave unused ids back");
    }
    parts.metrics.burnt_ids.inc_by(tails.map(|tail| tail.len()).sum());
}
