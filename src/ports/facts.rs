//! What an operator's check-up learns of a server.

use std::time::Duration;

/// What a server and an account are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlFacts {
    /// Such as `8.0.36` or `10.11.6-MariaDB`.
    pub version: String,
    /// Whether it is MariaDB.
    pub is_mariadb: bool,
    /// 1: a commit is on disk before it is answered. Anything else can lose
    /// the latest ranges in a crash.
    pub innodb_flush_log_at_trx_commit: i64,
    /// 1: the binary log is on disk before a commit is answered. Matters where
    /// `log_bin` is on, because replicas and restores are made from it.
    pub sync_binlog: i64,
    /// Whether the server writes a binary log.
    pub log_bin: bool,
    /// Whether the server refuses writes (a replica).
    pub read_only: bool,
    /// Whether this connection is encrypted.
    pub tls: bool,
    /// Rights that a node needs and the account lacks, as `SELECT on idgen_types`.
    pub missing_rights: Vec<String>,
    /// Rights that a node does not need, as ``INSERT on `idgen`.*``.
    pub excess_rights: Vec<String>,
    /// The server's clock, in milliseconds of the Unix epoch, read about half a
    /// round trip before the answer came.
    pub clock_ms: i64,
    /// How long a trivial statement took on an open connection.
    pub round_trip: Duration,
}
