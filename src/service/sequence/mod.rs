//! Coalescing: one call to the dispatcher takes for everyone who waits.
//!
//! Callers queue up. A driver, which exists only while somebody waits, takes
//! out all that wait, asks the dispatcher once for the sum, hands the ids out
//! in the order of arrival, and goes on with those that came meanwhile: no
//! timer. While one call to the dispatcher is in flight, a second one leaves
//! once as many callers wait as the first one is for, and not just a few: so half
//! of the callers are on their way while the other half is being answered, and
//! the batches stay large. There are never more than two per type and node.
//!
//! Promises. Only callers that waited when the call was sent get its ids:
//! somebody who came later may have seen a larger id from another node. Ids
//! that nobody wants any more are burnt, never kept for a later caller. No id
//! at or below one that this node has returned is returned again. Every caller
//! is answered by its deadline, by the driver: callers have no timers.

mod driver;
mod flight;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::catalogue::TypeEntry;
use super::granted::Granted;
use super::{Parts, unavailable};
use crate::domain::{Error, ErrorCode};
use driver::Driver;

/// The callers that wait for ids of one type.
#[derive(Default)]
pub(super) struct Sequence {
    queue: Mutex<Queue>,
    news: Notify,
    /// Rings when as many wait as the driver asked to be called for.
    callers: Notify,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// Whether a driver is at work.
    driven: bool,
    /// How many must wait for the driver to be called; `None` while it does
    /// not care.
    call_at: Option<usize>,
}

struct Waiter {
    /// How many ids are still missing.
    missing: u64,
    got: Option<Granted>,
    deadline: Instant,
    reply: oneshot::Sender<Result<Granted, Error>>,
}

impl Sequence {
    /// Something changed: the driver looks again.
    pub(super) fn wake(&self) {
        self.news.notify_one();
    }

    /// Whether nobody waits, or is being served.
    pub(super) fn is_quiet(&self) -> bool {
        !self.queue.lock().expect("never poisoned").driven
    }

    /// Ids that callers wait for now.
    pub(super) fn demand(&self) -> u64 {
        let queue = self.queue.lock().expect("never poisoned");
        queue.waiters.iter().map(|w| w.missing).sum()
    }
}

/// `count` ids of the type for one caller, by `deadline`.
pub(super) async fn acquire(
    parts: &Arc<Parts>,
    entry: &Arc<TypeEntry>,
    count: u64,
    deadline: Instant,
) -> Result<Granted, Error> {
    let (reply, answer) = oneshot::channel();
    let drive_now = {
        let mut queue = entry.sequence.queue.lock().expect("never poisoned");
        if queue.waiters.len() >= parts.config.max_waiting {
            return Err(Error::new(
                ErrorCode::Overloaded,
                format!(
                    "{} calls wait for id type {} already",
                    parts.config.max_waiting, entry.name
                ),
            ));
        }
        queue.waiters.push_back(Waiter { missing: count, got: None, deadline, reply });
        if queue.call_at.is_some_and(|enough| queue.waiters.len() >= enough) {
            queue.call_at = None;
            entry.sequence.callers.notify_one();
        }
        !std::mem::replace(&mut queue.driven, true)
    };
    if drive_now {
        let driver = Driver { parts: parts.clone(), entry: entry.clone() };
        parts.tasks.spawn(driver.run());
    }
    answer.await.unwrap_or_else(|_| Err(unavailable("the node is shutting down")))
}
