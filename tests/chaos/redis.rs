//! Redis dies, stands still, comes back empty or with old data, is promoted, or
//! loses keys.

use std::time::Duration;

use crate::cluster::{Chaos, Setup};
use crate::load::{Kind, Load, MODES, SEGMENT, STRICT, STRICT_ALONE, Target};
use crate::report::Row;
use crate::support::failover::{Sentinel, follow, promote, replica_of};
use crate::support::proxy::Proxy;
use crate::support::redis::RedisServer;
use crate::{Scenario, wait_for};

pub const ALL: &[Scenario] = &[
    Scenario { name: "redis-killed", short: true, run: killed_and_empty },
    Scenario { name: "redis-stopped", short: false, run: stopped },
    Scenario { name: "redis-old-snapshot", short: false, run: old_snapshot },
    Scenario { name: "redis-aof-everysec", short: false, run: aof },
    Scenario { name: "redis-promotion", short: false, run: promotion },
    Scenario { name: "redis-sentinel", short: false, run: sentinel },
    Scenario { name: "redis-flushall", short: false, run: flushall },
    Scenario { name: "redis-key-deleted", short: false, run: key_deleted },
    Scenario { name: "redis-eviction", short: false, run: eviction },
];

const BACK: &str = "back ≤ 1 s";

fn with_alone() -> Vec<Kind> {
    [MODES, &[STRICT_ALONE]].concat()
}

/// SIGKILL; it comes back with no data at all.
fn killed_and_empty(name: &'static str) -> Vec<Row> {
    let mut cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&with_alone());
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..3 {
        load.fault();
        cluster.redis.kill();
        load.lasts(Duration::from_secs(1));
        cluster.redis.start_again();
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// SIGSTOP, for longer than the deadline of a call and than the lock lasts.
fn stopped(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&with_alone());
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..3 {
        load.fault();
        cluster.redis.signal("STOP");
        load.lasts(Duration::from_secs(4));
        cluster.redis.signal("CONT");
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// SIGKILL; it comes back with a snapshot that is seconds old, of a range that
/// still holds ids. The second time all nodes die as well, so that nobody
/// remembers that these ids are gone.
fn old_snapshot(name: &'static str) -> Vec<Row> {
    const LONG: Kind = STRICT.with(&["--min-range", "1000000"]);
    let mut cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[LONG, MODES[1], MODES[2], MODES[3]]);
    load.target(BACK, Target::Back(1_000.0));
    for nodes_die in [false, true] {
        let saved = cluster.redis.cli(&["lastsave"]);
        load.lasts(Duration::from_secs(1)); // a second save within one looks like none
        cluster.redis.cli(&["bgsave"]);
        wait_for("a snapshot", || cluster.redis.cli(&["lastsave"]) != saved);
        load.flows(); // many ids after the snapshot
        load.fault();
        if nodes_die {
            load.victims(&[0, 1, 2]);
            cluster.nodes.iter_mut().for_each(|node| node.kill());
        }
        cluster.redis.kill();
        cluster.redis.start_again();
        match nodes_die {
            false => load.back(),
            true => cluster.nodes.iter_mut().for_each(|node| node.start_again()),
        }
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// SIGKILL of a Redis with an append-only file. The second time the end of the
/// file is lost, as when the machine died within the second.
fn aof(name: &'static str) -> Vec<Row> {
    let redis = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let mut cluster = Chaos::start(name, Setup { redis: &redis, ..Setup::default() });
    let mut load = cluster.load(MODES);
    load.target(BACK, Target::Back(1_000.0));
    for lost in [0, 20_000, 200] {
        load.fault();
        cluster.redis.kill();
        cut_append_only_file(&cluster.redis, lost);
        cluster.redis.start_again();
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

fn cut_append_only_file(redis: &RedisServer, lost: u64) {
    let folder = redis.folder().join("appendonlydir");
    let files = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let incremental = files
        .map(|file| file.path())
        .find(|path| path.to_string_lossy().ends_with(".incr.aof"))
        .expect("an incremental file");
    let file = std::fs::File::options().write(true).open(incremental).expect("a file");
    let length = file.metadata().expect("a length").len();
    assert!(length > lost, "{length} bytes were written");
    file.set_len(length - lost).expect("a shorter file");
}

/// Promotion of a replica that lags; then of the old master, and back again.
fn promotion(name: &'static str) -> Vec<Row> {
    let first = RedisServer::start();
    let front = Proxy::to(first.port());
    let url = format!("redis://{}", front.address());
    let cluster = Chaos::start(name, Setup { redis_url: Some(url), ..Setup::default() });
    // The replica gets the data over a link that can be held up.
    let link = Proxy::to(first.port());
    let second = replica_of(link.port(), &[]);
    let mut load = cluster.load(&with_alone());
    load.target(BACK, Target::Back(1_000.0));
    let servers = [&first, &second];
    for (old, new) in [(0, 1), (1, 0), (0, 1)] {
        let (old, new) = (servers[old], servers[new]);
        load.fault();
        link.hold(true, true);
        load.lasts(Duration::from_millis(800)); // the lag
        promote(new);
        front.redirect(new.port());
        load.back();
        load.flows();
        link.redirect(new.port());
        link.pass();
        follow(old, link.port());
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// A fail-over by three sentinels, there and back.
fn sentinel(name: &'static str) -> Vec<Row> {
    const GROUP: &str = "main";
    let mut first = RedisServer::start();
    let mut second = replica_of(first.port(), &[]);
    let sentinels: Vec<_> = (0..3).map(|_| Sentinel::start(GROUP, first.port())).collect();
    sentinels.iter().for_each(|sentinel| sentinel.knows(GROUP, 1, 2));
    let hosts: Vec<_> = sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
    let url = format!("redis+sentinel://{}/{GROUP}", hosts.join(","));
    let cluster = Chaos::start(name, Setup { redis_url: Some(url), ..Setup::default() });
    let mut load = cluster.load(&with_alone());
    load.target(BACK, Target::Back(1_000.0));
    let servers = [&mut first, &mut second];
    for (old, new) in [(0, 1), (1, 0)] {
        load.fault();
        servers[old].kill();
        let port = servers[new].port();
        wait_for("a fail-over", || {
            servers[new].cli(&["role"]).starts_with("master") && sentinels[0].master(GROUP) == port
        });
        load.back();
        load.flows();
        servers[old].start_again();
        wait_for("the old master is a replica", || {
            servers[old].cli(&["info", "replication"]).contains("master_link_status:up")
        });
        sentinels.iter().for_each(|sentinel| sentinel.knows(GROUP, 1, 2));
    }
    load.finish(&cluster.nodes)
}

/// Somebody empties it.
fn flushall(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(MODES);
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..5 {
        load.fault();
        assert_eq!(cluster.redis.cli(&["flushall"]), "OK");
        load.back();
        load.lasts(Duration::from_millis(700));
    }
    load.flows();
    load.finish(&cluster.nodes)
}

/// Somebody deletes the keys of the types.
fn key_deleted(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[STRICT, SEGMENT]);
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..10 {
        load.fault();
        cluster.redis.cli(&["del", "idgen:{strict}", "idgen:{strict}:lock"]);
        load.back();
        load.lasts(Duration::from_millis(300));
        cluster.redis.cli(&["del", "idgen:{segment}:leases"]);
    }
    load.flows();
    load.finish(&cluster.nodes)
}

/// Redis is set up to evict, against the advice, and its memory is full.
fn eviction(name: &'static str) -> Vec<Row> {
    let redis = ["--maxmemory-policy", "allkeys-random"];
    let cluster = Chaos::start(name, Setup { redis: &redis, ..Setup::default() });
    let mut load = cluster.load(MODES);
    load.target(BACK, Target::Back(1_000.0));
    for round in 0..3 {
        load.fault();
        evict(&cluster, &load, round);
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

fn evict(cluster: &Chaos, load: &Load, round: u32) {
    let redis = &cluster.redis;
    let used = redis.cli(&["info", "memory"]);
    let used = used.lines().find_map(|line| line.strip_prefix("used_memory:"));
    let used: u64 = used.and_then(|used| used.trim().parse().ok()).expect("a number");
    redis.cli(&["config", "set", "maxmemory", &(used + 100_000).to_string()]);
    let value = "x".repeat(4_000);
    // So many that among those evicted are, by far, the few keys of the types.
    for number in 0..300 {
        redis.cli(&["set", &format!("junk:{round}:{number}"), &value]);
    }
    load.lasts(Duration::from_millis(500));
    redis.cli(&["config", "set", "maxmemory", "0"]);
    let stats = redis.cli(&["info", "stats"]);
    let evicted = stats.lines().find_map(|line| line.strip_prefix("evicted_keys:"));
    let evicted: u64 = evicted.and_then(|n| n.trim().parse().ok()).expect("a number");
    assert!(evicted > 100 * u64::from(round + 1), "{evicted} keys were evicted");
}
