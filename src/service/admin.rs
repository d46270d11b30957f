//! What the admin front may ask of the service beyond the data plane.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::api::IdApi;
use crate::domain::import::Table;
use crate::domain::preview::Preview;
use crate::domain::{
    Error, History, InstanceId, InstanceRecord, InstanceSpec, TypeChange, TypeName, TypeRecord,
    TypeSpec,
};
use crate::ports::{AuditEntry, ForeignTable, Page, RangeLogEntry, TypeFilter, View};

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

    /// Gives `count` ids in a row (1 to [`TypeSpec::LONGEST_RANGE`]) to the caller, for a
    /// bulk load: audited with `actor`, durable, and noted by Redis where that answers.
    /// Nobody else gets an id of them, and what the caller does not use is lost. They
    /// take no part in the order of a strict type: ids that are handed out later may be
    /// lower. Refused: `UNKNOWN_TYPE`, `RETIRED`, `EXHAUSTED` where fewer are left,
    /// `INVALID_ARGUMENT` (`count`, `mode`, `opaque`, `at_limit`) where ids are not one
    /// plain row.
    fn reserve(
        &self,
        name: &str,
        count: i64,
        actor: &str,
    ) -> impl Future<Output = Result<Reserved, Error>> + Send;

    /// What ids a type of this specification would hand out, and how its ranges would
    /// grow at `rate` ids a second. Makes nothing, and looks nothing up: whether the
    /// name is free and the Redis instance known is told by `create_type`. Refused:
    /// what else `create_type` refuses, and a `rate` that is out of range (`rate`).
    fn preview(
        &self,
        spec: TypeSpec,
        rate: f64,
    ) -> impl Future<Output = Result<Preview, Error>> + Send;

    /// The settings of `name` as this node has them: as old as the feed of changes, half a
    /// second where the store answers. Nothing is asked for a type that the node knows.
    /// Refused: `UNKNOWN_TYPE`.
    fn settings(&self, name: &str) -> impl Future<Output = Result<Arc<TypeRecord>, Error>> + Send;

    /// Now by the clock of this node, in milliseconds of the Unix epoch.
    fn now_ms(&self) -> i64;

    /// Whether a type of `spec` may be made through this node, as far as that is known
    /// without the range store.
    fn check_new(&self, spec: &TypeSpec) -> Result<(), Error>;

    /// Those of the types of these names that are there.
    fn find_types(
        &self,
        names: Vec<TypeName>,
    ) -> impl Future<Output = Result<HashMap<TypeName, TypeRecord>, Error>> + Send;

    /// The rows of a table of another system. See
    /// [`ImportSource::read`](crate::ports::ImportSource::read).
    fn read_foreign(
        &self,
        wanted: &ForeignTable,
    ) -> impl Future<Output = Result<Table, Error>> + Send;

    /// All Redis instances by number, each with its state now.
    fn instances(&self) -> impl Future<Output = Result<Vec<InstanceStatus>, Error>> + Send;

    /// The Redis instance of this name or number. Refused: `UNKNOWN_INSTANCE`.
    fn find_instance(
        &self,
        wanted: &str,
    ) -> impl Future<Output = Result<InstanceRecord, Error>> + Send;

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
    /// while a type is assigned to it or on its way to it, or another instance is
    /// drained to it.
    fn remove_instance(
        &self,
        name: &str,
        actor: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// What moving `name` to the instance called `target` would do; changes nothing.
    /// Refused: `UNKNOWN_TYPE`, `UNKNOWN_INSTANCE`. Whatever else would stand in the
    /// way is told in the plan.
    fn plan_migration(
        &self,
        name: &str,
        target: &str,
    ) -> impl Future<Output = Result<MigrationPlan, Error>> + Send;

    /// Moves `name` to the instance called `target` while it is in use: callers
    /// wait for a moment, and order holds. With `abandon` the old instance, which is
    /// out of reach for good, is not asked: ids stay unique, but a node that still
    /// reaches it may hand out lower ids until it has heard of the migration, at most
    /// a second. Refused: `UNKNOWN_TYPE`, `UNKNOWN_INSTANCE`, `INVALID_ARGUMENT`
    /// (`instance`), `CONFLICT`, `UNAVAILABLE` where an instance is out of reach:
    /// then the migration was undone, or ends by itself.
    fn migrate(
        &self,
        name: &str,
        target: &str,
        abandon: bool,
        actor: &str,
    ) -> impl Future<Output = Result<Migrated, Error>> + Send;

    /// Undoes the migration of `name` that is under way; moves it back if none is.
    /// Refused: `UNKNOWN_TYPE`, `CONFLICT` where it was never moved, and what
    /// [`migrate`](Self::migrate) refuses.
    fn undo_migration(
        &self,
        name: &str,
        actor: &str,
    ) -> impl Future<Output = Result<TypeRecord, Error>> + Send;

    /// Types that are on their way between instances, by name; at most 1 000.
    fn migrations(&self) -> impl Future<Output = Result<Vec<TypeRecord>, Error>> + Send;

    /// Moves all types of the instance called `name` to the one called `to`, one
    /// after another, by all nodes; `None` ends that, and leaves what was moved.
    /// Answers at once: how many types are left is told by
    /// [`instances`](Self::instances). Refused: `UNKNOWN_INSTANCE`,
    /// `INVALID_ARGUMENT` (`instance`).
    fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> impl Future<Output = Result<InstanceRecord, Error>> + Send;

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

/// Ids for the caller alone: `start`, `start + step` and so on, below `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The type.
    pub name: TypeName,
    /// The first id.
    pub start: i64,
    /// Above the last id.
    pub end: i64,
    /// From one id to the next: 1, or the number of sites that share the type.
    pub step: i64,
    /// How many ids.
    pub count: i64,
}

/// What a migration would do.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationPlan {
    /// The type as it is.
    pub record: TypeRecord,
    /// Where it is.
    pub from: Place,
    /// Where it would go.
    pub to: Place,
    /// Ids that are published and not taken yet.
    pub rest: u64,
    /// Whether these would go on being handed out on the new instance; else they
    /// are burnt, and a new range is allocated.
    pub keeps_rest: bool,
    /// What stands in the way, in words; empty if nothing does.
    pub problems: Vec<String>,
}

/// A Redis instance in a [`MigrationPlan`].
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its number.
    pub id: InstanceId,
    /// Its name.
    pub name: String,
    /// What it holds of the type; `None` if it does not answer.
    pub view: Option<View>,
}

/// A migration that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Migrated {
    /// The type, on its new instance.
    pub record: TypeRecord,
    /// Ids that went along.
    pub kept: u64,
    /// Ids that were left behind, and are burnt.
    pub burnt: u64,
    /// How long all of it took.
    pub took: Duration,
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
