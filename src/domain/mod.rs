//! The rules of id allocation: no I/O, no clock, no randomness, no async.
//!
//! Everything here is a value or a pure function. Decisions that the rest of
//! the system must agree on (how long is the next range, when is it due, is
//! this name legal) live here once, each with a table of cases.

pub mod access;
pub mod allocation;
pub mod calendar;
pub mod check_digit;
pub mod error;
pub mod format;
pub mod gate_pass;
pub mod history;
pub mod id_map;
pub mod id_type;
pub mod instance;
pub mod migration;
pub mod name;
pub mod opaque;
pub mod options;
pub mod prefetch;
pub mod range;
pub mod redis_url;
pub mod sizing;
pub mod snowflake;

pub use calendar::{Period, PeriodSpan};
pub use error::{Error, ErrorCode};
pub use history::History;
pub use id_type::{LoadPercentage, Mode, State, TypeChange, TypeRecord, TypeSpec};
pub use instance::{InstanceId, InstanceRecord, InstanceSpec};
pub use migration::{Assignment, Placement, Seal};
pub use name::TypeName;
pub use opaque::{OpaqueKey, SliceKey};
pub use options::{AtLimit, OnRedisLoss, Opaque, Sites, TypeOptions};
pub use range::IdRange;
pub use redis_url::RedisUrl;
pub use sizing::Usage;
