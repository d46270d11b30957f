//! What the fronts may ask of the service, and the shapes of the answers.

use std::future::Future;

use serde::Serialize;

use crate::domain::{Error, IdRange, TypeRecord, TypeSpec};
use crate::ports::View;

/// The most ids that one call may ask for.
pub const MAX_COUNT: i64 = 100_000;

/// The data plane: what clients call at every insert.
///
/// Every call ends by the request deadline of the node, with an answer or with
/// a typed error. Names come unchecked from the wire; the implementation
/// checks them.
pub trait IdApi: Send + Sync + 'static {
    /// The next id of `name`.
    fn next_id(&self, name: &str) -> impl Future<Output = Result<i64, Error>> + Send;

    /// The next `count` ids (1 to [`MAX_COUNT`]) as ascending ranges; usually one.
    fn next_ids(
        &self,
        name: &str,
        count: i64,
    ) -> impl Future<Output = Result<Vec<IdRange>, Error>> + Send;

    /// The next id of `name` in decimal, with the type's prefix before it if asked for.
    fn next_string_id(
        &self,
        name: &str,
        with_prefix: bool,
    ) -> impl Future<Output = Result<String, Error>> + Send;

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
    /// As the dispatcher sees it now; `None` when that is out of reach.
    pub view: Option<View>,
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
