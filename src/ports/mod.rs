//! What the service needs from the outside, as traits with their contracts,
//! and the conformance suite that every adapter passes.

pub mod conformance;
pub mod dispatcher;
pub mod entropy;
pub mod facts;
pub mod range_store;

pub use dispatcher::{
    Announcement, DispatchError, Dispatcher, DispatcherFactory, LockOutcome, Publication,
    PublishOutcome, Refusal, TakeOutcome, Taken, View,
};
pub use entropy::Entropy;
pub use facts::MysqlFacts;
pub use range_store::{
    Allocation, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore, StoreError,
    Subject, TypeFilter,
};
