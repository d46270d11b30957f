//! Redis (6.2 and later) or Valkey as a dispatcher: one server, the master of a
//! Sentinel group, or a Redis Cluster.
//!
//! One hash per type, `idgen:{name}`, and beside it the refill lock
//! `idgen:{name}:lock`, the leases that it is a witness of,
//! `idgen:{name}:leases`, and what is remembered under request keys,
//! `idgen:{name}:request:KEY`; nodes report themselves under `idgen:{-nodes}`; news on
//! the channel `idgen:events`. The names and
//! the fields are documented in `docs/redis.md`: peers and operators read them.
//! Everything that decides is a script, so that it is atomic; the history
//! (`master_replid`) is read inside the script that relies on it.

mod channel;
mod cluster;
mod dispatcher;
mod link;
mod majority;
mod registry;
mod sentinel;
mod server;

pub use dispatcher::RedisDispatcher;
pub use link::RedisOptions;
pub use registry::NODES_KEY;

use crate::domain::TypeName;

/// The channel for news.
pub const CHANNEL: &str = "idgen:events";

/// How each key begins; then come the type's name and a `}`.
const KEY_PREFIX: &[u8] = b"idgen:{";

/// The hash of a type. The braces make the name alone decide about the
/// cluster slot, so that all keys of a type are always on one server.
pub fn type_key(name: &TypeName) -> String {
    format!("idgen:{{{name}}}")
}

/// The refill lock of a type.
pub fn lock_key(name: &TypeName) -> String {
    format!("idgen:{{{name}}}:lock")
}

/// The hash of the ranges of a type that nodes leased for themselves.
pub fn leases_key(name: &TypeName) -> String {
    format!("idgen:{{{name}}}:leases")
}

/// What is remembered under the request key `key` of a type.
pub fn request_key(name: &TypeName, key: &str) -> String {
    format!("idgen:{{{name}}}:request:{key}")
}
