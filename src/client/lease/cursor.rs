//! The way of nearly every id: one `fetch_add`, without a lock and without a clock.
//!
//! A **ticket** is what the `fetch_add` gives: the number of a lease in its upper half,
//! and a place in that lease in its lower one. It is drawn once, so nobody else has it.
//! A **window** says which tickets are ids without further questions: those of the lease
//! that begins with ticket `base`, up to place `limit`; and what ids they are. All else
//! is decided under the lock of the [`Shelf`](super::shelf::Shelf), which is the only
//! writer of the window.
//!
//! A reader reads the window first, `base` before the rest, and draws its ticket then.
//! The writer moves the tickets on to another number first ([`close`](Cursor::close)),
//! writes the window then, and `base` last, and at last lets tickets of the new number be
//! drawn. So whoever reads a window that is not of one piece has read something that was
//! written after the tickets had moved on from `base`, and draws a ticket of another
//! number: no ticket of `base` can be mistaken.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Places of a lease. Far more than a lease has ids, so that who draws in vain never
/// gets into the next number: each of those comes to the lock, which moves them back.
const PLACE_BITS: u32 = 32;

/// The first ticket of lease number `number`.
pub(super) fn base(number: u32) -> u64 {
    u64::from(number) << PLACE_BITS
}

/// What is written for each id, apart from what is read for each: two cache lines, as
/// they come in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Apart<T>(T);

#[derive(Debug, Default)]
struct Window {
    base: AtomicU64,
    limit: AtomicU64,
    first: AtomicI64,
    step: AtomicI64,
    /// The base of the lease in use; 0 while there is none. For batches.
    in_use: AtomicU64,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    tickets: Apart<AtomicU64>,
    window: Apart<Window>,
}

impl Cursor {
    /// The next id, or a ticket for the lock to decide on.
    #[inline]
    pub fn take(&self) -> Result<i64, u64> {
        let window = &self.window.0;
        let base = window.base.load(Acquire);
        let limit = window.limit.load(Acquire);
        let first = window.first.load(Acquire);
        let step = window.step.load(Acquire);
        let ticket = self.tickets.0.fetch_add(1, AcqRel);
        let place = ticket.wrapping_sub(base);
        // Wrapping, as the window need not be of one piece; it is where the place fits.
        let id = first.wrapping_add(step.wrapping_mul(place as i64));
        if place < limit { Ok(id) } else { Err(ticket) }
    }

    /// `count` tickets in a row; the first.
    pub fn draw(&self, count: u32) -> u64 {
        self.tickets.0.fetch_add(u64::from(count), AcqRel)
    }

    /// The ticket that would be drawn next.
    pub fn peek(&self) -> u64 {
        self.tickets.0.load(Acquire)
    }

    /// The base of the lease in use.
    #[inline]
    pub fn in_use(&self) -> u64 {
        self.window.0.in_use.load(Acquire)
    }

    /// From now on tickets are of lease `number`, for which there is no window: every
    /// one that is drawn is one for the lock. Under the lock only.
    pub fn close(&self, number: u32) {
        self.tickets.0.swap(base(number), AcqRel);
        self.window.0.in_use.store(0, Release);
    }

    /// From now on tickets are of lease `number`. Under the lock, and after
    /// [`close`](Self::close) with another number.
    pub fn open(&self, number: u32, first: i64, step: i64, limit: u64) {
        let window = &self.window.0;
        window.limit.store(limit, Release);
        window.first.store(first, Release);
        window.step.store(step, Release);
        window.base.store(base(number), Release);
        window.in_use.store(base(number), Release);
        self.tickets.0.store(base(number), Release);
    }

    /// Makes the window wider. Under the lock.
    pub fn extend(&self, limit: u64) {
        // Release, as every write of the window: see above.
        self.window.0.limit.store(limit, Release);
    }
}
