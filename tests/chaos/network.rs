//! Links that hold everything up, in one direction or both; slow ones; ones that
//! break in the middle of a message; and a master that lives on alone.

use std::time::Duration;

use crate::Scenario;
use crate::cluster::{Chaos, Links, Setup};
use crate::load::{Kind, Load, MODES, STRICT, Target};
use crate::report::Row;
use crate::support::failover::{promote, replica_of};
use crate::support::proxy::{Flow, Proxy};

pub const ALL: &[Scenario] = &[
    Scenario { name: "partition-node-redis", short: false, run: redis },
    Scenario { name: "partition-node-mariadb", short: false, run: mysql },
    Scenario { name: "partition-client-node", short: false, run: clients },
    Scenario { name: "slow-links", short: false, run: slow },
    Scenario { name: "broken-messages", short: false, run: broken },
    Scenario { name: "split-brain", short: true, run: split_brain },
    Scenario { name: "split-brain-min-replicas", short: false, run: split_brain_with_replicas },
];

fn linked(name: &'static str) -> Chaos {
    Chaos::start(name, Setup { links: true, ..Setup::default() })
}

/// Both directions, and each one alone: the latter are the worse ones, as what
/// is held up is done later, when nobody waits for it.
const DIRECTIONS: [(bool, bool); 3] = [(true, true), (true, false), (false, true)];

fn partitions(name: &'static str, link: fn(&Links) -> &Proxy) -> Vec<Row> {
    let cluster = linked(name);
    let mut load = cluster.load(MODES);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[0]);
    for (to_server, to_client) in DIRECTIONS {
        load.fault();
        link(&cluster.links[0]).hold(to_server, to_client);
        load.lasts(Duration::from_secs(4));
        load.flows_on(&[1, 2]);
        link(&cluster.links[0]).pass();
        load.back();
        load.flows();
    }
    // No connection, rather than a silent one.
    load.fault();
    link(&cluster.links[0]).refuse();
    load.lasts(Duration::from_secs(3));
    link(&cluster.links[0]).pass();
    load.back();
    load.flows();
    load.finish(&cluster.nodes)
}

fn redis(name: &'static str) -> Vec<Row> {
    partitions(name, |links| &links.redis)
}

fn mysql(name: &'static str) -> Vec<Row> {
    partitions(name, |links| &links.mysql)
}

fn clients(name: &'static str) -> Vec<Row> {
    partitions(name, |links| &links.clients)
}

/// Each way of one node gets slow in turn, then thin, then all of them.
fn slow(name: &'static str) -> Vec<Row> {
    let cluster = linked(name);
    let mut load = cluster.load(MODES);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[0]);
    let Links { redis, mysql, clients } = &cluster.links[0];
    let late = Flow { delay: Duration::from_millis(40), ..Flow::default() };
    let thin = Flow { rate: Some(20_000), ..Flow::default() };
    for flow in [late, thin] {
        for links in [&[redis][..], &[mysql], &[clients], &[redis, mysql, clients]] {
            load.fault();
            links.iter().for_each(|link| link.flows(flow, flow));
            load.lasts(Duration::from_millis(1_500));
            links.iter().for_each(|link| link.pass());
        }
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// Connections break after some bytes, wherever in a message that is.
fn broken(name: &'static str) -> Vec<Row> {
    let cluster = linked(name);
    let mut load = cluster.load(MODES);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[0]);
    let Links { redis, mysql, clients } = &cluster.links[0];
    for bytes in [3, 150, 777, 4_001] {
        let cut = Flow { cut_after: Some(bytes), ..Flow::default() };
        for (to_server, to_client) in [(cut, Flow::default()), (Flow::default(), cut)] {
            for link in [redis, mysql, clients] {
                load.fault();
                link.flows(to_server, to_client);
                load.lasts(Duration::from_millis(500));
                link.pass();
            }
        }
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// The first node goes on with the old master, which nobody told; the others
/// use the promoted replica.
fn split_brain(name: &'static str) -> Vec<Row> {
    let why = "an old master without min-replicas-to-write";
    split(name, &[], &[STRICT.unique_only(why), MODES[1], MODES[2], MODES[3]])
}

/// The same, with the setting that makes the old master refuse to write.
fn split_brain_with_replicas(name: &'static str) -> Vec<Row> {
    split(name, &["--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"], MODES)
}

fn split(name: &'static str, redis: &[&str], kinds: &[Kind]) -> Vec<Row> {
    let guarded = !redis.is_empty();
    let cluster = Chaos::start(name, Setup { redis, links: true, ..Setup::default() });
    let old = &cluster.redis;
    let link = Proxy::to(old.port());
    let new = replica_of(link.port(), &[]);
    let mut load = cluster.load(kinds);
    load.target("back ≤ 1 s", Target::Back(1_000.0));
    load.victims(&[0]);
    cut_off(&load, &link, guarded);
    load.fault();
    promote(&new);
    for node in [1, 2] {
        cluster.links[node].redis.redirect(new.port());
    }
    load.back_on(&[1, 2]);
    load.flows_on(&[1, 2]);
    load.lasts(Duration::from_secs(3));
    if guarded {
        let refused = old.cli(&["set", "idgen-test", "1"]);
        assert!(refused.contains("NOREPLICAS"), "the old master writes: {refused}");
    }
    cluster.links[0].redis.redirect(new.port());
    load.back_on(&[0]);
    load.flows();
    load.finish(&cluster.nodes)
}

/// The replica loses its master. One that is guarded stops to write when its
/// replicas have been silent for a second, which it looks at once a second; who
/// promotes (a sentinel, say) waits longer than that.
fn cut_off(load: &Load, link: &Proxy, guarded: bool) {
    link.hold(true, true);
    load.lasts(Duration::from_millis(if guarded { 3_000 } else { 300 }));
}
