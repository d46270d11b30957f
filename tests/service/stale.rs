//! Settings, stores and dispatchers that are not what a node takes them for: older,
//! silent, or back again.

use std::collections::HashSet;
use std::time::Duration;

use idgen::adapters::memory::StoreFault;
use idgen::domain::{
    ErrorCode, Mode, OnRedisLoss, Opaque, OpaqueKey, TypeChange, TypeName, TypeOptions, TypeSpec,
};
use idgen::ports::{NextRange, RangeStore};
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};
use tokio::time::Instant;

use crate::support::{Cluster, DEADLINE, code, order, small};

fn opaque(mode: Mode, slices: u16, range: i64) -> TypeSpec {
    let options = TypeOptions { opaque: Some(Opaque { slices }), ..TypeOptions::default() };
    let key = Some(OpaqueKey::new([7; 32]));
    TypeSpec { mode, options, key, max_id: 16_000_000, ..small(range, range) }
}

/// Five thousand ids, which meet with others of the same million at random.
async fn many(node: &idgen::service::Service) -> Vec<i64> {
    let runs = node.next_ids("order", Order::of(5_000)).await.unwrap();
    runs.iter().flat_map(|run| run.start()..run.end()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_change_just_before_the_first_id_counts() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        cluster.create(&opaque(mode, 16, 25_000)).await;
        let node = cluster.node("a").await;
        node.describe("order").await.unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        // Past the nodes, as by a DBA: this one hears of it half a second later.
        let options = TypeOptions { opaque: Some(Opaque { slices: 8 }), ..TypeOptions::default() };
        let change = TypeChange { options: Some(options), ..TypeChange::default() };
        cluster.store.alter_type(&order(), &change, "dba").await.unwrap();
        let mut seen: HashSet<i64> = many(&node).await.into_iter().collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        for id in many(&node).await {
            assert!(seen.insert(id), "{mode}: {id} was issued twice");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_knows_the_key_of_its_ids() {
    let cluster = Cluster::new().await;
    cluster.create(&opaque(Mode::Segment, 16, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    b.next_id("order").await.unwrap();
    cluster.store.rotate_key(&order(), &OpaqueKey::new([8; 32]), "dba").await.unwrap();
    let keyed = Order { request_key: Some("k"), ..Order::of(50) };
    let first = a.next_ids("order", keyed).await.unwrap();
    assert_eq!(b.next_ids("order", keyed).await.unwrap(), first, "b has not heard of the key");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lost_a_key_repeats_nothing() {
    for mode in [Mode::Segment, Mode::Strict] {
        let cluster = Cluster::new().await;
        cluster.create(&opaque(mode, 16, 25_000)).await;
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        let mut seen: HashSet<i64> = many(&a).await.into_iter().collect();
        let backup = cluster.store.snapshot();
        cluster.store.rotate_key(&order(), &OpaqueKey::new([8; 32]), "dba").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Into the slice of the new key.
        for _ in 0..10 {
            for id in many(&a).await {
                assert!(seen.insert(id), "{mode}: {id} was issued twice before");
            }
        }
        cluster.store.restore(backup);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        for n in 0..20 {
            let node = if n % 2 == 0 { &a } else { &b };
            for id in many(node).await {
                assert!(seen.insert(id), "{mode}: {id} was issued twice after");
            }
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{mode}: back at once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_in_a_store_that_went_back_begins_above_all_ids() {
    for mode in [Mode::Segment, Mode::Strict] {
        let cluster = Cluster::new().await;
        cluster.create(&opaque(mode, 16, 25_000)).await;
        let a = cluster.node("a").await;
        let mut seen: HashSet<i64> = many(&a).await.into_iter().collect();
        let backup = cluster.store.snapshot();
        // Each time the store begins the same slice with another key.
        for _ in 0..3 {
            a.rotate_key("order", "operator").await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            for _ in 0..2 {
                for id in many(&a).await {
                    assert!(seen.insert(id), "{mode}: {id} was issued twice");
                }
            }
            cluster.store.restore(backup.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_ids_whose_key_was_lost_is_refused() {
    for mode in [Mode::Segment, Mode::Strict] {
        let cluster = Cluster::new().await;
        cluster.create(&opaque(mode, 16, 25_000)).await;
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        b.next_id("order").await.unwrap();
        let backup = cluster.store.snapshot();
        cluster.store.rotate_key(&order(), &OpaqueKey::new([8; 32]), "dba").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let keyed = Order { request_key: Some("k"), ..Order::of(50) };
        a.next_ids("order", keyed).await.unwrap();
        cluster.store.restore(backup);
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Moves the store forward, beyond the slice whose key it has lost.
        many(&b).await;
        for node in [&a, &b] {
            assert_eq!(code(node.next_ids("order", keyed).await), ErrorCode::Conflict, "{mode}");
            let other = Order { request_key: Some("other"), ..keyed };
            node.next_ids("order", other).await.unwrap();
        }
    }
}

/// The node knows of a change before its feed tells of it, and the store forgets it in
/// between: the feed, which has not seen it, cannot tell.
#[tokio::test(start_paused = true)]
async fn what_the_store_forgot_before_the_feed_told_of_it_is_forgotten() {
    for mode in [Mode::Segment, Mode::Strict] {
        let cluster = Cluster::new().await;
        cluster.create(&TypeSpec { mode, ..small(100, 100) }).await;
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        for node in [&a, &b] {
            node.next_id("order").await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let backup = cluster.store.snapshot();
        a.set_retired("order", true, "operator").await.unwrap();
        assert_eq!(code(a.next_id("order").await), ErrorCode::Retired);
        // Reads it for the first time now.
        let late = cluster.node("late").await;
        assert_eq!(code(late.next_id("order").await), ErrorCode::Retired);
        cluster.store.restore(backup);
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        for node in [&a, &b, &late] {
            node.next_id("order").await.unwrap_or_else(|e| panic!("{mode}: {e}"));
        }
    }
}

/// Whichever call to the store fails while the node notices that, it notices in the end.
#[tokio::test(start_paused = true)]
async fn one_failed_call_does_not_hide_that_the_store_went_back() {
    for served in 0..12 {
        let cluster = Cluster::new().await;
        cluster.create(&small(100, 100)).await;
        let node = cluster.node("a").await;
        node.next_id("order").await.unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
        let backup = cluster.store.snapshot();
        node.set_retired("order", true, "operator").await.unwrap();
        cluster.store.restore(backup);
        cluster.store.set_fault(StoreFault::Once(served));
        tokio::time::sleep(Duration::from_secs(3)).await;
        node.next_id("order").await.unwrap_or_else(|e| panic!("after {served} calls: {e}"));
    }
}

/// As many changes as were lost follow at once, so that the feed goes on from the same
/// number: the change of that number is another.
#[tokio::test(start_paused = true)]
async fn a_feed_that_goes_on_from_the_same_number_tells_a_rollback() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100, 100)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    let backup = cluster.store.snapshot();
    cluster.store.set_retired(&order(), true, "operator").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(code(node.next_id("order").await), ErrorCode::Retired);
    let lost = cluster.store.latest_change().await.unwrap();
    cluster.store.restore(backup);
    for n in 0.. {
        if cluster.store.latest_change().await.unwrap() > lost {
            break;
        }
        let name = TypeName::parse(&format!("other-{n}")).unwrap();
        cluster.store.create_type(&TypeSpec::new(name), "dba").await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    node.next_id("order").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_takes_no_runway() {
    for mode in [Mode::Segment, Mode::Strict] {
        let cluster = Cluster::new().await;
        cluster.create(&TypeSpec { mode, ..small(100, 100) }).await;
        let node = cluster.node_set("a", |c| c.idle_after = Duration::from_secs(60)).await;
        for _ in 0..20 {
            node.next_id("order").await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        cluster.store.set_fault(StoreFault::Down);
        tokio::time::sleep(Duration::from_secs(600)).await;
        for _ in 0..50 {
            node.next_id("order").await.unwrap_or_else(|e| panic!("{mode}: {e}"));
        }
        cluster.store.set_fault(StoreFault::None);
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(node.node_status().await.types_loaded, 0, "{mode}: it leaves later");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_holds_no_call_beyond_its_deadline() {
    let cluster = Cluster::new().await;
    cluster.create(&opaque(Mode::Strict, 16, 10)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    a.next_id("order").await.unwrap();
    cluster.store.rotate_key(&order(), &OpaqueKey::new([8; 32]), "dba").await.unwrap();
    // Redis holds ids of the new key only, and a has not heard of it.
    b.next_ids("order", Order::of(40)).await.unwrap();
    cluster.store.set_fault(StoreFault::Silent);
    let began = Instant::now();
    let error = code(a.next_id("order").await);
    assert!(began.elapsed() <= DEADLINE, "{error:?} after {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_silent_dispatcher_does_not_hold_up_the_look_at_health() {
    let cluster = Cluster::new().await;
    let node = cluster.node("a").await;
    for n in 0..60 {
        let name = TypeName::parse(&format!("type-{n}")).unwrap();
        cluster.create(&TypeSpec { name: name.clone(), ..small(100, 100) }).await;
        node.next_id(name.as_str()).await.unwrap();
    }
    let main_up = async || {
        let status = node.node_status().await;
        status.parts.iter().find(|p| p.name == "main").unwrap().reachable
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(main_up().await);
    cluster.network.set_latency(Duration::from_secs(9));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!main_up().await, "it is silent");
    cluster.network.set_latency(Duration::from_millis(900));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(main_up().await, "it is back, but slow");
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_of_redis_the_order_is_that_of_the_cluster_again() {
    let cluster = Cluster::new().await;
    let options = TypeOptions { on_redis_loss: OnRedisLoss::Segment, ..TypeOptions::default() };
    cluster.create(&TypeSpec { options, ..small(1_000, 1_000) }).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    a.next_id("order").await.unwrap();
    b.next_id("order").await.unwrap();
    cluster.network.set_latency(Duration::from_secs(9));
    let alone = a.next_id("order").await.unwrap();
    cluster.network.set_latency(Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let id = b.next_id("order").await.unwrap();
    assert!(id > alone, "{id} came after {alone}");
}

#[tokio::test(start_paused = true)]
async fn a_type_called_like_a_worker_id_disturbs_none() {
    let cluster = Cluster::new().await;
    cluster.create(&TypeSpec { mode: Mode::Snowflake, ..TypeSpec::new(order()) }).await;
    let name = TypeName::parse("idgen:worker:10:0").unwrap();
    let spec = TypeSpec { name: name.clone(), mode: Mode::Segment, ..small(100, 100) };
    cluster.create(&spec).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    assert_eq!(node.next_id(name.as_str()).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_dispatcher_keeps_no_type_in_memory() {
    let cluster = Cluster::new().await;
    let node = cluster.node_set("a", |c| c.idle_after = Duration::from_secs(10)).await;
    for n in 0..60 {
        let name = TypeName::parse(&format!("type-{n}")).unwrap();
        let spec = TypeSpec { name: name.clone(), mode: Mode::Segment, ..small(100, 100) };
        cluster.create(&spec).await;
        node.next_id(name.as_str()).await.unwrap();
    }
    cluster.network.set_latency(Duration::from_secs(9));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(node.node_status().await.types_loaded, 0);
}

/// The store went back to before a range that nobody used. No id of it was issued, but
/// this node has given higher ones.
#[tokio::test(start_paused = true)]
async fn a_node_that_starts_anew_goes_on_above_what_it_gave() {
    let cluster = Cluster::new().await;
    cluster.create(&TypeSpec { mode: Mode::Segment, ..small(50, 50) }).await;
    let node = cluster.node("a").await;
    let first = node.next_ids("order", Order::of(40)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let backup = cluster.store.snapshot();
    let gap = cluster.store.next_range(NextRange::of(&order(), "nobody")).await.unwrap().range;
    let last = node.next_ids("order", Order::of(500)).await.unwrap().last().unwrap().last();
    assert!(first[0].last() < gap.start() && gap.end() <= last);
    cluster.store.restore(backup);
    let again = cluster.node("a").await.next_id("order").await.unwrap();
    assert!(again > last, "{again} after {last}");
}
