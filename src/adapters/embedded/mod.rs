//! The embedded range store: one SQLite file, for one process.
//!
//! The same service code runs on it when neither MySQL nor Redis is there.
//! Every write is one transaction that is on disk before it is answered
//! (`synchronous = FULL` with a write-ahead log). The process holds the file
//! alone (`locking_mode = EXCLUSIVE`): a second one on the same folder would
//! break the order of strict types, and is refused at start.

mod accounts;
mod migration;
mod ranges;
mod rows;
mod store;
mod worker_ids;

#[cfg(test)]
mod tests;

pub use store::EmbeddedStore;
