//! What the fronts may ask of the live view, and the shapes of the answers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::{Error, TypeName};
use crate::ports::{TypeCounts, View};
use crate::service::api::LocalSupply;

/// Most names that one stream watches.
pub const MAX_WATCHED: usize = 200;
/// So often a stream is told how things are.
pub const STREAM_PERIOD: Duration = Duration::from_secs(2);

/// What the fronts counted since the start; never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Ids handed out.
    pub ids: u64,
    /// Calls that came in completely.
    pub calls: u64,
    /// Calls that failed, for whatever reason.
    pub errors: u64,
    /// Those of them that failed for no fault of the caller's.
    pub failures: u64,
}

impl std::ops::Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            ids: self.ids + other.ids,
            calls: self.calls + other.calls,
            errors: self.errors + other.errors,
            failures: self.failures + other.failures,
        }
    }
}

/// What the live view is told at its start.
pub struct LiveConfig {
    /// Where this node listens for Thrift, as peers may read it.
    pub thrift: String,
    /// Where it listens for HTTP.
    pub http: String,
    /// What the Thrift front has counted so far. Called about once a second.
    pub traffic: Box<dyn Fn() -> Traffic + Send + Sync>,
}

/// How far a series goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Span {
    /// The last hour, in steps of 10 s.
    Hour,
    /// The last day, in steps of 5 min.
    Day,
    /// The last week, in steps of 30 min.
    Week,
}

impl Span {
    /// All of them, in the order of their numbers.
    pub const ALL: [Span; 3] = [Span::Hour, Span::Day, Span::Week];

    /// The length of a step.
    pub fn step(self) -> Duration {
        Duration::from_secs(match self {
            Span::Hour => 10,
            Span::Day => 300,
            Span::Week => 1_800,
        })
    }

    /// How many steps it has.
    pub fn steps(self) -> usize {
        match self {
            Span::Hour => 360,
            Span::Day => 288,
            Span::Week => 336,
        }
    }
}

/// Whose ids a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those of all nodes.
    Cluster,
    /// Those of the node that answers.
    Node,
}

/// The cluster, as one node sees it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Overview {
    /// When, in milliseconds of the Unix epoch by the clock of the node.
    pub at_ms: i64,
    /// The node that answers.
    pub node: String,
    /// Of all nodes that are not silent.
    pub ids_per_s: f64,
    /// Of all nodes that are not silent.
    pub calls_per_s: f64,
    /// Of all nodes that are not silent.
    pub errors_per_s: f64,
    /// By their names; this node is one of them.
    pub nodes: Vec<NodeReport>,
    /// The Redis instances, by number.
    pub instances: Vec<InstanceState>,
    /// The range store.
    pub store: StoreState,
    /// How many types there are, at most some 10 s old; longer with very many types.
    pub types: TypeCounts,
    /// What somebody should know, the worst first; at most 50.
    pub attention: Vec<Attention>,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NodeReport {
    /// Its id.
    pub node: String,
    /// The version of its program.
    pub version: String,
    /// When it was started, by its own clock.
    pub started_ms: i64,
    /// When it said so, by its own clock.
    pub at_ms: i64,
    /// How long ago that was, by the clock of the Redis that carried it.
    pub age_ms: u64,
    /// Whether it has said nothing for more than 10 s.
    pub silent: bool,
    /// Whether it is shutting down.
    pub draining: bool,
    /// Where it listens for Thrift.
    pub thrift: String,
    /// Where it listens for HTTP.
    pub http: String,
    /// Ids that it hands out.
    pub ids_per_s: f64,
    /// Calls for ids, whatever became of them.
    pub calls_per_s: f64,
    /// Calls that failed.
    pub errors_per_s: f64,
    /// How many types it knows.
    pub types_loaded: u64,
    /// How it finds the store and the instances.
    pub parts: Vec<Part>,
}

/// How a node finds a part that it depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NodePart")]
pub struct Part {
    /// `store`, or the name of a Redis instance.
    pub name: String,
    /// `mysql`, `embedded`, `redis` or `memory`.
    pub kind: String,
    /// Whether it answered when last asked.
    pub reachable: bool,
    /// Why it did not.
    pub error: Option<String>,
}

/// A Redis instance as this node finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstanceState {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its URL, without secrets.
    pub url: String,
    /// Whether it answered.
    pub reachable: bool,
    /// How long that took, in microseconds; 0 if it did not.
    pub round_trip_us: u64,
    /// Its history.
    pub history: Option<String>,
    /// Why it did not answer.
    pub error: Option<String>,
    /// How many types are assigned to it; as old as the `types` of the overview.
    pub types: u64,
    /// Where its types go, while it is being drained.
    pub drain_to: Option<InstanceRef>,
    /// Memory in use, in bytes.
    pub memory_bytes: Option<u64>,
    /// `master`, or `cluster` where there are several servers.
    pub role: Option<String>,
    /// The version of the server.
    pub version: Option<String>,
}

/// A Redis instance by number and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DrainTarget")]
pub struct InstanceRef {
    /// Its number.
    pub id: i64,
    /// Its name, if this node knows it.
    pub name: Option<String>,
}

/// The range store as this node finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreState {
    /// `mysql` or `embedded`.
    pub kind: &'static str,
    /// Whether it answered.
    pub reachable: bool,
    /// How long that took, in microseconds.
    pub round_trip_us: Option<u64>,
    /// Why it did not answer.
    pub error: Option<String>,
}

/// What kind of thing somebody should know. In the order in which they are shown
/// where they are equally bad.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AttentionKind")]
pub enum Kind {
    /// The range store does not answer.
    StoreDown,
    /// A Redis instance does not answer.
    InstanceDown,
    /// The ids at hand will not last while the store is away.
    RunwayShort,
    /// The next range of a type could not be had.
    RefillFailing,
    /// A type nears its highest id.
    LimitNear,
    /// The time of a snowflake type nears its end.
    EpochNear,
    /// A node has not been heard of.
    NodeSilent,
    /// Calls failed for no fault of the caller's.
    Errors,
    /// Data of Redis that may have been rolled back was met and dropped.
    StaleHistory,
    /// Types are on their way between instances.
    MigrationRunning,
    /// An instance is being emptied.
    DrainRunning,
    /// Not all nodes have the same version.
    VersionsDiffer,
}

/// How bad it is, the worst first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Callers get errors, or soon will.
    Critical,
    /// Somebody must do something, but not now.
    Warning,
    /// Good to know.
    Info,
}

/// What it is about.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(rename = "AttentionSubject")]
pub struct About {
    /// A type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub id_type: Option<String>,
    /// A Redis instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// A node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Something that somebody should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// What kind of thing.
    pub kind: Kind,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub subject: About,
    /// One sentence for people.
    pub detail: String,
    /// How long the ids at hand last, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runway_s: Option<f64>,
    /// When it will be, in milliseconds of the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How many ids are left; text, because it may be above 2^53.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// A type in use, now.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeLive {
    /// Its name.
    pub name: TypeName,
    /// The version of its settings.
    pub version: i64,
    /// Ids per second, as measured over the last 5 to 10 s.
    pub rate: Option<f64>,
    /// Whose ids that counts.
    pub rate_of: Scope,
    /// How long the ids at hand last at this rate: in Redis, else on this node.
    pub runway_s: Option<f64>,
    /// See [`TypeStatus::exhausted_at_ms`](crate::service::api::TypeStatus::exhausted_at_ms).
    pub exhausted_at_ms: Option<i64>,
    /// What its dispatcher holds; `None` when that is out of reach, and for a type
    /// that needs none.
    pub view: Option<View>,
    /// What this node holds for itself.
    pub local: Option<LocalSupply>,
    /// When it last got a range, as far as this node knows.
    pub last_load_ms: Option<i64>,
}

/// Ids per second over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// How far it goes back.
    pub span: Span,
    /// Where it begins, in milliseconds of the Unix epoch.
    pub from_ms: i64,
    /// Where it ends: now.
    pub to_ms: i64,
    /// From one point to the next.
    pub step_ms: u64,
    /// Whose ids it counts.
    pub scope: Scope,
    /// Where each step begins.
    pub at_ms: Vec<i64>,
    /// The mean of each step; `null` where nothing was measured.
    pub ids_per_s: Vec<Option<f64>>,
    /// Of a type: the ranges allocated within the span, oldest first; at most the
    /// 1 000 newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<SeriesRange>>,
}

/// A range that was allocated.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeriesRange {
    /// When, by the store's clock.
    pub at_ms: i64,
    /// The first position.
    pub start: i64,
    /// One above the last.
    pub end: i64,
    /// How many positions.
    pub length: i64,
    /// How long it took this node to get it; `null` for what others got, or was
    /// longer ago.
    pub refill_ms: Option<u64>,
    /// Who asked.
    pub owner: String,
}

/// The store's feed has shown changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The types that changed.
    pub types: Vec<String>,
    /// Whether the Redis instances did.
    pub instances: bool,
    /// Whether anything else may have changed: too much at once, or the store went
    /// back in time.
    pub all: bool,
    /// When it was seen.
    pub at_ms: i64,
}

/// What a stream tells.
#[derive(Clone, Debug)]
pub enum Event {
    /// Now and then.
    Overview(Arc<Overview>),
    /// The watched types.
    Types {
        /// When, in milliseconds of the Unix epoch.
        at_ms: i64,
        /// Those of them that exist, in the order in which they were named.
        items: Vec<TypeLive>,
    },
    /// The store's feed saw a change.
    Changed(Changed),
}

/// Events for one stream. Nothing is kept for one that does not ask: it finds the
/// newest state then.
pub trait Events: Send + 'static {
    /// The next one; `None` when the node stops. Loses nothing when it is dropped.
    fn next(&mut self) -> impl Future<Output = Option<Event>> + Send;
}

/// The live view.
pub trait LiveApi: Send + Sync + 'static {
    /// The events of one stream.
    type Events: Events;

    /// The cluster as this node sees it, at most 2 s old.
    fn overview(&self) -> impl Future<Output = Arc<Overview>> + Send;

    /// Ids per second of all types.
    fn series(&self, span: Span) -> Series;

    /// Ids per second of one type, and its ranges. Refused: `UNKNOWN_TYPE`.
    fn type_series(
        &self,
        name: &str,
        span: Span,
    ) -> impl Future<Output = Result<Series, Error>> + Send;

    /// Begins to watch `names` (at most [`MAX_WATCHED`]). The first events are
    /// `Overview` and `Types`, at once.
    fn watch(&self, names: Vec<TypeName>) -> Self::Events;

    /// The HTTP side served a call for ids: with so many, or with an error.
    fn served(&self, result: Result<u64, &Error>);
}
