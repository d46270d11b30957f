//! Nodes that die or stand still, and the holder of the refill lock among them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::cluster::{Chaos, Setup};
use crate::load::{Kind, MODES, OPAQUE, STRICT, Target};
use crate::report::Row;
use crate::{Scenario, wait_for};

pub const ALL: &[Scenario] = &[
    Scenario { name: "node-killed", short: false, run: killed },
    Scenario { name: "node-stopped", short: false, run: stopped },
    Scenario { name: "lock-holder-killed", short: false, run: lock_holder_killed },
    Scenario { name: "lock-holder-stopped", short: false, run: lock_holder_stopped },
];

/// SIGKILL of one node, and its start, several times.
fn killed(name: &'static str) -> Vec<Row> {
    let mut cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[MODES, &[OPAQUE]].concat());
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[1]);
    for _ in 0..3 {
        load.fault();
        cluster.nodes[1].kill();
        load.lasts(Duration::from_millis(500));
        cluster.nodes[1].start_again();
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// SIGSTOP of one node for longer than its lease of a worker id and than the
/// refill lock lasts.
fn stopped(name: &'static str) -> Vec<Row> {
    let lease = ["--node-worker-lease-ms", "2000"];
    let cluster = Chaos::start(name, Setup { node: &lease, ..Setup::default() });
    let mut load = cluster.load(MODES);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[1]);
    for _ in 0..2 {
        load.fault();
        cluster.nodes[1].signal("STOP");
        load.lasts(Duration::from_secs(6));
        cluster.nodes[1].signal("CONT");
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// Ranges that are used up in a third of a second, so that everybody waits for
/// the holder of the lock.
const SCARCE: Kind =
    STRICT.with(&["--min-range", "1000", "--max-range", "1000", "--lock-expire", "1"]);

/// SIGKILL of the node that holds the refill lock while its call is in the store.
fn lock_holder_killed(name: &'static str) -> Vec<Row> {
    let mut cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[SCARCE]);
    load.target("back ≤ 1 s", Target::Back(1_000.0));
    for _ in 0..4 {
        let (row, holder) = hold_up_a_refill(&cluster);
        load.lasts(Duration::from_millis(600)); // ids run out meanwhile
        load.fault();
        load.victims(&[holder]);
        cluster.nodes[holder].kill();
        let others: Vec<_> = (0..3).filter(|node| *node != holder).collect();
        load.back_on(&others);
        drop(row);
        load.flows_on(&others);
        cluster.nodes[holder].start_again();
        load.flows();
        load.over();
    }
    load.finish(&cluster.nodes)
}

/// SIGSTOP of that node, for longer than its lock lasts; then it goes on.
fn lock_holder_stopped(name: &'static str) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup::default());
    let mut load = cluster.load(&[SCARCE]);
    load.target("back ≤ 1 s", Target::Back(1_000.0));
    for _ in 0..3 {
        let (row, holder) = hold_up_a_refill(&cluster);
        load.fault();
        load.victims(&[holder]);
        cluster.nodes[holder].signal("STOP");
        load.lasts(Duration::from_millis(600));
        let others: Vec<_> = (0..3).filter(|node| *node != holder).collect();
        load.back_on(&others);
        drop(row);
        load.flows_on(&others);
        load.lasts(Duration::from_secs(2));
        cluster.nodes[holder].signal("CONT");
        load.flows();
        load.over();
    }
    load.finish(&cluster.nodes)
}

/// A transaction that holds the row of a type; ended on drop.
struct HeldRow {
    session: Child,
    input: Option<ChildStdin>,
}

impl Drop for HeldRow {
    fn drop(&mut self) {
        drop(self.input.take()); // the session ends, and with it the transaction
        let _ = self.session.wait();
    }
}

fn hold_row(cluster: &Chaos, id_type: &str) -> HeldRow {
    let mut session = Command::new("mariadb")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp"])
        .args(["--batch", "--skip-column-names", "--unbuffered"])
        .arg(format!("--port={}", cluster.server().port()))
        .arg(&cluster.db.name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the mariadb client is installed: run `make test-deps`");
    let mut input = session.stdin.take().expect("piped");
    let mut output = BufReader::new(session.stdout.take().expect("piped"));
    let sql = format!("BEGIN; SELECT name FROM idgen_type WHERE name = '{id_type}' FOR UPDATE;");
    writeln!(input, "{sql}").and_then(|()| input.flush()).expect("the client reads");
    let mut line = String::new();
    output.read_line(&mut line).expect("the client answers");
    assert_eq!(line.trim(), id_type, "the row is held");
    HeldRow { session, input: Some(input) }
}

/// Holds the row of the strict type until a node's refill waits for it; returns
/// that node, which holds the refill lock.
fn hold_up_a_refill(cluster: &Chaos) -> (HeldRow, usize) {
    let row = hold_row(cluster, STRICT.mode);
    let mut holder = None;
    wait_for("a refill waits for the row", || {
        // Within a procedure the user is the definer, but the host is the peer.
        let waiting = "SELECT SUBSTRING_INDEX(HOST, ':', -1) FROM information_schema.PROCESSLIST \
                       WHERE INFO LIKE '%FOR UPDATE%' AND ID <> CONNECTION_ID()";
        let ports = cluster.sql(waiting);
        let mut ports = ports.lines().filter_map(|port| port.parse().ok());
        holder = ports.find_map(|port| {
            cluster.nodes.iter().position(|node| has_local_port(node.pid(), port))
        });
        holder.is_some()
    });
    assert_eq!(cluster.redis.cli(&["exists", &format!("idgen:{{{}}}:lock", STRICT.mode)]), "1");
    (row, holder.expect("a node"))
}

/// Whether a connection of the process has this local port.
fn has_local_port(pid: u32, port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("connections");
    let mut sockets = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let local = fields.get(1)?.rsplit_once(':')?.1;
        let inode = fields.get(9)?;
        (u16::from_str_radix(local, 16) == Ok(port)).then(|| format!("socket:[{inode}]"))
    });
    sockets.any(|socket| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        links.any(|link| link.to_string_lossy() == socket)
    })
}
