//! Ids of one type under one tenure of a worker id, without locks.
//!
//! All state is one number: the unit of time that was used last and the
//! sequence in it that was used last. A call reads it, then the clock, and
//! moves it by one compare-and-swap; the ids between are the caller's. So two
//! calls never get the same sequence of a unit, and the unit never goes back.
//!
//! A new unit begins with the sequence after the last one, modulo
//! [`Layout::starts`]: the ids of a type with one id in each unit end in
//! all digits about equally often.
//!
//! A generator ends by being frozen: one bit, set in the same number, so that
//! every call either is part of what the freeze finds or gets nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::tenancy::Tenancy;
use crate::domain::IdRange;
use crate::domain::snowflake::{Layout, Parts};
use crate::ports::Clock;

/// Set in the state of a generator that is over. Time and sequence have 62 bits
/// at most.
const FROZEN: u64 = 1 << 63;

/// See the module.
pub(super) struct Generator {
    layout: Layout,
    tenancy: Arc<Tenancy>,
    /// The first unit that may be used.
    first_time: i64,
    /// `last time << sequence bits | last sequence`; a time of 0 stands for none,
    /// because ids begin with [`Layout::FIRST_TIME`].
    state: AtomicU64,
}

/// What a generator has for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// At least one id, and at most as many as were wanted; all of one unit.
    Ids(IdRange),
    /// The sequence is used up until then (milliseconds of the Unix epoch).
    Full {
        /// The node's clock.
        now_ms: i64,
        /// When the next unit begins.
        until_ms: i64,
    },
    /// The clock is behind the first time that may be used.
    Behind {
        /// The node's clock.
        now_ms: i64,
        /// That time.
        until_ms: i64,
    },
    /// The tenure does not reach so far, or is over, or there is none.
    NoTenure {
        /// The node's clock.
        now_ms: i64,
    },
    /// The time does not fit its bits any more.
    Ended,
}

impl Generator {
    /// For ids from the unit `first_time` on, and never before the tenure begins.
    /// `seed`, any number, decides about the first sequence.
    pub(super) fn new(layout: Layout, tenancy: Arc<Tenancy>, first_time: i64, seed: u64) -> Self {
        let first_time =
            first_time.max(Layout::FIRST_TIME).max(layout.first_time_from(tenancy.floor_ms()));
        let seed = seed % layout.starts() as u64;
        Generator { layout, tenancy, first_time, state: AtomicU64::new(seed) }
    }

    pub(super) fn tenancy(&self) -> &Arc<Tenancy> {
        &self.tenancy
    }

    /// Up to `most` (at least 1) ids of the current unit of time.
    pub(super) fn take(&self, clock: &dyn Clock, most: u64) -> Took {
        let layout = &self.layout;
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            // After the state: whoever moved it to a later unit had read the
            // clock before, and this call must not find it behind that.
            let now_ms = clock.now_ms();
            if state & FROZEN != 0 {
                return Took::NoTenure { now_ms };
            }
            let now = layout.time_at(now_ms);
            let (last, sequence) = self.unpack(state);
            let earliest = last.max(self.first_time);
            if now < earliest {
                return Took::Behind { now_ms, until_ms: layout.unix_ms(earliest) };
            }
            if now > layout.last_time() {
                return Took::Ended;
            }
            let start = match now > last {
                true => (sequence + 1) % layout.starts(),
                false => sequence + 1,
            };
            if start == layout.capacity() {
                return Took::Full { now_ms, until_ms: layout.unix_ms(now + 1) };
            }
            if !layout.lies_within(now, self.tenancy.first_ms(), self.tenancy.until_ms()) {
                return Took::NoTenure { now_ms };
            }
            let count = most.min((layout.capacity() - start) as u64) as i64;
            let next = (now as u64) << layout.sequence_bits | (start + count - 1) as u64;
            let moved =
                self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire);
            match moved {
                Ok(_) => {
                    let worker = self.tenancy.worker();
                    let id = layout.compose(Parts { time: now, worker, sequence: start });
                    return Took::Ids(
                        IdRange::new(id, id + count).expect("unit 0 and the last are left out"),
                    );
                }
                Err(meanwhile) => state = meanwhile,
            }
        }
    }

    /// A number that changes with every id.
    pub(super) fn mark(&self) -> u64 {
        self.state.load(Ordering::Relaxed)
    }

    /// No call gets an id from now on. Returns the last unit that was used, if
    /// one was.
    pub(super) fn freeze(&self) -> Option<i64> {
        let state = self.state.fetch_or(FROZEN, Ordering::AcqRel);
        let (last, _) = self.unpack(state & !FROZEN);
        (last > 0).then_some(last)
    }

    /// As [`freeze`](Self::freeze); the end of the last unit that was used, in
    /// milliseconds of the Unix epoch.
    pub(super) fn freeze_at_ms(&self) -> Option<i64> {
        self.freeze().map(|last| self.layout.unix_ms(last + 1))
    }

    fn unpack(&self, state: u64) -> (i64, i64) {
        let time = state >> self.layout.sequence_bits;
        (time as i64, (state & (self.layout.capacity() as u64 - 1)) as i64)
    }
}
