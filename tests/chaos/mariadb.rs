//! MariaDB dies, stands still, goes back in time, is away for long, or is full.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cluster::{Chaos, Setup};
use crate::load::{Kind, MODES, OPAQUE, SEGMENT, SNOWFLAKE, STRICT, Target};
use crate::report::Row;
use crate::support::mariadb::MariaDb;
use crate::{Scenario, fill, wait_for};

pub const ALL: &[Scenario] = &[
    Scenario { name: "mariadb-killed", short: false, run: killed },
    Scenario { name: "mariadb-stopped", short: false, run: stopped },
    Scenario { name: "mariadb-restored", short: true, run: restored },
    Scenario { name: "mariadb-restored-all-restarted", short: false, run: restored_and_restarted },
    Scenario { name: "mariadb-away-for-long", short: false, run: away_for_long },
    Scenario { name: "mariadb-full", short: false, run: full },
];

const BACK: &str = "back ≤ 1 s";

/// SIGKILL; it recovers from its log.
fn killed(name: &'static str) -> Vec<Row> {
    let mut cluster =
        Chaos::start(name, Setup { mariadb: Some(MariaDb::start()), ..Setup::default() });
    let mut load = cluster.load(MODES);
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..3 {
        load.fault();
        cluster.mariadb().kill();
        load.lasts(Duration::from_secs(2)); // ids run out
        cluster.mariadb().start_again();
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// SIGSTOP, for longer than a call may take.
fn stopped(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup { mariadb: Some(MariaDb::start()), ..Setup::default() });
    let mut load = cluster.load(MODES);
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..2 {
        load.fault();
        cluster.server().signal("STOP");
        load.lasts(Duration::from_secs(5));
        cluster.server().signal("CONT");
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// A dump, as an administrator makes it.
pub fn dump(cluster: &Chaos) -> Vec<u8> {
    let output = Command::new("mariadb-dump")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp"])
        .args(["--single-transaction", "--routines"])
        .arg(format!("--port={}", cluster.server().port()))
        .arg(&cluster.db.name)
        .output()
        .expect("mariadb-dump is installed: run `make test-deps`");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "mariadb-dump: {error}");
    output.stdout
}

/// Puts it back, and moves the counter of changes as docs/dba-guide.md says. Nodes
/// stand still meanwhile: a dump is put back table by table, and nobody may write
/// into half of it.
pub fn restore(cluster: &Chaos, dump: &[u8]) {
    let running: Vec<_> = cluster.nodes.iter().filter(|node| node.is_running()).collect();
    running.iter().for_each(|node| node.signal("STOP"));
    let busy = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
         WHERE DB = '{}' AND COMMAND <> 'Sleep' AND ID <> CONNECTION_ID()",
        cluster.db.name
    );
    wait_for("what the nodes asked for is done", || cluster.sql(&busy) == "0");
    let mut client = Command::new("mariadb")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp"])
        .arg(format!("--port={}", cluster.server().port()))
        .arg(&cluster.db.name)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the mariadb client is installed: run `make test-deps`");
    std::io::Write::write_all(&mut client.stdin.take().expect("piped"), dump).expect("it reads");
    assert!(client.wait().expect("it ends").success(), "the dump is put back");
    cluster.sql("UPDATE idgen_counter SET value = value + 1000000 WHERE name = 'change'");
    running.iter().for_each(|node| node.signal("CONT"));
}

fn next_id(cluster: &Chaos, id_type: &str) -> i64 {
    let next_id = format!("SELECT next_id FROM idgen_type WHERE name = '{id_type}'");
    cluster.sql(&next_id).parse().expect("a number")
}

/// A dump that is seconds old is put back under running nodes.
fn restored(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[MODES, &[OPAQUE]].concat());
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..2 {
        let dump = dump(&cluster);
        let before = next_id(&cluster, "strict");
        wait_for("the dump is old", || next_id(&cluster, "strict") > before);
        load.flows();
        load.fault();
        restore(&cluster, &dump);
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// The same, and no node lives through it: only Redis knows better.
fn restored_and_restarted(name: &'static str) -> Vec<Row> {
    let mut cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[MODES, &[OPAQUE]].concat());
    for _ in 0..2 {
        let dump = dump(&cluster);
        let before = next_id(&cluster, "strict");
        wait_for("the dump is old", || next_id(&cluster, "strict") > before);
        load.flows();
        load.fault();
        cluster.nodes.iter_mut().for_each(|node| node.kill());
        restore(&cluster, &dump);
        load.back();
        cluster.nodes.iter_mut().for_each(|node| node.start_again());
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// Ranges of 100 s at the planned rate (1 200 a second of the strict type; two
/// clients of each node ask for 200 ids every 20 ms at most of the other one).
const PLANNED: &[Kind] = &[
    Kind {
        add: &["--min-range", "120000", "--load-interval", "100"],
        verify: &["--clients", "6", "--pause-ms", "5"],
        ..STRICT
    },
    Kind {
        add: &["--mode", "segment", "--min-range", "2000000", "--load-interval", "100"],
        verify: &["--clients", "6", "--pause-ms", "20", "--count", "200"],
        ..SEGMENT
    },
    SNOWFLAKE,
];

/// Away for 60 s, at the planned rate: nobody notices.
fn away_for_long(name: &'static str) -> Vec<Row> {
    let mut cluster =
        Chaos::start(name, Setup { mariadb: Some(MariaDb::start()), ..Setup::default() });
    let mut load = cluster.load(PLANNED);
    load.target("no error", Target::NoErrors);
    load.fault();
    cluster.mariadb().kill();
    load.lasts(Duration::from_secs(60));
    cluster.mariadb().start_again();
    load.back();
    load.flows();
    load.finish(&cluster.nodes)
}

/// The disk of the database has no room left, and then has it again.
fn full(name: &'static str) -> Vec<Row> {
    let (mariadb, disk, _namespace) = MariaDb::start_on_small_disk(200);
    let cluster = Chaos::start(name, Setup { mariadb: Some(mariadb), ..Setup::default() });
    // Many refills, so that many rows are to be written.
    let ranges = &["--min-range", "100", "--max-range", "100", "--lock-expire", "1"];
    let mut load = cluster.load(&[STRICT.with(ranges), MODES[1], MODES[2], MODES[3]]);
    load.target(BACK, Target::Back(1_000.0));
    for _ in 0..2 {
        load.fault();
        let failed = refills_that_failed(&cluster);
        fill(&disk);
        wait_for("a refill fails", || refills_that_failed(&cluster) > failed);
        load.lasts(Duration::from_secs(3));
        std::fs::remove_file(disk.join("junk")).expect("junk");
        load.back();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

fn refills_that_failed(cluster: &Chaos) -> f64 {
    let failed = "idgen_refills_total{result=\"failed\"}";
    cluster.nodes.iter().map(|node| node.metric(failed)).sum()
}
