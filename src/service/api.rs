//! What the fronts may ask of the service, and the shapes of the answers.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;

use crate::domain::{Error, IdRange, TypeRecord, TypeSpec};
use crate::ports::View;

/// The most ids that one call may ask for.
pub const MAX_COUNT: i64 = 100_000;
/// The most ids that one call may ask for as texts.
pub const MAX_TEXTS: i64 = 10_000;
/// The most ids that a client may lease for itself in one call.
pub const MAX_LEASE: i64 = 10_000_000;
/// The shortest life of a client's lease, in milliseconds.
pub const MIN_LEASE_MS: i64 = 1_000;
/// The longest life of a client's lease, in milliseconds: a day.
pub const MAX_LEASE_MS: i64 = 86_400_000;
/// How long a request key gives the same ids again.
pub const REQUEST_KEY_LIFE: Duration = Duration::from_secs(600);
/// The longest request key, in bytes.
pub const MAX_REQUEST_KEY: usize = 128;
/// The longest text of an id that is decoded, in bytes. Formats make shorter ones: 255
/// characters, the prefix of up to 256 bytes perhaps many times among them.
pub const MAX_ID_TEXT: usize = 8_192;
/// The longest gate pass, in bytes.
pub const MAX_GATE_PASS: usize = 1_024;

/// What a call for ids asks for beyond the name of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    /// How many ids: 1 to [`MAX_COUNT`], for texts to [`MAX_TEXTS`].
    pub count: i64,
    /// Chooses the shard of a sharded type, which needs one; refused for every
    /// other. At most [`MAX_GATE_PASS`] bytes.
    pub gate_pass: Option<&'a str>,
    /// The same key within [`REQUEST_KEY_LIFE`] gives the same ids again, on any
    /// node; with other arguments it is a `CONFLICT`. 1 to [`MAX_REQUEST_KEY`]
    /// printable ASCII characters without spaces. Needs the type's Redis
    /// instance in every mode.
    pub request_key: Option<&'a str>,
}

impl Order<'_> {
    /// A plain call for `count` ids.
    pub fn of(count: i64) -> Self {
        Order { count, gate_pass: None, request_key: None }
    }
}

/// Ids that a client may hand out by itself: `first`, `first + step`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RangeLease {
    /// The first id.
    pub first: i64,
    /// How many ids; at least 1, perhaps fewer than asked for.
    pub count: i64,
    /// From one id to the next; 1, or the number of sites.
    pub step: i64,
    /// For how long the client may hand them out, in milliseconds from when it
    /// sent the call. What is left then is lost.
    pub ttl_ms: i64,
}

/// What an id tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decoded {
    /// The type.
    pub id_type: String,
    /// Its mode.
    pub mode: &'static str,
    /// The number, where the id is one; a calendar series has texts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// The text, as the type's format writes it.
    pub text: String,
    /// Its place in the sequence; none for a snowflake id. With a period, the
    /// number within it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// The first day of the period, as `2026-11-21`, of a calendar series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u8>,
    /// The app id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<i64>,
    /// The worker id of a snowflake id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<i64>,
    /// The sequence within its unit of time of a snowflake id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// When, in milliseconds of the Unix epoch: the time in a snowflake id, else
    /// when its range was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// Which node issued it, or got its range, as far as the store knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The first position of its range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_first: Option<i64>,
    /// The length of its range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_count: Option<i64>,
    /// Whether it can have been issued: its position is allocated (a worker had
    /// that time, for a snowflake id). False for an id that lies ahead.
    pub issued: bool,
}

/// The data plane: what clients call at every insert.
///
/// Every call ends by the request deadline of the node, with an answer or with
/// a typed error. Names come unchecked from the wire; the implementation
/// checks them.
pub trait IdApi: Send + Sync + 'static {
    /// The next id of `name`.
    fn next_id(&self, name: &str) -> impl Future<Output = Result<i64, Error>> + Send;

    /// The next ids of `name`, in order, as runs of consecutive ids: usually one
    /// run, as many as ids for an opaque or sharded type. Exactly `order.count`
    /// ids, or an error.
    fn next_ids(
        &self,
        name: &str,
        order: Order<'_>,
    ) -> impl Future<Output = Result<Vec<IdRange>, Error>> + Send;

    /// The next ids of `name` as text: in the type's format, else in decimal with
    /// the prefix before it. Without `with_prefix` the prefix counts as empty.
    fn next_string_ids(
        &self,
        name: &str,
        order: Order<'_>,
        with_prefix: bool,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send;

    /// Up to `count` (1 to [`MAX_LEASE`]) ids for a client to hand out by itself,
    /// for `ttl_ms` ([`MIN_LEASE_MS`] to [`MAX_LEASE_MS`]). Segment types whose ids are in
    /// order only: `INVALID_ARGUMENT` (`mode`) for others.
    fn lease_range(
        &self,
        name: &str,
        count: i64,
        ttl_ms: i64,
    ) -> impl Future<Output = Result<RangeLease, Error>> + Send;

    /// What `id`, a number in decimal or a text of the type's format, tells.
    /// `INVALID_ARGUMENT` (`id`) for one that the type cannot have issued.
    fn decode(&self, name: &str, id: &str) -> impl Future<Output = Result<Decoded, Error>> + Send;

    /// The settings and the state of `name`.
    fn describe(&self, name: &str) -> impl Future<Output = Result<TypeStatus, Error>> + Send;

    /// Creates a type; `actor` is who asks, for the audit log.
    fn create_type(
        &self,
        spec: TypeSpec,
        actor: &str,
    ) -> impl Future<Output = Result<TypeRecord, Error>> + Send;

    /// The state of this node.
    fn node_status(&self) -> impl Future<Output = NodeStatus> + Send;
}

/// A type, and what its dispatcher says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeStatus {
    /// As the range store holds it.
    pub record: TypeRecord,
    /// As the dispatcher sees it now; `None` when that is out of reach, and for a
    /// type that does not need one.
    pub view: Option<View>,
    /// What this node has of it; `None` for what it never issued itself.
    pub local: Option<LocalSupply>,
    /// When its highest id, or the end of its epoch, will be reached at the rate
    /// that this node knows, in milliseconds of the Unix epoch; `None` when there
    /// is no rate or no end. For a calendar series: when the period's numbers
    /// will, where that is before the period ends.
    pub exhausted_at_ms: Option<i64>,
}

/// Ids that a node holds for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LocalSupply {
    /// Ids at hand.
    pub left: u64,
    /// Ranges at hand, the one in use included.
    pub ranges: u64,
    /// How many ranges the node keeps ahead now.
    pub ahead: u64,
    /// Ids per second, as last measured here.
    pub rate: Option<f64>,
    /// How long they last at this rate, in seconds.
    pub runway_s: Option<f64>,
    /// The worker id in use, of a snowflake type.
    pub worker: Option<i64>,
}

/// How a part that the node depends on is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartStatus {
    /// What it is: `store`, or the name of a Redis instance.
    pub name: String,
    /// Its kind: `mysql`, `embedded`, `redis`, `memory`.
    pub kind: &'static str,
    /// Whether it answered when last asked.
    pub reachable: bool,
    /// The last error, if it did not. Without secrets.
    pub error: Option<String>,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeStatus {
    /// The id of the node, as in range logs.
    pub node: String,
    /// The version of the program.
    pub version: &'static str,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Whether it takes requests: started, not draining, and an instance answers.
    pub ready: bool,
    /// Whether it is shutting down.
    pub draining: bool,
    /// How many types it knows.
    pub types_loaded: u64,
    /// The store and the instances.
    pub parts: Vec<PartStatus>,
}
