//! A schedule from its start to its end.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::Duration;

use idgen::adapters::memory::MemoryDispatcher;
use idgen::domain::{Error, ErrorCode, InstanceSpec, TypeChange};
use idgen::ports::RangeStore;
use idgen::service::admin::AdminApi;
use idgen::service::{Ports, Service, ServiceConfig, ServiceMetrics};
use tokio::time::{Instant, sleep, sleep_until};

use crate::checker::DEADLINE;
use crate::load::{self, Wish};
use crate::mistakes::Mistake;
use crate::plan::{Event, INSTANCES, Kind, NODES, Peer, Plan};
use crate::rng::{Rng, SeededEntropy};
use crate::wire::Wire;
use crate::world::{Server, Up, World};

/// After the last fault, and the start of a node, every type is served again
/// within this time.
const HEALS_WITHIN: Duration = Duration::from_secs(6);
/// After that, migrations that were begun end within this time: calls may have
/// their effect five seconds late, and a migration is left alone for three.
const ARRIVES_WITHIN: Duration = Duration::from_secs(15);

/// What came of a schedule.
pub struct Outcome {
    pub hash: u64,
    pub events: u64,
    pub calls: u64,
    pub failures: u64,
    pub ids: u64,
    pub faults: BTreeMap<&'static str, u64>,
    pub violation: Option<String>,
    pub tail: Vec<String>,
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// A task that panics is a violation, and would go unseen.
fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            before(info);
        }));
    });
    PANICS.set(0);
}

/// Runs `plan`, the same way each time.
pub fn run(plan: &Plan, mistake: Option<Mistake>, verbose: bool) -> Outcome {
    drive(plan, mistake, verbose, schedule)
}

/// A world for `plan`, with what `schedule` lets happen in it.
pub fn drive(
    plan: &Plan,
    mistake: Option<Mistake>,
    verbose: bool,
    schedule: impl AsyncFnOnce(Arc<World>),
) -> Outcome {
    count_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let plan = plan.clone();
    runtime.block_on(async move {
        let world = World::new(plan, mistake, verbose);
        tokio::select! {
            biased;
            () = world.over.cancelled() => {}
            () = schedule(world.clone()) => {}
        }
        if PANICS.get() > 0 {
            world.state().checker.violate("a task panicked".to_owned());
        }
        let violation = world.violation();
        if let Some(violation) = &violation {
            world.note(format_args!("VIOLATION {violation}"));
        }
        let state = world.state();
        Outcome {
            hash: state.trace.hash(),
            events: state.trace.events(),
            calls: state.checker.calls,
            failures: state.checker.failures,
            ids: state.checker.ids,
            faults: state.faults.clone(),
            tail: state.trace.tail(),
            violation,
        }
    })
}

/// Registers the instances, makes the types and starts the nodes.
pub async fn set_up(world: &Arc<World>) {
    world.set_store_clock();
    for instance in 0..INSTANCES {
        let (name, url) = (format!("redis{instance}"), format!("redis://redis{instance}"));
        world.store.add_instance(&InstanceSpec { name, url }, "dba").await.expect("a fresh store");
    }
    for instance in 0..INSTANCES {
        world.history_began(instance).await;
    }
    for of_type in &world.plan.types {
        world.store.create_type(&of_type.spec, "dba").await.expect("a legal type");
    }
    for node in 0..NODES {
        tokio::spawn(keep_node(world.clone(), node));
    }
}

async fn schedule(world: Arc<World>) {
    set_up(&world).await;
    tokio::spawn(copy_redis(world.clone()));
    for number in 0..world.plan.clients {
        tokio::spawn(load::client(world.clone(), number));
    }
    for (at, event) in &world.plan.events {
        sleep_until(world.began + Duration::from_millis(*at)).await;
        happen(&world, event).await;
    }
    sleep_until(world.began + Duration::from_millis(world.plan.storm_ms)).await;
    world.calm();
    for of in 0..world.plan.types.len() {
        restore(&world, of).await;
    }
    let mut lives = Vec::new();
    for node in 0..NODES {
        for of in 0..world.plan.types.len() {
            lives.push(tokio::spawn(serves_again(world.clone(), node, of)));
        }
    }
    for life in lives {
        let _ = life.await;
    }
    every_type_has_arrived(&world).await;
}

/// No type stays on its way, nor on an instance that is being drained.
async fn every_type_has_arrived(world: &World) {
    let until = Instant::now() + ARRIVES_WITHIN;
    loop {
        let moving = world.store.migrations().await.expect("memory answers");
        let instances = world.store.instances().await.expect("memory answers");
        let left = instances.iter().find(|i| i.drain_to.is_some() && i.types > 0);
        let late = match (moving.first(), left) {
            (None, None) => return,
            (Some(record), _) => format!("{} is still on its way", record.name),
            (None, Some(left)) => format!("{} is not drained", left.name),
        };
        if Instant::now() > until {
            return world.state().checker.violate(late);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// A DBA lets a type hand out ids again.
async fn restore(world: &World, of: usize) {
    world.set_store_clock();
    let name = &world.plan.types[of].name;
    world.store.set_retired(name, false, "dba").await.expect("it is there");
}

/// The node gives an id of the type, soon.
async fn serves_again(world: Arc<World>, node: usize, of: usize) {
    let kind = world.plan.types[of].kind;
    let clocks_moved = world.state().clocks_moved;
    if kind == Kind::Snowflake && clocks_moved {
        return; // times that were used may lie ahead for an hour
    }
    // Worker ids of dead nodes come back when their lease ends.
    let leases = match kind {
        Kind::Snowflake => Duration::from_millis(world.plan.worker_lease_ms),
        _ => Duration::ZERO,
    };
    if world.state().out_of_order.contains(&world.plan.types[of].name) {
        return; // a limit that docs/simulation.md tells of
    }
    let mut until = Instant::now() + HEALS_WITHIN + leases;
    let mut seen = None;
    let mut reason = "it did not start".to_owned();
    while Instant::now() < until {
        let Some(up) = world.up(node) else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        if seen != Some(up.line.life) {
            seen = Some(up.line.life);
            until = Instant::now() + HEALS_WITHIN + leases;
        }
        match load::ask(&world, &up, of, &Wish::one(kind)).await {
            Some(Ok(())) => return,
            Some(Err(error)) => {
                if error.code == ErrorCode::Retired {
                    // An operator's call had its effect late.
                    restore(&world, of).await;
                }
                reason = error.to_string();
            }
            None => {}
        }
        sleep(Duration::from_millis(20)).await;
    }
    if world.state().out_of_order.contains(&world.plan.types[of].name) {
        return;
    }
    let stall = format!("{kind:?}: n{node} does not serve again after the last fault: {reason}");
    world.state().checker.violate(stall);
    world.over.cancel();
}

/// Starts the node, again and again.
async fn keep_node(world: Arc<World>, node: usize) {
    let mut rng = Rng::new(world.plan.seed, &format!("keeper {node}"));
    for life in 0.. {
        let line = world.new_line(node, life);
        let wire = Wire { world: world.clone(), line: line.clone() };
        let serve = async {
            let service = loop {
                match start(&wire).await {
                    Ok(service) => break Arc::new(service),
                    Err(_) => sleep(Duration::from_millis(300)).await,
                }
            };
            world.note(format_args!("n{node}.{life} serves"));
            let up = Up { line: line.clone(), service: service.clone() };
            world.nodes.lock().unwrap()[node] = Some(up);
            line.stop.notified().await;
            world.count("orderly stop");
            world.note(format_args!("n{node}.{life} stops"));
            service.close().await;
            world.note(format_args!("n{node}.{life} has stopped"));
        };
        tokio::select! {
            biased;
            () = line.dead.cancelled() => {}
            () = serve => line.dead.cancel(),
        }
        world.nodes.lock().unwrap()[node] = None;
        sleep(Duration::from_millis(rng.between(50, 2_000) as u64)).await;
    }
}

async fn start(wire: &Wire) -> Result<Service, idgen::domain::Error> {
    let Wire { world, line } = wire;
    let config = ServiceConfig {
        node: format!("n{}", line.node),
        deadline: DEADLINE,
        max_waiting: 1_000,
        refill_jobs: 4,
        takeover_grace: Duration::from_millis(250),
        idle_after: Duration::from_millis(world.plan.idle_ms),
        worker_lease: Duration::from_millis(world.plan.worker_lease_ms),
        site: None,
        store_kind: "memory",
    };
    let ports = Ports {
        store: Arc::new(wire.clone()),
        factory: Arc::new(wire.clone()),
        workers: Arc::new(wire.clone()),
        entropy: Arc::new(SeededEntropy::new(
            world.plan.seed,
            &format!("entropy {} {}", line.node, line.life),
        )),
        clock: world.node_clocks[line.node].clone(),
        import_source: Arc::new(idgen::adapters::mysql::MysqlImportSource),
    };
    let metrics = ServiceMetrics::register(&prometheus::Registry::new()).expect("a fresh registry");
    Service::start(config, ports, metrics).await
}

/// Replicas and disks follow the masters, late.
async fn copy_redis(world: Arc<World>) {
    let mut rng = Rng::new(world.plan.seed, "copies");
    loop {
        sleep(Duration::from_millis(rng.between(50, 500) as u64)).await;
        let redis = &world.redis[rng.index(INSTANCES)];
        let now = redis.master().data.snapshot();
        if rng.chance(200_000) {
            *redis.disk.lock().unwrap() = now.clone();
        }
        *redis.replica.lock().unwrap() = now;
    }
}

pub async fn happen(world: &Arc<World>, event: &Event) {
    let harms = match event {
        Event::Cut { peer, .. } => *peer != Peer::Store,
        Event::RedisDown { .. }
        | Event::RedisEmpty { .. }
        | Event::RedisOld { .. }
        | Event::Flush { .. }
        | Event::Evict { .. }
        | Event::Promote { .. }
        | Event::Repromote { .. }
        | Event::Reserve { .. }
        | Event::Migrate { abandon: true, .. } => true,
        _ => false,
    };
    if harms && !world.may_harm_redis() {
        return;
    }
    let until = |ms: i64| Instant::now() + Duration::from_millis(ms as u64);
    match event {
        Event::Restore | Event::Backup | Event::Repromote { .. } | Event::Stop { .. } => {}
        event => world.note(format_args!("{event:?}")),
    }
    match *event {
        Event::Pause { node, ms } => {
            if let Some(line) = world.line(node) {
                world.count("pause");
                line.pause(ms);
            }
        }
        Event::Crash { node } => {
            if let Some(line) = world.line(node) {
                world.count("crash");
                world.crash(&line);
            }
        }
        Event::Stop { node } => {
            if let Some(up) = world.up(node) {
                up.line.stop.notify_one();
            }
        }
        Event::Cut { node, peer, cut, ms } => {
            world.count("cut");
            world.add_cut(node, peer, cut, until(ms));
        }
        Event::RedisDown { instance, ms } => {
            world.count("Redis out of reach");
            world.set_redis_down(instance, until(ms));
        }
        Event::RedisEmpty { instance } => {
            world.count("Redis restarted empty");
            let master = world.redis[instance].master();
            master.data.flush();
            master.data.change_history(&world.entropy);
            world.history_began(instance).await;
            world.redis_lost(instance);
        }
        Event::RedisOld { instance } => {
            world.count("Redis restarted from a snapshot");
            let redis = &world.redis[instance];
            redis.master().data.restart_from(&redis.disk.lock().unwrap(), &world.entropy);
            world.history_began(instance).await;
            world.redis_lost(instance);
        }
        Event::Flush { instance } => {
            world.count("Redis flushed");
            world.redis[instance].master().data.flush();
            world.redis_lost(instance);
        }
        Event::Evict { of } => {
            world.count("key evicted");
            let of_type = &world.plan.types[of];
            let instance = world.home(of);
            world.redis[instance].master().data.evict(&of_type.name);
            world.redis_lost(instance);
        }
        Event::Promote { instance, split_ms, with_old } => {
            promote(world, instance, split_ms, with_old);
            world.history_began(instance).await;
        }
        Event::Repromote { instance, with_own } => {
            repromote(world, instance, with_own);
            world.history_began(instance).await;
        }
        Event::StoreDown { ms } => {
            world.count("store out of reach");
            world.set_store_down(until(ms));
        }
        Event::Backup => world.take_backup(),
        Event::Restore => world.restore_backup(),
        Event::NodeClock { node, skew_ms } => {
            world.count("clock moved");
            world.state().clocks_moved = true;
            world.node_clocks[node].set_skew(skew_ms);
        }
        Event::StoreClock { skew_ms } => {
            world.count("clock moved");
            world.state().clocks_moved = true;
            world.store_clock.set_skew(skew_ms);
        }
        Event::Reserve { of, count } => reserve(world, of, count).await,
        Event::Alter { node, .. }
        | Event::Retire { node, .. }
        | Event::Rotate { node, .. }
        | Event::Migrate { node, .. }
        | Event::Undo { node, .. }
        | Event::Drain { node, .. } => {
            if let Some(up) = world.up(node) {
                world.count("act of an operator");
                tokio::spawn(operate(world.clone(), up, event.clone()));
            }
        }
    }
}

fn promote(world: &Arc<World>, instance: usize, split_ms: Option<i64>, with_old: [bool; NODES]) {
    world.count(if split_ms.is_some() { "split brain" } else { "replica promoted" });
    let redis = &world.redis[instance];
    let checks = world.mistake.map(Mistake::checks).unwrap_or_default();
    let data = MemoryDispatcher::with_checks(&world.entropy, checks);
    data.restart_from(&redis.replica.lock().unwrap(), &world.entropy);
    let old = redis.master();
    let index = {
        let mut servers = redis.servers.lock().unwrap();
        servers.push(Arc::new(Server { data, up: true.into() }));
        servers.len() - 1
    };
    redis.current.store(index, Ordering::Relaxed);
    world.redis_lost(instance);
    let Some(ms) = split_ms else {
        old.up.store(false, Ordering::Relaxed);
        return;
    };
    for (node, stays) in with_old.into_iter().enumerate() {
        if let Some(line) = world.line(node).filter(|_| !stays) {
            line.connected[instance].store(index, Ordering::Relaxed);
        }
    }
    let world = world.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(ms as u64)).await;
        // Unless it became the master again.
        if !Arc::ptr_eq(&world.redis[instance].master(), &old) {
            old.up.store(false, Ordering::Relaxed);
            world.note(format_args!("the old master of redis{instance} is gone"));
        }
    });
}

fn repromote(world: &World, instance: usize, with_own: bool) {
    let redis = &world.redis[instance];
    let current = redis.current.load(Ordering::Relaxed);
    if current == 0 {
        return;
    }
    world.count("old master promoted");
    world.note(format_args!("the old master of redis{instance} is the master again"));
    let (now, old) = (redis.server(current), redis.server(current - 1));
    match with_own {
        true => old.data.change_history(&world.entropy),
        false => old.data.restart_from(&now.data.snapshot(), &world.entropy),
    }
    old.up.store(true, Ordering::Relaxed);
    now.up.store(false, Ordering::Relaxed);
    redis.current.store(current - 1, Ordering::Relaxed);
    world.redis_lost(instance);
}

/// A DBA reserves a block by hand. Redis does not hear of it.
async fn reserve(world: &World, of: usize, count: i64) {
    let of_type = &world.plan.types[of];
    if !of_type.kind.is_plain() {
        return;
    }
    world.set_store_clock();
    if let Ok(block) = world.store.reserve(&of_type.name, count, 0, "dba").await {
        world.count("block reserved");
        world.gave_out(of_type.name.to_string(), 0, block.end());
        let mut state = world.state();
        state.harm += 1;
        state.checker.reserved(of, block);
    }
}

/// What an operator was told.
fn tell(world: &World, result: Result<(), Error>, what: &'static str) {
    let Err(error) = result else { return };
    world.note(format_args!("{what}: {error}"));
    let expected = matches!(
        error.code,
        ErrorCode::Unavailable | ErrorCode::Conflict | ErrorCode::InvalidArgument
    );
    if !expected {
        world.state().checker.violate(format!("a {what} failed with {error:?}"));
        world.over.cancel();
    }
}

async fn operate(world: Arc<World>, up: Up, event: Event) {
    let Up { line, service } = up;
    let act = async {
        match event {
            Event::Alter { of, max_range, .. } => {
                let change = TypeChange { max_range: Some(max_range), ..TypeChange::default() };
                let name = world.plan.types[of].name.as_str();
                let _ = service.alter_type(name, change, "operator").await;
            }
            Event::Retire { of, ms, .. } => {
                let name = world.plan.types[of].name.as_str();
                let _ = service.set_retired(name, true, "operator").await;
                sleep(Duration::from_millis(ms as u64)).await;
                let _ = service.set_retired(name, false, "operator").await;
            }
            Event::Rotate { of, .. } => {
                let name = world.plan.types[of].name.as_str();
                let _ = service.rotate_key(name, "operator").await;
            }
            Event::Migrate { of, to, abandon, .. } => {
                let name = &world.plan.types[of].name;
                let to = format!("redis{to}");
                let _ = service.plan_migration(name.as_str(), &to).await;
                if abandon {
                    world.state().abandoned.insert(name.clone());
                }
                let moved = service.migrate(name.as_str(), &to, abandon, "operator").await;
                tell(&world, moved.map(drop), "migration");
            }
            Event::Undo { of, .. } => {
                let name = world.plan.types[of].name.as_str();
                let undone = service.undo_migration(name, "operator").await;
                tell(&world, undone.map(drop), "undoing");
            }
            Event::Drain { from, ms, .. } => {
                let (from, to) = (format!("redis{from}"), format!("redis{}", 1 - from));
                let _ = service.drain_instance(&from, Some(&to), "operator").await;
                if let Some(ms) = ms {
                    sleep(Duration::from_millis(ms as u64)).await;
                    let _ = service.drain_instance(&from, None, "operator").await;
                }
            }
            _ => {}
        }
    };
    tokio::select! {
        biased;
        () = line.dead.cancelled() => {}
        () = act => {}
    }
}
