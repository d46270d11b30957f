//! What the service needs from the outside, as traits with their contracts,
//! and the conformance suite that every adapter passes.

pub mod accounts;
pub mod clock;
pub mod conformance;
pub mod dispatcher;
pub mod entropy;
pub mod facts;
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
pub use range_store::{
    Allocation, Assigned, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore,
    StoreError, Subject, TypeFilter,
};
pub use worker_ids::{Tenure, TenureRecord, WorkerIds};
