//! The leases at hand, and what is decided about them: which is in use, when the next
//! one is needed, when one has ended. Knows neither the network nor the clock.
//!
//! A lease ends when its ids are used up, when its time is up, or at the close. Its time
//! is looked at for every [`BLOCK`] ids, and by whoever keeps the shelf
//! ([`Shelf::plan`]), who need not be on time: a process that was stopped hands out at
//! most what is left of one block before the clock is looked at again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::cursor::{Cursor, base};
use super::sizing::{Bounds, next_count};
use crate::client::Error;
use crate::thrift_api::RangeLease;

/// How many ids are handed out without a look at the clock.
pub(super) const BLOCK: u64 = 8_192;

/// The part of its time, in per cent, that a lease is used for: what is left makes up
/// for clocks that do not run alike and for the way of an id to where it is used.
const TIME_USED: u32 = 90;
/// The part of its time before its end at which a lease that is in use is followed.
const FOLLOWED: u32 = 4;

/// Ids in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub first: i64,
    pub step: i64,
    pub count: u32,
    /// Of the lease: see [`Cursor::in_use`].
    pub base: u64,
}

/// What the keeper of the shelf has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Nothing ever again.
    Stop,
    /// Get a lease of so many ids.
    Fetch(u32),
    /// Wait for [`Shelf::called`], or until then.
    Wait(Option<Instant>),
}

#[derive(Debug)]
struct Held {
    lease: RangeLease,
    /// When it must not be used any more.
    expires: Instant,
    /// How long before that it is followed, if it is used.
    lead: Duration,
}

impl Held {
    fn ids(&self) -> u64 {
        self.lease.count as u64
    }

    /// When it is followed, if it is used.
    fn follow(&self) -> Instant {
        self.expires.checked_sub(self.lead).unwrap_or(self.expires)
    }
}

#[derive(Debug)]
struct InUse {
    held: Held,
    base: u64,
    since: Instant,
    /// Tickets of it that need no lock.
    limit: u64,
}

#[derive(Debug)]
struct State {
    current: Option<InUse>,
    spare: Option<Held>,
    /// Of the tickets that are drawn now: see [`Cursor`].
    number: u32,
    /// Somebody needs a lease, or will soon.
    wanted: bool,
    closed: bool,
    /// How long the last lease was meant to be.
    count: u32,
    /// How many ids of the last lease were used, and in what time.
    usage: Option<(u64, Duration)>,
    /// How often no lease could be got.
    failures: u64,
    error: Option<Error>,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Shelf {
    pub cursor: Cursor,
    state: Mutex<State>,
    bounds: Bounds,
    /// Rings for those who wait for ids.
    pub news: Notify,
    /// Rings for the keeper.
    pub called: Notify,
}

impl Shelf {
    pub fn new(bounds: Bounds) -> Shelf {
        let state = State {
            current: None,
            spare: None,
            number: 1,
            wanted: true,
            closed: false,
            count: bounds.min,
            usage: None,
            failures: 0,
            error: None,
        };
        Shelf {
            cursor: Cursor::default(),
            state: Mutex::new(state),
            bounds,
            news: Notify::new(),
            called: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics but for a fault in this file.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of the `count` tickets from `ticket` on, or of as many as there are, or of
    /// others; at least one. `None`: there is none at hand, and the keeper knows.
    pub fn grant(&self, mut ticket: u64, count: u32, now: Instant) -> Result<Option<Grant>, Error> {
        let mut state = self.lock();
        loop {
            if state.closed {
                // Back to where it began: see `PLACE_BITS`.
                self.cursor.close(state.number);
                return Err(Error::Closed);
            }
            self.drop_expired(&mut state, now);
            let Some(current) = &mut state.current else {
                if !self.use_spare(&mut state, now) {
                    self.cursor.close(state.number);
                    state.wanted = true;
                    self.called.notify_one();
                    return Ok(None);
                }
                ticket = self.cursor.draw(count);
                continue;
            };
            let ids = current.held.ids();
            let place = ticket.wrapping_sub(current.base);
            if place >= ids {
                if ticket >> 32 == current.base >> 32 {
                    self.retire(&mut state, now);
                } else {
                    // Of a lease that has ended.
                    ticket = self.cursor.draw(count);
                }
                continue;
            }
            let count = u64::from(count).min(ids - place);
            let half = ids / 2;
            let passed = place + count;
            // At half of it the next one is due.
            let bound = if passed < half { half } else { ids };
            current.limit = current.limit.max((passed + BLOCK).min(bound));
            self.cursor.extend(current.limit);
            let RangeLease { first, step, .. } = current.held.lease;
            let grant = Grant {
                first: first + step * place as i64,
                step,
                count: count as u32,
                base: current.base,
            };
            let due = passed >= half || current.held.follow() <= now;
            if due && state.spare.is_none() && !state.wanted {
                state.wanted = true;
                self.called.notify_one();
            }
            return Ok(Some(grant));
        }
    }

    fn drop_expired(&self, state: &mut State, now: Instant) {
        if state.current.as_ref().is_some_and(|current| current.held.expires <= now) {
            self.retire(state, now);
        }
        if state.spare.as_ref().is_some_and(|spare| spare.expires <= now) {
            state.spare = None;
        }
    }

    /// How many ids of the lease in use have been used, and in what time.
    fn usage(&self, current: &InUse, now: Instant) -> (u64, Duration) {
        let used = self.cursor.peek().wrapping_sub(current.base).min(current.held.ids());
        (used, now.saturating_duration_since(current.since))
    }

    /// Ends the lease in use.
    fn retire(&self, state: &mut State, now: Instant) {
        if let Some(current) = state.current.take() {
            state.usage = Some(self.usage(&current, now));
        }
        state.number = state.number.wrapping_add(1);
        self.cursor.close(state.number);
    }

    /// Begins with the lease in reserve, where none is in use.
    fn use_spare(&self, state: &mut State, now: Instant) -> bool {
        let Some(held) = state.spare.take() else { return false };
        // The number before is that of the tickets that are drawn just now.
        state.number = state.number.wrapping_add(1);
        let RangeLease { first, step, .. } = held.lease;
        self.cursor.open(state.number, first, step, 0);
        state.current = Some(InUse { base: base(state.number), held, since: now, limit: 0 });
        // It ends at another time.
        self.called.notify_one();
        true
    }

    /// Ends what has expired, and tells when the next lease will.
    pub fn expire(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        self.drop_expired(&mut state, now);
        let current = state.current.as_ref().map(|current| current.held.expires);
        let spare = state.spare.as_ref().map(|spare| spare.expires);
        current.into_iter().chain(spare).min()
    }

    /// What is to be done now.
    pub fn plan(&self, now: Instant) -> Task {
        let mut state = self.lock();
        if state.closed {
            return Task::Stop;
        }
        self.drop_expired(&mut state, now);
        let mut usage = state.usage;
        let mut due = state.wanted;
        let mut next = state.spare.as_ref().map(|spare| spare.expires);
        if let Some(current) = &state.current {
            let follow = current.held.follow();
            let (used, elapsed) = self.usage(current, now);
            usage = Some((used, elapsed));
            due |= used >= current.held.ids().div_ceil(2) || used > 0 && follow <= now;
            let at = if follow > now { follow } else { current.held.expires };
            next = Some(next.map_or(at, |next| next.min(at)));
        }
        if !due || state.spare.is_some() {
            return Task::Wait(next);
        }
        if let Some((used, elapsed)) = usage {
            state.count = next_count(&self.bounds, state.count, used, elapsed);
        }
        Task::Fetch(state.count)
    }

    /// A lease came that was asked for at `sent`.
    pub fn filled(&self, lease: RangeLease, sent: Instant, now: Instant) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let time = Duration::from_millis(lease.ttl_ms.unsigned_abs());
        let expires = sent + time / 100 * TIME_USED;
        state.wanted = false;
        state.error = None;
        if expires > now {
            state.spare = Some(Held { lease, expires, lead: time / FOLLOWED });
        } else {
            // This process was stopped meanwhile.
            state.wanted = true;
        }
        drop(state);
        self.news.notify_waiters();
    }

    /// No lease could be got.
    pub fn failed(&self, error: Error) {
        let mut state = self.lock();
        state.wanted = false;
        state.failures += 1;
        state.error = Some(error);
        drop(state);
        self.news.notify_waiters();
    }

    /// How often no lease could be got, and why not the last time.
    pub fn failures(&self) -> (u64, Option<Error>) {
        let state = self.lock();
        (state.failures, state.error.clone())
    }

    /// From now on nothing is handed out.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.spare = None;
        state.current = None;
        state.number = state.number.wrapping_add(1);
        self.cursor.close(state.number);
        drop(state);
        self.news.notify_waiters();
        self.called.notify_one();
    }
}
