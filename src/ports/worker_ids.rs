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
use crate::domain::{Error, ErrorCode};

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
///
/// What holds for every pool, whatever calls come in whatever order: the spans
/// of the tenures of one worker id never overlap, and each lies after those
/// before it. A tenure that was let go keeps `[from_ms, used_until_ms)`; the
/// others keep all that they were ever promised.
#[async_trait]
pub trait WorkerIds: Send + Sync {
    /// Leases a worker id of `bits` bits to `holder` (1 to 128 printable
    /// characters) until `ttl_ms` (1 000 to 86 400 000) from now by the store's
    /// clock: the lowest that nobody had, else the one that is free for longest
    /// (the lowest of several). A worker id is free when its last tenure ended,
    /// `until_ms <= now_ms`, so `from_ms` (the end of that tenure; 0 if none) lies
    /// in the past.
    ///
    /// `token` is 1 to 64 printable characters. Where a worker id of the pool is
    /// held under it already, that tenure is renewed, as by
    /// [`renew_worker`](Self::renew_worker), and answered: so a call may be tried
    /// again after an answer that was lost, and costs no second worker id.
    ///
    /// Refused: `UNAVAILABLE` when all are taken; the message says how many there
    /// are and when the next one becomes free. `INVALID_ARGUMENT` (`bits`,
    /// `holder`, `token`, `ttl_ms`); see [`check_lease`].
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError>;

    /// Lets the tenure end `ttl_ms` from now by the store's clock, never earlier
    /// than it does already. `from_ms` stays. A tenure that has ended, and that
    /// nobody followed, goes on as if it had not. Refused: `CONFLICT` when the
    /// worker id is not held under the token any more (somebody else has it, it
    /// was released, or the store lost it): lease another one.
    /// `INVALID_ARGUMENT` (`ttl_ms`).
    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError>;

    /// Ends the tenure at `used_until_ms`, above every time value that was used,
    /// so that the next holder need not wait; taken as its `from_ms` or `until_ms`
    /// where it lies outside. The worker id is free from then on by the store's
    /// clock, which may be in the future. False when it is not held under the
    /// token any more; then nothing changes.
    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError>;

    /// The tenure that `time_ms` of a worker id belongs to
    /// (`from_ms <= time_ms < until_ms`), if it is known. Tenures of past holders
    /// are kept; one that was released without use may be forgotten.
    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError>;
}

/// Checks the arguments of [`WorkerIds::lease_worker`]; every adapter asks it.
pub fn check_lease(bits: u8, holder: &str, token: &str, ttl_ms: i64) -> Result<(), Error> {
    if !(1..=20).contains(&bits) {
        return Err(Error::invalid(
            "bits",
            format!("bits {bits} is out of range: it must be from 1 to 20"),
        ));
    }
    let printable = |field: &'static str, text: &str, most: usize| {
        let length = text.chars().count();
        if (1..=most).contains(&length) && !text.chars().any(char::is_control) {
            return Ok(());
        }
        Err(Error::invalid(field, format!("{field} must have 1 to {most} printable characters")))
    };
    printable("holder", holder, 128)?;
    printable("token", token, 64)?;
    check_ttl(ttl_ms)
}

/// Checks the time that a worker id is leased or renewed for.
pub fn check_ttl(ttl_ms: i64) -> Result<(), Error> {
    if (1_000..=86_400_000).contains(&ttl_ms) {
        return Ok(());
    }
    Err(Error::invalid(
        "ttl_ms",
        format!("ttl_ms {ttl_ms} is out of range: it must be from 1000 to 86400000"),
    ))
}

/// The refusal of a lease when each of the worker ids of `bits` bits is taken,
/// the first of them until `free_ms`.
pub fn all_taken(bits: u8, free_ms: i64, now_ms: i64) -> Error {
    Error::new(
        ErrorCode::Unavailable,
        format!(
            "all {} worker ids of {bits} bits are taken; the next one becomes free in {} ms",
            1i64 << bits,
            free_ms.saturating_sub(now_ms)
        ),
    )
}

/// The refusal of a renewal under a token that does not hold the worker id.
pub fn not_held(bits: u8, worker: i64) -> Error {
    Error::new(
        ErrorCode::Conflict,
        format!("worker id {worker} of {bits} bits is not held under this token any more"),
    )
}
