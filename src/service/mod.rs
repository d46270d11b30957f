//! The use cases, over ports alone.
//!
//! A call for ids goes: [`catalogue`] (which type is that?) → [`sequence`]
//! (wait together with everyone else who wants ids of it) → a dispatcher. When
//! the published range runs low, [`refill`] gets the next one from the range
//! store. [`watch`] keeps the node's view of the world fresh.

pub mod admin;
pub mod api;
mod catalogue;
mod control;
mod instances;
mod metrics;
mod refill;
mod sequence;
mod snowflake;
mod supply;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::{Error, ErrorCode, IdRange, Mode, TypeRecord, TypeSpec};
use crate::ports::{Clock, DispatcherFactory, Entropy, RangeStore, WorkerIds};
use api::{Decoded, IdApi, MAX_COUNT, NodeStatus, Order, RangeLease, TypeStatus};
use catalogue::Catalogue;
use instances::Instances;
use snowflake::Snowflakes;
use watch::Health;

pub use metrics::ServiceMetrics;

/// Most ranges that one call may use up.
const MAX_RANGES_PER_CALL: i64 = 100;

/// What the service is told at its start.
#[derive(Clone, Debug)]
pub struct ServiceConfig {
    /// The id of this node, for range logs; at most 128 characters.
    pub node: String,
    /// Longest time for one call.
    pub deadline: Duration,
    /// How many calls may wait per type before more are refused as overload.
    pub max_waiting: usize,
    /// How many refills may run at once on this node.
    pub refill_jobs: usize,
    /// How long the holder of a refill lock may be silent, while nobody can
    /// get an id, before another node takes over.
    pub takeover_grace: Duration,
    /// A type that nobody asked for so long leaves the node's memory, and its
    /// unused ids go back to the store.
    pub idle_after: Duration,
    /// How long a worker id for snowflake types is leased.
    pub worker_lease: Duration,
    /// Which site this node belongs to, where types are shared between sites.
    pub site: Option<u16>,
    /// The kind of the range store, for status pages: `mysql` or `embedded`.
    pub store_kind: &'static str,
}

/// The ports that the service runs on.
pub struct Ports {
    /// What must never be lost.
    pub store: Arc<dyn RangeStore>,
    /// Makes the dispatcher of a Redis instance.
    pub factory: Arc<dyn DispatcherFactory>,
    /// Who may use which worker id; the same store, seen from another side.
    pub workers: Arc<dyn WorkerIds>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
}

/// The service of one node.
pub struct Service {
    parts: Arc<Parts>,
}

/// What all parts of the service share.
struct Parts {
    config: ServiceConfig,
    store: Arc<dyn RangeStore>,
    workers: Arc<dyn WorkerIds>,
    entropy: Arc<dyn Entropy>,
    clock: Arc<dyn Clock>,
    instances: Instances,
    catalogue: Catalogue,
    snowflakes: Snowflakes,
    refill_permits: tokio::sync::Semaphore,
    metrics: ServiceMetrics,
    health: Health,
    started: Instant,
    draining: AtomicBool,
    /// Every task of the service; all are joined by [`Service::close`].
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Service {
    /// Reads what the store holds, connects to the Redis instances (without
    /// waiting for them) and starts to watch. Fails when the store is out of
    /// reach. Needs a tokio runtime.
    pub async fn start(
        config: ServiceConfig,
        ports: Ports,
        metrics: ServiceMetrics,
    ) -> Result<Self, Error> {
        let parts = Arc::new(Parts {
            refill_permits: tokio::sync::Semaphore::new(config.refill_jobs.max(1)),
            config,
            store: ports.store,
            workers: ports.workers,
            entropy: ports.entropy,
            clock: ports.clock,
            instances: Instances::new(ports.factory),
            catalogue: Catalogue::default(),
            snowflakes: Snowflakes::default(),
            metrics,
            health: Health::default(),
            started: Instant::now(),
            draining: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        watch::start(&parts).await?;
        Ok(Service { parts })
    }

    /// From now on the node calls itself not ready, so that load balancers
    /// send nothing new.
    pub fn drain(&self) {
        self.parts.draining.store(true, Ordering::Relaxed);
    }

    /// Ends every task: refills that run are finished, so that no lock is left
    /// behind. Calls that still wait fail. Bounded by the time limits of the
    /// store and the dispatchers.
    pub async fn close(&self) {
        self.drain();
        self.parts.stop.cancel();
        self.parts.tasks.close();
        self.parts.tasks.wait().await;
    }
}

impl IdApi for Service {
    async fn next_id(&self, name: &str) -> Result<i64, Error> {
        let deadline = self.parts.deadline();
        let entry = self.parts.find(name, deadline).await?;
        if entry.record().mode == Mode::Snowflake {
            let source = snowflake::source_of(&self.parts, &entry)?;
            if let Some(id) = source.try_next(&*self.parts.clock) {
                return Ok(id);
            }
            let ranges = snowflake::acquire(&self.parts, &source, 1, deadline).await?;
            return Ok(ranges[0].start());
        }
        let granted = sequence::acquire(&self.parts, &entry, 1, deadline).await?;
        Ok(granted.first.start())
    }

    async fn next_ids(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        let count = order.count;
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(Error::invalid(
                "count",
                format!("count {count} is out of range: it must be from 1 to {MAX_COUNT}"),
            ));
        }
        let deadline = self.parts.deadline();
        let entry = self.parts.find(name, deadline).await?;
        if entry.record().mode == Mode::Snowflake {
            let source = snowflake::source_of(&self.parts, &entry)?;
            return snowflake::acquire(&self.parts, &source, count as u64, deadline).await;
        }
        // Such a call would take more refills than fit in its time.
        let most = entry.record().max_range.saturating_mul(MAX_RANGES_PER_CALL);
        if count > most {
            return Err(Error::invalid(
                "count",
                format!(
                    "count {count} is too large for id type {name}: its ranges hold at most {} \
                     ids, and a call may take {MAX_RANGES_PER_CALL} ranges",
                    entry.record().max_range
                ),
            ));
        }
        let granted = sequence::acquire(&self.parts, &entry, count as u64, deadline).await?;
        let mut ranges = granted.rest;
        ranges.insert(0, granted.first);
        Ok(ranges)
    }

    async fn next_string_ids(
        &self,
        name: &str,
        order: Order<'_>,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        let ranges = self.next_ids(name, order).await?;
        let entry = self.parts.find(name, self.parts.deadline()).await?;
        let record = entry.record();
        let prefix = if with_prefix { record.prefix.as_str() } else { "" };
        Ok(ranges
            .iter()
            .flat_map(|r| r.start()..r.end())
            .map(|id| format!("{prefix}{id}"))
            .collect())
    }

    async fn lease_range(&self, _: &str, _: i64, _: i64) -> Result<RangeLease, Error> {
        todo!()
    }

    async fn decode(&self, _: &str, _: &str) -> Result<Decoded, Error> {
        todo!()
    }

    async fn describe(&self, name: &str) -> Result<TypeStatus, Error> {
        self.parts.describe(name).await
    }

    async fn create_type(&self, spec: TypeSpec, actor: &str) -> Result<TypeRecord, Error> {
        self.parts.create_type(spec, actor).await
    }

    async fn node_status(&self) -> NodeStatus {
        self.parts.node_status()
    }
}

/// An `UNAVAILABLE` error that says `message`.
fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Unavailable, message)
}
