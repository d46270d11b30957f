//! A tenure of a worker id, as its holder sees it.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::ports::Tenure;

/// See the module. Only the keeper of its pool changes it.
#[derive(Debug)]
pub(super) struct Tenancy {
    worker: i64,
    token: String,
    /// As the store says.
    from_ms: i64,
    /// The first time value that may be used; not before `from_ms`.
    first_ms: i64,
    /// The first time value that a generator which is made now may use.
    floor_ms: AtomicI64,
    /// The first one that may not; `i64::MIN` once it is over.
    until_ms: AtomicI64,
}

impl Tenancy {
    /// A tenure as the store gave it. `known_ms` is up to where this node knows
    /// times of the worker id to be used, whatever the store says.
    pub(super) fn new(tenure: &Tenure, known_ms: i64) -> Self {
        let first_ms = tenure.from_ms.max(known_ms);
        Tenancy {
            worker: tenure.worker,
            token: tenure.token.clone(),
            from_ms: tenure.from_ms,
            first_ms,
            floor_ms: AtomicI64::new(first_ms),
            until_ms: AtomicI64::new(tenure.until_ms),
        }
    }

    pub(super) fn worker(&self) -> i64 {
        self.worker
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn first_ms(&self) -> i64 {
        self.first_ms
    }

    pub(super) fn floor_ms(&self) -> i64 {
        self.floor_ms.load(Ordering::Acquire)
    }

    pub(super) fn until_ms(&self) -> i64 {
        self.until_ms.load(Ordering::Acquire)
    }

    /// Generators that are made from now on begin at `used_until_ms` at least.
    pub(super) fn raise_floor(&self, used_until_ms: i64) {
        self.floor_ms.fetch_max(used_until_ms, Ordering::AcqRel);
    }

    /// Whether `tenure`, the answer to a renewal, is this one, and promises all
    /// that was promised before. A store that lost its latest writes may say less.
    pub(super) fn is_kept_by(&self, tenure: &Tenure) -> bool {
        tenure.worker == self.worker
            && tenure.from_ms == self.from_ms
            && tenure.until_ms >= self.until_ms()
    }

    pub(super) fn extend(&self, until_ms: i64) {
        self.until_ms.store(until_ms, Ordering::Release);
    }

    /// No time fits any more.
    pub(super) fn end(&self) {
        self.until_ms.store(i64::MIN, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.until_ms() == i64::MIN
    }
}
