//! Section `node`: the node itself, and how long it lets requests wait.

use std::time::Duration;

use super::reader::Reader;
use super::setting::{Kind, Setting};

const ID: Setting = Setting {
    key: "node.id",
    flag: Some("node-id"),
    env: "IDGEN_NODE_ID",
    kind: Kind::Word {
        default: "host name and Thrift port, `HOST:PORT`",
        // The owner column of the range log.
        max: 128,
    },
    meaning: "The name of the node in range logs, locks and metrics; different for every node",
};

const DEADLINE_MS: Setting = Setting {
    key: "node.deadline_ms",
    flag: Some("node-deadline-ms"),
    env: "IDGEN_NODE_DEADLINE_MS",
    // Below the 2 s at which clients of the original service give up, so that
    // they get an answer that says why.
    kind: Kind::Integer { default: 1_500, low: 10, high: 60_000 },
    meaning: "How long a request may wait for its ids, in milliseconds",
};

const MAX_WAITING: Setting = Setting {
    key: "node.max_waiting",
    flag: Some("node-max-waiting"),
    env: "IDGEN_NODE_MAX_WAITING",
    // More than the connections of a node; what goes beyond would not be
    // served by its deadline anyway.
    kind: Kind::Integer { default: 16_384, low: 1, high: 1_000_000 },
    meaning: "Most requests that wait for ids of one type; a further one gets OVERLOADED",
};

const DRAIN_MS: Setting = Setting {
    key: "node.drain_ms",
    flag: Some("node-drain-ms"),
    env: "IDGEN_NODE_DRAIN_MS",
    // Above the deadline of a request, below the 10 s that container runtimes
    // wait before they kill.
    kind: Kind::Integer { default: 5_000, low: 0, high: 600_000 },
    meaning: "How long a stop waits for the requests in flight, in milliseconds",
};

const STOP_PAUSE_MS: Setting = Setting {
    key: "node.stop_pause_ms",
    flag: Some("node-stop-pause-ms"),
    env: "IDGEN_NODE_STOP_PAUSE_MS",
    // Clients with a list of nodes need none: they go on to the next one.
    kind: Kind::Integer { default: 0, low: 0, high: 600_000 },
    meaning: "How long a stop goes on serving while `/readyz` says 503 already, in milliseconds, \
              so that load balancers send nobody any more; a second signal ends it",
};

const WORKERS: Setting = Setting {
    key: "node.workers",
    flag: Some("node-workers"),
    env: "IDGEN_NODE_WORKERS",
    kind: Kind::Integer { default: 0, low: 0, high: 256 },
    meaning: "Threads that serve requests; 0: half of the cores, at least 1",
};

const IDLE_AFTER_MS: Setting = Setting {
    key: "node.idle_after_ms",
    flag: Some("node-idle-after-ms"),
    env: "IDGEN_NODE_IDLE_AFTER_MS",
    // Longer than the ten minutes that a range is meant to last, so that a type
    // in regular use never leaves.
    kind: Kind::Integer { default: 900_000, low: 100, high: 604_800_000 },
    meaning: "A type that nobody asked for so long, in milliseconds, leaves the memory of the \
              node, and its unused ids go back",
};

const WORKER_LEASE_MS: Setting = Setting {
    key: "node.worker_lease_ms",
    flag: Some("node-worker-lease-ms"),
    env: "IDGEN_NODE_WORKER_LEASE_MS",
    // How long snowflake types go on without the range store; and how long the
    // worker id of a node that was killed stays taken.
    kind: Kind::Integer { default: 900_000, low: 1_000, high: 86_400_000 },
    meaning: "How long a worker id for snowflake types is leased, in milliseconds",
};

pub(super) const SETTINGS: &[&Setting] = &[
    &ID,
    &DEADLINE_MS,
    &MAX_WAITING,
    &STOP_PAUSE_MS,
    &DRAIN_MS,
    &WORKERS,
    &IDLE_AFTER_MS,
    &WORKER_LEASE_MS,
];

/// Settings of the node itself.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSettings {
    /// Its name in range logs, locks and metrics.
    pub id: String,
    /// How long a request may wait for its ids.
    pub deadline: Duration,
    /// Most requests that wait for ids of one type.
    pub max_waiting: usize,
    /// How long a stop goes on serving while readiness is gone already.
    pub stop_pause: Duration,
    /// How long a stop waits for the requests in flight.
    pub drain: Duration,
    /// Threads that serve requests; 0 leaves it to the program.
    pub workers: usize,
    /// How long an unused type stays in memory.
    pub idle_after: Duration,
    /// How long a worker id is leased.
    pub worker_lease: Duration,
}

impl NodeSettings {
    pub(super) fn read(reader: &mut Reader, thrift_port: u16) -> Self {
        NodeSettings {
            id: reader.word(&ID).unwrap_or_else(|| format!("{}:{thrift_port}", host_name())),
            deadline: reader.milliseconds(&DEADLINE_MS),
            max_waiting: reader.integer(&MAX_WAITING) as usize,
            stop_pause: reader.milliseconds(&STOP_PAUSE_MS),
            drain: reader.milliseconds(&DRAIN_MS),
            workers: reader.integer(&WORKERS) as usize,
            idle_after: reader.milliseconds(&IDLE_AFTER_MS),
            worker_lease: reader.milliseconds(&WORKER_LEASE_MS),
        }
    }
}

/// The name of this machine, or `localhost` where it has none that can be shown.
fn host_name() -> String {
    // The kernel's own word: the variable HOSTNAME is a shell's, and not exported.
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .unwrap_or_default();
    // Room for the port within the 128 characters of an owner.
    let name: String = name.trim().chars().filter(|c| c.is_ascii_graphic()).take(100).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
