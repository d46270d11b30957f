//! Snowflake ids: each node makes them from its clock and a leased worker id.
//!
//! A call goes to the [`generator`] of its type, which is lock-free. Generators
//! work under a [`tenancy`]: a worker id and a span of time that the store gave
//! to this node alone. One [`worker`] keeper for each width of worker ids leases
//! it at the first use, renews it early and releases it at the end.
//!
//! Promise: no clock repeats an id. Every time that stands in an id lies in a
//! span that the store keeps as this node's, and within the span each type
//! moves forwards only. A clock that jumps forward reaches the end of the span,
//! and ids stop there; one that goes back meets the last time used, and ids wait
//! for it or fail.

mod generator;
mod tenancy;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::api::LocalSupply;
use super::catalogue::TypeEntry;
use super::{Parts, unavailable};
use crate::domain::snowflake::Layout;
use crate::domain::{Error, ErrorCode, IdRange, TypeName};
use crate::ports::Clock;
use generator::{Generator, Took};
use worker::Pool;

/// A clock that is behind by more is not waited for.
const LONGEST_STEP_BACK_MS: i64 = 1_000;

/// What a node has for snowflake types.
#[derive(Default)]
pub(super) struct Snowflakes {
    /// By the number of worker bits.
    pools: Mutex<BTreeMap<u8, Arc<Pool>>>,
    /// There is one source for each type at a time, so that no two generators of
    /// a type have the same tenure. The layout is part of the key: a store that
    /// went back in time may know a type with another one.
    sources: Mutex<HashMap<(TypeName, Layout), Arc<SnowflakeSource>>>,
}

impl Snowflakes {
    /// The ids of a type of this node; what its entry in the catalogue keeps.
    /// Nobody leases a worker id before the first id is wanted.
    pub(super) fn source(
        &self,
        parts: &Arc<Parts>,
        name: &TypeName,
        layout: &Layout,
    ) -> Arc<SnowflakeSource> {
        self.source_in(self.pool(parts, layout.worker_bits), name, layout)
    }

    fn source_in(&self, pool: Arc<Pool>, name: &TypeName, layout: &Layout) -> Arc<SnowflakeSource> {
        let mut sources = self.sources.lock().expect("never poisoned");
        let source = sources.entry((name.clone(), *layout)).or_insert_with(|| {
            Arc::new(SnowflakeSource {
                name: name.clone(),
                layout: *layout,
                pool,
                current: ArcSwapOption::empty(),
                last: Mutex::default(),
                waiting: AtomicUsize::new(0),
                made: AtomicU64::new(0),
                turn: tokio::sync::Mutex::default(),
            })
        });
        source.clone()
    }

    fn pool(&self, parts: &Arc<Parts>, bits: u8) -> Arc<Pool> {
        let mut pools = self.pools.lock().expect("never poisoned");
        let start = || {
            let pool = Arc::new(Pool::new(bits));
            parts.tasks.spawn(worker::keep(parts.clone(), pool.clone()));
            pool
        };
        pools.entry(bits).or_insert_with(start).clone()
    }

    /// The store may have lost its latest writes: every tenure is renewed at
    /// once, and one that the store does not know any more is given up.
    pub(super) fn store_went_back(&self) {
        for pool in self.pools.lock().expect("never poisoned").values() {
            pool.hurry();
        }
    }

    fn sources_of(&self, bits: u8) -> Vec<Arc<SnowflakeSource>> {
        let sources = self.sources.lock().expect("never poisoned");
        sources.values().filter(|s| s.layout.worker_bits == bits).cloned().collect()
    }

    /// Forgets the sources that only this map still has: their types left the
    /// node's memory. What they used stays used.
    fn sweep(&self) {
        let mut sources = self.sources.lock().expect("never poisoned");
        // Nobody can get at such a source while the map is locked.
        sources.retain(|_, source| {
            let wanted = Arc::strong_count(source) > 1;
            if !wanted {
                source.fold();
            }
            wanted
        });
    }
}

/// The ids of one snowflake type on this node.
pub(super) struct SnowflakeSource {
    name: TypeName,
    layout: Layout,
    pool: Arc<Pool>,
    /// Changed while `last` is locked.
    current: ArcSwapOption<Generator>,
    /// What earlier generators used last.
    last: Mutex<Option<LastUse>>,
    /// Calls that wait for time to pass, or for a worker id, or for their turn.
    waiting: AtomicUsize,
    /// Ids made so far.
    made: AtomicU64,
    /// Whose turn it is to wait for more than a turn: one call after the other,
    /// in the order of arrival, so that none starves where there are too many.
    turn: tokio::sync::Mutex<()>,
}

struct LastUse {
    time: i64,
    worker: i64,
}

impl SnowflakeSource {
    /// How its ids are made.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many ids it has made.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// A number that changes with every id.
    pub(super) fn mark(&self) -> u64 {
        self.current.load().as_ref().map_or(0, |generator| generator.mark())
    }

    /// The worker id in use, and how long it may be used without the store.
    pub(super) fn local(&self, now_ms: i64) -> LocalSupply {
        let current = self.current.load();
        let tenancy = current.as_ref().map(|generator| generator.tenancy());
        let left_ms = |until_ms: i64| until_ms.saturating_sub(now_ms).max(0);
        LocalSupply {
            worker: tenancy.map(|tenancy| tenancy.worker()),
            runway_s: tenancy.map(|tenancy| left_ms(tenancy.until_ms()) as f64 / 1_000.0),
            ..LocalSupply::default()
        }
    }

    /// The next id, if it can be had at once: without a lock, an allocation or a
    /// wait. Else [`acquire`] gets it, or says why not.
    pub(super) fn try_next(&self, clock: &dyn Clock) -> Option<i64> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None; // those who came before are first
        }
        match self.current.load().as_ref()?.take(clock, 1) {
            Took::Ids(range) => {
                self.made.fetch_add(1, Ordering::Relaxed);
                Some(range.start())
            }
            _ => None,
        }
    }

    /// Goes over from the generator that had nothing for the caller to one under
    /// the tenure that the pool has now, unless another call did so meanwhile.
    /// False if there is nothing to go over to.
    fn go_over(&self, from: Option<&Arc<Generator>>, seed: u64) -> bool {
        let mut last = self.last.lock().expect("never poisoned");
        let current = self.current.load_full();
        if current.as_ref().map(Arc::as_ptr) != from.map(Arc::as_ptr) {
            return true;
        }
        // Read while locked: who comes late must not go back to an earlier one.
        let Some(tenancy) = self.pool.held() else { return false };
        let has_it = current.as_ref().is_some_and(|g| Arc::ptr_eq(g.tenancy(), &tenancy));
        if has_it || tenancy.is_over() {
            return false;
        }
        if let Some(current) = current {
            note(&mut last, &current);
        }
        // Ids of this node go on increasing: in the same unit only where the
        // worker id is larger. (Another one would make it unique already; the
        // same one has a span that lies behind.)
        let first_time =
            last.as_ref().map_or(0, |last| last.time + i64::from(last.worker >= tenancy.worker()));
        let generator = Generator::new(self.layout, tenancy, first_time, seed);
        self.current.store(Some(Arc::new(generator)));
        true
    }

    /// No call gets an id under a tenure that is over; the end of what was used
    /// under it, in milliseconds of the Unix epoch.
    fn stop(&self, tenancy: &Arc<tenancy::Tenancy>) -> Option<i64> {
        let mut last = self.last.lock().expect("never poisoned");
        let current = self.current.load_full().filter(|g| Arc::ptr_eq(g.tenancy(), tenancy))?;
        note(&mut last, &current);
        current.freeze_at_ms()
    }

    /// Leaves what it used to its tenure.
    fn fold(&self) {
        if let Some(current) = self.current.load_full()
            && let Some(used_until_ms) = current.freeze_at_ms()
        {
            current.tenancy().raise_floor(used_until_ms);
        }
    }
}

fn note(last: &mut Option<LastUse>, generator: &Generator) {
    if let Some(time) = generator.freeze() {
        *last = Some(LastUse { time, worker: generator.tenancy().worker() });
    }
}

/// Where the ids of a snowflake type come from; refused as [`TypeEntry::verdict`] says.
pub(super) fn source_of(
    parts: &Arc<Parts>,
    entry: &TypeEntry,
) -> Result<Arc<SnowflakeSource>, Error> {
    if let Some(verdict) = entry.verdict() {
        return Err(verdict);
    }
    let record = entry.record();
    let layout = record.options.snowflake.unwrap_or_default();
    let made = || parts.snowflakes.source(parts, &entry.name, &layout);
    let source = entry.snowflake.get_or_init(made);
    match *source.layout() == layout {
        true => Ok(source.clone()),
        // A store that went back in time knew another one.
        false => Ok(made()),
    }
}

/// Refuses a snowflake type whose epoch lies in the future, or is over.
pub(super) fn check_new(parts: &Parts, layout: &Layout) -> Result<(), Error> {
    layout.check_epoch(parts.clock.now_ms())
}

/// `count` ids of the type by `deadline`, as ranges in order.
pub(super) async fn acquire(
    parts: &Arc<Parts>,
    source: &SnowflakeSource,
    count: u64,
    deadline: Instant,
) -> Result<Vec<IdRange>, Error> {
    let mut ranges = Vec::new();
    let mut missing = count;
    let mut turn = None;
    while missing > 0 {
        if turn.is_none() && source.waiting.load(Ordering::Relaxed) > 0 {
            turn = Some(Turn::wait(parts, source, deadline).await?);
        }
        // Before the take: what was tried after it need not be tried again.
        let tried = source.pool.tried();
        let generator = source.current.load_full();
        let took = match &generator {
            Some(generator) => generator.take(&*parts.clock, missing),
            None => Took::NoTenure { now_ms: parts.clock.now_ms() },
        };
        match took {
            Took::Ids(range) => {
                missing -= range.len();
                source.made.fetch_add(range.len(), Ordering::Relaxed);
                ranges.push(range);
                continue;
            }
            Took::Ended => return Err(ended(source)),
            Took::Behind { now_ms, until_ms } if until_ms - now_ms > LONGEST_STEP_BACK_MS => {
                return Err(behind(parts, source, now_ms, until_ms));
            }
            Took::NoTenure { .. }
                if source.go_over(generator.as_ref(), parts.entropy.random_u128() as u64) =>
            {
                continue;
            }
            _ => {}
        }
        if turn.is_none() {
            // Others may have come to wait meanwhile, and changed everything.
            turn = Some(Turn::wait(parts, source, deadline).await?);
            continue;
        }
        match took {
            Took::Full { now_ms, until_ms } => {
                parts.metrics.snowflake_waits.inc();
                if !pass(parts, until_ms - now_ms, deadline).await? {
                    return Err(crowded(source));
                }
            }
            Took::Behind { now_ms, until_ms } => {
                if !pass(parts, until_ms - now_ms, deadline).await? {
                    return Err(behind(parts, source, now_ms, until_ms));
                }
            }
            Took::NoTenure { now_ms } => {
                source.pool.get_tenure(parts, tried, now_ms, deadline).await?;
            }
            Took::Ids(_) | Took::Ended => {}
        }
    }
    Ok(ranges)
}

/// Lets time pass; false, at once, if that would be too late.
async fn pass(parts: &Parts, wait_ms: i64, deadline: Instant) -> Result<bool, Error> {
    let until = Instant::now() + Duration::from_millis(wait_ms as u64);
    if until > deadline {
        return Ok(false);
    }
    tokio::select! {
        biased;
        () = parts.stop.cancelled() => Err(unavailable("the node is shutting down")),
        () = sleep_until(until) => Ok(true),
    }
}

/// The call that may wait, of those that want ids of a type.
struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _place: Place<'a>,
}

impl<'a> Turn<'a> {
    async fn wait(
        parts: &Parts,
        source: &'a SnowflakeSource,
        deadline: Instant,
    ) -> Result<Self, Error> {
        let place = Place(&source.waiting);
        if source.waiting.fetch_add(1, Ordering::Relaxed) >= parts.config.max_waiting {
            return Err(Error::new(
                ErrorCode::Overloaded,
                format!(
                    "{} calls wait for id type {} already",
                    parts.config.max_waiting, source.name
                ),
            ));
        }
        match timeout_at(deadline, source.turn.lock()).await {
            Ok(turn) => Ok(Turn { _turn: turn, _place: place }),
            Err(_) => Err(source
                .pool
                .trouble(parts, parts.clock.now_ms())
                .unwrap_or_else(|| crowded(source))),
        }
    }
}

/// Counts one that waits.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn crowded(source: &SnowflakeSource) -> Error {
    Error::new(
        ErrorCode::Deadline,
        format!(
            "no time is left in the call for enough ids of type {}: there are {} in each unit of \
             time",
            source.name,
            source.layout.capacity()
        ),
    )
}

fn ended(source: &SnowflakeSource) -> Error {
    Error::new(
        ErrorCode::Exhausted,
        format!(
            "id type {} has reached the end of its epoch: its times fit {} bits up to {} ms of \
             the Unix epoch",
            source.name,
            source.layout.time_bits,
            source.layout.end_ms()
        ),
    )
}

fn behind(parts: &Parts, source: &SnowflakeSource, now_ms: i64, until_ms: i64) -> Error {
    parts.metrics.clock_backwards.inc();
    Error::new(
        ErrorCode::ClockBackwards,
        format!(
            "the clock of node {} is {} ms behind: it is at {now_ms}, and the first time that may \
             be used for id type {} is {until_ms}; set the clock, or call another node",
            parts.config.node,
            until_ms - now_ms,
            source.name
        ),
    )
}

#[cfg(test)]
mod tests;
