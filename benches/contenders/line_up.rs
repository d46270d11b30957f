//! The contenders: who is measured, and under what load.

/// A contender.
pub struct Entry {
    pub name: &'static str,
    pub what: &'static str,
    pub server: Server,
    pub load: Load,
}

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Floor,
    Null,
    Redis,
    /// The node of types that nodes lease for themselves, and the type.
    Leasing(&'static str),
    /// So many nodes that serve one strict type.
    Strict(usize),
    Embedded,
}

/// By what.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// One thread for all connections (`lean`).
    Lean(Lean),
    /// A thread and a blocking client for each connection, as `idgen bench` has.
    Threads,
    /// `redis-benchmark`, with a thread for each connection or with one for all.
    RedisBenchmark { threads: bool },
}

/// A load of the first kind.
#[derive(Clone, Copy, Debug)]
pub struct Lean {
    /// Connections to each node; as many as the options say, if `None`.
    pub connections: Option<u32>,
    /// Calls in flight on each.
    pub depth: u32,
    /// Ids per call.
    pub count: u32,
    /// Connections beside these that are silent.
    pub idle: u32,
}

const ONE_EACH: Lean = Lean { connections: None, depth: 1, count: 1, idle: 0 };
const ALL: Load = Load::Lean(ONE_EACH);
const ONE: Load = Load::Lean(Lean { connections: Some(1), ..ONE_EACH });
const EIGHT: Load = Load::Lean(Lean { connections: Some(8), ..ONE_EACH });
const PIPELINES: Load = Load::Lean(Lean { connections: Some(8), depth: 32, ..ONE_EACH });
const BATCHES: Load = Load::Lean(Lean { count: 1_000, ..ONE_EACH });

/// Connections that are silent while others work.
pub const IDLE: u32 = 10_000;
const BESIDE_IDLE: Load = Load::Lean(Lean { idle: IDLE, ..ONE_EACH });

pub const FLOOR: &str = "floor";
pub const NULL: &str = "null";
pub const SEGMENT: &str = "segment";
pub const IDLE10K: &str = "idle10k";
pub const SNOWFLAKE: &str = "snowflake";
pub const REFILLS: &str = "refills";
pub const THOUSAND: &str = "thousand";
pub const STRICT: &str = "strict";
pub const STRICT_3N: &str = "strict-3n";
pub const INCR: &str = "incr";
pub const EMBEDDED: &str = "embedded";
pub const FLOOR_1C: &str = "floor-1c";
pub const INCR_1C: &str = "incr-1c";
pub const STRICT_1C: &str = "strict-1c";
pub const SEGMENT_8X1: &str = "segment-8x1";
pub const SEGMENT_8X32: &str = "segment-8x32";
pub const STRICT_8X1: &str = "strict-8x1";
pub const STRICT_8X32: &str = "strict-8x32";
pub const NULL_MT: &str = "null-mt";
pub const SEGMENT_MT: &str = "segment-mt";
pub const STRICT_MT: &str = "strict-mt";
pub const INCR_MT: &str = "incr-mt";
pub const INCR_RB: &str = "incr-rb";

const fn entry(name: &'static str, what: &'static str, server: Server, load: Load) -> Entry {
    Entry { name, what, server, load }
}

/// The contenders in the order of their turns: next to each other those that
/// are compared.
pub const LINE_UP: [Entry; 23] = [
    entry(FLOOR, "echo of frames, nothing else", Server::Floor, ALL),
    entry(NULL, "Thrift front, constant answer", Server::Null, ALL),
    entry(SEGMENT, "segment type, MariaDB and Redis", Server::Leasing(SEGMENT), ALL),
    entry(IDLE10K, "the same beside 10 000 silent", Server::Leasing(SEGMENT), BESIDE_IDLE),
    entry(REFILLS, "the same, several leases a second", Server::Leasing(REFILLS), ALL),
    entry(THOUSAND, "the same, 1 000 ids per call", Server::Leasing(THOUSAND), BATCHES),
    entry(SNOWFLAKE, "snowflake type", Server::Leasing(SNOWFLAKE), ALL),
    entry(STRICT, "strict type, MariaDB and Redis", Server::Strict(1), ALL),
    entry(STRICT_3N, "the same, three nodes", Server::Strict(3), ALL),
    entry(INCR, "raw INCR of Redis", Server::Redis, ALL),
    entry(EMBEDDED, "strict type, embedded store", Server::Embedded, ALL),
    entry(FLOOR_1C, "floor, one connection", Server::Floor, ONE),
    entry(INCR_1C, "incr, one connection", Server::Redis, ONE),
    entry(STRICT_1C, "strict, one connection", Server::Strict(1), ONE),
    entry(SEGMENT_8X1, "segment, 8 connections", Server::Leasing(SEGMENT), EIGHT),
    entry(SEGMENT_8X32, "the same, 32 in flight on each", Server::Leasing(SEGMENT), PIPELINES),
    entry(STRICT_8X1, "strict, 8 connections", Server::Strict(1), EIGHT),
    entry(STRICT_8X32, "the same, 32 in flight on each", Server::Strict(1), PIPELINES),
    entry(NULL_MT, "null, blocking clients", Server::Null, Load::Threads),
    entry(SEGMENT_MT, "segment, blocking clients", Server::Leasing(SEGMENT), Load::Threads),
    entry(STRICT_MT, "strict, blocking clients", Server::Strict(1), Load::Threads),
    entry(
        INCR_MT,
        "redis-benchmark, a thread each",
        Server::Redis,
        Load::RedisBenchmark { threads: true },
    ),
    entry(
        INCR_RB,
        "redis-benchmark as it comes",
        Server::Redis,
        Load::RedisBenchmark { threads: false },
    ),
];

impl Entry {
    /// Whether the load is of the kind that all targets are about.
    pub fn is_lean(&self) -> bool {
        matches!(self.load, Load::Lean(_))
    }
}

/// The type that ids are taken from, where a server has only one.
pub const TYPE: &str = "bench";

/// The types of the node that leases, and how they are added. At the rates of
/// these benchmarks ranges of `refills` last a fraction of a second; those of
/// the others grow until they outlast the run.
pub const LEASED: [(&str, &[&str]); 4] = [
    (SEGMENT, &["--mode", "segment", "--min-range", "10000000"]),
    (REFILLS, &["--mode", "segment", "--min-range", "10000", "--max-range", "10000"]),
    (THOUSAND, &["--mode", "segment", "--min-range", "100000000", "--max-range", "1000000000"]),
    (SNOWFLAKE, &["--mode", "snowflake"]),
];
