//! Worker ids for snowflake types: who may use which one, and from which time on.
//!
//! A tenure is a worker id and a span of **time values** `[from_ms, until_ms)`:
//! its holder may put these into ids, and nobody else ever may. The store keeps
//! `until_ms` before it is used, and the next tenure of the worker id begins
//! there. So uniqueness rests on no clock: a holder that slept, or whose clock
//! is wrong, can still only use values of its own span, which ends by itself.
//!
//! Worker ids of different widths are different: each number of worker bits has
//! a pool of its own.

use async_trait::async_trait;

use super::StoreError;

/// A right to make ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The pool: how many bits the worker id has, 1 to 20.
    pub bits: u8,
    /// The worker id, from 0.
    pub worker: i64,
    /// Whose it is; drawn at random by the holder.
    pub token: String,
    /// The first time value that may be used, in milliseconds of the Unix epoch.
    pub from_ms: i64,
    /// The first one that may not be used any more.
    pub until_ms: i64,
    /// The store's clock when it answered, in milliseconds of the Unix epoch.
    pub now_ms: i64,
}

/// Who had a worker id, and when; for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenureRecord {
    /// The worker id.
    pub worker: i64,
    /// The node.
    pub holder: String,
    /// As in [`Tenure`].
    pub from_ms: i64,
    /// As in [`Tenure`].
    pub until_ms: i64,
}

/// Leases worker ids. Every method is one durable transaction, and returns
/// within the adapter's own time limit.
#[async_trait]
pub trait WorkerIds: Send + Sync {
    /// Leases a worker id of `bits` bits to `holder` (1 to 128 printable
    /// characters) until `ttl_ms` (1 000 to 86 400 000) from now by the store's
    /// clock: the lowest that nobody had, else the one that is free for longest. A
    /// worker id is free when its last tenure ended before the store's clock, so
    /// `from_ms` (the end of that tenure; 0 if none) lies in the past.
    ///
    /// Refused: `UNAVAILABLE` when all are taken; the message says how many there
    /// are and when the next one becomes free. `INVALID_ARGUMENT`.
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError>;

    /// Lets the tenure end `ttl_ms` from now by the store's clock, never earlier
    /// than it does already. `from_ms` stays. Refused: `CONFLICT` when the worker
    /// id is not held under the token any more (somebody else has it, or the store
    /// lost it): lease another one.
    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError>;

    /// Ends the tenure at `used_until_ms`, above every time value that was used
    /// (and at most its `until_ms`), so that the next holder need not wait. False
    /// when it is not held under the token any more.
    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError>;

    /// The tenure that `time_ms` of a worker id belongs to, if it is known.
    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError>;
}
