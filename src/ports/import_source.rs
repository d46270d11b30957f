//! The database of another system, from which types are taken over.

use async_trait::async_trait;

use crate::domain::Error;
use crate::domain::import::{Kind, Table};

/// Which table to read.
#[derive(Clone, PartialEq, Eq)]
pub struct ForeignTable {
    /// `mysql://user:password@host:port/database`. Holds a secret.
    pub url: String,
    /// Its name; `None` for the one table of the database that belongs to a known
    /// system (to `kind`, if that is given).
    pub table: Option<String>,
    /// Whose table it is, if the caller knows.
    pub kind: Option<Kind>,
}

impl std::fmt::Debug for ForeignTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignTable")
            .field("url", &crate::domain::instance::redact_url(&self.url))
            .field("table", &self.table)
            .field("kind", &self.kind)
            .finish()
    }
}

/// Reads tables of other systems. Never writes, and ends within a time limit of its own.
#[async_trait]
pub trait ImportSource: Send + Sync {
    /// The rows of the table, as one moment saw them; at most
    /// [`MAX_ROWS`](crate::domain::import::MAX_ROWS). Refused: `INVALID_ARGUMENT`
    /// (`source.url`, `source.table`), `UNAVAILABLE` where the server does not answer.
    /// No error holds the password.
    async fn read(&self, wanted: &ForeignTable) -> Result<Table, Error>;
}
