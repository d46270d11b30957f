//! Schedules by hand: each is a fault that the simulation found, in its shortest form.

use std::sync::Arc;
use std::time::Duration;

use idgen::domain::{TypeName, TypeSpec};
use idgen::ports::RangeStore;
use tokio::time::sleep;

use crate::load::{Wish, ask};
use crate::mistakes::Mistake;
use crate::plan::{Event, Kind, Mishap, NODES, Plan, Type};
use crate::rng::Rng;
use crate::run::{Outcome, drive, happen, set_up};
use crate::world::{Up, World};

/// One type on the first instance, three nodes that are up, and nothing that happens.
fn quiet(kind: Kind) -> Plan {
    let mut of_type = Type::draw(kind, &mut Rng::new(0, "named"));
    of_type.instance = 0;
    of_type.spec.instance = Some("redis0".to_owned());
    Plan {
        types: vec![of_type],
        rates: [0; Mishap::ALL.len()],
        events: Vec::new(),
        clients: 0,
        idle_ms: 900_000,
        redis_is_safe: false,
        ..Plan::draw(0)
    }
}

async fn up(world: &World, node: usize) -> Up {
    loop {
        match world.up(node) {
            Some(up) => return up,
            None => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn ask_one(world: &World, node: usize) -> bool {
    let wish = Wish::one(world.plan.types[0].kind);
    matches!(ask(world, &up(world, node).await, 0, &wish).await, Some(Ok(())))
}

/// The master that a promotion left behind has a history that the store never heard
/// of for this type, because nobody asked for it while that master was the only one.
async fn old_master_of_a_fresh_type(world: Arc<World>) {
    set_up(&world).await;
    for node in 0..NODES {
        up(&world, node).await;
    }
    let with_old = [true, false, false];
    let promotion = Event::Promote { instance: 0, split_ms: Some(4_000), with_old };
    happen(&world, &promotion).await;
    assert!(ask_one(&world, 1).await, "the new master serves");
    for _ in 0..30 {
        for node in 0..NODES {
            ask_one(&world, node).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
    for node in 0..NODES {
        assert!(ask_one(&world, node).await, "node {node} serves when the old master is gone");
    }
}

fn limits(outcome: &Outcome) -> u64 {
    outcome.faults.iter().filter(|(name, _)| name.starts_with("LIMIT")).map(|(_, n)| n).sum()
}

#[test]
fn an_old_master_gets_no_range_of_a_type_that_it_never_loaded() {
    let plan = quiet(Kind::Strict);
    let outcome = drive(&plan, None, false, old_master_of_a_fresh_type);
    assert_eq!(outcome.violation, None);
    assert_eq!(limits(&outcome), 0, "the store keeps the newest history");
}

#[test]
#[should_panic(expected = "serves when the old master is gone")]
fn without_new_connections_it_does() {
    let plan = quiet(Kind::Strict);
    drive(&plan, Some(Mistake::Reset), false, old_master_of_a_fresh_type);
}

/// The store loses a new key, and changes that follow at once bring its feed to the
/// number that nodes have read up to: none of them sees that it went back.
async fn a_rollback_that_the_feed_hides(world: Arc<World>) {
    set_up(&world).await;
    for node in 0..NODES {
        up(&world, node).await;
        assert!(ask_one(&world, node).await);
    }
    world.take_backup();
    happen(&world, &Event::Rotate { node: 1, of: 0 }).await;
    sleep(Duration::from_millis(700)).await;
    world.restore_backup();
    for n in 0..3 {
        let name = TypeName::parse(&format!("other-{n}")).expect("a legal name");
        world.store.create_type(&TypeSpec::new(name), "dba").await.expect("a new type");
    }
    sleep(Duration::from_millis(700)).await;
    for node in 0..NODES {
        assert!(ask_one(&world, node).await, "node {node} serves after the rollback");
    }
}

#[test]
fn a_node_that_did_not_see_a_rollback_serves_all_the_same() {
    let plan = quiet(Kind::StrictOpaque);
    let outcome = drive(&plan, None, false, a_rollback_that_the_feed_hides);
    assert_eq!(outcome.violation, None);
    assert_eq!(outcome.faults.get("store rolled back"), Some(&1));
}

/// All nodes lease their ranges at the same moments, and Redis is away, which would
/// notice that a range is leased twice.
async fn everybody_at_once(world: Arc<World>) {
    set_up(&world).await;
    for node in 0..NODES {
        up(&world, node).await;
    }
    happen(&world, &Event::RedisDown { instance: 0, ms: 600_000 }).await;
    for _ in 0..40 {
        tokio::join!(ask_many(&world, 0), ask_many(&world, 1), ask_many(&world, 2));
    }
}

/// So many that a range is used up soon.
async fn ask_many(world: &World, node: usize) {
    let wish = Wish::of(Kind::Segment, 50);
    let _ = ask(world, &up(world, node).await, 0, &wish).await;
}

#[test]
fn without_a_row_lock_ids_repeat() {
    let plan = quiet(Kind::Segment);
    let whole = drive(&plan, None, false, everybody_at_once);
    assert_eq!(whole.violation, None);
    assert!(whole.ids >= 5_000, "{} ids", whole.ids);
    let torn = drive(&plan, Some(Mistake::RowLock), false, everybody_at_once);
    assert!(torn.violation.is_some_and(|v| v.contains("issued twice")));
}
