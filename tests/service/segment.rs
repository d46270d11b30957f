//! Segment and sharded types: leases of each node's own.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::memory::StoreFault;
use idgen::domain::{ErrorCode, Mode, OnRedisLoss, TypeChange, TypeOptions, TypeSpec};
use idgen::ports::RangeStore;
use idgen::service::Service;
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};
use tokio::time::Instant;

use crate::support::{Cluster, DEADLINE, code, order, small};

fn segment(min: i64, max: i64) -> TypeSpec {
    TypeSpec { mode: Mode::Segment, ..small(min, max) }
}

fn sharded(app_id: i64) -> TypeSpec {
    let options = TypeOptions { app_id: Some(app_id), ..TypeOptions::default() };
    TypeSpec { mode: Mode::Sharded, options, max_id: TypeSpec::HIGHEST_ID, ..small(10, 500) }
}

async fn left(node: &Service) -> u64 {
    node.describe("order").await.unwrap().local.map_or(0, |local| local.left)
}

/// Waits until the node has leased what it plans to.
async fn until_left(node: &Service, least: u64) {
    while left(node).await < least {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn three_nodes_hand_out_each_id_once_and_ascending() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(10, 500)).await;
    let nodes = [cluster.node("a").await, cluster.node("b").await, cluster.node("c").await];
    let callers: Vec<_> = (0..24)
        .map(|i| {
            let node = nodes[i % 3].clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for n in 0..200 {
                    let runs = node.next_ids("order", Order::of(1 + n % 7)).await.unwrap();
                    assert_eq!(runs.iter().map(|r| r.len()).sum::<u64>(), 1 + n as u64 % 7);
                    for id in runs.iter().flat_map(|r| r.start()..r.end()) {
                        assert!(ids.last().is_none_or(|last| *last < id), "ids of a node go up");
                        ids.push(id);
                    }
                }
                ids
            })
        })
        .collect();
    let mut seen = HashSet::new();
    for caller in callers {
        for id in caller.await.unwrap() {
            assert!(seen.insert(id), "{id} was issued twice");
        }
    }
    for node in nodes {
        node.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_not_noticed_while_the_runway_lasts() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    let node = cluster.node("a").await;
    for _ in 0..20 {
        node.next_id("order").await.unwrap();
    }
    until_left(&node, 280).await;
    cluster.store.set_fault(StoreFault::Down);
    for _ in 0..280 {
        node.next_id("order").await.unwrap();
    }
    // Then a typed error at the deadline, not before and not without an end.
    let began = Instant::now();
    assert_eq!(code(node.next_id("order").await), ErrorCode::Unavailable);
    assert_eq!(began.elapsed(), DEADLINE);
    // And nobody has to call for the node to find the store again.
    cluster.store.set_fault(StoreFault::None);
    until_left(&node, 200).await;
    assert_eq!(node.next_id("order").await.unwrap(), 301);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_burns_its_range() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    cluster.store.set_fault(StoreFault::LostAnswer);
    let node = cluster.node("a").await;
    assert_eq!(code(node.next_id("order").await), ErrorCode::Unavailable);
    cluster.store.set_fault(StoreFault::None);
    let id = node.next_id("order").await.unwrap();
    assert!(id > 100, "{id} lies in a range whose fate is not known");
}

#[tokio::test(start_paused = true)]
async fn too_many_waiters_are_refused_at_once() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    let node = cluster.node_with("a", 5).await;
    node.describe("order").await.unwrap();
    cluster.store.set_fault(StoreFault::Silent);
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let node = node.clone();
            tokio::spawn(async move { code(node.next_id("order").await) })
        })
        .collect();
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            ErrorCode::Overloaded => refused += 1,
            code => assert_eq!(code, ErrorCode::Deadline),
        }
    }
    assert_eq!(refused, 3);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_went_back_in_time_repeats_nothing() {
    for with_redis in [true, false] {
        let cluster = Cluster::new().await;
        cluster.create(&segment(100, 100)).await;
        let a = cluster.node("a").await;
        let backup = cluster.store.snapshot();
        let mut seen = HashSet::new();
        for _ in 0..250 {
            seen.insert(a.next_id("order").await.unwrap());
        }
        cluster.store.restore(backup);
        // With Redis a node that never saw the ids is warned; without, the one
        // that did knows better.
        let node = if with_redis { cluster.node("b").await } else { a };
        if !with_redis {
            cluster.network.set_latency(Duration::from_secs(9));
        }
        for _ in 0..500 {
            let id = node.next_id("order").await.unwrap();
            assert!(seen.insert(id), "{id} was issued twice (with Redis: {with_redis})");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unused_ids_go_back_at_a_stop() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    let a = cluster.node("a").await;
    for id in 1..=20 {
        assert_eq!(a.next_id("order").await.unwrap(), id);
    }
    until_left(&a, 280).await;
    a.close().await;
    let record = cluster.store.find_type(&order()).await.unwrap().unwrap();
    assert_eq!(record.next_id, 21, "all that was not used is free again");
    let b = cluster.node("b").await;
    assert_eq!(b.next_id("order").await.unwrap(), 21);
}

#[tokio::test(start_paused = true)]
async fn only_what_nobody_came_after_goes_back() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let mut seen = HashSet::new();
    for _ in 0..5 {
        seen.insert(a.next_id("order").await.unwrap());
        seen.insert(b.next_id("order").await.unwrap());
    }
    a.close().await; // b's range lies after that of a
    for _ in 0..300 {
        assert!(seen.insert(b.next_id("order").await.unwrap()));
    }
    b.close().await;
    let c = cluster.node("c").await;
    for _ in 0..300 {
        assert!(seen.insert(c.next_id("order").await.unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_type_leaves_the_memory_and_comes_back() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    let node = cluster.node("a").await;
    for id in 1..=5 {
        assert_eq!(node.next_id("order").await.unwrap(), id);
    }
    assert_eq!(node.node_status().await.types_loaded, 1);
    tokio::time::sleep(Duration::from_secs(800)).await;
    assert_eq!(node.node_status().await.types_loaded, 1, "not idle for long enough");
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    assert_eq!(node.node_status().await.types_loaded, 0);
    let record = cluster.store.find_type(&order()).await.unwrap().unwrap();
    assert_eq!(record.next_id, 6, "its unused ids went back");
    assert_eq!(node.next_id("order").await.unwrap(), 6);
    // One in use stays.
    for n in 0..3_600 {
        assert_eq!(node.next_id("order").await.unwrap(), 7 + n);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(node.node_status().await.types_loaded, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_in_use_survives_its_eviction() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(7, 7)).await;
    let node = cluster.node_set("a", |c| c.idle_after = Duration::from_millis(20)).await;
    let mut last = 0;
    for pause in (0..2_000).map(|n| n % 60) {
        let id = node.next_id("order").await.unwrap();
        assert!(id > last, "{id} came after {last}");
        last = id;
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_follows_the_rate_of_the_node() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(1_000, 100_000_000)).await;
    let (busy, lazy) = (cluster.node("busy").await, cluster.node("lazy").await);
    // 10 000 ids/s for 30 s on one node, one a second on the other.
    for _ in 0..30 {
        lazy.next_id("order").await.unwrap();
        for _ in 0..100 {
            busy.next_ids("order", Order::of(100)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let log = cluster.store.range_log(&order(), 100).await.unwrap();
    let longest =
        |who: &str| log.iter().filter(|e| e.owner == who).map(|e| e.range.len()).max().unwrap();
    // 10 000 ids/s × 600 s.
    assert!((4_000_000..=8_000_000).contains(&longest("busy")), "{}", longest("busy"));
    assert_eq!(longest("lazy"), 1_000);
    let calls = log.iter().filter(|e| e.owner == "busy").count();
    assert!(calls < 20, "{calls} calls of the store in 30 s");
}

#[tokio::test(start_paused = true)]
async fn changes_apply_within_a_second_on_all_nodes() {
    let cluster = Cluster::new().await;
    cluster.create(&segment(100, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    a.next_id("order").await.unwrap();
    b.next_id("order").await.unwrap();
    let second = || tokio::time::sleep(Duration::from_secs(1));
    a.set_retired("order", true, "test").await.unwrap();
    second().await;
    for node in [&a, &b] {
        assert_eq!(code(node.next_id("order").await), ErrorCode::Retired, "with ids at hand");
    }
    b.set_retired("order", false, "test").await.unwrap();
    second().await;
    a.next_id("order").await.unwrap();
    b.next_id("order").await.unwrap();
    // A change past the nodes, as by a DBA.
    let change =
        TypeChange { max_range: Some(5_000), min_range: Some(5_000), ..TypeChange::default() };
    cluster.store.alter_type(&order(), &change, "dba").await.unwrap();
    second().await;
    a.next_ids("order", Order::of(1_000)).await.unwrap();
    let newest = &cluster.store.range_log(&order(), 1).await.unwrap()[0];
    assert_eq!(newest.range.len(), 5_000);
}

#[tokio::test(start_paused = true)]
async fn the_highest_id_is_the_last_one() {
    let cluster = Cluster::new().await;
    cluster.create(&TypeSpec { max_id: 250, ..segment(100, 100) }).await;
    let node = cluster.node("a").await;
    for id in 1..=250 {
        assert_eq!(node.next_id("order").await.unwrap(), id);
    }
    let began = Instant::now();
    assert_eq!(code(node.next_id("order").await), ErrorCode::Exhausted);
    assert!(began.elapsed() < DEADLINE, "known at once");
    let change = TypeChange { max_id: Some(300), ..TypeChange::default() };
    node.alter_type("order", change, "test").await.unwrap();
    assert_eq!(node.next_id("order").await.unwrap(), 251);
}

#[tokio::test(start_paused = true)]
async fn exhaustion_is_predicted() {
    let cluster = Cluster::new().await;
    cluster.create(&TypeSpec { max_id: 100_000, ..segment(100, 1_000) }).await;
    let node = cluster.node("a").await;
    for _ in 0..30 {
        node.next_ids("order", Order::of(100)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let status = node.describe("order").await.unwrap();
    let left_ms = status.exhausted_at_ms.unwrap() - idgen::adapters::system::unix_ms();
    // 97 000 ids at 100 a second.
    assert!((800_000..1_100_000).contains(&left_ms), "{left_ms}");
    let runway = status.local.unwrap().runway_s.unwrap();
    assert!((5.0..60.0).contains(&runway), "{runway}");
}

#[tokio::test(start_paused = true)]
async fn shards_count_by_themselves() {
    let cluster = Cluster::new().await;
    cluster.create(&sharded(7)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let mut seen = HashSet::new();
    let mut last = std::collections::HashMap::new();
    for n in 0..2_000 {
        let node = if n % 2 == 0 { &a } else { &b };
        let pass = format!("pass-{}", n % 97);
        let order = Order { gate_pass: Some(&pass), ..Order::of(1) };
        let id = node.next_ids("order", order).await.unwrap()[0].start();
        assert!(seen.insert(id), "{id} was issued twice");
        assert_eq!(id & 0xff, 7, "the app id");
        let shard = (id >> 8) & 0x3f;
        assert_eq!(shard, i64::from(idgen::domain::gate_pass::shard_of(&pass)));
        let before = last.insert((n % 2, shard), id);
        assert!(before.is_none_or(|before| before < id), "ascending per shard and node");
    }
    let first = last.values().map(|id| id >> 14).max().unwrap();
    assert!(first < 1_500, "each shard counts by itself: {first}");
    assert_eq!(code(a.next_id("order").await), ErrorCode::InvalidArgument, "no gate pass");
    let order = Order { gate_pass: Some("x"), ..Order::of(1) };
    a.close().await;
    b.close().await;
    let c = cluster.node("c").await;
    assert!(seen.insert(c.next_ids("order", order).await.unwrap()[0].start()));
}

#[tokio::test(start_paused = true)]
async fn a_strict_type_goes_on_without_redis_if_it_may() {
    let cluster = Cluster::new().await;
    let options = TypeOptions { on_redis_loss: OnRedisLoss::Segment, ..TypeOptions::default() };
    cluster.create(&TypeSpec { options, ..small(100, 1_000) }).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let mut seen = HashSet::new();
    let nodes: [&Arc<Service>; 2] = [&a, &b];
    for n in 0..200 {
        assert!(seen.insert(nodes[n % 2].next_id("order").await.unwrap()));
    }
    cluster.network.set_latency(Duration::from_secs(9));
    let mut highest = [0; 2];
    for n in 0..400 {
        let id = nodes[n % 2].next_id("order").await.unwrap();
        assert!(seen.insert(id), "{id} was issued twice");
        assert!(id > highest[n % 2], "ascending on each node");
        highest[n % 2] = id;
    }
    cluster.network.set_latency(Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // In order again, above everything that each node issued.
    let mut last = 0;
    for n in 0..400 {
        let id = nodes[n % 2].next_id("order").await.unwrap();
        assert!(seen.insert(id), "{id} was issued twice");
        assert!(id > highest[n % 2]);
        if n > 2 {
            assert!(id > last, "{id} came after {last}");
        }
        last = id;
    }
    // A second loss does not bring back what is left from the first.
    cluster.network.set_latency(Duration::from_secs(9));
    for n in 0..100 {
        let id = nodes[n % 2].next_id("order").await.unwrap();
        assert!(seen.insert(id), "{id} was issued twice");
    }
}
