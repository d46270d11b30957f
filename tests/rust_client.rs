//! The Rust client (docs/rust-client.md) against real nodes, and against peers that
//! answer as no node would.

#[path = "rust_client/calls.rs"]
mod calls;
#[path = "rust_client/fake.rs"]
mod fake;
#[path = "rust_client/faults.rs"]
mod faults;
#[path = "rust_client/leases.rs"]
mod leases;
mod support;

use std::time::Duration;

use idgen::client::{BlockingClient, Config};
use support::TempFolder;
use support::node::{Node, data_folder};
use tokio::time::Instant;

/// A node on its own store, with a type of each mode.
fn node() -> (Node, TempFolder) {
    let (folder, data) = data_folder();
    let node = Node::start(&["--data", data.to_str().expect("UTF-8")]);
    for (name, mode) in [("order", "strict"), ("event", "segment"), ("account", "sharded")] {
        let app: &[&str] = if mode == "sharded" { &["--app-id", "7"] } else { &[] };
        node.run(&[&["type", "add", name, "--mode", mode, "--prefix", "P-"], app].concat());
    }
    (node, folder)
}

fn blocking(node: &str) -> BlockingClient {
    BlockingClient::new(Config::new([node])).expect("a client")
}

/// Asks again and again until it is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let bound = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < bound, "never came: {what}");
    }
}
