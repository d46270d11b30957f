//! Serves the callers of one type, while there are any.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::super::catalogue::TypeEntry;
use super::super::glance::{GLANCE, Glance};
use super::super::granted::Granted;
use super::super::instances::{Instance, follow_loss};
use super::super::{Parts, refill, segment, unavailable};
use super::Waiter;
use super::flight::{Flight, Flights, Outcome};
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

/// See the module.
pub(super) struct Driver {
    pub(super) parts: Arc<Parts>,
    pub(super) entry: Arc<TypeEntry>,
}

/// What to do when a batch could not be served whole.
enum Then {
    /// Ask the dispatcher again at once.
    Again,
    /// Wait for news, at most until then.
    Wait(Duration),
}

/// How a batch can be served.
enum Way {
    /// By a call to the dispatcher of this instance.
    Take(Arc<Instance>),
    /// From the node's own leases, as Redis is away.
    Alone(Arc<Instance>),
    /// Not at all: it is retired.
    None,
}

impl Driver {
    pub(super) async fn run(self) {
        let mut flights = Flights::default();
        // Who was in a batch and is left, in order of arrival.
        let mut left = VecDeque::new();
        let mut trouble: Option<Error> = None;
        // An empty batch, whose memory the next one uses.
        let mut spare = VecDeque::new();
        loop {
            if flights.is_empty() && left.is_empty() && self.rest(&mut spare) {
                return;
            }
            let mut batch = VecDeque::new();
            if left.is_empty() {
                // Who is about to ask asks now, and shares the call.
                tokio::task::yield_now().await;
                batch = self.collect(&flights, &mut spare);
                self.expire(&mut batch, trouble.as_ref());
            }
            let mut result = match batch.is_empty() {
                true => None,
                false => self.depart(&mut batch, &mut flights).await,
            };
            if result.is_none()
                && let Some((flight, outcome)) = self.landing(&mut left, &mut flights).await
            {
                batch = flight.batch;
                let landed = self.land(outcome, &flight.instance, &mut batch, &mut flights).await;
                result = Some(landed);
            }
            let then = match result {
                Some(Ok(then)) => {
                    if batch.is_empty() {
                        trouble = None;
                    }
                    then
                }
                Some(Err(error)) => {
                    trouble = Some(error);
                    Then::Wait(RETRY)
                }
                None => Then::Again,
            };
            match left.is_empty() {
                true => left = batch,
                false => left.append(&mut batch),
            }
            if left.is_empty() {
                spare = std::mem::take(&mut left);
                continue;
            }
            if !flights.is_empty() {
                // What the later call brings is for its own callers, who wait behind these.
                continue;
            }
            if let Some(verdict) = self.verdict() {
                for waiter in left.drain(..) {
                    let burnt = waiter.got.as_ref().map_or(0, Granted::len);
                    self.parts.metrics.burnt_ids.inc_by(burnt);
                    let _ = waiter.reply.send(Err(verdict.clone()));
                }
                continue;
            }
            let deadline = earliest_deadline(&left);
            self.put_back(&mut left);
            if let (Then::Wait(longest), Some(deadline)) = (then, deadline) {
                let until = deadline.min(Instant::now() + longest);
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
    fn rest(&self, spare: &mut VecDeque<Waiter>) -> bool {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        queue.call_at = None;
        queue.waiters.retain(|waiter| !waiter.reply.is_closed());
        if queue.waiters.is_empty() {
            queue.driven = false;
            std::mem::swap(&mut queue.waiters, spare);
            self.entry.supply.set_starving(false);
            return true;
        }
        false
    }

    /// All who wait, in order of arrival; where a call is in flight only if they
    /// are enough for a second one.
    fn collect(&self, flights: &Flights, spare: &mut VecDeque<Waiter>) -> VecDeque<Waiter> {
        let enough = match flights.first() {
            None => 0,
            Some(first) if flights.has_room() && self.may_follow(first) => first.enough_behind(),
            Some(_) => return VecDeque::new(),
        };
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        queue.call_at = None;
        if queue.waiters.len() < enough {
            return VecDeque::new();
        }
        let mut batch = std::mem::replace(&mut queue.waiters, std::mem::take(spare));
        batch.retain(|waiter| !waiter.reply.is_closed());
        batch
    }

    /// Asks to be called once so many wait; false where they do already.
    fn ask_for_callers(&self, enough: usize) -> bool {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        queue.call_at = (queue.waiters.len() < enough).then_some(enough);
        queue.call_at.is_some()
    }

    /// Whether a call may leave behind `first`: to the same instance, over the
    /// same connection, so that it is carried out after it.
    fn may_follow(&self, first: &Flight) -> bool {
        matches!(self.way(), Ok(Way::Take(instance)) if Arc::ptr_eq(&instance, &first.instance))
    }

    /// How ids of the type are to be had now.
    fn way(&self) -> Result<Way, Error> {
        let record = self.entry.record();
        let Some(instance) = self.parts.instances.get(record.instance) else {
            return Err(unavailable(format!(
                "Redis instance {} of id type {} is not known to this node",
                record.instance, self.entry.name
            )));
        };
        if record.state == State::Retired {
            return Ok(Way::None);
        }
        let goes_on_alone = record.options.on_redis_loss == OnRedisLoss::Segment;
        if goes_on_alone && instance.is_lost() {
            return Ok(Way::Alone(instance));
        }
        Ok(Way::Take(instance))
    }

    /// Sends the batch on its way (`None`), or serves it at once as far as that is
    /// possible.
    async fn depart(
        &self,
        batch: &mut VecDeque<Waiter>,
        flights: &mut Flights,
    ) -> Option<Result<Then, Error>> {
        let wanted = batch.iter().map(|w| w.missing).sum::<u64>().min(MAX_TAKE);
        let instance = match self.way() {
            Err(error) => return Some(Err(error)),
            Ok(Way::None) => return Some(Ok(Then::Wait(POLL))),
            Ok(Way::Alone(instance)) => {
                self.note_use();
                // Boxed, as what is rare below: it would make every driver larger.
                let alone = Box::pin(self.serve_alone(batch, wanted, &instance, flights));
                return Some(alone.await);
            }
            Ok(Way::Take(instance)) => instance,
        };
        self.note_use();
        self.parts.metrics.takes.inc();
        let batch = std::mem::take(batch);
        flights.push(Flight::new(batch, self.entry.clone(), instance, wanted));
        None
    }

    fn note_use(&self) {
        self.entry.supply.touch();
        self.parts.active.join(&self.entry);
    }

    /// The first call, once it is back. `None` when there is something else to do
    /// first: all its callers are gone or, if nobody is left of an earlier one, enough
    /// wait for the next one. Meanwhile answers those whose time is up, wherever they
    /// wait. A call is never cut at the deadline of one caller: those behind it still
    /// want the answer.
    async fn landing(
        &self,
        left: &mut VecDeque<Waiter>,
        flights: &mut Flights,
    ) -> Option<(Flight, Outcome)> {
        loop {
            let first = flights.first()?;
            if first.batch.is_empty() {
                flights.drop_first();
                return None;
            }
            let may_leave = left.is_empty() && flights.has_room() && self.may_follow(first);
            if may_leave && !self.ask_for_callers(first.enough_behind()) {
                return None;
            }
            let batches = flights.iter().map(|flight| &flight.batch);
            let deadline = batches.chain([&*left]).filter_map(earliest_deadline).min()?;
            let is_near = deadline < Instant::now() + GLANCE;
            tokio::select! {
                biased;
                landed = poll_fn(|context| flights.poll_first(context)) => return Some(landed),
                () = self.entry.sequence.callers.notified(), if may_leave => return None,
                () = Glance::heard(&self.parts) => self.expire_all(left, flights),
                () = sleep_until(deadline), if is_near => self.expire_all(left, flights),
            }
        }
    }

    /// Answers those whose time is up while the dispatcher is asked.
    fn expire_all(&self, batch: &mut VecDeque<Waiter>, flights: &mut Flights) {
        // A refill that failed is the likelier reason.
        let slow = unavailable("the Redis instance did not answer in time");
        let reason = self.entry.supply.error().unwrap_or(slow);
        self.expire(batch, Some(&reason));
        for flight in flights.iter_mut() {
            self.expire(&mut flight.batch, Some(&reason));
        }
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        self.expire(&mut queue.waiters, Some(&reason));
    }

    /// Those who still wait go back to the head of the queue, where they count
    /// as demand, and as load.
    fn put_back(&self, batch: &mut VecDeque<Waiter>) {
        let mut queue = self.entry.sequence.queue.lock().expect("never poisoned");
        batch.append(&mut queue.waiters);
        std::mem::swap(batch, &mut queue.waiters);
    }

    /// Hands out what a call brought; who did not get all its ids is left in `batch`.
    async fn land(
        &self,
        outcome: Outcome,
        instance: &Arc<Instance>,
        batch: &mut VecDeque<Waiter>,
        others: &mut Flights,
    ) -> Result<Then, Error> {
        let record = self.entry.record();
        let outcome = match outcome {
            Err(DispatchError::Unavailable(_))
                if record.options.on_redis_loss == OnRedisLoss::Segment =>
            {
                follow_loss(&self.parts, instance);
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
                let settling =
                    Box::pin(self.parts.settle(&self.entry.name, instance.record.id, seal));
                let Some(settled) = self.while_somebody_waits(batch, others, settling).await else {
                    return Ok(Then::Again);
                };
                settled?;
                let is_elsewhere = self.entry.record().instance != instance.record.id;
                return Ok(if is_elsewhere { Then::Again } else { Then::Wait(RETRY) });
            }
        };
        let question = self.may_use(&taken, &*instance.dispatcher);
        match self.while_somebody_waits(batch, others, question).await {
            None => return Ok(Then::Again),
            Some(false) => {
                return Err(unavailable("the Redis instance was replaced by another server"));
            }
            Some(true) => {}
        }
        let question = self.drop_outdated(&mut taken);
        let Some(current) = self.while_somebody_waits(batch, others, question).await else {
            return Ok(Then::Again);
        };
        let current = current?;
        let question = self.knows(&taken.ranges);
        let Some(known) = self.while_somebody_waits(batch, others, question).await else {
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
    /// it: who came later may have less time. `None` when nobody of the batch is left.
    async fn while_somebody_waits<T>(
        &self,
        batch: &mut VecDeque<Waiter>,
        others: &mut Flights,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let deadline = earliest_deadline(batch)?;
            tokio::select! {
                biased;
                done = work.as_mut() => return Some(done),
                () = sleep_until(deadline.min(Instant::now() + GLANCE)) => {
                    self.expire_all(batch, others);
                }
            }
        }
    }

    /// Redis is away: the node's own leases serve the batch.
    async fn serve_alone(
        &self,
        batch: &mut VecDeque<Waiter>,
        wanted: u64,
        instance: &Instance,
        others: &mut Flights,
    ) -> Result<Then, Error> {
        let Some(deadline) = earliest_deadline(batch) else { return Ok(Then::Again) };
        let leases = self.entry.leases();
        // What is left from an earlier loss lies below what Redis gave since.
        let burnt = leases.burn_to(self.entry.supply.returned());
        self.parts.metrics.burnt_ids.inc_by(burnt);
        let some = segment::acquire_some(&self.parts, &self.entry, leases, wanted, deadline);
        let Some(range) = self.while_somebody_waits(batch, others, some).await else {
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
