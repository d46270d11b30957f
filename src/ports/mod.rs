//! What the service needs from the outside, as traits with their contracts,
//! and the conformance suite that every adapter passes.

pub mod accounts;
pub mod clock;
pub mod conformance;
pub mod dispatcher;
pub mod entropy;
pub mod facts;
pub mod import_source;
pub mod node_registry;
pub mod range_store;
pub mod worker_ids;

pub use accounts::{Accounts, Known, NewCredential, SessionLife};
pub use clock::Clock;
pub use dispatcher::{
    Announcement, DispatchError, Dispatcher, DispatcherFactory, LockOutcome, MAX_REMEMBERED,
    Publication, PublishOutcome, Refusal, Remembered, Rest, Sealed, TakeOutcome, Taken, View,
    Witness, WitnessedEnd, check_remembered,
};
pub use entropy::Entropy;
pub use facts::MysqlFacts;
pub use import_source::{ForeignTable, ImportSource};
pub use node_registry::{NodeEntry, NodeRegistry, ServerFacts};
pub use range_store::{
    Allocation, Assigned, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore,
    StoreError, Subject, TypeCounts, TypeFilter,
};
pub use worker_ids::{Tenure, TenureRecord, WorkerIds};
