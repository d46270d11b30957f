//! What `idgen bench` and `idgen verify` share: simulated clients, and how to
//! run many of them for an exact time.
//!
//! A simulated client is one thread of a pool with one TCP connection, and
//! drives the blocking client that the Thrift compiler generated, as a user of
//! the service would. Nothing here knows how ids are made.
//!
//! - [`client`] is one connection at a time, and how soon it is made anew;
//! - `calls` is the generated client, and what its failures are called;
//! - [`request`] is what clients ask for, and what comes back;
//! - [`open`] sends calls at a fixed rate instead, whether or not answers come;
//! - [`pool`] runs many clients that start together and end on time;
//! - [`histogram`] keeps latencies;
//! - [`promise`] is what a type promises, and which single answers break it;
//! - [`record`] keeps what calls brought, small enough for millions of them;
//! - [`stalls`] finds the times in which nobody got an answer;
//! - [`texts`] does the same for ids that are texts, and finds those that repeat;
//! - [`checker`] finds out whether recorded ids are unique and in order.

use std::sync::Arc;

use serde::Serialize;

use crate::front::thrift::generated::TypeInfo;

mod calls;
pub mod checker;
pub mod client;
pub mod errors;
pub mod histogram;
pub mod open;
pub mod pool;
pub mod promise;
pub mod record;
pub mod request;
pub mod stalls;
#[cfg(test)]
pub(crate) mod test_server;
pub mod texts;

pub use checker::{Order, Report, Violation, check};
pub use client::{Client, LoadError, Node, Protocol, Transport, WireArgs};
pub use errors::{CallError, ErrorClass, ErrorCounts};
pub use histogram::Latencies;
pub use pool::{Plan, Run, Tick, now, run};
pub use promise::Promise;
pub use record::{Call, CallLog};
pub use request::{Answer, Method, Request};
pub use stalls::{Stall, Stalls};
pub use texts::TextLog;

/// `count` clients, spread evenly over `nodes`, each of which is probed first.
///
/// # Errors
/// [`LoadError::Usage`] when there are more nodes than clients or than can be
/// told apart; else what [`Node::with`] and [`Client::probe`] refuse.
pub fn clients(
    nodes: &[String],
    count: u32,
    wire: &WireArgs,
    request: &Request,
) -> Result<Vec<Client>, LoadError> {
    if nodes.len() > count as usize || nodes.len() > usize::from(u16::MAX) {
        let message = format!("{} nodes need at least as many clients", nodes.len());
        return Err(LoadError::Usage(message));
    }
    // Two descriptors per client are plenty; where the limit cannot be raised,
    // the connections that fail are counted as errors.
    let _ = rlimit::increase_nofile_limit(u64::from(count) * 2 + 256);
    let mut probed = Vec::new();
    for (index, name) in nodes.iter().enumerate() {
        let node = Arc::new(Node::with(name, wire)?);
        Client::new(Arc::clone(&node), index as u16, wire.clone(), request.clone()).probe()?;
        probed.push(node);
    }
    Ok((0..count as usize)
        .map(|i| {
            let index = i % probed.len();
            let node = Arc::clone(&probed[index]);
            Client::new(node, index as u16, wire.clone(), request.clone()).at_turn(i)
        })
        .collect())
}

/// What the node called `name` says of `id_type`.
///
/// # Errors
/// What [`Node::with`] refuses; [`LoadError::Refused`] and
/// [`LoadError::Unreachable`], where it does not say.
pub fn describe(name: &str, wire: &WireArgs, id_type: &str) -> Result<TypeInfo, LoadError> {
    let node = Arc::new(Node::with(name, wire)?);
    let request = Request::new(id_type, Method::NextId, 1);
    let mut client = Client::new(Arc::clone(&node), 0, wire.clone(), request);
    client.describe().map_err(|error| LoadError::of(&node, error))
}

/// What to count `error` as: a call that was still waiting when the run was
/// over was cut by this program, whatever it looks like to the client.
pub fn kind_of<'a>(error: &'a CallError, run: &Run) -> &'a str {
    if run.was_cut() && error.class == ErrorClass::Lost { "cut_at_end" } else { &error.kind }
}

/// One line of JSON.
pub fn json(report: &impl Serialize) -> String {
    serde_json::to_string(report).expect("reports hold text and numbers only")
}
