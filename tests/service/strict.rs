//! Strict types: one order for all nodes, refills, locks, histories, floors.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::memory::{MemoryDispatcher, StoreFault};
use idgen::adapters::system::SystemEntropy;
use idgen::domain::{Error, ErrorCode, History, IdRange, TypeChange, TypeName, TypeSpec};
use idgen::ports::{Dispatcher, LockOutcome, NextRange, Publication, PublishOutcome, RangeStore};
use idgen::service::Service;
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::{Cluster, DEADLINE, code, order, small};

#[tokio::test(start_paused = true)]
async fn three_nodes_hand_out_each_id_once_and_in_order() {
    let cluster = Cluster::new().await;
    cluster.create(&small(10, 500)).await;
    let nodes = [cluster.node("a").await, cluster.node("b").await, cluster.node("c").await];
    let callers: Vec<_> = (0..24)
        .map(|i| {
            let node = nodes[i % 3].clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for _ in 0..200 {
                    let id = node.next_id("order").await.unwrap();
                    assert!(ids.last().is_none_or(|last| *last < id), "a later call, a larger id");
                    ids.push(id);
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
    assert_eq!(seen.len(), 24 * 200);
    // One after another through different nodes: the order is the cluster's.
    let mut last = 0;
    for i in 0..300 {
        let id = nodes[i % 3].next_id("order").await.unwrap();
        assert!(id > last, "{id} came after {last}");
        last = id;
    }
    for node in nodes {
        node.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_ids_span_ranges_and_never_repeat() {
    let cluster = Cluster::new().await;
    cluster.create(&small(10, 1_000)).await;
    let node = cluster.node("a").await;
    let mut next = 1;
    for count in [1, 25, 100_000, 7] {
        let ranges = node.next_ids("order", Order::of(count)).await.unwrap();
        assert_eq!(ranges.iter().map(|r| r.len()).sum::<u64>(), count as u64);
        for range in ranges {
            assert!(range.start() >= next, "ascending, without repetition");
            next = range.end();
        }
    }
    for count in [0, -1, 100_001, i64::MIN] {
        let error = node.next_ids("order", Order::of(count)).await.unwrap_err();
        assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some("count")));
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_callers_share_one_call() {
    let cluster = Cluster::new().await;
    cluster.create(&small(1_000, 100_000)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let node = node.clone();
            tokio::spawn(async move { node.next_id("order").await.unwrap() })
        })
        .collect();
    let before = cluster.view().await.cursor;
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(cluster.view().await.cursor - before, 100, "nothing is taken for nobody");
}

#[tokio::test(start_paused = true)]
async fn a_dead_lock_holder_costs_less_than_a_second() {
    let cluster = Cluster::new().await;
    cluster.create(&small(10, 10)).await;
    let node = cluster.node("heir").await;
    let hour = Duration::from_secs(3_600);
    cluster.dispatcher.lock(&order(), "dead", hour, None).await.unwrap();
    let began = Instant::now();
    node.next_id("order").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // The dead one wakes up, with a range that it allocated before.
    let name = order();
    let late = cluster.store.next_range(NextRange::of(&name, "dead"));
    let history = cluster.dispatcher.history().await.unwrap();
    let range = late.await.unwrap().range;
    let publication = Publication {
        range,
        update_id: range.start(),
        history: &history,
        token: "dead",
        generation: 0,
        replaces: false,
    };
    let outcome = cluster.dispatcher.publish(&order(), publication).await.unwrap();
    assert_ne!(outcome, PublishOutcome::Published);
}

#[tokio::test(start_paused = true)]
async fn a_slow_but_living_holder_keeps_its_lock() {
    let cluster = Cluster::new().await;
    cluster.create(&small(10, 10)).await;
    cluster.store.set_fault(StoreFault::None);
    let (slow, other) = (cluster.node("slow").await, cluster.node("other").await);
    slow.describe("order").await.unwrap();
    other.describe("order").await.unwrap();
    cluster.store.set_fault(StoreFault::Silent);
    let waiting: Vec<_> = [slow, other]
        .into_iter()
        .map(|node| tokio::spawn(async move { node.next_id("order").await }))
        .collect();
    // Past the grace, before the deadline: the store is still at it.
    tokio::time::advance(Duration::from_millis(50)).await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    let token = "third";
    let grace = Some(Duration::from_millis(250));
    let outcome = cluster.dispatcher.lock(&order(), token, Duration::from_secs(1), grace).await;
    assert_eq!(outcome.unwrap(), LockOutcome::Held, "signs of life count");
    for caller in waiting {
        assert_eq!(code(caller.await.unwrap()), ErrorCode::Deadline);
    }
}

#[tokio::test(start_paused = true)]
async fn rolled_back_data_is_dropped() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100, 100)).await;
    let node = cluster.node("a").await;
    let before = node.next_id("order").await.unwrap();
    let dead = cluster.view().await.highest_end();
    cluster.dispatcher.change_history(&SystemEntropy);
    let after = node.next_id("order").await.unwrap();
    assert!(after >= dead && after > before, "{after} is from the dropped range [.., {dead})");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lost_its_latest_writes_jumps_to_the_floor() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100, 100)).await;
    let node = cluster.node("a").await;
    for _ in 0..150 {
        node.next_id("order").await.unwrap();
    }
    let end = cluster.view().await.highest_end();
    // The same dispatcher over a store that was restored from long ago.
    let restored = Cluster { store: Cluster::new().await.store, ..cluster };
    restored.create(&small(100, 100)).await;
    let node = restored.node("b").await;
    let mut last = 0;
    for _ in 0..400 {
        let id = node.next_id("order").await.unwrap();
        assert!(id > last && id > 150, "{id} was issued before the restore");
        last = id;
    }
    let log = restored.store.range_log(&order(), 100).await.unwrap();
    assert!(log.iter().all(|entry| entry.range.start() >= end), "the floor was passed on");
}

/// A DBA reserves a block by hand, and then the store loses that write: the
/// nodes have heard of the block, and jump above it.
#[tokio::test(start_paused = true)]
async fn a_reserved_block_is_remembered_by_the_nodes() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100, 100)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await; // the feed has no older news
    let backup = cluster.store.snapshot();
    let block = cluster.store.reserve(&order(), 5_000, 0, "dba").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.store.restore(backup);
    for _ in 0..500 {
        let id = node.next_id("order").await.unwrap();
        assert!(!(block.start()..block.end()).contains(&id), "{id} belongs to the DBA: {block}");
    }
}

#[tokio::test(start_paused = true)]
async fn ids_of_a_replaced_server_are_dropped() {
    let cluster = Cluster::new().await;
    cluster.create(&small(1_000, 1_000)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    // Elsewhere a new server took over, and got a range under its history.
    let new = History::new("f".repeat(40));
    let instance = cluster.store.instances().await.unwrap()[0].id;
    let name = order();
    let request = NextRange { target: Some((instance, &new)), ..NextRange::of(&name, "b") };
    cluster.store.next_range(request).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await; // the feed's second
    let error = node.next_id("order").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
}

#[tokio::test(start_paused = true)]
async fn never_below_what_was_returned() {
    let cluster = Cluster::new().await;
    cluster.create(&small(1_000, 1_000)).await;
    let node = cluster.node("a").await;
    let before = node.next_ids("order", Order::of(50)).await.unwrap()[0].last();
    // Somebody puts old data back by hand: same history, old cursor.
    let old = MemoryDispatcher::new(&SystemEntropy);
    let history = old.history().await.unwrap();
    old.lock(&order(), "t", Duration::from_secs(9), None).await.unwrap();
    let range = IdRange::new(1, 1_001).unwrap();
    let publication = Publication {
        range,
        update_id: 500,
        history: &history,
        token: "t",
        generation: 0,
        replaces: false,
    };
    old.publish(&order(), publication).await.unwrap();
    cluster.dispatcher.restore_from(&old, &order()).await;
    let after = node.next_id("order").await.unwrap();
    assert!(after > before, "{after} after {before}");
}

#[tokio::test(start_paused = true)]
async fn the_store_may_be_away_while_the_runway_lasts() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100, 100)).await;
    let node = cluster.node("a").await;
    for _ in 0..20 {
        node.next_id("order").await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(10)).await; // the second range arrives
    for fault in [StoreFault::Down, StoreFault::Silent] {
        cluster.store.set_fault(fault);
        for _ in 0..60 {
            node.next_id("order").await.unwrap();
        }
    }
    cluster.store.set_fault(StoreFault::Down);
    tokio::time::sleep(Duration::from_secs(6)).await; // whatever was silent has given up
    let left = cluster.view().await.left();
    for _ in 0..left {
        node.next_id("order").await.unwrap();
    }
    let began = Instant::now();
    assert_eq!(code(node.next_id("order").await), ErrorCode::Unavailable);
    assert!(began.elapsed() <= DEADLINE + Duration::from_millis(50), "{:?}", began.elapsed());
    cluster.store.set_fault(StoreFault::None);
    node.next_id("order").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_burns_the_range() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100, 100)).await;
    let node = cluster.node("a").await;
    cluster.store.set_fault(StoreFault::LostAnswer);
    assert_eq!(code(node.next_id("order").await), ErrorCode::Unavailable);
    cluster.store.set_fault(StoreFault::None);
    let burnt = cluster.store.find_type(&order()).await.unwrap().unwrap().next_id;
    assert!(burnt > 100, "at least one range was allocated and lost");
    assert!(node.next_id("order").await.unwrap() >= burnt);
}

#[tokio::test(start_paused = true)]
async fn unknown_retired_and_exhausted_are_told_at_once() {
    let cluster = Cluster::new().await;
    let node = cluster.node("a").await;
    assert_eq!(code(node.next_id("order").await), ErrorCode::UnknownType);
    assert_eq!(code(node.next_id("no good").await), ErrorCode::InvalidArgument);
    assert_eq!(code(node.next_id("").await), ErrorCode::InvalidArgument);
    node.create_type(TypeSpec { max_id: 20, ..small(10, 10) }, "test").await.unwrap();
    for id in 1..=20 {
        assert_eq!(node.next_id("order").await.unwrap(), id);
    }
    for _ in 0..3 {
        let began = Instant::now();
        assert_eq!(code(node.next_id("order").await), ErrorCode::Exhausted);
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    }
    let more = TypeChange { max_id: Some(40), ..TypeChange::default() };
    node.alter_type("order", more, "test").await.unwrap();
    assert_eq!(node.next_id("order").await.unwrap(), 21, "a raised limit counts at once");
    node.set_retired("order", true, "test").await.unwrap();
    let began = Instant::now();
    assert_eq!(code(node.next_id("order").await), ErrorCode::Retired);
    assert!(began.elapsed() < Duration::from_millis(100));
    node.set_retired("order", false, "test").await.unwrap();
    assert_eq!(node.next_id("order").await.unwrap(), 22);
}

#[tokio::test(start_paused = true)]
async fn every_change_reaches_every_node_within_a_second() {
    let cluster = Cluster::new().await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    assert_eq!(code(b.next_id("order").await), ErrorCode::UnknownType);
    // Behind the nodes' backs, as a DBA does it: only the feed tells.
    cluster.create(&TypeSpec { prefix: "A".into(), ..small(10, 10) }).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(b.next_string_ids("order", Order::of(1), true).await.unwrap(), ["A1"]);
    assert_eq!(a.next_string_ids("order", Order::of(1), false).await.unwrap(), ["2"]);
    let change = TypeChange { prefix: Some("B".into()), ..TypeChange::default() };
    cluster.store.alter_type(&order(), &change, "dba").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(b.next_string_ids("order", Order::of(1), true).await.unwrap(), ["B3"]);
    cluster.store.set_retired(&order(), true, "dba").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(code(a.next_id("order").await), ErrorCode::Retired);
    assert_eq!(code(b.next_id("order").await), ErrorCode::Retired);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded_and_ends_by_the_deadline() {
    let cluster = Cluster::new().await;
    cluster.create(&small(10, 10)).await;
    let node = cluster.node_with("a", 5).await;
    node.describe("order").await.unwrap();
    cluster.store.set_fault(StoreFault::Silent);
    let began = Instant::now();
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let node = node.clone();
            tokio::spawn(async move { code(node.next_id("order").await) })
        })
        .collect();
    let mut codes = Vec::new();
    for caller in callers {
        codes.push(caller.await.unwrap());
    }
    let overloaded = codes.iter().filter(|c| **c == ErrorCode::Overloaded).count();
    let late = codes.iter().filter(|c| **c == ErrorCode::Deadline).count();
    assert!(overloaded >= 2 && overloaded + late == 8, "{codes:?}");
    assert!(began.elapsed() <= DEADLINE + Duration::from_millis(50), "{:?}", began.elapsed());
}

type Timed = (Result<Vec<IdRange>, Error>, Duration);

/// A call with a request key that is on its way to Redis, which takes 900 ms; with its
/// answer it tells how long it took.
async fn a_keyed_call_to_a_slow_redis() -> (Cluster, Arc<Service>, JoinHandle<Timed>) {
    let cluster = Cluster::new().await;
    cluster.create(&small(10, 500)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    cluster.network.set_latency(Duration::from_millis(900));
    let keyed = tokio::spawn({
        let node = node.clone();
        async move {
            let began = Instant::now();
            let order = Order { request_key: Some("k"), ..Order::of(1) };
            (node.next_ids("order", order).await, began.elapsed())
        }
    });
    (cluster, node, keyed)
}

/// Found by simulation. A call with a request key asks Redis about it first, and so
/// comes to wait with less time left than those before it.
#[tokio::test(start_paused = true)]
async fn who_waits_with_less_time_left_than_the_first_ends_in_time_too() {
    let (cluster, node, keyed) = a_keyed_call_to_a_slow_redis().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.network.set_latency(Duration::from_secs(2));
    let first = tokio::spawn(async move { code(node.next_id("order").await) });
    let (answer, span) = keyed.await.unwrap();
    assert_eq!(code(answer), ErrorCode::Unavailable);
    assert!(span <= DEADLINE + Duration::from_millis(10), "{span:?}");
    assert_eq!(first.await.unwrap(), ErrorCode::Unavailable);
}

/// It comes while the first is served, and has spent most of its time before.
#[tokio::test(start_paused = true)]
async fn who_comes_during_a_take_with_less_time_left_ends_in_time_too() {
    let (cluster, node, keyed) = a_keyed_call_to_a_slow_redis().await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    cluster.network.set_latency(Duration::from_millis(950));
    // Its take is under way when the other call has looked for its key, and ends late.
    let first = tokio::spawn(async move { node.next_id("order").await });
    let (answer, span) = keyed.await.unwrap();
    assert!(answer.is_err());
    assert!(span <= DEADLINE + Duration::from_millis(60), "{span:?}");
    first.await.unwrap().unwrap();
}

/// Calls for ids at a steady pace for `span`; returns how many succeeded of the
/// calls that began in it, and the longest that one took.
async fn steady(node: &Arc<Service>, pace: Duration, span: Duration) -> (usize, usize, Duration) {
    let began = Instant::now();
    let mut calls = Vec::new();
    while began.elapsed() < span {
        let node = node.clone();
        calls.push(tokio::spawn(async move {
            let began = Instant::now();
            (node.next_id("order").await.is_ok(), began.elapsed())
        }));
        tokio::time::sleep(pace).await;
    }
    let (all, mut good, mut longest) = (calls.len(), 0, Duration::ZERO);
    for call in calls {
        let (ok, took) = call.await.unwrap();
        good += usize::from(ok);
        longest = longest.max(took);
    }
    (good, all, longest)
}

/// A take that was sent must not be cut because the first of those who wait for
/// it is out of time: under steady load there is always such a first one.
#[tokio::test(start_paused = true)]
async fn a_slow_or_stalled_dispatcher_is_recovered_from_under_load() {
    let cluster = Cluster::new().await;
    cluster.create(&small(100_000, 1_000_000)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    let (pace, margin) = (Duration::from_millis(5), Duration::from_millis(50));

    cluster.network.set_latency(Duration::from_millis(800));
    let (good, all, longest) = steady(&node, pace, Duration::from_secs(10)).await;
    assert!(good * 10 > all * 8, "{good} of {all} at a latency of 800 ms");
    assert!(longest <= DEADLINE + margin, "{longest:?}");

    cluster.network.set_latency(Duration::from_secs(60));
    let (good, all, longest) = steady(&node, pace, Duration::from_secs(4)).await;
    assert!(good < all / 2, "{good} of {all} while stalled");
    assert!(longest <= DEADLINE + margin, "{longest:?}");

    cluster.network.set_latency(Duration::from_millis(1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (good, all, longest) = steady(&node, pace, Duration::from_secs(5)).await;
    assert_eq!(good, all, "after the stall");
    assert!(longest < Duration::from_millis(500), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn one_call_for_many_ids_needs_few_ranges() {
    let cluster = Cluster::new().await;
    cluster.create(&small(1_000, 100_000_000)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    node.next_ids("order", Order::of(100_000)).await.unwrap();
    let ranges = cluster.store.range_log(&order(), 1_000).await.unwrap().len();
    assert!(ranges <= 4, "{ranges} ranges for one call: what waits must count as use");
    let mut tiny = TypeSpec::new(TypeName::parse("tiny").unwrap());
    (tiny.min_range, tiny.max_range) = (1, 10);
    cluster.create(&tiny).await;
    assert_eq!(
        node.next_ids("tiny", Order::of(1_000)).await.unwrap().iter().map(|r| r.len()).sum::<u64>(),
        1_000
    );
    let error = node.next_ids("tiny", Order::of(1_001)).await.unwrap_err();
    assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some("count")));
}
