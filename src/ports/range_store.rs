//! The range store: what must never be lost.
//!
//! It knows which ids were already given away. A range is durable here before
//! anyone sees it (invariant 2); two callers never get overlapping ranges
//! (invariant 1); after an error or a time-out a range may or may not have been
//! allocated, and nobody uses it (invariant 5).

use async_trait::async_trait;

use crate::domain::allocation::Denied;
use crate::domain::migration::NotAssigned;
use crate::domain::{
    Assignment, Error, ErrorCode, History, IdRange, InstanceId, InstanceRecord, InstanceSpec,
    OpaqueKey, PeriodSpan, State, TypeChange, TypeName, TypeRecord, TypeSpec, Usage,
};

/// A request for the next range of a type.
#[derive(Clone, Debug)]
pub struct NextRange<'a> {
    /// The type.
    pub name: &'a TypeName,
    /// The sub-sequence, 0 to 63: for a sharded type, and for no other.
    pub shard: Option<u8>,
    /// The period that the caller takes for the current one: for a calendar
    /// series, and for no other. The store compares its own clock with it, so
    /// that no clock of a node has a say (see [`StoreError::WrongPeriod`]).
    pub period: Option<PeriodSpan>,
    /// The Redis instance that the range will be published on, and the history
    /// of that instance; `None` for a range that goes to a node, a client or a
    /// DBA. Recorded, and refused where the type is assigned elsewhere or the
    /// history was succeeded by another one.
    pub target: Option<(InstanceId, &'a History)>,
    /// What is known of the use since the last refill; decides about the length.
    pub usage: Option<Usage>,
    /// The highest range end that the caller has ever seen for the type, 0 if
    /// none. The range starts at or above it, so that a store that lost its
    /// latest writes jumps forward (invariant 6).
    pub floor: i64,
    /// Who asks, for the range log. At most 128 characters.
    pub owner: &'a str,
}

impl<'a> NextRange<'a> {
    /// A request of `owner` for `name`, without anything special.
    pub fn of(name: &'a TypeName, owner: &'a str) -> Self {
        NextRange { name, shard: None, period: None, target: None, usage: None, floor: 0, owner }
    }
}

/// A range that is durable in the store and belongs to the caller alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The positions (ids, for a plain type).
    pub range: IdRange,
    /// Reaching it makes the next range due.
    pub update_id: i64,
    /// When it was allocated, in milliseconds of the Unix epoch by the store's clock.
    pub load_ms: i64,
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Refused by a rule; nothing happened. The domain error says which rule.
    #[error("{0}")]
    Refused(Error),
    /// The type is not assigned to the Redis instance that the refill is for;
    /// nothing happened. The caller must read the type again.
    #[error("id type {name} is not assigned to Redis instance {instance}")]
    NotAssigned {
        /// The type.
        name: String,
        /// The instance that was given.
        instance: InstanceId,
    },
    /// The history that the refill is for was succeeded by another: the caller
    /// talks to a server that was replaced. Nothing happened.
    #[error("history {history} of id type {name} was succeeded by another one")]
    Superseded {
        /// The type.
        name: String,
        /// The history that was given.
        history: String,
    },
    /// The store's clock lies outside the period that was given; nothing happened.
    /// The caller works the period out again from `now_ms`.
    #[error("the range store's clock is at {now_ms} ms, outside the period that was asked for")]
    WrongPeriod {
        /// The store's clock, in milliseconds of the Unix epoch.
        now_ms: i64,
    },
    /// The store is out of reach, or did not answer in time: what was asked may
    /// or may not have happened.
    #[error("range store unavailable: {0}")]
    Unavailable(String),
    /// The store holds something that this version does not understand, or
    /// answered in a way that breaks its contract.
    #[error("range store: {0}")]
    Broken(String),
}

/// Why the type called `name` was not assigned under `history`, as stores say it.
pub fn not_assigned(why: NotAssigned, name: &TypeName, history: Option<&History>) -> StoreError {
    match why {
        NotAssigned::Rule(error) => StoreError::Refused(error),
        NotAssigned::Superseded => StoreError::Superseded {
            name: name.to_string(),
            history: history.map(History::to_string).unwrap_or_default(),
        },
    }
}

impl From<Denied> for StoreError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Rule(error) => StoreError::Refused(error),
            Denied::WrongPeriod { now_ms } => StoreError::WrongPeriod { now_ms },
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(error) => error,
            StoreError::NotAssigned { .. }
            | StoreError::Superseded { .. }
            | StoreError::WrongPeriod { .. }
            | StoreError::Unavailable(_) => Error::new(ErrorCode::Unavailable, error.to_string()),
            StoreError::Broken(_) => Error::new(ErrorCode::Internal, error.to_string()),
        }
    }
}

/// Which types to list.
#[derive(Clone, Debug, Default)]
pub struct TypeFilter {
    /// Only names that contain this text.
    pub contains: Option<String>,
    /// Only names that sort after this one (the last of the page before).
    pub after: Option<String>,
    /// Only types that are assigned to this instance.
    pub instance: Option<InstanceId>,
    /// At most so many; 1 to 1 000.
    pub limit: u32,
}

/// How many types there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct TypeCounts {
    /// Those that hand out ids.
    pub active: u64,
    /// Those that were retired.
    pub retired: u64,
}

/// A type that was assigned to another Redis instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Assigned {
    /// The type, on its new instance.
    pub record: TypeRecord,
    /// Whether the caller, and nobody else ever, may publish there what was left on
    /// the old one.
    pub keeps_rest: bool,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows, in the order of their names.
    pub items: Vec<T>,
    /// Whether there are rows after the last one.
    pub more: bool,
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An id type: its settings, its state, its assignment or its history.
    Type(TypeName),
    /// The Redis instances.
    Instances,
    /// Accounts, sessions or tokens; see [`Accounts`](super::Accounts).
    Access,
}

/// An entry of the feed of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number: later changes have larger ones, and no change becomes
    /// visible after one with a larger number.
    pub seq: i64,
    /// When, in milliseconds of the Unix epoch by the store's clock. With the number it
    /// tells a change from the one that took its number after the store went back.
    pub at_ms: i64,
    /// What changed.
    pub subject: Subject,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Its number.
    pub seq: i64,
    /// When, in milliseconds of the Unix epoch by the store's clock.
    pub at_ms: i64,
    /// Who.
    pub actor: String,
    /// What was done, such as `create_type`.
    pub action: String,
    /// To what: the name of a type or an instance.
    pub subject: String,
    /// The settings before, as JSON; `None` for a creation. Without secrets.
    pub before: Option<String>,
    /// The settings after, as JSON; `None` for a removal. Without secrets.
    pub after: Option<String>,
}

/// An entry of the range log.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeLogEntry {
    /// The ids.
    pub range: IdRange,
    /// When it was allocated, in milliseconds of the Unix epoch by the store's clock.
    pub at_ms: i64,
    /// Who asked.
    pub owner: String,
    /// The Redis instance that it was for, if any.
    pub instance: Option<InstanceId>,
    /// The history that it was for, if any.
    pub history: Option<String>,
    /// The sub-sequence, for a sharded type.
    pub shard: Option<u8>,
}

/// What must never be lost: types, and which of their ids were given away.
///
/// Every method returns within the adapter's own time limit. `actor` is who
/// asked, for the audit log, at most 128 characters.
#[async_trait]
pub trait RangeStore: Send + Sync {
    /// Allocates the next range, in one transaction that is durable when this
    /// returns. `start = max(next_id, floor)`; the length is
    /// [`next_length`](crate::domain::sizing::next_length), cut at `max_position`.
    ///
    /// Of a sharded type each shard has its own `next_id` and last length. Of a
    /// calendar series, `start` is at least the first number (`first_id`) of the
    /// given period, is lifted to the first number of its own period if a floor
    /// put it below, and never goes back to an earlier period; the range ends with
    /// its period.
    ///
    /// Refused: `UNKNOWN_TYPE`; `RETIRED`; `EXHAUSTED` when `start` is above
    /// `max_position` (of a calendar series: when the numbers of the period are
    /// used up; when the next one begins is the caller's business);
    /// `INVALID_ARGUMENT` for a floor outside `0..=i64::MAX`, for a snowflake type
    /// (`mode`), for a `shard` or `period` that is missing, not wanted or out of
    /// range (a period's number: 0 to
    /// [`HIGHEST_PERIOD`](crate::domain::allocation::HIGHEST_PERIOD)). See also
    /// [`StoreError::NotAssigned`], [`StoreError::Superseded`] and
    /// [`StoreError::WrongPeriod`].
    async fn next_range(&self, request: NextRange<'_>) -> Result<Allocation, StoreError>;

    /// Allocates exactly `count` ids, for a bulk load by hand. As
    /// [`next_range`](Self::next_range), but `count` (1 to
    /// [`TypeSpec::LONGEST_RANGE`]) is the length, the range is not cut but
    /// refused at the limit, and the sizing is not touched. An audited change,
    /// so that every node hears of it and keeps the end as a witness. For
    /// positions of a plain sequence only: refused with `INVALID_ARGUMENT`
    /// (`mode`) for sharded and snowflake types and calendar series.
    async fn reserve(
        &self,
        name: &TypeName,
        count: i64,
        floor: i64,
        owner: &str,
    ) -> Result<IdRange, StoreError>;

    /// Takes back the end of a range that was allocated without a target and
    /// never used, if nothing was allocated after it: then `next_id` goes back to
    /// the start of `tail`, and the range log forgets it (the row is cut, or
    /// removed if nothing is left). The last length stays. Answers whether it did;
    /// no change of settings: not audited, not in the feed. Of an opaque type
    /// nothing goes back that reaches below the slice of `next_id`, because nodes
    /// take the key of that slice for final.
    ///
    /// The caller must never use `tail` again, whatever the answer, must have
    /// withdrawn it from the dispatcher, and asks **once**: a second call might
    /// meet the same positions in the hands of somebody else. So an adapter may
    /// repeat it only where it knows that nothing happened.
    ///
    /// Refused: `UNKNOWN_TYPE`; `INVALID_ARGUMENT` for a `shard` as in
    /// [`next_range`](Self::next_range). A retired type takes back as an active one.
    async fn give_back(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, StoreError>;

    /// Gives the ids of an opaque type a new key, from the slice after that of
    /// `next_id` on: in the same transaction `next_id` (of every shard, for a
    /// sharded type) moves to the start of that slice, and the positions before it
    /// are skipped. A change of the type (its version rises), audited without the
    /// key. Refused: `UNKNOWN_TYPE`, `INVALID_ARGUMENT` (`opaque`) for a type that
    /// is not opaque, `EXHAUSTED` when this is the last slice.
    async fn rotate_key(
        &self,
        name: &TypeName,
        key: &OpaqueKey,
        actor: &str,
    ) -> Result<TypeRecord, StoreError>;

    /// The range of the log that holds `position`, if there is one. Refuses
    /// nothing: an unknown type, or a shard that does not fit it, has no ranges.
    async fn find_range(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        position: i64,
    ) -> Result<Option<RangeLogEntry>, StoreError>;

    /// Creates a type. Refused: `ALREADY_EXISTS`, `UNKNOWN_INSTANCE`, what
    /// [`TypeSpec::validate`] refuses, and a `key` where the type is not opaque or
    /// none where it is ([`check_new`](crate::domain::allocation::check_new)).
    async fn create_type(&self, spec: &TypeSpec, actor: &str) -> Result<TypeRecord, StoreError>;

    /// Changes settings. Refused: `UNKNOWN_TYPE`, `CONFLICT` when the version is
    /// not the expected one, and what [`TypeChange::apply_to`] refuses.
    async fn alter_type(
        &self,
        name: &TypeName,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError>;

    /// Retires an active type, or restores a retired one; without effect (and
    /// without an audit entry) where it is in that state already. The next id
    /// stays, so a restored type goes on above everything that it issued.
    async fn set_retired(
        &self,
        name: &TypeName,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, StoreError>;

    /// The type called `name`, if there is one.
    async fn find_type(&self, name: &TypeName) -> Result<Option<TypeRecord>, StoreError>;

    /// Whether `history` was recorded for the type, but is not its current one:
    /// whoever still hands out under it talks to a server that was replaced.
    /// False for a history that the store has never seen, or has lost.
    async fn is_superseded(&self, name: &TypeName, history: &History) -> Result<bool, StoreError>;

    /// Types in the order of their names.
    async fn list_types(&self, filter: &TypeFilter) -> Result<Page<TypeRecord>, StoreError>;

    /// How many types there are. May read all of them: not to be asked often.
    async fn count_types(&self) -> Result<TypeCounts, StoreError> {
        let mut counts = TypeCounts::default();
        let mut filter = TypeFilter { limit: 1_000, ..TypeFilter::default() };
        loop {
            let page = self.list_types(&filter).await?;
            for record in &page.items {
                match record.state {
                    State::Active => counts.active += 1,
                    State::Retired => counts.retired += 1,
                }
            }
            match page.items.last() {
                Some(last) if page.more => filter.after = Some(last.name.to_string()),
                _ => return Ok(counts),
            }
        }
    }

    /// Begins to move a type to the Redis instance called `target` (by name or
    /// number): see [`domain::migration`](crate::domain::migration). Audited, as are
    /// the next two. Refused: `UNKNOWN_TYPE`, `UNKNOWN_INSTANCE`, and what
    /// [`TypeRecord::begin_move`] refuses.
    async fn begin_migration(
        &self,
        name: &TypeName,
        target: &str,
        actor: &str,
    ) -> Result<TypeRecord, StoreError>;

    /// Assigns a type to the Redis instance that its seal names, and records the
    /// history there, if one is given. Refused: `UNKNOWN_TYPE`, `UNKNOWN_INSTANCE`,
    /// and what [`TypeRecord::assign`] refuses.
    async fn assign_type(
        &self,
        name: &TypeName,
        assignment: Assignment<'_>,
        actor: &str,
    ) -> Result<Assigned, StoreError>;

    /// Ends a migration that was begun under `generation`, and leaves the type where
    /// it is. Refused: `UNKNOWN_TYPE`, and what [`TypeRecord::undo_move`] refuses.
    async fn undo_migration(
        &self,
        name: &TypeName,
        generation: i64,
        actor: &str,
    ) -> Result<TypeRecord, StoreError>;

    /// Types that are on their way between instances, by name; at most 1 000.
    async fn migrations(&self) -> Result<Vec<TypeRecord>, StoreError>;

    /// Says that all types of the instance called `name` go to the one called `to`,
    /// one after another, and that it gets no new ones; `None` ends that. The types
    /// are moved by the nodes. Audited. Refused: `UNKNOWN_INSTANCE`, and what
    /// [`check_drain`](crate::domain::instance::check_drain) refuses.
    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError>;

    /// Registers a Redis instance. Refused: `ALREADY_EXISTS`, and what
    /// [`InstanceSpec::validate`] refuses.
    async fn add_instance(
        &self,
        spec: &InstanceSpec,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError>;

    /// Removes a Redis instance by name. Refused: `UNKNOWN_INSTANCE`, and
    /// `CONFLICT` while a type is assigned to it or on its way to it, or another
    /// instance is drained to it.
    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), StoreError>;

    /// All Redis instances, by number.
    async fn instances(&self) -> Result<Vec<InstanceRecord>, StoreError>;

    /// The same for a node that connects to them: the number of types may be
    /// left 0, so that the answer costs the same however many there are.
    async fn connections(&self) -> Result<Vec<InstanceRecord>, StoreError> {
        self.instances().await
    }

    /// Changes with a number above `seq`, oldest first, at most 1 000.
    ///
    /// A change of the history of a type is one of them, as is every audited
    /// change.
    async fn changes_since(&self, seq: i64) -> Result<Vec<Change>, StoreError>;

    /// The number of the newest change; 0 when there is none.
    async fn latest_change(&self) -> Result<i64, StoreError>;

    /// The newest audit entries, newest first; at most `limit`.
    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// The newest ranges of a type, newest first; at most `limit`.
    async fn range_log(
        &self,
        name: &TypeName,
        limit: u32,
    ) -> Result<Vec<RangeLogEntry>, StoreError>;

    /// Whether the store answers: its clock, in milliseconds of the Unix epoch.
    async fn ping(&self) -> Result<i64, StoreError>;
}
