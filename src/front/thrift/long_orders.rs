//! Orders for many ids: how much memory their answers may need together.
//!
//! An order for 100 000 ids of an opaque type makes a list of as many ranges,
//! and a reply of 2.3 MB, which its client may be slow to take. A few are no
//! matter, ten thousand connections with one each are. So each such order takes
//! its share of a budget before it is carried out, waits its turn while there is
//! none, and gives it back once its reply is written. Short orders, and with
//! them every usual one, take none.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::service::api::{MAX_COUNT, MAX_TEXTS};

use super::method::Method;
use super::request::Request;

/// The least need of an order that takes a share, in bytes. What needs less is
/// bounded well enough by the number of connections.
const LONG: u64 = 64 * 1024;

/// What one id needs, in bytes: a range of 16 in a list that doubles as it
/// grows, and 23 in the reply.
const ID_BYTES: u64 = 64;

/// What one id as text needs, in bytes: 24 and its text, and the reply. Formats
/// may make longer ones, but nobody wants such ids by the thousand.
const TEXT_BYTES: u64 = 256;

/// The unit of the budget, in bytes, so that its shares fit the semaphore.
const UNIT: u64 = 1024;

/// A budget for long orders.
pub(super) struct LongOrders {
    free: Semaphore,
    whole: u32,
}

impl LongOrders {
    /// A budget of `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        let whole = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        LongOrders { free: Semaphore::new(whole as usize), whole }
    }

    /// The share that a call needs; 0 for a short one, and for one that will be
    /// refused anyway.
    pub(super) fn share(&self, method: Method, request: &Request<'_>) -> u32 {
        let (highest, each) = match method {
            Method::NextIds | Method::IssueIds => (MAX_COUNT, ID_BYTES),
            Method::IssueStringIds => (MAX_TEXTS, TEXT_BYTES),
            _ => return 0,
        };
        let count = request.args.i32(2).unwrap_or(0).into();
        if !(1..=highest).contains(&count) {
            return 0;
        }
        match count.unsigned_abs() * each {
            need if need < LONG => 0,
            // Never more than all, or it would wait for ever.
            need => u32::try_from(need / UNIT).unwrap_or(u32::MAX).min(self.whole),
        }
    }

    /// `share`, if it is free now.
    pub(super) fn take(&self, share: u32) -> Option<SemaphorePermit<'_>> {
        self.free.try_acquire_many(share).ok()
    }

    /// `share` as soon as it is free, in the order of the callers; `None` if that
    /// takes longer than `patience`.
    pub(super) async fn wait(&self, share: u32, patience: Duration) -> Option<SemaphorePermit<'_>> {
        timeout(patience, self.free.acquire_many(share)).await.ok()?.ok()
    }
}
