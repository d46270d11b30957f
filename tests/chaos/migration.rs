//! Types that move between two Redis servers, with faults in the middle.

use std::process::{Child, Stdio};
use std::time::Duration;

use crate::cluster::{Chaos, Setup};
use crate::load::{Load, MODES, OPAQUE, Target};
use crate::mariadb::{dump, restore};
use crate::report::Row;
use crate::support::mariadb::MariaDb;
use crate::support::node::{Node, TOKEN, command};
use crate::support::redis::RedisServer;
use crate::{Scenario, wait_for};

pub const ALL: &[Scenario] = &[
    Scenario { name: "migration", short: true, run: back_and_forth },
    Scenario { name: "migration-node-killed", short: false, run: node_killed },
    Scenario { name: "migration-target-stopped", short: false, run: target_stopped },
    Scenario { name: "migration-forgotten", short: false, run: forgotten },
];

/// The two instances, by name; every type begins on the first.
const NAMES: [&str; 2] = ["default", "spare"];

fn with_spare(cluster: &Chaos) -> RedisServer {
    let spare = RedisServer::start();
    cluster.nodes[0].run(&["redis", "add", NAMES[1], &spare.url()]);
    spare
}

/// Moves every type to the instance of `round`, through one node after another.
fn move_all(cluster: &Chaos, load: &mut Load, kinds: &[&str], round: usize) {
    for (number, kind) in kinds.iter().enumerate() {
        load.fault();
        let node = &cluster.nodes[(round + number) % 3];
        node.run(&["type", "migrate", kind, "--to", NAMES[round % 2]]);
    }
}

fn modes() -> Vec<&'static str> {
    MODES.iter().chain([&OPAQUE]).map(|kind| kind.mode).collect()
}

/// All types, there and back, several times.
fn back_and_forth(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let _spare = with_spare(&cluster);
    let mut load = cluster.load(&[MODES, &[OPAQUE]].concat());
    load.target("no error", Target::NoErrors);
    for round in 1..5 {
        move_all(&cluster, &mut load, &modes(), round);
        load.lasts(Duration::from_millis(300));
    }
    load.flows();
    load.finish(&cluster.nodes)
}

/// `idgen type migrate` through a node, not waited for.
fn migrate_through(node: &Node, kind: &str, to: &str) -> Child {
    command(&["type", "migrate", kind, "--to", to])
        .env("IDGEN_URL", &node.url)
        .env("IDGEN_ADMIN_TOKEN", TOKEN)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

/// The node that moves a type is killed, sooner or later in its work.
fn node_killed(name: &'static str) -> Vec<Row> {
    let mut cluster = Chaos::start(name, Setup::default());
    let _spare = with_spare(&cluster);
    let mut load = cluster.load(MODES);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[2]);
    for round in 0..10 {
        let kind = MODES[round % MODES.len()].mode;
        load.fault();
        let on_main = "SELECT COUNT(*) FROM idgen_types t JOIN idgen_instances i \
                       ON i.id = t.instance_id WHERE i.name = 'default' AND t.name = ";
        let to = NAMES[usize::from(cluster.sql(&format!("{on_main}'{kind}'")) == "1")];
        let mut moving = migrate_through(&cluster.nodes[2], kind, to);
        load.lasts(Duration::from_millis(5 + 9 * round as u64));
        cluster.nodes[2].kill();
        let _ = moving.wait();
        wait_for("somebody ends the migration", || {
            cluster.sql("SELECT COUNT(*) FROM idgen_migrations") == "0"
        });
        load.flows_on(&[0, 1]);
        cluster.nodes[2].start_again();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// The new server stands still from before, or from some moment in, the move.
fn target_stopped(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let spare = with_spare(&cluster);
    let mut load = cluster.load(MODES);
    for round in 0..4 {
        for kind in MODES {
            load.fault();
            let mut moving = migrate_through(&cluster.nodes[round % 3], kind.mode, NAMES[1]);
            load.lasts(Duration::from_millis(7 * round as u64));
            spare.signal("STOP");
            let _ = moving.wait();
            load.lasts(Duration::from_millis(500));
            spare.signal("CONT");
            load.flows();
            cluster.nodes[0].try_run(&["type", "migrate", kind.mode, "--to", NAMES[0]]);
        }
    }
    load.flows();
    load.finish(&cluster.nodes)
}

/// MariaDB goes back to a moment before the types moved, with the nodes running,
/// and with all of them killed.
fn forgotten(name: &'static str) -> Vec<Row> {
    let mut cluster =
        Chaos::start(name, Setup { mariadb: Some(MariaDb::start()), ..Setup::default() });
    let _spare = with_spare(&cluster);
    // A snowflake type has nothing in Redis that would remember where it was.
    let kinds = &MODES[..3];
    let mut load = cluster.load(kinds);
    for (round, killed) in [(1, false), (2, true), (3, true), (4, false)] {
        let before = dump(&cluster);
        move_all(&cluster, &mut load, &modes()[..kinds.len()], round);
        load.flows();
        load.fault();
        if killed {
            cluster.nodes.iter_mut().for_each(Node::kill);
        }
        restore(&cluster, &before);
        if killed {
            cluster.nodes.iter_mut().for_each(Node::start_again);
        }
        load.flows();
        let strict = MODES[0].mode;
        let home = format!(
            "SELECT i.name FROM idgen_types t JOIN idgen_instances i ON i.id = t.instance_id \
             WHERE t.name = '{strict}'"
        );
        wait_for("the type is found where it went", || cluster.sql(&home) == NAMES[round % 2]);
    }
    load.finish(&cluster.nodes)
}
