//! Coalescing: one call to the dispatcher takes for everyone who waits.
//!
//! Callers queue up. A driver, which exists only while somebody waits, takes
//! out all that wait, asks the dispatcher once for the sum, hands the ids out
//! in the order of arrival, and goes on with those that came meanwhile: no
//! timer, and at most one call per type and node in flight.
//!
//! Promises. Only callers that waited when the call was sent get its ids:
//! somebody who came later may have seen a larger id from another node. Ids
//! that nobody wants any more are burnt, never kept for a later caller. No id
//! at or below one that this node has returned is returned again. Every caller
//! is answered by its deadline, by the driver: callers have no timers.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::catalogue::TypeEntry;
use super::glance::{GLANCE, Glance};
use super::granted::Granted;
use super::instances::{Instance, follow_loss};
use super::segment;
use super::{Parts, refill, unavailable};
use crate::domain::{Error, ErrorCode, IdRange, OnRedisLoss, State};
use crate::ports::{DispatchError, Dispatcher, TakeOutcome, Taken};

/// Most ids in one call to the dispatcher; bounds the answer to one batch.
const MAX_TAKE: u64 = 10_000_000;
/// While nothing is at hand: look again after so long even without news.
const POLL: Duration = Duration::from_millis(50);
/// After a dispatcher failed: try again after so long.
const RETRY: Duration = Duration::from_millis(20);
/// Callers wait while the store is asked about a history: not for long.
const STORE_QUESTION: Duration = Duration::from_millis(250);

/// The callers that wait for ids of one type.
#[derive(Default)]
pub(super) struct Sequence {
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// Whether a driver is at work.
    driven: bool,
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
        !std::mem::replace(&mut queue.driven, true)
    };
    if drive_now {
        let driver = Driver { parts: parts.clone(), entry: entry.clone() };
        parts.tasks.spawn(driver.run());
    }
    answer.await.unwrap_or_else(|_| Err(unavailable("the node is shutting down")))
}

struct Driver {
    parts: Arc<Parts>,
    entry: Arc<TypeEntry>,
}

/// What to do when a batch could not be served whole.
enum Then {
    /// Ask the dispatcher again at once.
    Again,
    /// Wait for news, at most until then.
    Wait(Duration),
}

impl Driver {
    async fn run(self) {
        let mut batch = VecDeque::new();
        let mut trouble: Option<Error> = None;
        loop {
            if batch.is_empty() && self.rest() {
                return;
            }
            // Who is about to ask asks now, and shares the call.
            tokio::task::yield_now().await;
            self.collect(&mut batch);
            self.expire(&mut batch, trouble.as_ref());
            if batch.is_empty() {
                continue;
            }
            let then = match self.serve(&mut batch).await {
                Ok(then) => {
                    if batch.is_empty() {
                        trouble = None;
                    }
                    then
                }
                Err(error) => {
                    trouble = Some(error);
                    Then::Wait(RETRY)
                }
            };
            if batch.is_empty() {
                continue;
            }
            if let Some(verdict) = self.verdict() {
                for waiter in batch.drain(..) {
                    let burnt = waiter.got.as_ref().map_or(0, Granted::len);
                    self.parts.metrics.burnt_ids.inc_by(burnt);
                    let _ = waiter.reply.send(Err(verdict.clone()));
                }
                continue;
            }
            let Some(deadline) = earliest_deadline(&batch) else { continue };
            if let Then::Wait(longest) = then {
                let until = deadline.min(Instant::now() + longest);
                self.put_back(&mut batch);
                tokio::select! {
                    biased;
                    () = self.parts.stop.cancelled() => return self.abandon(),
                    () = self.entry.sequence.news.notified() => {}
                    () = sleep_until(until) => {}
                }
            }
        }
    }

    /// Whether nobody waits: then there is no driver any more.
    fn rest(&self) -> bool {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        queue.waiters.retain(|waiter| !waiter.reply.is_closed());
        if !queue.waiters.is_empty() {
            return false;
        }
        queue.driven = false;
        self.entry.supply.set_starving(false);
        true
    }

    /// Moves all who wait into `batch`, in order of arrival.
    fn collect(&self, batch: &mut VecDeque<Waiter>) {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        if batch.is_empty() {
            std::mem::swap(batch, &mut queue.waiters);
        } else {
            batch.append(&mut queue.waiters);
        }
        batch.retain(|waiter| !waiter.reply.is_closed());
    }

    /// Those who still wait go back to the head of the queue, where they count
    /// as demand, and as load.
    fn put_back(&self, batch: &mut VecDeque<Waiter>) {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        batch.append(&mut queue.waiters);
        std::mem::swap(batch, &mut queue.waiters);
    }

    /// Takes once for the whole batch; who got all its ids leaves the batch.
    async fn serve(&self, batch: &mut VecDeque<Waiter>) -> Result<Then, Error> {
        let record = self.entry.record();
        let Some(instance) = self.parts.instances.get(record.instance) else {
            return Err(unavailable(format!(
                "Redis instance {} of id type {} is not known to this node",
                record.instance, self.entry.name
            )));
        };
        if record.state == State::Retired {
            return Ok(Then::Wait(POLL)); // the verdict answers
        }
        let wanted = batch.iter().map(|w| w.missing).sum::<u64>().min(MAX_TAKE);
        let goes_on_alone = record.options.on_redis_loss == OnRedisLoss::Segment;
        self.entry.supply.touch();
        self.parts.active.join(&self.entry);
        if goes_on_alone && instance.is_lost() {
            return self.serve_alone(batch, wanted, &instance).await;
        }
        self.parts.metrics.takes.inc();
        let take = instance.dispatcher.take(&self.entry.name, wanted);
        let Some(outcome) = self.while_somebody_waits(batch, take).await else {
            return Ok(Then::Again);
        };
        let outcome = match outcome {
            Err(DispatchError::Unavailable(_)) if goes_on_alone => {
                follow_loss(&self.parts, &instance);
                return Ok(Then::Again);
            }
            outcome => outcome?,
        };
        let mut taken = match outcome {
            TakeOutcome::Taken(taken) => taken,
            TakeOutcome::Stale { history } => {
                // Also the answer for a type that was never loaded: only one
                // that was can be stale.
                let was_loaded = record.history.as_ref().is_some_and(|h| *h != history);
                if was_loaded && self.entry.supply.is_news(&history) {
                    self.parts.metrics.stale_histories.with_label_values(&["dispatcher"]).inc();
                }
                self.starve();
                return Ok(Then::Wait(POLL));
            }
            TakeOutcome::Moved(seal) => {
                let settling = self.parts.settle(&self.entry.name, instance.record.id, seal);
                let Some(settled) = self.while_somebody_waits(batch, settling).await else {
                    return Ok(Then::Again);
                };
                settled?;
                let is_elsewhere = self.entry.record().instance != instance.record.id;
                return Ok(if is_elsewhere { Then::Again } else { Then::Wait(RETRY) });
            }
        };
        let question = self.may_use(&taken, &*instance.dispatcher);
        match self.while_somebody_waits(batch, question).await {
            None => return Ok(Then::Again),
            Some(false) => {
                return Err(unavailable("the Redis instance was replaced by another server"));
            }
            Some(true) => {}
        }
        let question = self.drop_outdated(&mut taken);
        let Some(current) = self.while_somebody_waits(batch, question).await else {
            return Ok(Then::Again);
        };
        let current = current?;
        let question = self.knows(&taken.ranges);
        let Some(known) = self.while_somebody_waits(batch, question).await else {
            return Ok(Then::Again);
        };
        if !known? {
            // The store lost a key that these may have been written with.
            self.parts.metrics.burnt_ids.inc_by(taken.ranges.iter().map(|r| r.len()).sum());
            self.entry.supply.distrust(true);
            self.starve();
            return Ok(Then::Wait(POLL));
        }
        let in_order = self.hand_out(&taken.ranges, batch) && current;
        let due = taken.due || taken.left == 0;
        if !batch.is_empty() && (due || !in_order) {
            self.starve();
            return Ok(Then::Wait(POLL));
        }
        self.entry.supply.set_starving(false);
        if due || !in_order {
            refill::start(&self.parts, &self.entry);
        }
        Ok(Then::Again)
    }

    /// Does `work`, and meanwhile answers those whose time is up, in the batch and behind
    /// it: who came later may have less time. `None` when nobody of the batch is left. The
    /// work itself is never cut at the deadline of one caller: those behind it still want
    /// the answer.
    async fn while_somebody_waits<T>(
        &self,
        batch: &mut VecDeque<Waiter>,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let deadline = earliest_deadline(batch)?;
            let is_near = deadline < Instant::now() + GLANCE;
            tokio::select! {
                biased;
                done = work.as_mut() => return Some(done),
                () = Glance::heard(&self.parts) => {}
                () = sleep_until(deadline), if is_near => {}
            }
            // A refill that failed is the likelier reason.
            let slow = unavailable("the Redis instance did not answer in time");
            let reason = self.entry.supply.error().unwrap_or(slow);
            self.expire(batch, Some(&reason));
            let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
            self.expire(&mut queue.waiters, Some(&reason));
        }
    }

    /// Redis is away: the node's own leases serve the batch.
    async fn serve_alone(
        &self,
        batch: &mut VecDeque<Waiter>,
        wanted: u64,
        instance: &Instance,
    ) -> Result<Then, Error> {
        let Some(deadline) = earliest_deadline(batch) else { return Ok(Then::Again) };
        let leases = self.entry.leases();
        // What is left from an earlier loss lies below what Redis gave since.
        let burnt = leases.burn_to(self.entry.supply.returned());
        self.parts.metrics.burnt_ids.inc_by(burnt);
        let some = segment::acquire_some(&self.parts, &self.entry, leases, wanted, deadline);
        let Some(range) = self.while_somebody_waits(batch, some).await else {
            return Ok(Then::Again);
        };
        let range = range?;
        if !self.entry.supply.set_alone(true) {
            instance.went_on_alone(&self.entry);
        }
        self.parts.metrics.alone_ids.inc_by(range.len());
        self.hand_out(&[range], batch);
        if !instance.is_lost() {
            // It came back meanwhile: see `follow_loss`.
            self.entry.supply.set_alone(false);
            self.entry.supply.distrust(true);
            refill::start(&self.parts, &self.entry);
        }
        Ok(Then::Again)
    }

    /// Drops what belongs to a period that is over, or to a key that was replaced;
    /// false where there was some, so that a newer range must come.
    async fn drop_outdated(&self, taken: &mut Taken) -> Result<bool, Error> {
        let period = self.parts.current_period(&self.entry).await?;
        let least = self.entry.least_position(period);
        let before = taken.ranges.len();
        taken.ranges.retain(|range| {
            let is_outdated = range.start() < least;
            if is_outdated {
                self.parts.metrics.burnt_ids.inc_by(range.len());
            }
            !is_outdated
        });
        Ok(taken.ranges.len() == before)
    }

    async fn knows(&self, ranges: &[IdRange]) -> Result<bool, Error> {
        for range in ranges {
            if !self.parts.know(&self.entry, *range).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn starve(&self) {
        self.entry.supply.set_starving(true);
        refill::start(&self.parts, &self.entry);
    }

    /// Whether ids taken under this history may be returned: not when the
    /// store knows that another history succeeded it (an old master, cut off).
    /// The answer is kept until the store records another history, or for a
    /// second where it was no or could not be had.
    async fn may_use(&self, taken: &Taken, dispatcher: &dyn Dispatcher) -> bool {
        let record = self.entry.record();
        let recorded = record.history.as_ref();
        if recorded == Some(&taken.history) {
            return true;
        }
        let soon = Some(Duration::from_secs(1));
        let known = self.entry.supply.is_known_live(&taken.history, recorded);
        let live = match known {
            Some(live) => live,
            None => {
                let question = self.parts.store.is_superseded(&self.entry.name, &taken.history);
                let (live, ask_again) = match timeout(STORE_QUESTION, question).await {
                    Ok(Ok(false)) => (true, None),
                    Ok(Ok(true)) => {
                        tracing::warn!(
                            id_type = %self.entry.name, history = %taken.history,
                            "dropping ids of a server that was replaced"
                        );
                        dispatcher.reset().await;
                        (false, soon)
                    }
                    // The store is away: nothing says that the history is old.
                    Ok(Err(_)) | Err(_) => (true, soon),
                };
                self.entry.supply.note_history(&taken.history, recorded, live, ask_again);
                live
            }
        };
        if !live {
            let ids = taken.ranges.iter().map(|r| r.len()).sum();
            self.parts.metrics.burnt_ids.inc_by(ids);
            if self.entry.supply.is_news(&taken.history) {
                self.parts.metrics.stale_histories.with_label_values(&["node"]).inc();
            }
        }
        live
    }

    /// Gives the ids to the batch, in order. Returns whether all were in
    /// order; what is not is dropped.
    fn hand_out(&self, ranges: &[IdRange], batch: &mut VecDeque<Waiter>) -> bool {
        let mut in_order = true;
        for range in ranges {
            if !self.entry.supply.advance(*range) {
                in_order = false;
                self.parts.metrics.order_drops.inc();
                self.parts.metrics.burnt_ids.inc_by(range.len());
                tracing::error!(
                    id_type = %self.entry.name, %range,
                    "dropped ids at or below one that was returned already"
                );
                self.entry.supply.distrust(true);
                continue;
            }
            let mut rest = Some(*range);
            while let (Some(ids), Some(waiter)) = (rest, batch.front_mut()) {
                let (head, tail) = ids.split(waiter.missing);
                waiter.missing -= head.len();
                match &mut waiter.got {
                    None => waiter.got = Some(Granted::of(head)),
                    Some(granted) => granted.push(head),
                }
                rest = tail;
                if waiter.missing == 0 {
                    let waiter = batch.pop_front().expect("it is at the front");
                    let granted = waiter.got.expect("just given");
                    if let Err(Ok(unwanted)) = waiter.reply.send(Ok(granted)) {
                        self.parts.metrics.burnt_ids.inc_by(unwanted.len()); // the caller is gone
                    }
                }
            }
            if let Some(unwanted) = rest {
                self.parts.metrics.burnt_ids.inc_by(unwanted.len());
            }
        }
        in_order
    }

    /// Why nobody will get ids, however long they wait.
    fn verdict(&self) -> Option<Error> {
        if self.entry.record().state == State::Retired {
            return Some(Error::new(
                ErrorCode::Retired,
                format!("id type {} is retired", self.entry.name),
            ));
        }
        if self.entry.is_closed() {
            // The service looks the type up again.
            return Some(unavailable("the id type was leaving the memory of the node: try again"));
        }
        self.entry.supply.verdict()
    }

    /// Answers those whose time is up.
    fn expire(&self, batch: &mut VecDeque<Waiter>, trouble: Option<&Error>) {
        let now = Instant::now();
        if earliest_deadline(batch).is_none_or(|deadline| deadline > now) {
            return;
        }
        for waiter in std::mem::take(batch) {
            if waiter.deadline > now {
                batch.push_back(waiter);
                continue;
            }
            let burnt = waiter.got.as_ref().map_or(0, Granted::len);
            self.parts.metrics.burnt_ids.inc_by(burnt);
            let reason = trouble.cloned().or_else(|| self.entry.supply.error());
            let error = match reason {
                Some(error) => error,
                None => Error::new(
                    ErrorCode::Deadline,
                    format!("no ids of type {} within the deadline", self.entry.name),
                ),
            };
            let _ = waiter.reply.send(Err(error));
        }
    }

    /// The node stops, or the driver broke down: whoever waits is told so by
    /// the dropped channel, and the next caller gets a new driver.
    fn abandon(&self) {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        queue.waiters.clear();
        queue.driven = false;
    }
}

/// Not always that of the first: a call may have spent some of its time before it
/// came to wait, as one with a request key.
fn earliest_deadline(batch: &VecDeque<Waiter>) -> Option<Instant> {
    batch.iter().map(|waiter| waiter.deadline).min()
}

impl Drop for Driver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abandon();
        }
    }
}
