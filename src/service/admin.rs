//! What the admin front may ask of the service beyond the data plane.

use std::future::Future;

use super::api::IdApi;
use crate::domain::{Error, History, InstanceRecord, InstanceSpec, TypeChange, TypeRecord};
use crate::ports::{AuditEntry, Page, RangeLogEntry, TypeFilter};

/// The control plane: types, Redis instances, logs.
///
/// `describe`, `create_type`, `next_ids` and `node_status` are those of
/// [`IdApi`]. Every call ends within the time limits of the parts that it
/// needs, with an answer or with a typed error. Names come unchecked from the
/// wire; the implementation checks them. `actor` is who asks, for the audit
/// log: 1 to 128 printable characters.
pub trait AdminApi: IdApi {
    /// Types in the order of their names. `filter.limit` is 1 to 1 000.
    fn list_types(
        &self,
        filter: TypeFilter,
    ) -> impl Future<Output = Result<Page<TypeRecord>, Error>> + Send;

    /// Changes settings of `name`. Refused: `UNKNOWN_TYPE`, `CONFLICT` when the
    /// version is not the expected one, `INVALID_ARGUMENT`.
    fn alter_type(
        &self,
        name: &str,
        change: TypeChange,
        actor: &str,
    ) -> impl Future<Output = Result<TypeRecord, Error>> + Send;

    /// Retires an active type or restores a retired one; without effect where
    /// it is in that state already. Refused: `UNKNOWN_TYPE`.
    fn set_retired(
        &self,
        name: &str,
        retired: bool,
        actor: &str,
    ) -> impl Future<Output = Result<TypeRecord, Error>> + Send;

    /// Gives an opaque type a new key from its next slice on. Refused:
    /// `UNKNOWN_TYPE`, `INVALID_ARGUMENT` (`opaque`), `EXHAUSTED`.
    fn rotate_key(
        &self,
        name: &str,
        actor: &str,
    ) -> impl Future<Output = Result<TypeRecord, Error>> + Send;

    /// All Redis instances by number, each with its state now.
    fn instances(&self) -> impl Future<Output = Result<Vec<InstanceStatus>, Error>> + Send;

    /// Registers a Redis instance. With `test`, its connection is tested first
    /// and `UNAVAILABLE` says why it failed; nothing is registered then.
    /// Refused: `ALREADY_EXISTS`, `INVALID_ARGUMENT`.
    fn add_instance(
        &self,
        spec: InstanceSpec,
        test: bool,
        actor: &str,
    ) -> impl Future<Output = Result<InstanceRecord, Error>> + Send;

    /// Tries the connection of an instance. A failure to connect is an answer,
    /// not an error. Refused: `UNKNOWN_INSTANCE`, `INVALID_ARGUMENT`.
    fn test_instance(
        &self,
        target: InstanceTarget,
    ) -> impl Future<Output = Result<InstanceCheck, Error>> + Send;

    /// Removes a Redis instance. Refused: `UNKNOWN_INSTANCE`, and `CONFLICT`
    /// while a type is assigned to it.
    fn remove_instance(
        &self,
        name: &str,
        actor: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The newest audit entries, newest first; at most `limit` (1 to 1 000).
    fn audit(&self, limit: u32) -> impl Future<Output = Result<Vec<AuditEntry>, Error>> + Send;

    /// The newest ranges of a type, newest first; at most `limit` (1 to 1 000).
    /// Refused: `UNKNOWN_TYPE`.
    fn range_log(
        &self,
        name: &str,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<RangeLogEntry>, Error>> + Send;
}

/// Which Redis instance to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceTarget {
    /// The registered one of this name.
    Name(String),
    /// One that need not be registered; its name is not looked at.
    Spec(InstanceSpec),
}

/// What a test of a connection found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceCheck {
    /// Its history, if it answered.
    pub history: Option<History>,
    /// How long it took to answer, in microseconds; 0 if it did not.
    pub round_trip_us: u64,
    /// Why it did not answer. Without secrets.
    pub error: Option<String>,
}

/// A Redis instance and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    /// As the range store holds it. Its URL holds secrets.
    pub record: InstanceRecord,
    /// Whether it answers now.
    pub check: InstanceCheck,
}
