//! The Thrift front: an async server for `idl/idgen.thrift`.
//!
//! ```text
//! server      accepts, counts and joins connections; shuts down in order
//! connection  one task per connection: bytes in, calls in order, bytes out
//! messages    cuts the bytes of a connection into messages
//! wire        what the bytes mean, without trusting them
//! request     which method (method), and are its arguments there
//! calling     who calls: the token of a connection or of a call
//! calls       what the method wants of the service, and what that says
//! codes       the one table from errors to the wire
//! ahead       calls that begin while one before them waits
//! buffers     the memory that connections may hold together
//! long_orders the memory that orders for many ids may need together
//! reply       generated structs through the official crate's protocols
//! one_id      the reply of nearly every call, without allocation
//! ```
//!
//! Promise: every request that was received completely gets exactly one reply,
//! in order, also while the server shuts down; and whatever one peer sends or
//! fails to send costs that peer's connection, never another's.

pub mod add_new_id;
mod ahead;
#[doc(hidden)]
pub mod bench;
mod buffers;
mod calling;
mod calls;
pub mod codes;
mod connection;
mod convert;
#[cfg(fuzzing)]
pub mod fuzzing;
mod long_orders;
mod messages;
mod method;
mod metrics;
mod one_id;
mod reply;
mod request;
mod server;
pub mod wire;

pub use crate::thrift_api as generated;
pub use generated::{IdGenException, IdGenServiceSyncClient, TIdGenServiceSyncClient};
pub use metrics::ThriftMetrics;
pub use server::{Served, ThriftConfig, ThriftServer};
