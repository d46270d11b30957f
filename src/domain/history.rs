//! The identity of one Redis data set's line of writes.

use std::fmt;
use std::sync::Arc;

/// `master_replid` of a Redis server (40 hexadecimal digits), or the random
/// identity of an embedded dispatcher's life. It changes whenever data may
/// have been rolled back: at a restart, a restore or a promotion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History(Arc<str>);

impl History {
    /// Longest history that stores accept, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Wraps `text` as it came from the server.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        History(text.into())
    }

    /// The text as stored and compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
