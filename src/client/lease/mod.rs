//! Ids that are handed out in this process: a range is leased, and the next one before
//! the first ends.
//!
//! ```text
//! cursor  one id for one `fetch_add`
//! shelf   which lease is in use, and when the next one is needed
//! sizing  how long the next one is
//! ```
//!
//! Promise: no id twice, whatever number of threads asks and whenever a lease ends: ids
//! of a lease are taken out of the type for good before the node answers, and nobody
//! else gets them, used or not.

mod cursor;
mod shelf;
mod sizing;
#[cfg(test)]
mod tests;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use self::shelf::{Grant, Shelf, Task};
use self::sizing::Bounds;
use super::{Client, Error};
use crate::thrift_api::{MAX_LEASE, MAX_LEASE_MS, MIN_LEASE_MS, RangeLease};

/// How long the first pause is after a failure; doubled with each further one in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How ids are leased.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaseConfig {
    /// How long one lease is meant to last; its length follows the use. 10 s.
    pub lasting: Duration,
    /// The shortest lease, and the first, in ids. 1 000.
    pub min: u32,
    /// The longest, at most 10 000 000. 1 000 000.
    pub max: u32,
    /// For how long ids are leased, a second to a day. They are handed out for nine
    /// tenths of it. 60 s.
    pub ttl: Duration,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        LeaseConfig {
            lasting: Duration::from_secs(10),
            min: 1_000,
            max: 1_000_000,
            ttl: Duration::from_secs(60),
        }
    }
}

impl LeaseConfig {
    fn validate(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Config(text.to_owned()));
        if self.min == 0 || self.min > self.max || i64::from(self.max) > MAX_LEASE {
            return wrong("min and max of a lease: 1 <= min <= max <= 10000000");
        }
        let longest = MAX_LEASE_MS as u128;
        if !(MIN_LEASE_MS as u128..=longest).contains(&self.ttl.as_millis()) {
            return wrong("ttl of a lease: 1 s to a day");
        }
        if self.lasting.is_zero() {
            return wrong("lasting of a lease must be longer than 0");
        }
        Ok(())
    }
}

/// Where leases come from.
trait Source: Send + Sync + 'static {
    /// Up to `count` ids.
    fn lease(&self, count: u32) -> impl Future<Output = Result<RangeLease, Error>> + Send;
}

/// The nodes; the one that gave the last lease first, because only the ids of one node
/// ascend.
struct Nodes {
    client: Client,
    id_type: String,
    ttl: Duration,
    /// The number of that node; more than any before the first.
    node: AtomicUsize,
}

impl Source for Nodes {
    async fn lease(&self, count: u32) -> Result<RangeLease, Error> {
        let node = self.node.load(Ordering::Relaxed);
        let preferred = (node != usize::MAX).then_some(node);
        let asked = self.client.lease_from(preferred, &self.id_type, count, self.ttl);
        let (lease, node) = asked.await?;
        self.node.store(node, Ordering::Relaxed);
        Ok(lease)
    }
}

/// Ids of one type that this process hands out by itself; see
/// [`Client::local_lease`](super::Client::local_lease) and `docs/rust-client.md`.
///
/// One for the whole program: share it by reference or in an `Arc`. Dropping it closes it.
#[derive(Debug)]
pub struct LocalLease {
    shelf: Arc<Shelf>,
    deadline: Duration,
}

impl LocalLease {
    pub(super) async fn open(
        client: Client,
        id_type: &str,
        config: LeaseConfig,
    ) -> Result<LocalLease, Error> {
        config.validate()?;
        let deadline = client.deadline();
        let (id_type, ttl) = (id_type.to_owned(), config.ttl);
        let source = Nodes { client, id_type, ttl, node: AtomicUsize::new(usize::MAX) };
        Self::start(source, &config, deadline).await
    }

    async fn start(
        source: impl Source,
        config: &LeaseConfig,
        deadline: Duration,
    ) -> Result<LocalLease, Error> {
        let LeaseConfig { lasting, min, max, .. } = *config;
        let shelf = Arc::new(Shelf::new(Bounds { lasting, min, max }));
        let sent = Instant::now();
        shelf.filled(source.lease(min).await?, sent, Instant::now());
        tokio::spawn(keep(CloseOnDrop(Arc::clone(&shelf)), source));
        Ok(LocalLease { shelf, deadline })
    }

    /// The next id. Ids of one lease ascend, over all threads. Waits only where none is at
    /// hand, which is when the lease has ended before the next one came. The id is taken
    /// by the call, not by the await: a future that is dropped costs it.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`]; while it waits, what [`Client::lease_range`] meets.
    ///
    /// [`Client::lease_range`]: super::Client::lease_range
    #[inline]
    pub fn next_id(&self) -> impl Future<Output = Result<i64, Error>> + Send {
        // Not an async function: its future would be large, and its state written for
        // each id, which takes as long as the id itself.
        match self.draw() {
            Ok(id) => NextId::AtHand(id),
            Err(ticket) => NextId::Waiting(Box::pin(self.wait(ticket))),
        }
    }

    /// The next id, if one is at hand. If none is, one is being fetched, unless this is
    /// closed.
    #[inline]
    pub fn try_next_id(&self) -> Option<i64> {
        match self.draw() {
            Ok(id) => Some(id),
            Err(ticket) => self.at_hand(ticket),
        }
    }

    #[cold]
    fn at_hand(&self, ticket: u64) -> Option<i64> {
        Some(self.shelf.grant(ticket, 1, Instant::now()).ok()??.first)
    }

    /// An id, or a ticket to wait with.
    #[inline]
    pub(super) fn draw(&self) -> Result<i64, u64> {
        self.shelf.cursor.take()
    }

    #[cold]
    pub(super) fn wait(&self, ticket: u64) -> impl Future<Output = Result<i64, Error>> + Send {
        let granted = wait(&self.shelf, ticket, 1, self.deadline);
        async { granted.await.map(|grant| grant.first) }
    }

    /// A handle for one thread, which takes `size` ids at a time (at most 100 000). Threads
    /// with handles do not slow each other down; the price is order: the ids of one
    /// handle ascend, but one that another handle gives later may be lower. What a handle
    /// has left when its lease ends, or when it is dropped, is lost.
    pub fn batch(&self, size: u32) -> LeaseBatch {
        let rest = Grant { first: 0, step: 0, count: 0, base: 0 };
        let shelf = Arc::clone(&self.shelf);
        LeaseBatch { shelf, deadline: self.deadline, size: size.clamp(1, 100_000), rest }
    }

    /// Ends it. Calls that begin after this has returned get [`Error::Closed`], and those
    /// that wait get it at once, handles included. The ids that are left are lost; the
    /// node is not told, as there is nothing that it could do with them.
    pub fn close(&self) {
        self.shelf.close();
    }
}

/// What [`LocalLease::next_id`] gives.
enum NextId<W> {
    AtHand(i64),
    Waiting(Pin<Box<W>>),
}

impl<W: Future<Output = Result<i64, Error>>> Future for NextId<W> {
    type Output = Result<i64, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            NextId::AtHand(id) => Poll::Ready(Ok(*id)),
            NextId::Waiting(waiting) => waiting.as_mut().poll(context),
        }
    }
}

impl Drop for LocalLease {
    fn drop(&mut self) {
        self.close();
    }
}

/// A handle of one thread on a [`LocalLease`]; see [`LocalLease::batch`].
#[derive(Debug)]
pub struct LeaseBatch {
    shelf: Arc<Shelf>,
    deadline: Duration,
    size: u32,
    rest: Grant,
}

impl LeaseBatch {
    /// The next id; see [`LocalLease::next_id`].
    #[inline]
    pub async fn next_id(&mut self) -> Result<i64, Error> {
        if let Some(id) = self.of_rest() {
            return Ok(id);
        }
        let ticket = self.shelf.cursor.draw(self.size);
        self.rest = wait(&self.shelf, ticket, self.size, self.deadline).await?;
        Ok(take_first(&mut self.rest))
    }

    /// The next id, if one is at hand; see [`LocalLease::try_next_id`].
    #[inline]
    pub fn try_next_id(&mut self) -> Option<i64> {
        self.of_rest().or_else(|| self.at_hand())
    }

    #[cold]
    fn at_hand(&mut self) -> Option<i64> {
        let ticket = self.shelf.cursor.draw(self.size);
        self.rest = self.shelf.grant(ticket, self.size, Instant::now()).ok()??;
        Some(take_first(&mut self.rest))
    }

    #[inline]
    fn of_rest(&mut self) -> Option<i64> {
        // The lease may have ended since.
        let good = self.rest.count > 0 && self.shelf.cursor.in_use() == self.rest.base;
        good.then(|| take_first(&mut self.rest))
    }
}

/// The first id of at least one.
#[inline]
fn take_first(grant: &mut Grant) -> i64 {
    let id = grant.first;
    grant.count -= 1;
    // What follows the last one is never read.
    grant.first = id.wrapping_add(grant.step);
    id
}

/// Waits for ids, until the deadline of a call, or until no lease could be got.
async fn wait(shelf: &Shelf, ticket: u64, count: u32, deadline: Duration) -> Result<Grant, Error> {
    let mut ticket = Some(ticket);
    let begun = Instant::now();
    let mut failures_before = None;
    loop {
        // Listens before it looks, so that nothing is missed in between.
        let mut news = pin!(shelf.news.notified());
        news.as_mut().enable();
        let (failures, error) = shelf.failures();
        let now = Instant::now();
        let drawn = ticket.take().unwrap_or_else(|| shelf.cursor.draw(count));
        if let Some(grant) = shelf.grant(drawn, count, now)? {
            return Ok(grant);
        }
        let before = *failures_before.get_or_insert(failures);
        match error {
            Some(error) if failures != before => return Err(error),
            error => {
                if timeout_at(begun + deadline, news).await.is_err() {
                    return Err(Error::Deadline { last: error.map(Box::new) });
                }
            }
        }
    }
}

/// Closes the shelf when its keeper ends, whatever ends it: a runtime that shuts down
/// leaves nobody waiting.
struct CloseOnDrop(Arc<Shelf>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Gets leases when they are needed, and ends them in time, until the shelf is closed.
async fn keep(shelf: CloseOnDrop, source: impl Source) {
    let shelf = &*shelf.0;
    let mut pause = FIRST_PAUSE;
    loop {
        match shelf.plan(Instant::now()) {
            Task::Stop => return,
            Task::Wait(None) => shelf.called.notified().await,
            Task::Wait(Some(until)) => {
                // Either way there is something to plan.
                let _ = timeout_at(until, shelf.called.notified()).await;
            }
            Task::Fetch(count) => {
                let sent = Instant::now();
                match meanwhile(shelf, source.lease(count)).await {
                    Ok(lease) => {
                        shelf.filled(lease, sent, Instant::now());
                        pause = FIRST_PAUSE;
                    }
                    Err(error) => {
                        shelf.failed(error);
                        // A call for the keeper does not end it: that is what it is for.
                        meanwhile(shelf, tokio::time::sleep(pause)).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                }
            }
        }
    }
}

/// Does `work`, and ends leases in time.
async fn meanwhile<W: Future>(shelf: &Shelf, work: W) -> W::Output {
    let mut work = pin!(work);
    loop {
        let Some(end) = shelf.expire(Instant::now()) else { return work.await };
        if let Ok(done) = timeout_at(end, work.as_mut()).await {
            return done;
        }
    }
}
