//! One node on the embedded store: power loss, a torn journal, a full disk.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::load::{Kind, Load, MODES, OPAQUE, SEGMENT, SHARDED, SNOWFLAKE, STRICT, Target};
use crate::report::Row;
use crate::support::namespace::Namespace;
use crate::support::node::{Node, Surroundings, data_folder};
use crate::{Scenario, fill};

pub const ALL: &[Scenario] = &[
    Scenario { name: "embedded-killed", short: false, run: killed },
    Scenario { name: "embedded-torn-journal", short: true, run: torn_journal },
    Scenario { name: "embedded-disk-full", short: false, run: disk_full },
];

/// Ranges as small as that the store writes all the time.
const BUSY: &[Kind] = &[
    STRICT.with(&["--min-range", "10", "--max-range", "50"]),
    SEGMENT.with(&["--mode", "segment", "--min-range", "500", "--max-range", "5000"]),
    SHARDED,
    SNOWFLAKE,
    OPAQUE,
];

fn load(name: &'static str, node: &Node, kinds: &[Kind]) -> Load {
    Load::start(name, std::slice::from_ref(node), std::slice::from_ref(&node.thrift), kinds)
}

/// SIGKILL in the middle of writes, many times: what the system has of a file
/// is what was written, as after a power loss on an honest disk.
fn killed(name: &'static str) -> Vec<Row> {
    let (_folder, data) = data_folder();
    let mut node = Node::start(&["--data", data.to_str().expect("UTF-8")]);
    let mut load = load(name, &node, BUSY);
    for round in 0..30_u64 {
        load.lasts(Duration::from_millis(100 + 37 * (round % 7)));
        load.fault();
        node.kill();
        node.start_again();
        load.back();
    }
    load.flows();
    load.finish(&[node])
}

/// Damage to the end of the journal, where a write was under way that nobody
/// was told of.
#[derive(Clone, Copy, Debug)]
enum Tear {
    /// Bytes that mean nothing.
    Garbage(usize),
    /// A frame of a transaction that was never acknowledged, cut: the share of
    /// the last frame that is there, in percent.
    Unacknowledged(usize),
    /// The same, whole but for one flipped bit in its last page.
    Flipped,
}

const TEARS: [Tear; 8] = [
    Tear::Garbage(1),
    Tear::Garbage(24),
    Tear::Garbage(100_000),
    Tear::Unacknowledged(0),
    Tear::Unacknowledged(1),
    Tear::Unacknowledged(50),
    Tear::Unacknowledged(99),
    Tear::Flipped,
];

fn torn_journal(name: &'static str) -> Vec<Row> {
    let (_folder, data) = data_folder();
    let mut node = Node::start(&["--data", data.to_str().expect("UTF-8")]);
    let mut load = load(name, &node, BUSY);
    for tear in TEARS {
        load.lasts(Duration::from_millis(300));
        load.fault();
        node.kill();
        tear_journal(&data, tear);
        node.start_again();
        load.back();
    }
    load.flows();
    load.finish(&[node])
}

fn tear_journal(data: &Path, tear: Tear) {
    let journal = journal_of(data);
    let mut bytes = std::fs::read(&journal).expect("a journal");
    let written = with_one_more_transaction(data);
    // The file is used again from its start after each checkpoint, so the next
    // frame is where the files begin to differ.
    let differ = |at: &usize| bytes.get(*at) != Some(&written[*at]);
    let first = (0..written.len()).find(differ).expect("a transaction");
    let last = (0..written.len()).rev().find(differ).expect("a transaction");
    let frame_of = |at: usize| HEADER + (at - HEADER) / FRAME * FRAME;
    let (next, last) = (frame_of(first), frame_of(last));
    match tear {
        Tear::Garbage(length) => {
            bytes.resize(bytes.len().max(next + length), 0);
            for (n, byte) in bytes[next..next + length].iter_mut().enumerate() {
                *byte = (n * 131 + 7) as u8;
            }
        }
        Tear::Unacknowledged(percent) => {
            bytes = written;
            bytes.truncate(last + FRAME * percent / 100);
        }
        Tear::Flipped => {
            bytes = written;
            bytes[last + FRAME - 1] ^= 0x10;
        }
    }
    std::fs::write(&journal, bytes).expect("a file");
}

/// Lengths in the journal of SQLite: its header, and a frame of a page.
const HEADER: usize = 32;
const FRAME: usize = 24 + 4_096;

fn journal_of(data: &Path) -> PathBuf {
    data.join("idgen.sqlite-wal")
}

/// The journal as it would be after one more transaction, which moves every
/// type on; made on a copy of the files, so that the store never hears of it.
fn with_one_more_transaction(data: &Path) -> Vec<u8> {
    let copy = crate::support::TempFolder::new("journal");
    for file in ["idgen.sqlite", "idgen.sqlite-wal"] {
        std::fs::copy(data.join(file), copy.path().join(file)).expect("a copy");
    }
    let connection = Connection::open(copy.path().join("idgen.sqlite")).expect("a database");
    connection.pragma_update(None, "wal_autocheckpoint", 0).expect("no checkpoint");
    let changed = connection
        .execute("UPDATE id_type SET next_id = next_id + 1000", [])
        .expect("a transaction");
    assert!(changed > 0);
    // Read before the connection is closed, which would empty it.
    std::fs::read(journal_of(copy.path())).expect("a journal")
}

/// The disk is full, several times, and once the node dies on it.
fn disk_full(name: &'static str) -> Vec<Row> {
    let (_folder, data) = data_folder();
    std::fs::create_dir_all(&data).expect("a folder");
    let path = data.to_str().expect("UTF-8");
    let small = r#"mount -t tmpfs -o size=16m,mode=700 tmpfs "$1""#;
    let namespace = Namespace::with(small, &[path]);
    let around = Surroundings { before: namespace.enter(), ..Surroundings::default() };
    let mut node = Node::start_in(around, &["--data", path]);
    let inside = namespace.outside(&data);
    assert!(inside.join("idgen.sqlite").exists(), "the store is on the small disk");
    let kinds = &[BUSY[0], BUSY[1], MODES[2], MODES[3]];
    let mut load = load(name, &node, kinds);
    load.target("back ≤ 1 s", Target::Back(1_000.0));
    for dies in [false, false, true] {
        load.fault();
        fill(&inside);
        load.lasts(Duration::from_secs(3));
        let failed = node.metric("idgen_refills_total{result=\"failed\"}");
        assert!(failed > 0.0, "the node noticed\n{}", node.log());
        if dies {
            node.kill();
        }
        std::fs::remove_file(inside.join("junk")).expect("junk");
        load.back();
        if dies {
            node.start_again();
        }
        load.flows();
    }
    load.finish(&[node])
}
