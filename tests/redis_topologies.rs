//! Sentinel groups and Redis Clusters of real processes: fail-overs, demotions,
//! slots that move, and a node that goes on through all of it.

mod support;

use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::redis::{RedisDispatcher, RedisOptions};
use idgen::domain::{History, IdRange, TypeName};
use idgen::ports::conformance;
use idgen::ports::{
    Announcement, DispatchError, Dispatcher, LockOutcome, Publication, PublishOutcome, TakeOutcome,
};
use serde_json::Value;
use support::node::{Cluster, Verify, idgen};
use support::redis::RedisServer;
use support::redis_groups::{RedisCluster, SentinelGroup, until};
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(1);

fn connect(url: &str) -> Arc<RedisDispatcher> {
    let options = RedisOptions { timeout: LIMIT, ca_file: None };
    Arc::new(RedisDispatcher::new(url, &options).expect("a good URL"))
}

fn name(text: &str) -> TypeName {
    TypeName::parse(text).unwrap()
}

/// Asks until the dispatcher answers; at most 20 s. No call may take much longer
/// than its time limit.
async fn answer<T>(ask: impl AsyncFn() -> Result<T, DispatchError>) -> T {
    let bound = Instant::now() + Duration::from_secs(20);
    loop {
        let began = Instant::now();
        let result = ask().await;
        let took = began.elapsed();
        assert!(took < LIMIT + Duration::from_millis(500), "one call took {took:?}");
        match result {
            Ok(value) => return value,
            Err(error) => {
                assert!(matches!(error, DispatchError::Unavailable(_)), "{error:?}");
                assert!(Instant::now() < bound, "still: {error}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

async fn publish(dispatcher: &dyn Dispatcher, name: &TypeName, start: i64, end: i64) {
    // As a refill does: whatever fails is tried again with a new token, and a
    // range whose fate is unknown is burnt.
    let mut start = start;
    let bound = Instant::now() + Duration::from_secs(20);
    loop {
        let history = answer(async || dispatcher.view(name).await).await.history;
        let token = format!("token-{start}");
        let ttl = Duration::from_millis(500);
        let locked = answer(async || dispatcher.lock(name, &token, ttl, None).await).await;
        if locked != LockOutcome::Held {
            let range = IdRange::new(start, end).unwrap();
            let publication = Publication {
                range,
                update_id: start,
                history: &history,
                token: &token,
                generation: 0,
                replaces: false,
            };
            let outcome = dispatcher.publish(name, publication).await;
            let _ = dispatcher.unlock(name, &token).await;
            match outcome {
                Ok(PublishOutcome::Published) => return,
                outcome => assert!(Instant::now() < bound, "{outcome:?}"),
            }
        }
        start += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn history(dispatcher: &dyn Dispatcher, name: &TypeName) -> History {
    answer(async || dispatcher.view(name).await).await.history
}

async fn is_stale(dispatcher: &dyn Dispatcher, name: &TypeName) -> bool {
    let outcome = answer(async || dispatcher.take(name, 1).await).await;
    matches!(outcome, TakeOutcome::Stale { .. })
}

/// Whether the replica has received all that its master wrote.
fn in_step(master: &RedisServer, replica: &RedisServer) -> bool {
    let field = |server: &RedisServer, name: &str| {
        let info = server.cli(&["info", "replication"]);
        let line = info.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.and_then(|text| text.trim().parse::<u64>().ok())
    };
    let written = field(master, "master_repl_offset:");
    written.is_some() && field(replica, "slave_repl_offset:") >= written
}

async fn resumed(news: &mut tokio::sync::broadcast::Receiver<Announcement>) {
    let wait = async { while news.recv().await.expect("news") != Announcement::Resumed {} };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the listener came back");
}

/// Blocking work of a test, beside the tasks of the dispatcher.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("no panic")
}

/// The checks of `idgen doctor` on the Redis at `url`, and the text of all.
fn doctor(url: &str) -> (Vec<Value>, String) {
    let output = idgen(&["doctor", "--redis", url, "--json"]);
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (all.into_iter().filter(|check| check["part"] == "redis").collect(), text)
}

/// What was found by the checks of that name.
fn found<'a>(checks: &'a [Value], name: &str) -> Vec<(&'a str, &'a str)> {
    let named = checks.iter().filter(|check| check["name"] == name);
    named.map(|c| (c["verdict"].as_str().unwrap(), c["found"].as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentinel_group_conforms_with_accounts_of_both_kinds() {
    let server = ["--requirepass", "se:c@ret", "--masterauth", "se:c@ret"];
    let sentinel = [
        "sentinel auth-pass main se:c@ret",
        "requirepass watch-word",
        "sentinel sentinel-pass watch-word",
    ];
    let account = ":se%3Ac%40ret@:watch-word";
    let group = beside(move || SentinelGroup::start_with(&server, &sentinel, account)).await;
    conformance::dispatcher(connect(&group.url())).await;

    for (good, bad) in [("watch-word", "hush-1"), ("se%3Ac%40ret", "hush-2")] {
        let stranger = connect(&group.url().replace(good, bad));
        let error = stranger.history().await.unwrap_err();
        assert!(matches!(error, DispatchError::Unavailable(_)), "{error:?}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    let (checks, text) = beside({
        let url = group.url();
        move || doctor(&url)
    })
    .await;
    assert!(!text.contains("watch-word") && !text.contains("c@ret"), "{text}");
    let master = format!("127.0.0.1:{} by the newest word", group.servers[0].port());
    assert_eq!(found(&checks, "sentinels"), [("ok", "3 of 3 answer for main")]);
    assert_eq!(found(&checks, "quorum"), [("ok", "2 of 3 Sentinels")]);
    assert_eq!(found(&checks, "master"), [("ok", &master[..])]);
    assert_eq!(found(&checks, "connection").len(), 3, "{text}");
    assert_eq!(found(&checks, "replica").iter().filter(|c| c.0 == "ok").count(), 2, "{text}");
    let split = found(&checks, "split brain");
    assert!(split.len() == 3 && split.iter().all(|c| c.0 == "warn"), "{text}");

    let elsewhere = connect(&group.url().replace("/main", "/other"));
    let error = elsewhere.history().await.unwrap_err().to_string();
    assert!(error.contains("No such master"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_master_is_followed_and_what_it_had_published_is_dropped() {
    let mut group = beside(SentinelGroup::start).await;
    let dispatcher = connect(&group.url());
    let mut news = dispatcher.subscribe();
    let asked = dispatcher.clone();
    conformance::dispatcher_after_rollback(dispatcher.clone(), async || {
        resumed(&mut news).await;
        tokio::task::block_in_place(|| {
            let [master, a, b] = &group.servers[..] else { panic!() };
            until("replicas in step", || in_step(master, a) && in_step(master, b));
        });
        group.servers[0].kill();
        let ports = [group.servers[1].port(), group.servers[2].port()];
        let promoted = tokio::task::spawn_blocking(move || {
            until("a new master", || {
                let role = |port| support::redis_groups::cli(port, &["role"]);
                ports.iter().any(|port| role(*port).starts_with("master"))
            });
            Instant::now()
        });
        // The view is read-only, so a lock is what shows that writes arrive.
        let lock = async || asked.lock(&name("probe"), "t", Duration::from_secs(1), None).await;
        answer(lock).await;
        let answered = Instant::now();
        let stall = answered.saturating_duration_since(promoted.await.unwrap());
        println!("answers {stall:?} after the promotion");
        // The Sentinels look only once a second whether it is done.
        assert!(stall < Duration::from_millis(1_500), "{stall:?} after the promotion");
        resumed(&mut news).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_and_a_silent_master_are_followed_with_a_dead_sentinel() {
    let mut group = beside(SentinelGroup::start).await;
    let dispatcher = connect(&group.url());
    let other = connect(&group.url());
    let order = name("order");
    publish(&*dispatcher, &order, 1, 1_001).await;
    assert!(!is_stale(&*other, &order).await);
    let first = history(&*dispatcher, &order).await;

    assert_eq!(group.sentinel(0, &["sentinel", "failover", "main"]), "OK");
    // The old master lives, and answers as a replica.
    tokio::task::block_in_place(|| {
        until("a demotion", || group.servers[0].cli(&["role"]).starts_with("slave"));
    });
    publish(&*dispatcher, &order, 2_001, 3_001).await;
    let second = history(&*dispatcher, &order).await;
    assert_ne!(first, second);
    assert!(!is_stale(&*other, &order).await, "both found the same one");
    tokio::task::block_in_place(|| {
        until("the whole group", || {
            let master = group.master();
            let line = |s: &RedisServer| s.cli(&["info", "replication"]);
            line(&group.servers[master]).matches("state=online").count() == 2
        });
    });

    // The leader may be any of the others; two of three are a majority.
    group.kill_sentinel(0);
    let silent = (0..3).find(|place| group.servers[*place].cli(&["role"]).starts_with("master"));
    group.servers[silent.unwrap()].signal("STOP");
    publish(&*dispatcher, &order, 4_001, 5_001).await;
    let third = history(&*dispatcher, &order).await;
    assert_ne!(second, third);
    assert!(!is_stale(&*other, &order).await);
    group.servers[silent.unwrap()].signal("CONT");
    assert_eq!(history(&*dispatcher, &order).await, third, "the old one is not gone back to");
}

/// A master that is cut off from its Sentinels but not from a node: the node is
/// told by the range store, which resets the dispatcher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_reset_the_newest_configuration_counts() {
    let [old, new] = [RedisServer::start(), RedisServer::start()];
    let sentinels: Vec<_> = [(1, &old), (2, &new), (2, &new)]
        .into_iter()
        .map(|(epoch, master)| support::redis_groups::lone_sentinel(epoch, master.port()))
        .collect();
    let ports: Vec<_> = sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
    let order = name("order");
    // The one with old news alone, then the same first of three.
    let misled = connect(&format!("redis+sentinel://{}/main", ports[0]));
    publish(&*misled, &order, 1, 101).await;
    assert_eq!(old.cli(&["hget", "idgen:{order}", "end"]), "101");
    let dispatcher = connect(&format!("redis+sentinel://{}/main", ports.join(",")));
    for _ in 0..5 {
        assert!(is_stale(&*dispatcher, &order).await, "it found the new one");
        dispatcher.reset().await;
    }
    publish(&*dispatcher, &order, 101, 201).await;
    assert_eq!(new.cli(&["hget", "idgen:{order}", "end"]), "201");
}

/// Sentinels cut the connections of a master that they demote. Where nobody does,
/// its answer to a write says enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_became_read_only_is_left() {
    let [old, new] = [RedisServer::start(), RedisServer::start()];
    let sentinel = support::redis_groups::lone_sentinel(1, old.port());
    let dispatcher = connect(&format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port()));
    let order = name("order");
    publish(&*dispatcher, &order, 1, 101).await;
    let port = new.port().to_string();
    let tell = |arguments: &[&str]| support::redis_groups::cli(sentinel.port(), arguments);
    assert_eq!(tell(&["sentinel", "remove", "main"]), "OK");
    assert_eq!(tell(&["sentinel", "monitor", "main", "127.0.0.1", &port, "1"]), "OK");
    assert_eq!(old.cli(&["replicaof", "127.0.0.1", &port]), "OK");
    let lock = dispatcher.lock(&order, "t", LIMIT, None).await.unwrap_err();
    assert!(lock.to_string().contains("read only replica"), "{lock}");
    publish(&*dispatcher, &order, 101, 201).await;
    assert_eq!(new.cli(&["hget", "idgen:{order}", "end"]), "201");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_conforms() {
    let cluster = beside(RedisCluster::start).await;
    conformance::dispatcher(connect(&cluster.url())).await;

    // News arrives at whatever server one is subscribed to.
    let [a, b] = [connect(&cluster.url()), connect(&cluster.url())];
    let mut news = b.subscribe();
    resumed(&mut news).await;
    for number in 0..6 {
        let announced = Announcement::Type(name(&format!("type-{number}")));
        a.announce(&announced).await.unwrap();
        // News of the ranges that were published before may come late, from another server.
        loop {
            match news.recv().await.unwrap() {
                Announcement::Range(_) => {}
                heard => break assert_eq!(heard, announced),
            }
        }
    }
    let url = cluster.url();
    let (checks, text) = beside(move || doctor(&url)).await;
    let state = "cluster_state ok, 16384 of 16384 slots are served";
    assert_eq!(found(&checks, "cluster"), [("ok", state)]);
    assert_eq!(found(&checks, "masters"), [("ok", "3 with slots")]);
    assert_eq!(found(&checks, "members"), [("ok", "6 servers")]);
    assert_eq!(found(&checks, "connection").len(), 6, "{text}");
    assert_eq!(found(&checks, "replica").iter().filter(|c| c.0 == "ok").count(), 3, "{text}");

    let plain = connect(&cluster.servers[0].url());
    let mut told = Vec::new();
    for number in 0..20 {
        if let Err(error) = plain.take(&name(&format!("type-{number}")), 1).await {
            told.push(error.to_string());
        }
    }
    assert!(!told.is_empty() && told.iter().all(|t| t.contains("redis+cluster://")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_master_of_a_cluster_is_followed_and_others_go_on() {
    let mut cluster = beside(RedisCluster::start).await;
    let dispatcher = connect(&cluster.url());
    let order = name("order");
    let owner = cluster.owner(0, "idgen:{order}").expect("an owner");
    let elsewhere = (0..)
        .map(|number| name(&format!("type-{number}")))
        .find(|n| cluster.owner(0, &format!("idgen:{{{n}}}")) != Some(owner))
        .unwrap();
    publish(&*dispatcher, &order, 1, 1_001).await;
    publish(&*dispatcher, &elsewhere, 1, 1_001).await;
    let (before, theirs) =
        (history(&*dispatcher, &order).await, history(&*dispatcher, &elsewhere).await);
    assert_ne!(before, theirs, "each server has its own");
    let health = dispatcher.history().await.unwrap();
    assert_eq!(dispatcher.history().await.unwrap(), health, "stable");
    let mut news = dispatcher.subscribe();
    let witness = (owner + 1) % 3;
    tokio::task::block_in_place(|| {
        let master = &cluster.servers[owner];
        until("a replica in step", || {
            cluster.servers.iter().skip(3).any(|replica| {
                let role = replica.cli(&["role"]);
                role.contains(&master.port().to_string()) && in_step(master, replica)
            })
        });
    });
    cluster.servers[owner].kill();
    let began = Instant::now();
    assert!(is_stale(&*dispatcher, &order).await);
    println!("answers {:?} after the kill", began.elapsed());
    let view = answer(async || dispatcher.view(&order).await).await;
    assert_eq!(view.highest_end(), 1_001, "its end still is a witness");
    assert_ne!(view.history, before);
    publish(&*dispatcher, &order, 1_001, 2_001).await;
    assert!(!is_stale(&*dispatcher, &order).await);
    assert!(!is_stale(&*dispatcher, &elsewhere).await, "another shard lost nothing");
    assert_ne!(answer(async || dispatcher.history().await).await, health);
    resumed(&mut news).await;

    // An orderly fail-over back: nothing breaks, the old one answers MOVED.
    let promoted = cluster.owner(witness, "idgen:{order}").unwrap();
    assert_ne!(promoted, owner);
    cluster.servers[owner].start_again();
    let port = cluster.servers[promoted].port().to_string();
    tokio::task::block_in_place(|| {
        until("the old master is a replica", || {
            let role = cluster.servers[owner].cli(&["role"]);
            role.starts_with("slave") && role.contains(&port) && role.contains("connected")
        });
        until("a fail-over by hand", || {
            cluster.servers[owner].cli(&["cluster", "failover"]);
            cluster.owner(promoted, "idgen:{order}") == Some(owner)
        });
    });
    assert!(is_stale(&*dispatcher, &order).await);
    publish(&*dispatcher, &order, 3_001, 4_001).await;
    assert!(!is_stale(&*dispatcher, &order).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_is_followed_on_its_way_and_after() {
    let cluster = beside(RedisCluster::start).await;
    let dispatcher = connect(&cluster.url());
    let (order, key) = (name("order"), "idgen:{order}");
    publish(&*dispatcher, &order, 1, 1_001).await;
    let before = history(&*dispatcher, &order).await;
    let from = cluster.owner(0, key).unwrap();
    let to = (from + 1) % 3;
    let (source, target) = (&cluster.servers[from], &cluster.servers[to]);
    let slot = source.cli(&["cluster", "keyslot", key]);
    let (from_id, to_id) = (cluster.id(from), cluster.id(to));
    let set = |server: &RedisServer, state: &str, id: &str| {
        assert_eq!(server.cli(&["cluster", "setslot", &slot, state, id]), "OK");
    };
    set(target, "importing", &from_id);
    set(source, "migrating", &to_id);
    assert!(!is_stale(&*dispatcher, &order).await, "the key is still there");
    let port = target.port().to_string();
    assert_eq!(source.cli(&["migrate", "127.0.0.1", &port, key, "0", "5000"]), "OK");
    // No script was ever run at the target for this type: it is loaded there.
    target.cli(&["script", "flush"]);
    assert!(is_stale(&*dispatcher, &order).await, "ASK is followed: another history");
    // What needs keys at both sides is refused until the slot has arrived, and
    // a refused call has done nothing.
    let refused = dispatcher.view(&order).await.unwrap_err();
    assert!(matches!(refused, DispatchError::Unavailable(_)), "{refused:?}");
    set(target, "node", &to_id);
    set(source, "node", &to_id);

    assert!(is_stale(&*dispatcher, &order).await, "MOVED is followed");
    let view = dispatcher.view(&order).await.unwrap();
    assert_ne!(view.history, before);
    assert_eq!(view.highest_end(), 1_001);
    publish(&*dispatcher, &order, 1_001, 2_001).await;
    assert!(!is_stale(&*dispatcher, &order).await);
    assert_eq!(target.cli(&["hget", key, "end"]), "2001");
}

/// Two nodes under load while the master of their group is killed: every id once,
/// in order, and both go on without a restart.
#[test]
fn nodes_go_on_when_the_master_of_their_group_is_killed() {
    let mut group = SentinelGroup::start();
    let cluster = Cluster::start();
    let nodes = [cluster.node_on(&group.url()), cluster.node_on(&group.url())];
    nodes[0].run(&["type", "add", "order", "--min-range", "1000", "--max-range", "20000"]);
    let both: Vec<_> = nodes.iter().collect();
    let verify = Verify::start(&both, "order", 6, &["--clients", "16"]);
    verify.wait_until_busy();
    let old = group.master();
    group.servers[old].kill();
    until("another master", || group.master() != old);
    let began = Instant::now();
    for node in &nodes {
        until("ids after the fail-over", || node.try_run(&["get", "order"]).status.success());
    }
    let stall = began.elapsed();
    println!("ids {stall:?} after the fail-over");
    let report = verify.finish_clean();
    assert!(stall < Duration::from_secs(2), "{stall:?}: {report:#}");
    let listed = nodes[0].run(&["redis", "list"]);
    assert!(listed.contains("redis+sentinel://"), "{listed}");
}
