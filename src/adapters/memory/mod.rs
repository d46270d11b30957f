//! Everything in the memory of one process: for the conformance suite, for
//! simulation, and (the dispatcher) beside the embedded store.

mod accounts;
mod checks;
mod dispatcher;
mod leases;
mod range_store;
mod requests;
mod tables;
mod worker_ids;

pub use checks::Checks;
pub use dispatcher::{DispatcherSnapshot, MemoryDispatcher};
pub use range_store::{MemoryRangeStore, StoreFault, StoreSnapshot};
pub use worker_ids::{MemoryWorkerIds, WorkerSnapshot};
