//! Any schedule of calls, crashes, stops, changes and faults, for each mode: no
//! id is issued twice. A failing schedule is shrunk to its shortest form.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::memory::{StoreFault, StoreSnapshot};
use idgen::adapters::system::SystemEntropy;
use idgen::domain::{
    Mode, OnRedisLoss, Opaque, OpaqueKey, Period, TypeChange, TypeOptions, TypeSpec,
};
use idgen::service::Service;
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};
use proptest::prelude::*;

use crate::support::{Cluster, small};

const NODES: usize = 3;

#[derive(Clone, Debug)]
enum Act {
    /// Calls of one node, all at once.
    Take {
        node: usize,
        calls: usize,
        count: i64,
    },
    /// The node is gone from one moment to the next, and starts again.
    Crash(usize),
    /// The node stops in order, and starts again.
    Stop(usize),
    /// Time passes; idle types leave the memory.
    Wait(u64),
    /// The store fails, or loses its answers, for some calls.
    Store(StoreFault),
    /// Redis needs so many milliseconds.
    Redis(u64),
    /// Redis loses everything that it may lose.
    RedisRestarts,
    /// A backup of the store is made, or put back while Redis is well.
    Backup,
    Restore,
    /// An operator changes lengths, or the key of an opaque type.
    Change(i64),
}

fn act() -> impl Strategy<Value = Act> {
    let node = || 0..NODES;
    prop_oneof![
        12 => (node(), 1..6_usize, 1..250_i64)
            .prop_map(|(node, calls, count)| Act::Take { node, calls, count }),
        2 => node().prop_map(Act::Crash),
        2 => node().prop_map(Act::Stop),
        3 => (0..40_000_u64).prop_map(Act::Wait),
        1 => Just(Act::Store(StoreFault::Down)),
        1 => Just(Act::Store(StoreFault::LostAnswer)),
        3 => Just(Act::Store(StoreFault::None)),
        1 => Just(Act::Redis(2_000)),
        3 => Just(Act::Redis(0)),
        1 => Just(Act::RedisRestarts),
        1 => Just(Act::Backup),
        1 => Just(Act::Restore),
        1 => (50..400_i64).prop_map(Act::Change),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Strict,
    StrictAlone,
    Segment,
    Opaque,
    Sharded,
    Daily,
}

impl Kind {
    fn spec(self) -> TypeSpec {
        let mut options = TypeOptions::default();
        let mut spec = small(50, 400);
        spec.mode = match self {
            Kind::Strict => Mode::Strict,
            Kind::StrictAlone => {
                options.on_redis_loss = OnRedisLoss::Segment;
                Mode::Strict
            }
            Kind::Segment => Mode::Segment,
            Kind::Opaque => {
                options.opaque = Some(Opaque { slices: 64 });
                spec.max_id = 64_000_000;
                spec.key = Some(OpaqueKey::new([3; 32]));
                Mode::Segment
            }
            Kind::Sharded => {
                options.app_id = Some(3);
                Mode::Sharded
            }
            Kind::Daily => {
                options.calendar = Some(Period::Daily);
                options.format = Some("{date:yyMMdd}{seq}".to_owned());
                spec.max_id = 1_000_000_000;
                Mode::Segment
            }
        };
        TypeSpec { options, ..spec }
    }

    /// Takes once. Failures are allowed: they prove nothing.
    async fn take(self, node: &Service, count: i64, n: usize) -> Vec<String> {
        let pass = format!("pass-{}", n % 5);
        let gate_pass = matches!(self, Kind::Sharded).then_some(pass.as_str());
        let order = Order { gate_pass, ..Order::of(count) };
        if matches!(self, Kind::Daily) {
            return node.next_string_ids("order", order, true).await.unwrap_or_default();
        }
        let runs = node.next_ids("order", order).await.unwrap_or_default();
        runs.iter().flat_map(|r| r.start()..r.end()).map(|id| id.to_string()).collect()
    }
}

/// A node whose types become idle within seconds.
async fn start(cluster: &Cluster, n: usize) -> Arc<Service> {
    cluster.node_set(&format!("n{n}"), |c| c.idle_after = Duration::from_secs(20)).await
}

/// How many ids the schedule issued.
async fn run(kind: Kind, acts: Vec<Act>) -> usize {
    let cluster = Cluster::new().await;
    cluster.create(&kind.spec()).await;
    let mut nodes = Vec::new();
    for n in 0..NODES {
        nodes.push(start(&cluster, n).await);
    }
    let mut seen = HashSet::new();
    let mut backup: Option<StoreSnapshot> = None;
    let (mut store_is_well, mut redis_is_well, mut restored) = (true, true, false);
    for act in acts {
        match act {
            Act::Take { node, calls, count } => {
                let taken: Vec<_> = (0..calls)
                    .map(|n| {
                        let node = nodes[node].clone();
                        tokio::spawn(async move { kind.take(&node, count, n).await })
                    })
                    .collect();
                for ids in taken {
                    for id in ids.await.unwrap() {
                        assert!(seen.insert(id.clone()), "{id} was issued twice");
                    }
                }
            }
            // A node does not start without its store.
            Act::Crash(n) if store_is_well => nodes[n] = start(&cluster, n).await,
            Act::Stop(n) if store_is_well => {
                nodes[n].close().await;
                nodes[n] = start(&cluster, n).await;
            }
            Act::Crash(_) | Act::Stop(_) => {}
            Act::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Act::Store(fault) => {
                store_is_well = fault == StoreFault::None;
                cluster.store.set_fault(fault);
            }
            // One failure at a time: what the store forgot is known to Redis alone.
            Act::Redis(ms) if ms > 0 && restored => {}
            Act::Redis(ms) => {
                redis_is_well = ms == 0;
                cluster.network.set_latency(Duration::from_millis(ms));
            }
            Act::RedisRestarts => cluster.dispatcher.change_history(&SystemEntropy),
            Act::Backup => {
                // A node that has not noticed yet that Redis is back asks it for
                // nothing, and what it leases then has no witness.
                tokio::time::sleep(Duration::from_secs(1)).await;
                backup = Some(cluster.store.snapshot());
            }
            // Redis was not away since the backup.
            Act::Restore if redis_is_well => {
                if let Some(backup) = backup.take() {
                    cluster.store.restore(backup);
                    restored = true;
                }
            }
            Act::Restore => {}
            Act::Change(length) => {
                if matches!(kind, Kind::Opaque) {
                    let _ = nodes[0].rotate_key("order", "test").await;
                }
                let change = TypeChange { max_range: Some(length), ..TypeChange::default() };
                let _ = nodes[0].alter_type("order", change, "test").await;
            }
        }
        if !redis_is_well {
            backup = None;
        }
    }
    seen.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_repeats_an_id(
        kind in prop_oneof![
            Just(Kind::Strict), Just(Kind::StrictAlone), Just(Kind::Segment),
            Just(Kind::Opaque), Just(Kind::Sharded), Just(Kind::Daily),
        ],
        acts in proptest::collection::vec(act(), 5..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(kind, acts));
    }
}
