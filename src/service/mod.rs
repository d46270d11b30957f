//! The use cases, over ports alone.
//!
//! A call for ids goes: [`issue`] (check the arguments) → [`catalogue`] (which
//! type is that?) → by its mode
//!
//! - strict: [`sequence`] (wait together with everyone else who wants ids of it)
//!   → a dispatcher. When the published range runs low, [`refill`] gets the next
//!   one from the range store;
//! - segment, sharded: [`segment`] (ranges that this node leased for itself);
//! - snowflake: [`snowflake`] (the clock and a leased worker id)
//!
//! → [`issue`] again (positions become ids or texts). [`watch`] keeps the node's
//! view of the world fresh; [`idle`] forgets the types that nobody uses; [`live`] shows all of
//! it to people.

pub mod access;
mod active;
pub mod admin;
pub mod api;
#[doc(hidden)]
pub mod bench;
mod catalogue;
mod control;
mod decode;
mod exhaustion;
mod glance;
mod granted;
mod idle;
pub mod import;
mod instances;
mod issue;
pub mod live;
mod metrics;
mod migration;
mod refill;
mod request_key;
mod reserve;
mod segment;
mod sequence;
mod snowflake;
mod store_clock;
mod supply;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::{Error, ErrorCode, IdRange, TypeRecord, TypeSpec};
use crate::ports::{Clock, DispatcherFactory, Entropy, ImportSource, RangeStore, WorkerIds};
use active::Active;
use api::{Decoded, IdApi, NodeStatus, Order, RangeLease, TypeStatus};
use catalogue::Catalogue;
use glance::Glance;
use instances::Instances;
use snowflake::Snowflakes;
use store_clock::StoreClock;
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
    /// Databases of other systems, to take types over from.
    pub import_source: Arc<dyn ImportSource>,
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
    import_source: Arc<dyn ImportSource>,
    /// One import reads a database at a time.
    imports: tokio::sync::Semaphore,
    instances: Instances,
    catalogue: Catalogue,
    active: Active,
    glance: Glance,
    store_clock: StoreClock,
    snowflakes: Snowflakes,
    refill_permits: tokio::sync::Semaphore,
    metrics: ServiceMetrics,
    health: Health,
    /// See [`Service::go_live`].
    live: OnceLock<live::Live>,
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
            import_source: ports.import_source,
            imports: tokio::sync::Semaphore::new(1),
            instances: Instances::new(ports.factory),
            catalogue: Catalogue::default(),
            active: Active::default(),
            glance: Glance::default(),
            store_clock: StoreClock::default(),
            snowflakes: Snowflakes::default(),
            metrics,
            health: Health::default(),
            live: OnceLock::new(),
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
    /// behind; ids that this node leased and did not use go back. Calls that
    /// still wait fail. Bounded by the time limits of the store and the
    /// dispatchers.
    pub async fn close(&self) {
        self.drain();
        self.parts.stop.cancel();
        self.parts.tasks.close();
        self.parts.tasks.wait().await;
        idle::give_everything_back(&self.parts).await;
    }
}

impl IdApi for Service {
    async fn next_id(&self, name: &str) -> Result<i64, Error> {
        self.parts.next_id(name).await
    }

    async fn next_ids(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        self.parts.next_ids(name, order).await
    }

    async fn next_string_ids(
        &self,
        name: &str,
        order: Order<'_>,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        self.parts.next_texts(name, order, with_prefix).await
    }

    async fn lease_range(&self, name: &str, count: i64, ttl_ms: i64) -> Result<RangeLease, Error> {
        self.parts.lease_range(name, count, ttl_ms).await
    }

    async fn decode(&self, name: &str, id: &str) -> Result<Decoded, Error> {
        self.parts.decode(name, id).await
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
