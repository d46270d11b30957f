//! Schedules by hand: each is a fault that the simulation found, in its shortest form.

use std::sync::Arc;
use std::time::Duration;

use idgen::domain::snowflake::Layout;
use idgen::domain::{Assignment, InstanceId, Seal, TypeName, TypeSpec};
use idgen::ports::{Dispatcher, NextRange, Publication, RangeStore};
use idgen::service::admin::AdminApi;
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

/// All calls of the nodes are slow, and a call for an id has to find its type first.
async fn ask_when_all_is_slow(world: Arc<World>) {
    set_up(&world).await;
    for node in 0..NODES {
        ask_one(&world, node).await;
    }
}

#[test]
fn a_call_that_has_to_find_its_type_ends_in_time_too() {
    let mut plan = quiet(Kind::Strict);
    let slow = Mishap::ALL.iter().position(|m| *m == Mishap::Slow).expect("one of all");
    plan.rates[slow] = 1_000_000;
    let outcome = drive(&plan, None, false, ask_when_all_is_slow);
    assert_eq!(outcome.violation, None);
    assert_eq!(outcome.calls, 3);
}

async fn everybody_up(world: &Arc<World>) {
    set_up(world).await;
    for node in 0..NODES {
        up(world, node).await;
    }
}

async fn ask_for(world: &World, node: usize, count: i64) {
    let wish = Wish::of(world.plan.types[0].kind, count);
    let _ = ask(world, &up(world, node).await, 0, &wish).await;
}

/// The node stops in order, and another life of it begins.
async fn again(world: &World, node: usize) {
    let life = up(world, node).await.line.life;
    world.up(node).expect("it is up").line.stop.notify_one();
    while up(world, node).await.line.life == life {
        sleep(Duration::from_millis(10)).await;
    }
}

/// What the checker says without the check, and that it says nothing with it.
fn shows(plan: &Plan, mistake: Mistake, schedule: impl AsyncFn(Arc<World>)) -> String {
    let whole = drive(plan, None, false, |world| schedule(world));
    assert_eq!(whole.violation, None);
    assert!(whole.ids > 0, "nothing was issued");
    let broken = drive(plan, Some(mistake), false, |world| schedule(world)).violation;
    broken.unwrap_or_else(|| panic!("{mistake:?} is not caught"))
}

/// A holder of the lock sleeps between allocation and publication. Others publish
/// and hand out meanwhile; then the key is evicted, so that nothing that is published
/// can tell that its range is older.
async fn a_sleeper_publishes_after_an_eviction(world: Arc<World>) {
    everybody_up(&world).await;
    assert!(ask_one(&world, 0).await);
    let (name, redis) = (world.plan.types[0].name.clone(), world.redis[0].master());
    let history = redis.data.history().await.expect("memory answers");
    let target = Some((InstanceId(1), &history));
    let request = NextRange { target, ..NextRange::of(&name, "sleeper") };
    let slept = world.store.next_range(request).await.expect("it is there");
    for _ in 0..20 {
        ask_for(&world, 1, 50).await;
    }
    sleep(Duration::from_secs(5)).await;
    happen(&world, &Event::Evict { of: 0 }).await;
    let publication = Publication {
        range: slept.range,
        update_id: slept.update_id,
        history: &history,
        token: "sleeper",
        generation: 0,
        replaces: false,
    };
    let _ = redis.data.publish(&name, publication).await;
    assert!(ask_one(&world, 2).await);
}

#[test]
fn without_the_token_a_sleeper_publishes_what_is_old() {
    let plan = quiet(Kind::Strict);
    let shown = shows(&plan, Mistake::Token, a_sleeper_publishes_after_an_eviction);
    assert!(shown.contains("had been returned"), "{shown}");
}

/// A node stops after another one has leased a range above its own.
async fn a_node_stops_below_another(world: Arc<World>) {
    everybody_up(&world).await;
    ask_for(&world, 0, 10).await;
    ask_for(&world, 1, 10).await;
    again(&world, 0).await;
    if world.mistake != Some(Mistake::TailAndWitness) {
        happen(&world, &Event::RedisDown { instance: 0, ms: 600_000 }).await;
    }
    // The other one, which knows how far it is, asks the store for nothing meanwhile.
    for _ in 0..30 {
        ask_for(&world, 0, 30).await;
    }
    for _ in 0..30 {
        ask_for(&world, 1, 30).await;
    }
}

#[test]
fn what_goes_back_from_the_middle_repeats() {
    let plan = quiet(Kind::Segment);
    for mistake in [Mistake::Tail, Mistake::TailAndWitness] {
        let shown = shows(&plan, mistake, a_node_stops_below_another);
        assert!(shown.contains("issued twice"), "{shown}");
    }
}

/// One node has all worker ids in turn, and the first one again, while its clock goes
/// over the same times again.
async fn the_same_times_again(world: Arc<World>) {
    everybody_up(&world).await;
    for life in 0..5 {
        if life == 4 {
            let back = world.began.elapsed().as_millis() as i64;
            world.node_clocks[0].set_skew(-back);
        }
        for _ in 0..200 {
            ask_for(&world, 0, 100_000).await;
            sleep(Duration::from_millis(1)).await;
        }
        again(&world, 0).await;
    }
}

#[test]
fn without_the_spans_of_others_times_repeat() {
    let mut plan = quiet(Kind::Snowflake);
    let layout = Layout { worker_bits: 2, sequence_bits: 17, ..Layout::default() };
    plan.types[0].spec.options.snowflake = Some(layout);
    let shown = shows(&plan, Mistake::TenureSpans, the_same_times_again);
    assert!(shown.contains("issued twice"), "{shown}");
}

/// Who moves a type sleeps after the seal. The old Redis loses the seal, and a range
/// above what was left is handed out there.
async fn a_rest_is_overtaken(world: Arc<World>) {
    everybody_up(&world).await;
    for node in 0..2 {
        assert!(ask_one(&world, node).await);
    }
    let (name, redis) = (world.plan.types[0].name.clone(), world.redis[0].master());
    let mover = up(&world, 0).await;
    let moving = {
        let (service, name) = (mover.service.clone(), name.clone());
        tokio::spawn(async move { service.migrate(name.as_str(), "redis1", false, "dba").await })
    };
    while redis.data.view(&name).await.expect("memory answers").sealed.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    mover.line.pause(1_500);
    happen(&world, &Event::RedisEmpty { instance: 0 }).await;
    for _ in 0..20 {
        ask_for(&world, 1, 10).await;
    }
    let moved = moving.await.expect("it does not panic").expect("it moved");
    assert_eq!(moved.record.instance, InstanceId(2));
    // A node that has not heard of it may go on for a second.
    sleep(Duration::from_millis(1_500)).await;
    assert!(ask_one(&world, 2).await);
}

#[test]
fn a_rest_without_the_right_to_it_is_old() {
    let plan = quiet(Kind::Strict);
    let shown = shows(&plan, Mistake::KeepsRest, a_rest_is_overtaken);
    assert!(shown.contains("had been returned"), "{shown}");
}

/// The store forgets that the type was moved, and what was given out since. Nobody
/// who is asked then knows more.
async fn the_store_forgets_a_migration(world: Arc<World>) {
    everybody_up(&world).await;
    ask_for(&world, 0, 10).await;
    // Until all nodes trust both instances.
    sleep(Duration::from_millis(2_500)).await;
    world.take_backup();
    let service = up(&world, 0).await.service;
    let name = world.plan.types[0].name.as_str();
    // Before the migration, and after it. Before it more than one range holds, so that
    // the next lease does not meet those that were noted after it.
    for _ in 0..5 {
        ask_for(&world, 0, 300).await;
    }
    service.migrate(name, "redis1", false, "dba").await.expect("both answer");
    ask_for(&world, 0, 600).await;
    // The one who knows more is gone.
    world.crash(&up(&world, 0).await.line);
    world.restore_backup();
    assert_eq!(world.state().faults.get("store rolled back"), Some(&1));
    for _ in 0..8 {
        ask_for(&world, 2, 100).await;
        ask_for(&world, 1, 100).await;
    }
}

#[test]
fn what_a_store_forgot_of_a_migration_repeats() {
    shows(&quiet(Kind::Strict), Mistake::Forgotten, the_store_forgets_a_migration);
}

/// A node moved the type, and another one has not heard of it.
async fn a_node_moves_a_type(world: Arc<World>) {
    everybody_up(&world).await;
    for node in 0..2 {
        ask_for(&world, node, 1).await;
    }
    let service = up(&world, 0).await.service;
    let name = world.plan.types[0].name.as_str();
    service.migrate(name, "redis1", false, "dba").await.expect("both answer");
    for node in 0..2 {
        ask_for(&world, node, 1).await;
    }
}

#[test]
fn without_seals_both_instances_hand_out() {
    let mut plan = quiet(Kind::Strict);
    let lost = Mishap::ALL.iter().position(|m| *m == Mishap::LostNews).expect("one of all");
    plan.rates[lost] = 1_000_000;
    let shown = shows(&plan, Mistake::Seals, a_node_moves_a_type);
    assert!(shown.contains("had been returned"), "{shown}");
}

/// The assignment of somebody who slept since the seal, while the type went, and
/// came back.
async fn an_assignment_comes_late(world: Arc<World>) {
    everybody_up(&world).await;
    for node in 0..NODES {
        ask_for(&world, node, 1).await;
    }
    let of_type = &world.plan.types[0];
    let service = up(&world, 0).await.service;
    for to in ["redis1", "redis0"] {
        service.migrate(of_type.name.as_str(), to, false, "dba").await.expect("both answer");
    }
    sleep(Duration::from_secs(1)).await;
    let seal = Seal { generation: 1, target: InstanceId(2) };
    let history = world.redis[1].master().data.history().await.expect("memory answers");
    let assignment = Assignment { seal, history: Some(&history), rest_end: None };
    let _ = world.store.assign_type(&of_type.name, assignment, "sleeper").await;
    for _ in 0..40 {
        for node in 0..NODES {
            ask_for(&world, node, 10).await;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn an_assignment_that_comes_late_splits_a_type() {
    let plan = quiet(Kind::Strict);
    let shown = shows(&plan, Mistake::LateAssignment, an_assignment_comes_late);
    assert!(shown.contains("had been returned"), "{shown}");
}

/// The store goes back, Redis has nothing left, and a node that knows better is asked
/// first.
async fn only_a_node_knows(world: Arc<World>) {
    everybody_up(&world).await;
    sleep(Duration::from_millis(2_500)).await;
    world.take_backup();
    // More than a node gets through within one call.
    for _ in 0..40 {
        ask_for(&world, 0, 2_000).await;
    }
    world.restore_backup();
    assert_eq!(world.state().faults.get("store rolled back"), Some(&1));
    world.redis[0].master().data.flush();
    for node in [0, 2, 1] {
        ask_for(&world, node, 60).await;
    }
}

#[test]
fn without_the_floor_the_store_repeats() {
    let shown = shows(&quiet(Kind::Strict), Mistake::Floor, only_a_node_knows);
    assert!(shown.contains("had been returned"), "{shown}");
}
