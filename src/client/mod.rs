//! The client of IdGen for Rust programs (`docs/rust-client.md`).
//!
//! ```text
//! config      what a client is told
//! calls       the calls, async: which node is asked, and what follows from its answer
//! blocking    the same for programs without a runtime
//! node        one node: its connections, and whether it is worth asking
//! connection  one TCP connection: a call out, its answer in
//! wire        what the bytes mean, without trusting them
//! sign_in     the token of a connection
//! lease/      ids that are handed out in this process
//! error       what can go wrong
//! ```
//!
//! Promise: every call ends by its deadline; a node that is dead, hangs or talks
//! nonsense is left within the call, as long as another one answers; what is kept in
//! memory is bounded. Every call may be repeated: what a lost answer held is lost,
//! nobody gets it twice (`idl/idgen.thrift`).

mod blocking;
mod calls;
mod config;
mod connection;
mod error;
mod lease;
mod node;
mod wire;

pub use blocking::{BlockingBatch, BlockingClient, BlockingLease};
pub use calls::Client;
pub use config::{Config, Order, Protocol};
pub use error::{Code, Error, Refusal};
pub use lease::{LeaseBatch, LeaseConfig, LocalLease};

pub use crate::thrift_api::{
    DecodedId, IdRange, LiveState, LocalSupply, NodeInfo, PartInfo, RangeLease, TypeInfo,
};
