//! Ids from ranges that this node leased for itself.
//!
//! [`pool`] hands out, [`lease`] fetches the next ranges in the background, and
//! here callers that find nothing wait: for news, to their deadline, never
//! spinning.

mod lease;
mod pool;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::api::LocalSupply;
use super::catalogue::TypeEntry;
use super::granted::Granted;
use super::supply::Supply;
use super::{Parts, unavailable};
use crate::domain::{Error, ErrorCode, IdRange};
use pool::{Pool, Segment};

/// The ranges of one sequence (a type, or a shard of one) on this node.
pub(super) struct Leases {
    /// The sub-sequence, of a sharded type.
    pub(super) shard: Option<u8>,
    pool: Pool,
    supply: Supply,
    /// Whether Redis was asked how far the ranges go that were leased before this
    /// pool was made.
    asked: AtomicBool,
}

impl Leases {
    pub(super) fn new(shard: Option<u8>, floor: i64) -> Self {
        Leases {
            shard,
            pool: Pool::new(),
            supply: Supply::new(floor),
            asked: AtomicBool::new(false),
        }
    }

    /// The settings changed: what failed may succeed now, and who waits looks again.
    pub(super) fn settings_changed(&self, floor: i64) {
        self.supply.raise_floor(floor);
        self.supply.forgive();
        self.pool.news.notify_waiters();
    }

    /// Above everything that was ever leased, as far as this node knows.
    pub(super) fn floor(&self) -> i64 {
        self.supply.floor()
    }

    /// The type leaves the memory: see [`Pool::close`].
    pub(super) fn close(&self) -> Vec<IdRange> {
        self.pool.close()
    }

    /// Burns everything at or below `position`; how many positions that was.
    pub(super) fn burn_to(&self, position: i64) -> u64 {
        self.pool.burn_to(position)
    }

    /// Why the latest try to lease a range failed.
    pub(super) fn error(&self) -> Option<Error> {
        self.supply.error()
    }

    /// Positions taken so far: who sees the same number twice saw no use between.
    pub(super) fn taken(&self) -> u64 {
        self.pool.taken()
    }

    /// Positions per second that all nodes together lease, over at least `span`;
    /// and the end of the highest range that this node knows.
    pub(super) fn growth(&self, span: Duration) -> (Option<f64>, i64) {
        self.pool.growth(span)
    }

    /// Whether ids were taken here for longer than `span`, so that a rate says something.
    pub(super) fn is_older_than(&self, span: Duration) -> bool {
        let (_, _, elapsed_ms) = self.pool.measure();
        u128::from(elapsed_ms) >= span.as_millis()
    }

    /// What is at hand.
    pub(super) fn local(&self) -> LocalSupply {
        let (left, ranges) = self.pool.left();
        let (_, taken, elapsed_ms) = self.pool.measure();
        let rate = self.supply.rate(taken, elapsed_ms);
        LocalSupply {
            left,
            ranges,
            ahead: self.pool.ahead(),
            rate,
            runway_s: rate.map(|rate| left as f64 / rate),
            worker: None,
        }
    }
}

/// One position, if one is at hand. The path of nearly every call.
#[inline]
pub(super) fn try_one(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Arc<Leases>,
) -> Option<i64> {
    parts.active.join(entry);
    take(parts, entry, leases, 1).map(IdRange::start)
}

/// Up to `count` positions, if any are at hand; and a look at what must be leased.
#[inline]
fn take(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Arc<Leases>,
    count: u64,
) -> Option<IdRange> {
    let take = leases.pool.take(count);
    if take.look {
        lease::start(parts, entry, leases);
    }
    take.range
}

/// Up to `count` positions in a row, at least one, by `deadline`.
pub(super) async fn acquire_some(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Arc<Leases>,
    count: u64,
    deadline: Instant,
) -> Result<IdRange, Error> {
    parts.active.join(entry);
    match take(parts, entry, leases, count) {
        Some(range) => Ok(range),
        None => wait(parts, entry, leases, count, deadline).await,
    }
}

/// Exactly `count` positions, by `deadline`; what was taken before a failure is burnt.
pub(super) async fn acquire(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Arc<Leases>,
    count: u64,
    deadline: Instant,
) -> Result<Granted, Error> {
    let first = acquire_some(parts, entry, leases, count, deadline).await?;
    let mut granted = Granted::of(first);
    while granted.len() < count {
        let missing = count - granted.len();
        match acquire_some(parts, entry, leases, missing, deadline).await {
            Ok(range) => granted.push(range),
            Err(error) => {
                parts.metrics.burnt_ids.inc_by(granted.len());
                return Err(error);
            }
        }
    }
    Ok(granted)
}

/// Takes one position after another from a pool that holds `range`; for benchmarks.
pub(super) fn takes_of(range: IdRange) -> impl Fn() -> Option<i64> {
    let pool = Pool::new();
    pool.add(Segment::new(range, range.end(), None));
    move || pool.take(1).range.map(IdRange::start)
}

async fn wait(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    leases: &Arc<Leases>,
    count: u64,
    deadline: Instant,
) -> Result<IdRange, Error> {
    let most = parts.config.max_waiting as u64;
    let Some(_in_line) = leases.pool.wait_in_line(count, most) else {
        return Err(Error::new(
            ErrorCode::Overloaded,
            format!("{most} calls wait for id type {} already", entry.name),
        ));
    };
    leases.pool.note_hunger();
    parts.metrics.waits.inc();
    loop {
        let mut news = std::pin::pin!(leases.pool.news.notified());
        // From here on no news is missed.
        news.as_mut().enable();
        if let Some(range) = take(parts, entry, leases, count) {
            return Ok(range);
        }
        if leases.pool.is_closed() || entry.is_closed() {
            return Err(closed(parts));
        }
        if let Some(verdict) = entry.verdict().or_else(|| leases.supply.verdict()) {
            return Err(verdict);
        }
        if timeout_at(deadline, news).await.is_err() {
            return Err(leases.supply.error().unwrap_or_else(|| {
                Error::new(
                    ErrorCode::Deadline,
                    format!("no ids of type {} within the deadline", entry.name),
                )
            }));
        }
    }
}

/// The answer to a call that met a type on its way out of memory. At a stop it
/// goes to the client; else the service looks the type up again.
fn closed(parts: &Parts) -> Error {
    match parts.stop.is_cancelled() {
        true => unavailable("the node is shutting down"),
        false => unavailable("the id type was leaving the memory of the node: try again"),
    }
}
