//! A cluster in memory: one store, one dispatcher behind a network, any number
//! of nodes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idgen::adapters::memory::{MemoryDispatcher, MemoryRangeStore};
use idgen::adapters::system::{SystemClock, SystemEntropy};
use idgen::domain::{
    Error, ErrorCode, History, IdRange, InstanceRecord, InstanceSpec, Seal, TypeName, TypeSpec,
};
use idgen::ports::{
    Announcement, DispatchError, Dispatcher, DispatcherFactory, LockOutcome, Publication,
    PublishOutcome, RangeStore, Remembered, Sealed, TakeOutcome, View, Witness, WitnessedEnd,
};
use idgen::service::{Ports, Service, ServiceConfig, ServiceMetrics};
use tokio::sync::broadcast;

pub const DEADLINE: Duration = Duration::from_millis(1_500);

/// The dispatchers of the cluster, by the number of their instance, from 1.
struct Networks(Vec<Arc<Distant>>);

impl DispatcherFactory for Networks {
    fn connect(&self, instance: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        let found = self.0.get(instance.id.0 as usize - 1).cloned();
        Ok(found.ok_or_else(|| Error::invalid("url", "there is no such dispatcher"))?)
    }
}

/// A dispatcher behind a network: takes and publications need their time, and
/// fail after a second, as those of a real adapter.
pub struct Distant {
    inner: Arc<MemoryDispatcher>,
    latency: Mutex<Duration>,
}

impl Distant {
    pub fn set_latency(&self, latency: Duration) {
        *self.latency.lock().unwrap() = latency;
    }

    async fn travel(&self) -> Result<(), DispatchError> {
        let (latency, limit) = (*self.latency.lock().unwrap(), Duration::from_secs(1));
        if latency.is_zero() {
            return Ok(());
        }
        tokio::time::sleep(latency.min(limit)).await;
        match latency < limit {
            true => Ok(()),
            false => Err(DispatchError::Unavailable("no answer within 1000 ms".to_owned())),
        }
    }
}

#[async_trait::async_trait]
impl Dispatcher for Distant {
    async fn take(&self, name: &TypeName, count: u64) -> Result<TakeOutcome, DispatchError> {
        self.travel().await?;
        self.inner.take(name, count).await
    }

    async fn view(&self, name: &TypeName) -> Result<View, DispatchError> {
        self.travel().await?;
        self.inner.view(name).await
    }

    async fn publish(
        &self,
        name: &TypeName,
        publication: Publication<'_>,
    ) -> Result<PublishOutcome, DispatchError> {
        self.travel().await?;
        self.inner.publish(name, publication).await
    }

    async fn lock(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
        take_over_after: Option<Duration>,
    ) -> Result<LockOutcome, DispatchError> {
        self.travel().await?;
        self.inner.lock(name, token, ttl, take_over_after).await
    }

    async fn renew(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
    ) -> Result<bool, DispatchError> {
        self.inner.renew(name, token, ttl).await
    }

    async fn unlock(&self, name: &TypeName, token: &str) -> Result<bool, DispatchError> {
        self.inner.unlock(name, token).await
    }

    async fn witness(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        range: IdRange,
    ) -> Result<Witness, DispatchError> {
        self.travel().await?;
        self.inner.witness(name, shard, range).await
    }

    async fn witnessed_end(
        &self,
        name: &TypeName,
        shard: Option<u8>,
    ) -> Result<WitnessedEnd, DispatchError> {
        self.travel().await?;
        self.inner.witnessed_end(name, shard).await
    }

    async fn withdraw(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, DispatchError> {
        self.travel().await?;
        self.inner.withdraw(name, shard, tail).await
    }

    async fn remember(
        &self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError> {
        self.travel().await?;
        self.inner.remember(name, key, text, ttl).await
    }

    async fn recall(&self, name: &TypeName, key: &str) -> Result<Option<String>, DispatchError> {
        self.travel().await?;
        self.inner.recall(name, key).await
    }

    async fn seal(&self, name: &TypeName, seal: Seal) -> Result<Sealed, DispatchError> {
        self.travel().await?;
        self.inner.seal(name, seal).await
    }

    async fn unseal(&self, name: &TypeName, generation: i64) -> Result<bool, DispatchError> {
        self.travel().await?;
        self.inner.unseal(name, generation).await
    }

    async fn adopt(&self, name: &TypeName, ends: &[(u8, i64)]) -> Result<History, DispatchError> {
        self.travel().await?;
        self.inner.adopt(name, ends).await
    }

    async fn announce(&self, announcement: &Announcement) -> Result<(), DispatchError> {
        self.inner.announce(announcement).await
    }

    fn subscribe(&self) -> broadcast::Receiver<Announcement> {
        self.inner.subscribe()
    }

    async fn reset(&self) {}

    async fn history(&self) -> Result<History, DispatchError> {
        self.travel().await?;
        self.inner.history().await
    }
}

/// A cluster in one process: nodes that share a store, and a dispatcher that new
/// types are assigned to. A second one can be [added](Cluster::add_second).
pub struct Cluster {
    pub store: Arc<MemoryRangeStore>,
    pub dispatcher: Arc<MemoryDispatcher>,
    pub network: Arc<Distant>,
    pub second: Arc<MemoryDispatcher>,
    pub second_network: Arc<Distant>,
}

impl Cluster {
    pub async fn new() -> Self {
        let dispatcher = Arc::new(MemoryDispatcher::new(&SystemEntropy));
        let second = Arc::new(MemoryDispatcher::new(&SystemEntropy));
        let behind = |inner: &Arc<MemoryDispatcher>| {
            Arc::new(Distant { inner: inner.clone(), latency: Mutex::default() })
        };
        let cluster = Cluster {
            store: Arc::new(MemoryRangeStore::new()),
            network: behind(&dispatcher),
            dispatcher,
            second_network: behind(&second),
            second,
        };
        let spec = InstanceSpec { name: "main".into(), url: "memory://".into() };
        cluster.store.add_instance(&spec, "test").await.unwrap();
        cluster
    }

    /// Registers the second dispatcher, as `other`.
    pub async fn add_second(&self) {
        let spec = InstanceSpec { name: "other".into(), url: "memory://".into() };
        self.store.add_instance(&spec, "test").await.unwrap();
    }

    pub async fn node(&self, id: &str) -> Arc<Service> {
        self.node_with(id, 1_000).await
    }

    pub async fn node_with(&self, id: &str, max_waiting: usize) -> Arc<Service> {
        self.node_set(id, |config| config.max_waiting = max_waiting).await
    }

    /// A node whose settings `change` alters.
    pub async fn node_set(
        &self,
        id: &str,
        change: impl FnOnce(&mut ServiceConfig),
    ) -> Arc<Service> {
        let mut config = ServiceConfig {
            node: id.to_owned(),
            deadline: DEADLINE,
            max_waiting: 1_000,
            refill_jobs: 4,
            takeover_grace: Duration::from_millis(250),
            store_kind: "memory",
            idle_after: Duration::from_secs(900),
            worker_lease: Duration::from_secs(900),
            site: None,
        };
        change(&mut config);
        let ports = Ports {
            store: self.store.clone(),
            workers: self.store.clone(),
            factory: Arc::new(Networks(vec![self.network.clone(), self.second_network.clone()])),
            entropy: Arc::new(SystemEntropy),
            clock: Arc::new(SystemClock),
            import_source: Arc::new(idgen::adapters::mysql::MysqlImportSource),
        };
        let metrics = ServiceMetrics::register(&prometheus::Registry::new()).unwrap();
        Arc::new(Service::start(config, ports, metrics).await.unwrap())
    }

    pub async fn create(&self, spec: &TypeSpec) {
        self.store.create_type(spec, "test").await.unwrap();
    }

    pub async fn view(&self) -> View {
        self.dispatcher.view(&order()).await.unwrap()
    }
}

pub fn order() -> TypeName {
    TypeName::parse("order").unwrap()
}

pub fn small(min: i64, max: i64) -> TypeSpec {
    TypeSpec { min_range: min, max_range: max, ..TypeSpec::new(order()) }
}

pub fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.unwrap_err().code
}
