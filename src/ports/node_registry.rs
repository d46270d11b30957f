//! Where the nodes of a cluster report themselves, so that each can list its peers.
//!
//! For people only: nothing that decides about ids rests on it. An entry may be
//! lost, late or old at any time. One registry is one Redis instance; a node
//! reports itself on all that it is connected to, and merges what it reads.

use std::time::Duration;

use async_trait::async_trait;

use super::DispatchError;

/// An entry that was not renewed for so long is removed.
pub const KEEP_ENTRY: Duration = Duration::from_secs(3_600);
/// The longest summary, in bytes: 16 KiB.
pub const MAX_SUMMARY: usize = 16_384;
/// The longest details, in bytes: 64 KiB.
pub const MAX_DETAILS: usize = 65_536;
/// Most entries that are read from one registry.
pub const MAX_ENTRIES: usize = 1_000;

/// What a node said of itself last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The id of the node.
    pub node: String,
    /// How long ago that was, by the clock of the registry alone: it stamps what it
    /// is given, and compares the stamp with its own time when it is asked.
    pub age: Duration,
    /// What every reader wants; text whose form the registry does not know.
    pub summary: String,
    /// The rest, where it was asked for.
    pub details: Option<String>,
}

/// See the module. Every method returns within the adapter's own time limit.
#[async_trait]
pub trait NodeRegistry: Send + Sync {
    /// Puts the entry of `node` in the place of its former one. `Broken` for a
    /// summary above [`MAX_SUMMARY`] or details above [`MAX_DETAILS`].
    async fn report(&self, node: &str, summary: &str, details: &str) -> Result<(), DispatchError>;

    /// The entries of all nodes, at most [`MAX_ENTRIES`], in any order. Removes those
    /// that are older than [`KEEP_ENTRY`].
    async fn reports(&self, with_details: bool) -> Result<Vec<NodeEntry>, DispatchError>;

    /// Takes the entry of `node` away: it stops. Without effect where there is none.
    async fn leave(&self, node: &str) -> Result<(), DispatchError>;
}

/// What a Redis server says of itself, as far as it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// `master` or `slave`; `cluster` where there are several servers.
    pub role: Option<String>,
    /// The version of the server.
    pub version: Option<String>,
}
