//! Types that move between Redis instances: in use, interrupted, undone, forgotten.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idgen::adapters::system::{SystemClock, SystemEntropy};
use idgen::domain::{
    Assignment, ErrorCode, InstanceId, Mode, Seal, TypeName, TypeOptions, TypeSpec,
};
use idgen::ports::{Clock, Dispatcher, NextRange, RangeStore, TakeOutcome, Witness};
use idgen::service::Service;
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};

use crate::support::{Cluster, code, order, small};

const MAIN: InstanceId = InstanceId(1);
const OTHER: InstanceId = InstanceId(2);

async fn cluster(spec: TypeSpec) -> Cluster {
    let cluster = Cluster::new().await;
    cluster.add_second().await;
    cluster.create(&spec).await;
    cluster
}

fn of_mode(mode: Mode) -> TypeSpec {
    let app_id = (mode == Mode::Sharded).then_some(3);
    TypeSpec { mode, options: TypeOptions { app_id, ..TypeOptions::default() }, ..small(50, 400) }
}

async fn migrate(node: &Service, to: &str) -> u64 {
    node.migrate("order", to, false, "test").await.unwrap().kept
}

async fn home(cluster: &Cluster) -> InstanceId {
    cluster.store.find_type(&order()).await.unwrap().unwrap().instance
}

/// Begins a migration to the second instance, and dies.
async fn begin(cluster: &Cluster) -> Seal {
    let moving = cluster.store.begin_migration(&order(), "other", "test").await.unwrap();
    Seal { generation: moving.placement.generation, target: OTHER }
}

#[tokio::test(start_paused = true)]
async fn callers_do_not_notice() {
    let cluster = cluster(small(20, 300)).await;
    let nodes = [cluster.node("a").await, cluster.node("b").await, cluster.node("c").await];
    for network in [&cluster.network, &cluster.second_network] {
        network.set_latency(Duration::from_millis(1));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..12)
        .map(|i| {
            let (nodes, stop) = (nodes.clone(), stop.clone());
            tokio::spawn(async move {
                let mut ids = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    // From node to node: the order is the cluster's.
                    let node = &nodes[(i + ids.len()) % 3];
                    let id = node.next_id("order").await.unwrap();
                    assert!(ids.last().is_none_or(|last| *last < id), "{id} after {ids:?}");
                    ids.push(id);
                }
                ids
            })
        })
        .collect();
    for round in 0..20 {
        tokio::time::sleep(Duration::from_millis(37)).await;
        migrate(&nodes[round % 3], ["other", "main"][round % 2]).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut seen = HashSet::new();
    for caller in callers {
        for id in caller.await.unwrap() {
            assert!(seen.insert(id), "{id} was issued twice");
        }
    }
    assert!(seen.len() > 3_000, "{}", seen.len());
    assert_eq!(home(&cluster).await, MAIN);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_goes_along() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    assert_eq!(node.next_id("order").await.unwrap(), 1);
    assert_eq!(migrate(&node, "other").await, 99);
    assert_eq!(node.next_id("order").await.unwrap(), 2);
    // With the range in reserve, which the eleventh id asks for.
    node.next_ids("order", Order::of(20)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(migrate(&node, "main").await, 78 + 100);
    assert_eq!(node.next_id("order").await.unwrap(), 23);
    let all = node.next_ids("order", Order::of(177)).await.unwrap();
    assert_eq!((all[0].start(), all.last().unwrap().end()), (24, 201));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_missed_the_news_follows_the_seal() {
    let cluster = cluster(small(100, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let mut last = b.next_id("order").await.unwrap();
    for round in 0..4 {
        migrate(&a, ["other", "main"][round % 2]).await;
        // At once: nobody has told b.
        let next = b.next_id("order").await.unwrap();
        assert_eq!(next, last + 1);
        last = next;
    }
}

/// Dead at each step, with callers and without.
#[tokio::test(start_paused = true)]
async fn anybody_finishes_what_was_begun() {
    for steps in 0..3 {
        for called in [false, true] {
            let cluster = cluster(small(100, 100)).await;
            let node = cluster.node("a").await;
            let first = node.next_ids("order", Order::of(5)).await.unwrap();
            let seal = begin(&cluster).await;
            if steps > 0 {
                cluster.dispatcher.seal(&order(), seal).await.unwrap();
            }
            if steps > 1 {
                let history = cluster.second.adopt(&order(), &[(0, 101)]).await.unwrap();
                let assignment = Assignment { seal, history: Some(&history), rest_end: Some(101) };
                let assigned = cluster.store.assign_type(&order(), assignment, "test").await;
                assert!(assigned.unwrap().keeps_rest, "it could have published the rest");
            }
            if !called {
                tokio::time::sleep(Duration::from_secs(6)).await;
                assert!(cluster.store.migrations().await.unwrap().is_empty());
            }
            let next = node.next_id("order").await.unwrap();
            assert!(next > first[0].last(), "{next} after {first:?}");
            tokio::time::sleep(Duration::from_secs(6)).await;
            assert_eq!(home(&cluster).await, OTHER, "after {steps} steps");
            assert!(node.next_id("order").await.unwrap() > next);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_come_late_do_no_harm() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    let mut last = node.next_id("order").await.unwrap();
    let mut next = async || {
        let id = node.next_id("order").await.unwrap();
        assert!(id > last, "{id} after {last}");
        last = id;
    };
    // A seal after the undoing.
    let seal = begin(&cluster).await;
    assert!(node.undo_migration("order", "test").await.unwrap().placement.moving_to.is_none());
    cluster.dispatcher.seal(&order(), seal).await.unwrap();
    next().await;
    assert_eq!(home(&cluster).await, MAIN);
    // A seal after the type went, and came back.
    migrate(&node, "other").await;
    migrate(&node, "main").await;
    next().await;
    cluster.dispatcher.seal(&order(), seal).await.unwrap();
    next().await;
    // The assignment of somebody who slept.
    let history = cluster.second.history().await.unwrap();
    let assignment = Assignment { seal, history: Some(&history), rest_end: Some(101) };
    let late = cluster.store.assign_type(&order(), assignment, "test").await;
    assert!(late.is_err());
    next().await;
    assert_eq!(home(&cluster).await, MAIN);
}

#[tokio::test(start_paused = true)]
async fn undoing() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    let nothing = node.undo_migration("order", "test").await;
    assert_eq!(code(nothing), ErrorCode::Conflict);
    let first = node.next_id("order").await.unwrap();
    let seal = begin(&cluster).await;
    cluster.dispatcher.seal(&order(), seal).await.unwrap();
    node.undo_migration("order", "test").await.unwrap();
    let second = node.next_id("order").await.unwrap();
    assert!(second > first);
    assert_eq!(home(&cluster).await, MAIN);
    // One that is finished goes back.
    migrate(&node, "other").await;
    let back = node.undo_migration("order", "test").await.unwrap();
    assert_eq!((back.instance, back.placement.moved_from), (MAIN, Some(OTHER)));
    assert_eq!(node.next_id("order").await.unwrap(), second + 1);
}

#[tokio::test(start_paused = true)]
async fn a_target_out_of_reach_changes_nothing() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    cluster.second_network.set_latency(Duration::from_secs(2));
    let failed = node.migrate("order", "other", false, "test").await;
    assert_eq!(code(failed), ErrorCode::Unavailable);
    assert_eq!(node.next_id("order").await.unwrap(), 2, "nothing was sealed");
    // It is lost after the seal: undone by the first caller.
    let seal = begin(&cluster).await;
    cluster.dispatcher.seal(&order(), seal).await.unwrap();
    let id = node.next_id("order").await;
    let id = match id {
        Ok(id) => id,
        // The deadline of a call is about the time limit of the dispatcher.
        Err(_) => node.next_id("order").await.unwrap(),
    };
    assert!(id > 100, "{id}");
    assert_eq!(home(&cluster).await, MAIN);
    assert!(cluster.store.migrations().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_old_instance_that_is_gone_is_abandoned() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    let first = node.next_id("order").await.unwrap();
    cluster.network.set_latency(Duration::from_secs(2));
    let failed = node.migrate("order", "other", false, "test").await;
    assert_eq!(code(failed), ErrorCode::Unavailable);
    let moved = node.migrate("order", "other", true, "test").await.unwrap();
    assert_eq!((moved.record.instance, moved.kept), (OTHER, 0));
    let second = node.next_id("order").await.unwrap();
    assert!(second > first);
    // The old one comes back with all that it had: nobody uses it.
    cluster.network.set_latency(Duration::ZERO);
    let third = cluster.node("b").await.next_id("order").await.unwrap();
    assert!(third > second);
    // Not even when the type goes back there, and by a node that gave none before.
    migrate(&node, "main").await;
    let fourth = cluster.node("c").await.next_id("order").await.unwrap();
    assert!(fourth > third, "{fourth} after {third}");
}

/// The seal on the old instance tells what the store has forgotten.
#[tokio::test(start_paused = true)]
async fn a_store_that_forgot_a_migration_learns_of_it() {
    for moves in 1..4 {
        let cluster = cluster(small(100, 100)).await;
        let node = cluster.node("a").await;
        node.next_id("order").await.unwrap();
        let backup = cluster.store.snapshot();
        for n in 0..moves {
            migrate(&node, ["other", "main"][n % 2]).await;
        }
        let last = node.next_ids("order", Order::of(450)).await.unwrap().last().unwrap().last();
        node.close().await;
        cluster.store.restore(backup);
        let fresh = cluster.node("b").await;
        let next = fresh.next_id("order").await.unwrap();
        assert!(next > last, "{next} after {last}, and {moves} moves");
        assert_eq!(home(&cluster).await, [MAIN, OTHER][moves % 2]);
    }
}

/// Changes since hide from the feed that the store went back in time: the node holds
/// settings that look newer.
#[tokio::test(start_paused = true)]
async fn a_node_that_did_not_see_the_store_forget_follows_all_the_same() {
    for moves in 1..4 {
        let cluster = cluster(small(100, 100)).await;
        let node = cluster.node("a").await;
        node.next_id("order").await.unwrap();
        let backup = cluster.store.snapshot();
        for n in 0..moves {
            migrate(&node, ["other", "main"][n % 2]).await;
        }
        let mut last = node.next_id("order").await.unwrap();
        // So that the feed has nothing new, and nothing less.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let seen = cluster.store.latest_change().await.unwrap();
        cluster.store.restore(backup);
        while cluster.store.latest_change().await.unwrap() < seen {
            let n = cluster.store.latest_change().await.unwrap();
            let name = TypeName::parse(&format!("other-{n}")).unwrap();
            cluster.store.create_type(&TypeSpec::new(name), "test").await.unwrap();
        }
        for _ in 0..5 {
            let ids = node.next_ids("order", Order::of(90)).await.unwrap();
            assert!(ids[0].start() > last, "{ids:?} after {last}, and {moves} moves");
            last = ids.last().unwrap().last();
        }
        assert_eq!(home(&cluster).await, [MAIN, OTHER][moves % 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_forgot_half_a_migration_learns_of_it() {
    for sealed in [false, true] {
        let cluster = cluster(small(100, 100)).await;
        let node = cluster.node("a").await;
        node.next_id("order").await.unwrap();
        let before = cluster.store.snapshot();
        let seal = begin(&cluster).await;
        let begun = cluster.store.snapshot();
        if sealed {
            cluster.dispatcher.seal(&order(), seal).await.unwrap();
        }
        // To the end, by whoever comes.
        tokio::time::sleep(Duration::from_secs(6)).await;
        let last = node.next_ids("order", Order::of(450)).await.unwrap().last().unwrap().last();
        node.close().await;
        for backup in [begun, before] {
            cluster.store.restore(backup);
            let fresh = cluster.node("b").await;
            let next = fresh.next_id("order").await.unwrap();
            assert!(next > last, "{next} after {last}");
            assert_eq!(home(&cluster).await, OTHER);
            fresh.close().await;
        }
    }
}

/// After a restored store forgot a migration, the next one must not begin over it.
#[tokio::test(start_paused = true)]
async fn a_forgotten_migration_comes_before_a_new_one() {
    let cluster = cluster(small(100, 100)).await;
    let spec = idgen::domain::InstanceSpec { name: "third".into(), url: "memory://".into() };
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    let backup = cluster.store.snapshot();
    migrate(&node, "other").await;
    let last = node.next_ids("order", Order::of(450)).await.unwrap().last().unwrap().last();
    node.close().await;
    cluster.store.restore(backup);
    cluster.store.add_instance(&spec, "test").await.unwrap();
    let fresh = cluster.node("b").await;
    let _ = fresh.migrate("order", "third", false, "test").await;
    let next = fresh.next_id("order").await.unwrap();
    assert!(next > last, "{next} after {last}");
}

/// Redis loses the seal before the type was assigned: what A read of the rest is no
/// longer the newest.
#[tokio::test(start_paused = true)]
async fn a_rest_that_was_overtaken_is_burnt() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    let seal = begin(&cluster).await;
    let rest = cluster.dispatcher.seal(&order(), seal).await.unwrap().rest;
    cluster.dispatcher.change_history(&SystemEntropy);
    cluster.dispatcher.unseal(&order(), 9).await.unwrap();
    let overtaken = node.next_id("order").await.unwrap();
    assert!(overtaken > 100);
    let history = cluster.second.history().await.unwrap();
    let assignment = Assignment { seal, history: Some(&history), rest_end: rest.end() };
    let assigned = cluster.store.assign_type(&order(), assignment, "test").await.unwrap();
    assert!(!assigned.keeps_rest);
}

/// Who leased a range is known on the new instance, whatever the store forgets.
#[tokio::test(start_paused = true)]
async fn witnesses_move_with_leased_types() {
    for mode in [Mode::Segment, Mode::Sharded] {
        let cluster = cluster(of_mode(mode)).await;
        let gate_pass = (mode == Mode::Sharded).then_some("one");
        let take = async |node: &Service| {
            let ids = node.next_ids("order", Order { gate_pass, ..Order::of(120) }).await;
            ids.unwrap().iter().flat_map(|r| r.start()..r.end()).collect::<Vec<_>>()
        };
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        let backup = cluster.store.snapshot();
        let mut seen: HashSet<i64> = take(&a).await.into_iter().collect();
        migrate(&a, "other").await;
        // b has not heard of it: its next lease is witnessed on the new instance.
        seen.extend(take(&b).await);
        let late = cluster.dispatcher.witness(&order(), None, idgen_range(9_001, 9_002)).await;
        assert!(matches!(late.unwrap(), Witness::Moved(_)));
        // Nobody who knows of these ranges is asked before the new node is.
        cluster.store.restore(backup);
        let c = cluster.node("c").await;
        for id in take(&c).await.into_iter().chain(take(&a).await).chain(take(&b).await) {
            assert!(seen.insert(id), "{mode}: {id} was issued twice");
        }
        assert_eq!(home(&cluster).await, OTHER, "{mode}");
    }
}

/// The new instance is told what was given away before: nobody else may know.
#[tokio::test(start_paused = true)]
async fn the_new_instance_knows_what_the_old_one_knew() {
    let cluster = cluster(of_mode(Mode::Segment)).await;
    let backup = cluster.store.snapshot();
    let name = order();
    // A node that is gone had these.
    for _ in 0..3 {
        let request = NextRange::of(&name, "gone");
        let range = cluster.store.next_range(request).await.unwrap().range;
        let noted = cluster.dispatcher.witness(&order(), None, range).await.unwrap();
        assert_eq!(noted, Witness::Noted);
    }
    let last = cluster.store.find_type(&order()).await.unwrap().unwrap().next_id - 1;
    let mover = cluster.node("mover").await;
    migrate(&mover, "other").await;
    mover.close().await;
    cluster.store.restore(backup);
    let next = cluster.node("new").await.next_id("order").await.unwrap();
    assert!(next > last, "{next} after {last}");
}

fn idgen_range(start: i64, end: i64) -> idgen::domain::IdRange {
    idgen::domain::IdRange::new(start, end).unwrap()
}

#[tokio::test(start_paused = true)]
async fn request_keys_count_across_a_migration() {
    let cluster = cluster(small(100, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let keyed = |key| Order { request_key: Some(key), ..Order::of(3) };
    let first = a.next_ids("order", keyed("k")).await.unwrap();
    b.next_ids("order", keyed("other")).await.unwrap();
    migrate(&a, "other").await;
    assert_eq!(b.next_ids("order", keyed("k")).await.unwrap(), first);
    let late = b.next_ids("order", keyed("late")).await.unwrap();
    assert_ne!(late, first);
    assert_eq!(a.next_ids("order", keyed("late")).await.unwrap(), late);
}

/// A key that another call keeps on the old instance after this one has looked there,
/// and before the type leaves it.
#[tokio::test(start_paused = true)]
async fn a_request_key_kept_before_the_type_left_counts() {
    let cluster = cluster(small(100, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    fn keyed(key: &str) -> Order<'_> {
        Order { request_key: Some(key), ..Order::of(3) }
    }
    let earlier = b.next_ids("order", keyed("other")).await.unwrap();
    let text = cluster.dispatcher.recall(&order(), "other").await.unwrap().unwrap();
    cluster.network.set_latency(Duration::from_millis(100));
    let call = tokio::spawn(async move { a.next_ids("order", keyed("k")).await });
    // It has looked for the key, and waits for its ids.
    tokio::time::sleep(Duration::from_millis(150)).await;
    cluster.network.set_latency(Duration::ZERO);
    let ttl = Duration::from_secs(600);
    cluster.dispatcher.remember(&order(), "k", &text, ttl).await.unwrap();
    migrate(&b, "other").await;
    assert_eq!(call.await.unwrap().unwrap(), earlier);
}

/// How long ago the type moved is not told by the store's clock, which was set back
/// after the node last heard of it.
#[tokio::test(start_paused = true)]
async fn request_keys_count_across_a_migration_when_the_clock_is_set() {
    let cluster = cluster(small(100, 100)).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let keyed = Order { request_key: Some("k"), ..Order::of(3) };
    b.next_id("order").await.unwrap();
    let first = a.next_ids("order", keyed).await.unwrap();
    // Between two looks at the store's clock.
    tokio::time::sleep(Duration::from_millis(2_300)).await;
    let an_hour_ago = SystemClock.now_ms() - 3_600_000;
    cluster.store.set_clock(Some(an_hour_ago));
    migrate(&a, "other").await;
    assert_eq!(b.next_ids("order", keyed).await.unwrap(), first);
}

/// Nodes issue snowflake ids without Redis, but keep request keys there.
#[tokio::test(start_paused = true)]
async fn request_keys_of_snowflake_types_move_too() {
    let cluster = cluster(TypeSpec { mode: Mode::Snowflake, ..TypeSpec::new(order()) }).await;
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let keyed = Order { request_key: Some("k"), ..Order::of(3) };
    b.next_id("order").await.unwrap();
    // Nobody tells b.
    let seal = begin(&cluster).await;
    cluster.dispatcher.seal(&order(), seal).await.unwrap();
    let first = b.next_ids("order", keyed).await.unwrap();
    assert_eq!(home(&cluster).await, OTHER);
    assert_eq!(a.next_ids("order", keyed).await.unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_drained_and_removed() {
    let cluster = cluster(small(100, 100)).await;
    for n in 0..150 {
        let name = TypeName::parse(&format!("t{n}")).unwrap();
        let mode = [Mode::Strict, Mode::Segment, Mode::Snowflake][n % 3];
        cluster.create(&TypeSpec { mode, ..TypeSpec::new(name) }).await;
    }
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let mut last = a.next_id("order").await.unwrap();
    assert_eq!(code(a.remove_instance("main", "test").await), ErrorCode::Conflict);
    a.drain_instance("main", Some("other"), "test").await.unwrap();
    let name = TypeName::parse("new").unwrap();
    let on_it = TypeSpec { instance: Some("main".into()), ..TypeSpec::new(name) };
    assert_eq!(code(a.create_type(on_it, "test").await), ErrorCode::InvalidArgument);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let next = b.next_id("order").await.unwrap();
        assert!(next > last);
        last = next;
    }
    let left = cluster.store.instances().await.unwrap().iter().map(|i| i.types).collect::<Vec<_>>();
    assert_eq!(left, [0, 151]);
    a.remove_instance("main", "test").await.unwrap();
    assert!(b.next_id("order").await.unwrap() > last);
}

#[tokio::test(start_paused = true)]
async fn a_plan_changes_nothing() {
    let cluster = cluster(small(100, 100)).await;
    let node = cluster.node("a").await;
    node.next_id("order").await.unwrap();
    let plan = node.plan_migration("order", "other").await.unwrap();
    assert_eq!((plan.rest, plan.keeps_rest, plan.problems.len()), (99, true, 0));
    assert_eq!((plan.from.name.as_str(), plan.to.name.as_str()), ("main", "other"));
    let there = node.plan_migration("order", "main").await.unwrap();
    assert_eq!(there.problems.len(), 1);
    cluster.second_network.set_latency(Duration::from_secs(2));
    let lost = node.plan_migration("order", "other").await.unwrap();
    assert!(lost.to.view.is_none() && lost.problems.len() == 1);
    assert_eq!(node.next_id("order").await.unwrap(), 2);
    let taken = cluster.second.take(&order(), 1).await.unwrap();
    assert!(matches!(taken, TakeOutcome::Stale { .. }));
    for (name, to) in [("missing", "other"), ("order", "missing")] {
        assert!(node.plan_migration(name, to).await.is_err());
    }
}
