//! Snowflake types over memory adapters, on tokio's clock, with clocks on the
//! wall that the tests move: time passes at once where everybody waits.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idgen::adapters::memory::{MemoryDispatcher, MemoryRangeStore, MemoryWorkerIds, StoreFault};
use idgen::adapters::system::SystemEntropy;
use idgen::domain::snowflake::{Layout, Parts, TimeUnit};
use idgen::domain::{
    Error, ErrorCode, IdRange, InstanceRecord, InstanceSpec, Mode, TypeName, TypeSpec,
};
use idgen::ports::{
    Clock, Dispatcher, DispatcherFactory, Entropy, RangeStore, StoreError, Tenure, TenureRecord,
    WorkerIds,
};
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};
use idgen::service::{Ports, Service, ServiceConfig, ServiceMetrics};
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

const DEADLINE: Duration = Duration::from_millis(1_500);
const LEASE: Duration = Duration::from_secs(900);
/// 2026-01-01; where every clock of a test begins.
const BEGIN_MS: i64 = 1_767_225_600_000;
const HOUR_MS: i64 = 3_600_000;

/// A clock on the wall: goes with tokio's, and can be set.
struct WallClock {
    began: Instant,
    ahead_ms: AtomicI64,
}

impl WallClock {
    fn new() -> Arc<Self> {
        Arc::new(WallClock { began: Instant::now(), ahead_ms: AtomicI64::new(0) })
    }

    /// Another clock that shows the same now.
    fn another(&self) -> Arc<Self> {
        let ahead_ms = AtomicI64::new(self.ahead_ms.load(Ordering::SeqCst));
        Arc::new(WallClock { began: self.began, ahead_ms })
    }

    fn step(&self, by_ms: i64) {
        self.ahead_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for WallClock {
    fn now_ms(&self) -> i64 {
        let passed = self.began.elapsed().as_millis() as i64;
        BEGIN_MS + passed + self.ahead_ms.load(Ordering::SeqCst)
    }
}

/// Randomness that is the same in every run: splitmix64.
struct Seeded(AtomicU64);

impl Entropy for Seeded {
    fn random_u128(&self) -> u128 {
        let next = || {
            let z = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst);
            let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        (u128::from(next()) << 64) | u128::from(next())
    }
}

struct OneDispatcher(Arc<MemoryDispatcher>);

impl DispatcherFactory for OneDispatcher {
    fn connect(&self, _: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        Ok(self.0.clone())
    }
}

/// The store as one node sees it: the way there can be cut, and calls count.
struct Way {
    store: Arc<MemoryWorkerIds>,
    cut: AtomicBool,
    leases: AtomicU64,
    renewals: AtomicU64,
}

impl Way {
    fn pass(&self, calls: &AtomicU64) -> Result<(), StoreError> {
        calls.fetch_add(1, Ordering::SeqCst);
        match self.cut.load(Ordering::SeqCst) {
            true => Err(StoreError::Unavailable("cut off for a test".to_owned())),
            false => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl WorkerIds for Way {
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        self.pass(&self.leases)?;
        sleep(Duration::from_millis(2)).await;
        self.store.lease_worker(bits, holder, token, ttl_ms).await
    }

    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        self.pass(&self.renewals)?;
        sleep(Duration::from_millis(2)).await;
        self.store.renew_worker(bits, worker, token, ttl_ms).await
    }

    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        self.pass(&AtomicU64::new(0))?;
        self.store.release_worker(bits, worker, token, used_until_ms).await
    }

    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError> {
        self.store.tenure_at(bits, worker, time_ms).await
    }
}

/// Nodes that share a store, each with a clock of its own.
struct Cluster {
    types: Arc<MemoryRangeStore>,
    clock: Arc<WallClock>,
    workers: Arc<MemoryWorkerIds>,
    dispatcher: Arc<MemoryDispatcher>,
    entropy: Arc<Seeded>,
    lease: Duration,
}

struct Node {
    service: Arc<Service>,
    clock: Arc<WallClock>,
    way: Arc<Way>,
    metrics: ServiceMetrics,
}

impl Cluster {
    async fn new() -> Self {
        let clock = WallClock::new();
        let cluster = Cluster {
            types: Arc::new(MemoryRangeStore::new()),
            workers: Arc::new(MemoryWorkerIds::new(clock.clone())),
            dispatcher: Arc::new(MemoryDispatcher::new(&SystemEntropy)),
            entropy: Arc::new(Seeded(AtomicU64::new(1))),
            clock,
            lease: LEASE,
        };
        let spec = InstanceSpec { name: "main".into(), url: "memory://".into() };
        cluster.types.add_instance(&spec, "test").await.unwrap();
        cluster
    }

    async fn node(&self, id: &str) -> Node {
        self.node_with(id, self.clock.another(), 1_000).await
    }

    async fn node_with(&self, id: &str, clock: Arc<WallClock>, max_waiting: usize) -> Node {
        let config = ServiceConfig {
            node: id.to_owned(),
            deadline: DEADLINE,
            max_waiting,
            refill_jobs: 4,
            takeover_grace: Duration::from_millis(250),
            store_kind: "memory",
            idle_after: Duration::from_secs(900),
            worker_lease: self.lease,
            site: None,
        };
        let way = Arc::new(Way {
            store: self.workers.clone(),
            cut: AtomicBool::new(false),
            leases: AtomicU64::new(0),
            renewals: AtomicU64::new(0),
        });
        let ports = Ports {
            store: self.types.clone(),
            workers: way.clone(),
            factory: Arc::new(OneDispatcher(self.dispatcher.clone())),
            entropy: self.entropy.clone(),
            clock: clock.clone(),
            import_source: Arc::new(idgen::adapters::mysql::MysqlImportSource),
        };
        let metrics = ServiceMetrics::register(&prometheus::Registry::new()).unwrap();
        let service = Service::start(config, ports, metrics.clone()).await.unwrap();
        Node { service: Arc::new(service), clock, way, metrics }
    }

    async fn create(&self, name: &str, layout: Layout) {
        self.types.create_type(&spec(name, layout), "test").await.unwrap();
    }

    /// Takes the other of two worker ids, so that there is one to go round.
    async fn only_one_worker(&self) {
        self.workers.lease_worker(1, "other", "other", 86_400_000).await.unwrap();
    }

    /// The holder of the worker id of `id` at its time; all of its unit belongs
    /// to one tenure.
    async fn holder(&self, layout: Layout, id: i64) -> Option<String> {
        let Parts { time, worker, .. } = layout.decompose(id);
        let mut found = Vec::new();
        for at_ms in [layout.unix_ms(time), layout.unix_ms(time + 1) - 1] {
            found.push(self.workers.tenure_at(layout.worker_bits, worker, at_ms).await.unwrap()?);
        }
        assert_eq!(found[0], found[1], "a unit of two tenures");
        Some(found.remove(0).holder)
    }
}

impl Node {
    async fn next(&self) -> Result<i64, Error> {
        self.service.next_id("flake").await
    }

    async fn many(&self, count: i64) -> Result<Vec<IdRange>, Error> {
        self.service.next_ids("flake", Order::of(count)).await
    }
}

fn spec(name: &str, layout: Layout) -> TypeSpec {
    let mut spec = TypeSpec::new(TypeName::parse(name).unwrap());
    spec.mode = Mode::Snowflake;
    spec.options.snowflake = Some(layout);
    spec
}

/// Two worker ids, 16 ids in each unit.
fn small(unit: TimeUnit) -> Layout {
    Layout { worker_bits: 1, sequence_bits: 4, unit, ..Layout::default() }
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.unwrap_err().code
}

#[tokio::test(start_paused = true)]
async fn three_nodes_share_nothing_and_ids_tell_who_and_when() {
    let cluster = Cluster::new().await;
    let layout = Layout::default();
    cluster.create("flake", layout).await;
    let mut nodes = Vec::new();
    for id in ["a", "b", "c"] {
        nodes.push(Arc::new(cluster.node(id).await));
    }
    nodes[1].clock.step(-90_000);
    nodes[2].clock.step(90_000);
    let callers: Vec<_> = (0..24)
        .map(|i| {
            let node = nodes[i % 3].clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for _ in 0..200 {
                    let before = node.clock.now_ms();
                    let id = node.next().await.unwrap();
                    let at = layout.unix_ms(layout.decompose(id).time);
                    assert!((before..=node.clock.now_ms()).contains(&at), "the node's clock");
                    assert!(ids.last().is_none_or(|last| *last < id), "a later call, a larger id");
                    ids.push(id);
                    if ids.len() % 10 == 0 {
                        sleep(Duration::from_millis(1)).await;
                    }
                }
                ids
            })
        })
        .collect();
    let mut seen = HashSet::new();
    for (i, caller) in callers.into_iter().enumerate() {
        for id in caller.await.unwrap() {
            assert!(seen.insert(id), "{id} was issued twice");
            assert_eq!(cluster.holder(layout, id).await.unwrap(), ["a", "b", "c"][i % 3]);
        }
    }
    for node in nodes {
        assert_eq!(node.way.leases.load(Ordering::SeqCst), 1, "callers at once lease once");
        node.service.close().await;
    }
}

/// Nobody who uses no snowflake type takes a worker id from those who do.
#[tokio::test(start_paused = true)]
async fn a_worker_id_is_leased_at_the_first_use_and_released_at_the_end() {
    let cluster = Cluster::new().await;
    let layout = small(TimeUnit::Milliseconds);
    cluster.create("flake", layout).await;
    cluster.only_one_worker().await;
    let a = cluster.node("a").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(a.way.leases.load(Ordering::SeqCst), 0);
    let last = a.many(100).await.unwrap().last().unwrap().last();
    let b = cluster.node("b").await;
    let error = b.next().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.message.contains("all 2 worker ids of 1 bits are taken"), "{error}");
    a.service.close().await;
    assert_eq!(code(a.next().await), ErrorCode::Unavailable);
    sleep(Duration::from_secs(1)).await;
    let next = b.next().await.unwrap();
    assert_eq!(layout.decompose(next).worker, 1);
    assert!(next > last, "from where the other one ended");
    assert_eq!(cluster.holder(layout, last).await.unwrap(), "a");
    assert_eq!(cluster.holder(layout, next).await.unwrap(), "b");
}

/// Calls that run while the node stops, and a node that takes over at once.
#[tokio::test(start_paused = true)]
async fn a_release_leaves_no_call_behind() {
    for unit in [TimeUnit::Milliseconds, TimeUnit::Seconds] {
        let cluster = Cluster::new().await;
        cluster.create("flake", small(unit)).await;
        cluster.only_one_worker().await;
        let (a, b) = (Arc::new(cluster.node("a").await), cluster.node("b").await);
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let a = a.clone();
                tokio::spawn(async move {
                    let mut got = Vec::new();
                    while let Ok(ranges) = a.many(7).await {
                        got.extend(ranges);
                    }
                    got
                })
            })
            .collect();
        sleep(Duration::from_millis(2_500)).await;
        a.service.close().await;
        let mut got = Vec::new();
        while got.len() < 5 {
            got.extend(b.many(7).await.unwrap_or_default());
            sleep(Duration::from_millis(1)).await; // what was used last is over first
        }
        for caller in callers {
            let ranges = caller.await.unwrap();
            assert!(unit == TimeUnit::Seconds || ranges.len() > 100);
            got.extend(ranges);
        }
        let mut seen = HashSet::new();
        for id in got.iter().flat_map(|r| r.start()..r.end()) {
            assert!(seen.insert(id), "{id} twice");
        }
    }
}

/// Databases and caches that shard by the lowest digits want them all.
#[tokio::test(start_paused = true)]
async fn ids_of_a_slow_type_end_in_all_digits() {
    let cluster = Cluster::new().await;
    cluster.create("flake", Layout::default()).await;
    let node = cluster.node("a").await;
    for pace in [1, 7, 1_000] {
        let mut ids = Vec::new();
        while ids.len() < 6_400 {
            ids.push(node.next().await.unwrap());
            sleep(Duration::from_millis(pace)).await;
        }
        for modulus in [2, 10, 64] {
            let mut counts = vec![0; modulus as usize];
            for id in &ids {
                counts[(id % modulus) as usize] += 1;
            }
            let even = 6_400 / modulus;
            let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
            let fair = even * 8 / 10..=even * 12 / 10;
            assert!(
                fair.contains(&least) && fair.contains(&most),
                "one id each {pace} ms, mod {modulus}: {counts:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_ids_spread_over_units_or_fail_by_the_deadline() {
    let cluster = Cluster::new().await;
    cluster.create("flake", small(TimeUnit::Milliseconds)).await;
    cluster.create("slow", small(TimeUnit::Seconds)).await;
    let node = cluster.node("a").await;
    let ranges = node.many(1_000).await.unwrap();
    assert_eq!(ranges.iter().map(|r| r.len()).sum::<u64>(), 1_000);
    assert!(ranges.windows(2).all(|w| w[0].end() <= w[1].start()), "in order");
    assert!(ranges.len() >= 1_000 / 16 && ranges.len() < 1_100 / 14, "{}", ranges.len());
    assert!(node.metrics.snowflake_waits.get() >= 60);
    let began = Instant::now();
    let error = node.service.next_ids("slow", Order::of(1_000)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Deadline, "{error}");
    assert!(error.message.contains("there are 16 in each unit"), "{error}");
    assert!(began.elapsed() <= DEADLINE, "{:?}", began.elapsed());
    assert_eq!(code(node.service.next_ids("slow", Order::of(0)).await), ErrorCode::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded() {
    let cluster = Cluster::new().await;
    cluster.create("flake", small(TimeUnit::Seconds)).await;
    let node = Arc::new(cluster.node_with("a", cluster.clock.another(), 5).await);
    node.next().await.unwrap();
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let node = node.clone();
            tokio::spawn(async move { node.many(16).await.map_err(|e| e.code) })
        })
        .collect();
    let mut overloaded = 0;
    for caller in callers {
        match caller.await.unwrap() {
            Err(ErrorCode::Overloaded) => overloaded += 1,
            Err(ErrorCode::Deadline) | Ok(_) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(overloaded >= 14, "{overloaded}");
    sleep(Duration::from_secs(2)).await;
    node.next().await.expect("nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn small_steps_back_are_waited_out_and_larger_ones_refused() {
    let cluster = Cluster::new().await;
    cluster.create("flake", Layout::default()).await;
    let node = cluster.node("a").await;
    let mut last = node.next().await.unwrap();
    for by in [1, 30, 999, 1_000] {
        node.clock.step(-by);
        let began = Instant::now();
        let id = node.next().await.unwrap();
        assert!(id > last, "{id} after {last}, {by} ms back");
        assert!(began.elapsed() >= Duration::from_millis(by as u64 - 1));
        last = id;
    }
    assert_eq!(node.metrics.clock_backwards.get(), 0);
    node.clock.step(-5_000);
    for _ in 0..3 {
        let error = node.next().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ClockBackwards);
        assert!(error.message.contains(" 5000 ms behind"), "it says by how much: {error}");
    }
    assert_eq!(node.metrics.clock_backwards.get(), 3);
    sleep(Duration::from_millis(4_900)).await;
    assert!(node.next().await.unwrap() > last, "it goes on when the time comes");
}

#[tokio::test(start_paused = true)]
async fn a_step_back_that_does_not_fit_in_the_call_is_refused() {
    let cluster = Cluster::new().await;
    cluster.create("flake", Layout { epoch_ms: 0, ..small(TimeUnit::Seconds) }).await;
    let node = cluster.node("a").await;
    // The first second takes 900 ms of the call, and the step back 700.
    sleep(Duration::from_millis(100)).await;
    node.many(15).await.unwrap();
    let clock = node.clock.clone();
    let back = tokio::spawn(async move {
        sleep(Duration::from_millis(890)).await;
        clock.step(-1_700);
    });
    let began = Instant::now();
    let error = node.many(16).await.unwrap_err();
    back.await.unwrap();
    assert_eq!(error.code, ErrorCode::ClockBackwards, "{error}");
    assert!((890..=DEADLINE.as_millis()).contains(&began.elapsed().as_millis()));
}

#[tokio::test(start_paused = true)]
async fn an_hour_forward_and_back_breaks_and_repeats_nothing() {
    for unit in [TimeUnit::Milliseconds, TimeUnit::Seconds] {
        let cluster = Cluster::new().await;
        let layout = Layout { unit, ..Layout::default() };
        cluster.create("flake", layout).await;
        let node = cluster.node("a").await;
        let mut seen = HashSet::new();
        for _ in 0..5 {
            for range in node.many(50).await.unwrap() {
                assert!((range.start()..range.end()).all(|id| seen.insert(id)));
            }
            node.clock.step(HOUR_MS);
            let error = node.next().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Unavailable);
            let store_ms = cluster.clock.now_ms();
            assert!(error.message.contains("is ahead"), "{error}");
            for time in [store_ms, store_ms + HOUR_MS] {
                let digits = (time / 100_000).to_string();
                assert!(error.message.contains(&digits), "both times are named: {error}");
            }
            node.clock.step(-HOUR_MS);
            assert!(seen.insert(node.next().await.expect("nothing was broken")));
            node.clock.step(-HOUR_MS);
            assert_eq!(code(node.next().await), ErrorCode::ClockBackwards);
            node.clock.step(HOUR_MS);
            assert!(seen.insert(node.next().await.expect("nothing was broken")));
            sleep(Duration::from_secs(2)).await;
        }
        assert!(node.way.renewals.load(Ordering::SeqCst) < 40, "the store is not stormed");
    }
}

/// Within the tenure the clock is believed; then it must come up to that again.
#[tokio::test(start_paused = true)]
async fn minutes_forward_and_back_cost_those_minutes_only() {
    let cluster = Cluster::new().await;
    cluster.create("flake", Layout::default()).await;
    let node = cluster.node("a").await;
    node.next().await.unwrap();
    node.clock.step(600_000);
    let ahead = node.next().await.unwrap();
    node.clock.step(-600_000);
    assert_eq!(code(node.next().await), ErrorCode::ClockBackwards);
    sleep(Duration::from_secs(600)).await;
    assert!(node.next().await.unwrap() > ahead);
}

#[tokio::test(start_paused = true)]
async fn the_tenure_is_renewed_long_before_it_ends() {
    let cluster = Cluster::new().await;
    let layout = Layout::default();
    cluster.create("flake", layout).await;
    let node = cluster.node("a").await;
    for _ in 0..7_200 {
        node.next().await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let lease = node.metrics.worker_lease.with_label_values(&["10"]).get();
        assert!((770.0..=900.0).contains(&lease), "{lease} s left");
    }
    let renewals = node.way.renewals.load(Ordering::SeqCst);
    assert!(
        (60..=90).contains(&renewals),
        "eight in a lease, and up to a quarter more: {renewals}"
    );
    assert_eq!(node.way.leases.load(Ordering::SeqCst), 1);
    node.clock.step(-2_500);
    sleep(Duration::from_secs(115)).await;
    let offset = node.metrics.clock_offset.get();
    assert!((-2.51..=-2.49).contains(&offset), "{offset}");
}

#[tokio::test(start_paused = true)]
async fn without_the_store_ids_last_as_long_as_the_tenure() {
    let cluster = Cluster::new().await;
    let layout = Layout::default();
    cluster.create("flake", layout).await;
    let node = cluster.node("a").await;
    node.next().await.unwrap();
    let until_ms = cluster.clock.now_ms() + LEASE.as_millis() as i64;
    for fault in [StoreFault::Down, StoreFault::Silent] {
        cluster.workers.set_fault(fault);
        sleep(Duration::from_secs(440)).await;
        node.next().await.unwrap();
    }
    cluster.workers.set_fault(StoreFault::Down);
    let mut last = 0;
    let error = loop {
        match node.next().await {
            Ok(id) => last = id,
            Err(error) => break error,
        }
        sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.message.contains("down for a test"), "it says why: {error}");
    assert!(error.message.contains("worker id 0 ended"), "it says why: {error}");
    let last_ms = layout.unix_ms(layout.decompose(last).time);
    assert!((until_ms - 5..until_ms).contains(&last_ms), "to the end: {last_ms} of {until_ms}");
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(code(node.next().await), ErrorCode::Unavailable);
    assert_eq!(node.metrics.worker_lease.with_label_values(&["10"]).get(), 0.0);
    cluster.workers.set_fault(StoreFault::None);
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    let id = node.next().await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(5), "by itself, within a second");
    assert_eq!(layout.decompose(id).worker, 0, "nobody else had taken it");
}

/// Away for so long that somebody else has the worker id now.
#[tokio::test(start_paused = true)]
async fn a_worker_id_that_is_lost_is_replaced() {
    let cluster = Cluster::new().await;
    let layout = small(TimeUnit::Milliseconds);
    cluster.create("flake", layout).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let (first, other) = (a.next().await.unwrap(), b.next().await.unwrap());
    a.way.cut.store(true, Ordering::SeqCst);
    sleep(LEASE).await;
    assert_eq!(code(a.next().await), ErrorCode::Unavailable);
    let c = cluster.node("c").await;
    let third = c.next().await.unwrap();
    let worker = |id| layout.decompose(id).worker;
    assert_eq!((worker(first), worker(other), worker(third)), (0, 1, 0), "c follows a");
    b.service.close().await;
    a.way.cut.store(false, Ordering::SeqCst);
    sleep(Duration::from_secs(1)).await;
    let fourth = a.next().await.unwrap();
    assert_eq!(worker(fourth), 1, "another worker id, by itself");
    assert!(fourth > first);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_cost_no_worker_ids() {
    let cluster = Cluster::new().await;
    let layout = small(TimeUnit::Milliseconds);
    cluster.create("flake", layout).await;
    let node = cluster.node("a").await;
    cluster.workers.set_fault(StoreFault::LostAnswer);
    assert_eq!(code(node.next().await), ErrorCode::Unavailable);
    sleep(Duration::from_secs(10)).await;
    cluster.workers.set_fault(StoreFault::None);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(layout.decompose(node.next().await.unwrap()).worker, 0);
    assert!(node.way.leases.load(Ordering::SeqCst) > 10);
    cluster.workers.lease_worker(1, "b", "b", 1_000).await.expect("one is left");
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_the_clock_set_back_repeats_nothing() {
    for unit in [TimeUnit::Milliseconds, TimeUnit::Seconds] {
        let cluster = Cluster::new().await;
        cluster.create("flake", small(unit)).await;
        cluster.only_one_worker().await;
        let node = cluster.node("a").await;
        let mut seen = HashSet::from([node.next().await.unwrap()]);
        node.service.close().await;
        sleep(Duration::from_secs(1)).await; // the last second used is over
        let clock = cluster.clock.another();
        clock.step(-HOUR_MS);
        let node = cluster.node_with("a", clock, 1_000).await;
        let error = node.next().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ClockBackwards, "{error}");
        assert!(error.message.contains("node a is 3"), "it says by how much: {error}");
        node.clock.step(HOUR_MS - 900);
        assert!(seen.insert(node.next().await.expect("a second is waited for")));
    }
}

/// A backup is put back: the store forgets a lease. The node knows what it used.
#[tokio::test(start_paused = true)]
async fn a_store_that_forgot_makes_no_node_repeat_itself() {
    let cluster = Cluster::new().await;
    let layout = small(TimeUnit::Milliseconds);
    cluster.create("flake", layout).await;
    let backup = cluster.workers.snapshot();
    let node = cluster.node("a").await;
    let first = node.next().await.unwrap();
    cluster.workers.restore(&backup);
    node.clock.step(-10_000);
    // The renewal finds out; the same worker id is leased again, from 0 on.
    sleep(Duration::from_secs(115)).await;
    node.clock.step(-60_000);
    assert_eq!(node.way.leases.load(Ordering::SeqCst), 2);
    assert_eq!(code(node.next().await), ErrorCode::ClockBackwards);
    node.clock.step(70_000);
    let next = node.next().await.unwrap();
    assert_eq!(layout.decompose(next).worker, 0);
    assert!(next > first);

    // A renewal that is lost: the tenure may be given to others too early.
    let backup = cluster.workers.snapshot();
    sleep(Duration::from_secs(500)).await;
    cluster.workers.restore(&backup);
    cluster.clock.step(-400_000); // and the clock of the new store is late
    sleep(Duration::from_secs(115)).await;
    assert_eq!(node.way.leases.load(Ordering::SeqCst), 3, "given up, and another leased");
    assert_eq!(layout.decompose(node.next().await.unwrap()).worker, 1);
}

/// The feed of changes tells that the store went back: tenures are looked at
/// without waiting for their next renewal.
#[tokio::test(start_paused = true)]
async fn a_restored_store_is_noticed_within_a_second() {
    let cluster = Cluster::new().await;
    let layout = small(TimeUnit::Milliseconds);
    let (types, workers) = (cluster.types.snapshot(), cluster.workers.snapshot());
    cluster.create("flake", layout).await;
    let node = cluster.node("a").await;
    assert_eq!(layout.decompose(node.next().await.unwrap()).worker, 0);
    sleep(Duration::from_secs(5)).await;
    cluster.types.restore(types);
    cluster.workers.restore(&workers);
    cluster.workers.lease_worker(1, "b", "b", 60_000).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(layout.decompose(node.next().await.unwrap()).worker, 1);
}

/// As above, but another node asks before the holder has noticed anything.
#[tokio::test(start_paused = true)]
async fn a_worker_id_that_the_store_forgot_is_not_given_to_two() {
    let cluster = Cluster::new().await;
    let layout = small(TimeUnit::Milliseconds);
    cluster.create("flake", layout).await;
    let backup = cluster.workers.snapshot();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let mut seen = HashSet::from([a.next().await.unwrap()]);
    a.way.cut.store(true, Ordering::SeqCst); // it cannot hear of it for a whole lease
    cluster.workers.restore(&backup);
    for _ in 0..20 {
        for node in [&a, &b] {
            let id = node.next().await.unwrap();
            assert!(seen.insert(id), "{id} was issued twice");
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(layout.decompose(b.next().await.unwrap()).worker, 1, "Redis knows that 0 is taken");
}

#[tokio::test(start_paused = true)]
async fn an_epoch_begins_and_ends() {
    let cluster = Cluster::new().await;
    let node = cluster.node("a").await;
    let field = |epoch_ms| {
        let spec = spec("flake", Layout { epoch_ms, time_bits: 28, ..Layout::default() });
        let node = &node;
        async move { node.service.create_type(spec, "test").await.map_err(|e| e.field) }
    };
    let epoch = Some("snowflake.epoch_ms");
    assert_eq!(field(BEGIN_MS + 10_000).await.unwrap_err(), epoch, "in the future");
    assert_eq!(field(BEGIN_MS - (1 << 28)).await.unwrap_err(), epoch, "over");
    let record = field(BEGIN_MS + 2_000 - (1 << 28)).await.unwrap();
    node.next().await.unwrap();
    sleep(Duration::from_millis(1_900)).await;
    node.next().await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(code(node.next().await), ErrorCode::Exhausted);
    let end_ms = record.options.snowflake.unwrap().end_ms();
    assert_eq!(end_ms, BEGIN_MS + 2_000 - 1);
    node.service.set_retired("flake", true, "test").await.unwrap();
    assert_eq!(code(node.next().await), ErrorCode::Retired);
    assert_eq!(code(node.many(3).await), ErrorCode::Retired);
}

#[derive(Clone, Debug)]
enum Act {
    Take { node: usize, seconds: bool, count: i64 },
    Step { node: usize, by_ms: i64 },
    StepStore { by_ms: i64 },
    Pass { ms: u64 },
    Crash { node: usize },
    Stop { node: usize },
    Cut { node: usize, cut: bool },
    LoseAnswers { lose: bool },
}

fn act() -> impl Strategy<Value = Act> {
    let step = || {
        prop_oneof![
            4 => -1_500i64..1_500,
            1 => -40_000i64..40_000,
            1 => prop_oneof![Just(HOUR_MS), Just(-HOUR_MS)],
        ]
    };
    let node = 0usize..3;
    prop_oneof![
        12 => (node.clone(), any::<bool>(), 1i64..40)
            .prop_map(|(node, seconds, count)| Act::Take { node, seconds, count }),
        4 => (node.clone(), step()).prop_map(|(node, by_ms)| Act::Step { node, by_ms }),
        1 => step().prop_map(|by_ms| Act::StepStore { by_ms }),
        4 => prop_oneof![1u64..3_000, 1u64..30_000].prop_map(|ms| Act::Pass { ms }),
        1 => node.clone().prop_map(|node| Act::Crash { node }),
        2 => node.clone().prop_map(|node| Act::Stop { node }),
        2 => (node, any::<bool>()).prop_map(|(node, cut)| Act::Cut { node, cut }),
        1 => any::<bool>().prop_map(|lose| Act::LoseAnswers { lose }),
    ]
}

/// Runs `acts` with three nodes, four worker ids, and types of both units.
/// Returns how many ids were issued.
async fn run(acts: Vec<Act>) -> usize {
    let cluster = Cluster { lease: Duration::from_secs(20), ..Cluster::new().await };
    let layouts = [TimeUnit::Milliseconds, TimeUnit::Seconds].map(|unit| Layout {
        worker_bits: 2,
        sequence_bits: 5,
        epoch_ms: Layout::LEAF_EPOCH_MS,
        unit,
        ..Layout::default()
    });
    cluster.create("ms", layouts[0]).await;
    cluster.create("s", layouts[1]).await;
    let names = ["a", "b", "c"];
    let mut nodes = Vec::new();
    for name in names {
        nodes.push(cluster.node(name).await);
    }
    let seen = Mutex::new([HashSet::new(), HashSet::new()]);
    let mut last = [[0i64; 2]; 3];
    for act in acts {
        match act {
            Act::Take { node, seconds, count } => {
                let of = usize::from(seconds);
                let name = ["ms", "s"][of];
                let Ok(ranges) = nodes[node].service.next_ids(name, Order::of(count)).await else {
                    continue;
                };
                assert_eq!(ranges.iter().map(|r| r.len()).sum::<u64>(), count as u64);
                for id in ranges.iter().flat_map(|r| r.start()..r.end()) {
                    assert!(seen.lock().unwrap()[of].insert(id), "{id} of {name} twice");
                    assert!(id > last[node][of], "{id} after {}", last[node][of]);
                    last[node][of] = id;
                    let holder = cluster.holder(layouts[of], id).await;
                    assert_eq!(holder.as_deref(), Some(names[node]), "{id}: not its own");
                }
            }
            Act::Step { node, by_ms } => nodes[node].clock.step(by_ms),
            Act::StepStore { by_ms } => cluster.clock.step(by_ms),
            Act::Pass { ms } => sleep(Duration::from_millis(ms)).await,
            Act::Crash { node } | Act::Stop { node } => {
                if matches!(act, Act::Crash { .. }) {
                    // It is never heard of again.
                    nodes[node].way.cut.store(true, Ordering::SeqCst);
                }
                nodes[node].service.close().await;
                let clock = nodes[node].clock.clone();
                nodes[node] = cluster.node_with(names[node], clock, 1_000).await;
                last[node] = [0; 2];
            }
            Act::Cut { node, cut } => nodes[node].way.cut.store(cut, Ordering::SeqCst),
            Act::LoseAnswers { lose } => cluster.workers.set_fault(match lose {
                true => StoreFault::LostAnswer,
                false => StoreFault::None,
            }),
        }
    }
    let [ms, s] = &*seen.lock().unwrap();
    ms.len() + s.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Clocks that jump, nodes that die and come back, a store whose answers get
    /// lost: no id twice, each under a tenure of its node, and in order.
    #[test]
    fn no_schedule_repeats_an_id(acts in prop::collection::vec(act(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(acts));
    }
}
