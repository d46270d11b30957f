//! The worker id of a node: leased at the first use, renewed early, released.
//!
//! One keeper task for each width of worker ids makes all the calls to the
//! store, one at a time; whoever needs a tenure asks it, and waits for its next
//! try. After a try that failed it tries again by itself, so that ids are issued
//! again within a second after the store is back.
//!
//! A store that lost its latest writes may not know a tenure any more, or know
//! less of it than was promised. Such a tenure is given up at once, and this node
//! never uses a time again of which it knows itself that it was used, whatever
//! the store says then. What other nodes have, the first Redis instance knows: it
//! notes the times of each worker id before they are used, as it notes leased
//! ranges of ids.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::super::instances::Instance;
use super::super::{Parts, unavailable};
use super::tenancy::Tenancy;
use crate::domain::gate_pass::SHARDS;
use crate::domain::{Error, ErrorCode, IdRange, TypeName};
use crate::ports::{StoreError, Tenure, Witness};

/// After a try that failed the next one comes by itself after so long at most.
const RETRY: Duration = Duration::from_millis(500);
/// A call that comes sooner after a try is answered by its outcome.
const PACE: Duration = Duration::from_millis(250);
/// How often metrics are brought up to date.
const MEASURE: Duration = Duration::from_secs(1);
/// How often types that left the node's memory are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// A tenure is renewed so many times before it ends. Fewer than the 16 spans
/// that a witness keeps apart, so that what is not over can be withdrawn; enough
/// that ten of the default fifteen minutes are always left.
const RENEWALS: u32 = 8;
const SHORTEST_RENEWAL: Duration = Duration::from_secs(1);
/// Worker ids that are tried in a row, where the store has forgotten who has them.
const LEASE_TRIES: usize = 4;
/// Times are noted apart from the ranges of an id type that happens to be called
/// like a worker id: under a shard that no type has.
const NOT_A_SHARD: Option<u8> = Some(SHARDS);

/// The worker ids of one width.
pub(super) struct Pool {
    bits: u8,
    held: ArcSwapOption<Tenancy>,
    /// A call needs a tenure, or a longer one.
    wanted: Notify,
    /// The pace does not count for the next try.
    hurried: AtomicBool,
    tries: watch::Sender<u64>,
    latest: RwLock<Option<Try>>,
}

/// What the latest try found.
#[derive(Clone)]
struct Try {
    at: Instant,
    result: Result<Clocks, Error>,
}

/// Both clocks at about the same moment, in milliseconds of the Unix epoch.
#[derive(Clone, Copy)]
struct Clocks {
    store_ms: i64,
    node_ms: i64,
}

impl Pool {
    pub(super) fn new(bits: u8) -> Self {
        Pool {
            bits,
            held: ArcSwapOption::empty(),
            wanted: Notify::new(),
            hurried: AtomicBool::new(false),
            tries: watch::Sender::new(0),
            latest: RwLock::default(),
        }
    }

    /// The tenure at hand, which may be over.
    pub(super) fn held(&self) -> Option<Arc<Tenancy>> {
        self.held.load_full()
    }

    #[cfg(test)]
    pub(super) fn hold(&self, tenancy: Arc<Tenancy>) {
        self.held.store(Some(tenancy));
    }

    /// How many tries there were.
    pub(super) fn tried(&self) -> u64 {
        *self.tries.borrow()
    }

    /// Whatever is held is renewed at once.
    pub(super) fn hurry(&self) {
        if self.held.load().is_some() {
            self.hurried.store(true, Ordering::Relaxed);
            self.wanted.notify_one();
        }
    }

    fn latest(&self) -> Option<Try> {
        self.latest.read().expect("never poisoned").clone()
    }

    /// Waits for a try after the `tried` ones that the caller knows of. Fails
    /// with the reason if the latest one is so young that another makes no sense,
    /// and at the deadline. `now_ms` is the time for which there is no tenure.
    pub(super) async fn get_tenure(
        &self,
        parts: &Parts,
        tried: u64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<(), Error> {
        let mut tries = self.tries.subscribe();
        if *tries.borrow_and_update() != tried {
            return Ok(());
        }
        if parts.stop.is_cancelled() {
            return Err(unavailable("the node is shutting down"));
        }
        if let Some(latest) = self.latest().filter(|t| t.at.elapsed() < PACE) {
            return Err(self.verdict(parts, &latest, now_ms));
        }
        self.wanted.notify_one();
        tokio::select! {
            biased;
            _ = tries.changed() => Ok(()),
            () = parts.stop.cancelled() => Err(unavailable("the node is shutting down")),
            () = sleep_until(deadline) => Err(match self.latest() {
                Some(latest) if latest.result.is_err() => self.verdict(parts, &latest, now_ms),
                _ => Error::new(
                    ErrorCode::Deadline,
                    "the range store did not answer about a worker id within the deadline",
                ),
            }),
        }
    }

    /// Why there is no tenure for `now_ms`, if the latest try says so.
    pub(super) fn trouble(&self, parts: &Parts, now_ms: i64) -> Option<Error> {
        let latest = self.latest().filter(|t| t.result.is_err())?;
        let lasts = self.held.load().as_ref().is_some_and(|t| t.until_ms() > now_ms);
        (!lasts).then(|| self.verdict(parts, &latest, now_ms))
    }

    /// Why there is no tenure for `now_ms` after `latest`.
    fn verdict(&self, parts: &Parts, latest: &Try, now_ms: i64) -> Error {
        let held = self.held().filter(|t| !t.is_over());
        match (&latest.result, held) {
            (Ok(clocks), Some(held)) => unavailable(format!(
                "the clock of node {} is ahead: it is at {now_ms}, and that of the range store at \
                 {}, which is {} ms less; worker id {} is leased up to {} only",
                parts.config.node,
                clocks.store_ms,
                now_ms - clocks.store_ms,
                held.worker(),
                held.until_ms()
            )),
            (Ok(_), None) => unavailable("there is no worker id for snowflake ids"),
            (Err(error), Some(held)) => Error::new(
                error.code,
                format!(
                    "the lease of worker id {} ended at {}, it is {now_ms} now, and it could not \
                     be renewed: {}",
                    held.worker(),
                    held.until_ms(),
                    error.message
                ),
            ),
            (Err(error), None) => {
                Error::new(error.code, format!("no worker id could be leased: {}", error.message))
            }
        }
    }
}

/// Runs until the node stops.
pub(super) async fn keep(parts: Arc<Parts>, pool: Arc<Pool>) {
    let token = parts.entropy.token();
    let now = Instant::now();
    let keeper = Keeper {
        parts,
        pool,
        token,
        used: BTreeMap::new(),
        due: None,
        sweep_at: now + SWEEP,
        failing: false,
    };
    keeper.run().await;
}

struct Keeper {
    parts: Arc<Parts>,
    pool: Arc<Pool>,
    /// For the next lease, or of the one that is held.
    token: String,
    /// For each worker id that this process had: the end of the times that it
    /// used, in milliseconds of the Unix epoch.
    used: BTreeMap<i64, i64>,
    /// When to try again without being asked.
    due: Option<Instant>,
    sweep_at: Instant,
    failing: bool,
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let now = Instant::now();
            // Without a tenure nothing changes that could be measured or swept.
            let tick = self.pool.held.load().is_some().then_some(now + MEASURE);
            let wake = [self.due, tick].into_iter().flatten().min();
            let timer = async {
                match wake {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.parts.stop.cancelled() => break,
                () = self.pool.wanted.notified() => {
                    let hurried = self.pool.hurried.swap(false, Ordering::Relaxed);
                    let young = self.pool.latest().is_some_and(|t| t.at.elapsed() < PACE);
                    if hurried || !young {
                        self.try_now().await;
                    }
                }
                () = timer => {
                    if self.due.is_some_and(|due| due <= Instant::now()) {
                        self.try_now().await;
                    }
                }
            }
            self.measure();
            if self.sweep_at <= Instant::now() {
                self.sweep_at = Instant::now() + SWEEP;
                self.parts.snowflakes.sweep();
            }
        }
        self.release().await;
    }

    /// Renews what is held, else leases, and tells those who wait.
    async fn try_now(&mut self) {
        let before_ms = self.parts.clock.now_ms();
        let result = self.renew_or_lease().await;
        let after_ms = self.parts.clock.now_ms();
        let result = result
            .map(|store_ms| Clocks { store_ms, node_ms: before_ms + (after_ms - before_ms) / 2 });
        let ttl = self.parts.config.worker_lease;
        let pause = match &result {
            Ok(_) => (ttl / RENEWALS).max(SHORTEST_RENEWAL).min(ttl / 3),
            Err(_) => RETRY,
        };
        match &result {
            Err(error) if !self.failing => {
                tracing::warn!(bits = self.pool.bits, %error, "no lease of a worker id");
            }
            Ok(_) if self.failing => {
                tracing::info!(bits = self.pool.bits, "worker id leased again")
            }
            _ => {}
        }
        self.failing = result.is_err();
        // Between 3/4 and all of it, so that nodes that started together do not
        // call together.
        let jitter = 0.75 + f64::from(self.parts.entropy.random_u128() as u16) / 262_144.0;
        let at = Instant::now();
        self.due = Some(at + pause.mul_f64(jitter));
        *self.pool.latest.write().expect("never poisoned") =
            Some(Try { at, result: result.map_err(Error::from) });
        self.pool.tries.send_modify(|tries| *tries += 1);
    }

    /// The store's clock, when it has a tenure for this node.
    async fn renew_or_lease(&mut self) -> Result<i64, StoreError> {
        let ttl_ms = self.parts.config.worker_lease.as_millis() as i64;
        let bits = self.pool.bits;
        if let Some(held) = self.pool.held() {
            let renewal =
                self.parts.workers.renew_worker(bits, held.worker(), held.token(), ttl_ms).await;
            match renewal {
                Ok(tenure) if held.is_kept_by(&tenure) => {
                    let (from_ms, until_ms) = (held.until_ms(), tenure.until_ms);
                    if self.overlaps(held.worker(), from_ms, until_ms).await.is_none() {
                        held.extend(until_ms);
                        return Ok(tenure.now_ms);
                    }
                    tracing::error!(
                        bits,
                        worker = held.worker(),
                        "another node had times of this node's worker id: leasing another"
                    );
                }
                Ok(_) => {
                    tracing::error!(
                        bits,
                        worker = held.worker(),
                        "the range store lost a renewal of this node's worker id: leasing another"
                    );
                }
                Err(StoreError::Refused(error)) if error.code == ErrorCode::Conflict => {
                    tracing::error!(bits, worker = held.worker(), %error, "leasing another worker id");
                }
                Err(error) => return Err(error),
            }
            let until_ms = held.until_ms();
            let used_ms = self.give_up(&held);
            self.forget_unused(held.worker(), used_ms, until_ms).await;
            self.token = self.parts.entropy.token();
        }
        let holder = &self.parts.config.node;
        for _ in 0..LEASE_TRIES {
            let leased = self.parts.workers.lease_worker(bits, holder, &self.token, ttl_ms).await;
            let tenure = leased?;
            let known_ms = self.used.get(&tenure.worker).copied().unwrap_or(0);
            let mut first_ms = tenure.from_ms.max(known_ms);
            let witness = self.overlaps(tenure.worker, first_ms, tenure.until_ms).await;
            // Times that are over may be used from their end on.
            let later = witness.filter(|end_ms| *end_ms <= tenure.now_ms);
            let still_held = match later {
                None => witness.is_some(),
                Some(end_ms) => {
                    first_ms = end_ms;
                    self.overlaps(tenure.worker, first_ms, tenure.until_ms).await.is_some()
                }
            };
            if !still_held {
                self.take_up(&tenure, first_ms);
                return Ok(tenure.now_ms);
            }
            tracing::error!(
                bits,
                worker = tenure.worker,
                "the range store forgot who has a worker id: leasing another"
            );
            self.token = self.parts.entropy.token();
        }
        Err(StoreError::Unavailable(
            "the range store leased worker ids that other nodes have: it went back in time".into(),
        ))
    }

    /// Lets Redis note times of a worker id that this node is about to use. When
    /// it knows that some of them are another's, because the store forgot: the
    /// end of all times that it knows of. Without Redis the store's word counts:
    /// losing both is more than one failure.
    async fn overlaps(&self, worker: i64, from_ms: i64, until_ms: i64) -> Option<i64> {
        let (name, instance) = self.witness_of(worker)?;
        let range = IdRange::new(from_ms.max(1), until_ms).ok()?;
        match instance.dispatcher.witness(&name, NOT_A_SHARD, range).await {
            Ok(Witness::Overlaps { highest_end }) => Some(highest_end),
            // Worker ids are never sealed: they do not move with a type.
            Ok(Witness::Noted | Witness::Moved(_)) => None,
            Err(error) => {
                self.parts.metrics.unwitnessed.inc();
                tracing::debug!(worker, %error, "a worker lease without a witness");
                None
            }
        }
    }

    /// What this node will not use any more, the next holder may use. Of times
    /// that are over the witness need not forget anything.
    async fn forget_unused(&self, worker: i64, used_ms: i64, until_ms: i64) {
        let from_ms = used_ms.max(self.parts.clock.now_ms());
        if let Some((name, instance)) = self.witness_of(worker)
            && let Ok(unused) = IdRange::new(from_ms, until_ms)
        {
            let _ = instance.dispatcher.withdraw(&name, NOT_A_SHARD, unused).await;
        }
    }

    /// The name under which the times of a worker id are noted, and the Redis
    /// instance that notes them: the first, which is the same for all nodes.
    fn witness_of(&self, worker: i64) -> Option<(TypeName, Arc<Instance>)> {
        let instance = self.parts.instances.all().into_iter().min_by_key(|i| i.record.id)?;
        let name = TypeName::parse(&format!("idgen:worker:{}:{worker}", self.pool.bits)).ok()?;
        (!instance.is_lost()).then_some((name, instance))
    }

    fn take_up(&self, tenure: &Tenure, known_ms: i64) {
        if known_ms > tenure.from_ms {
            tracing::error!(
                bits = tenure.bits,
                worker = tenure.worker,
                from_ms = tenure.from_ms,
                known_ms,
                "the range store forgot what this node used of a worker id: not used again"
            );
        }
        tracing::info!(
            bits = tenure.bits,
            worker = tenure.worker,
            from_ms = tenure.from_ms,
            until_ms = tenure.until_ms,
            "leased a worker id"
        );
        self.pool.held.store(Some(Arc::new(Tenancy::new(tenure, known_ms))));
    }

    /// Stops every call under the tenure; the end of the times that were used of
    /// its worker id, in milliseconds of the Unix epoch.
    fn give_up(&mut self, held: &Arc<Tenancy>) -> i64 {
        // No generator is made for it from here on, so all are found below.
        held.end();
        let mut used_ms = held.floor_ms();
        for source in self.parts.snowflakes.sources_of(self.pool.bits) {
            used_ms = used_ms.max(source.stop(held).unwrap_or(0));
        }
        // A sweep may have folded one in meanwhile.
        used_ms = used_ms.max(held.floor_ms());
        let known = self.used.entry(held.worker()).or_insert(used_ms);
        *known = used_ms.max(*known);
        self.pool.held.store(None);
        *known
    }

    async fn release(&mut self) {
        let Some(held) = self.pool.held() else { return };
        let until_ms = held.until_ms();
        let used_ms = self.give_up(&held);
        let bits = self.pool.bits;
        self.forget_unused(held.worker(), used_ms, until_ms).await;
        let released =
            self.parts.workers.release_worker(bits, held.worker(), held.token(), used_ms).await;
        if let Err(error) = released {
            tracing::warn!(bits, worker = held.worker(), %error, "a worker id was not released");
        }
        let lease = &self.parts.metrics.worker_lease;
        let _ = lease.remove_label_values(&[&bits.to_string()]);
    }

    fn measure(&self) {
        let lease =
            self.parts.metrics.worker_lease.with_label_values(&[&self.pool.bits.to_string()]);
        // By the store's clock, which the lease ends by for everybody else.
        let Some(Try { at, result: Ok(clocks) }) = self.pool.latest() else {
            let left = self.pool.held().map_or(0, |t| t.until_ms() - self.parts.clock.now_ms());
            lease.set((left.max(0) as f64) / 1_000.0);
            return;
        };
        let store_ms = clocks.store_ms + at.elapsed().as_millis() as i64;
        let left = self.pool.held().map_or(0, |t| t.until_ms() - store_ms);
        lease.set((left.max(0) as f64) / 1_000.0);
        let offset_ms = (clocks.node_ms - clocks.store_ms) as f64;
        self.parts.metrics.clock_offset.set(offset_ms / 1_000.0);
    }
}
