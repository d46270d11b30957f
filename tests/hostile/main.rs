//! Clients that mean harm, or do not know better, against a whole node: what
//! they do costs them, and not the memory of the node nor the calls of others.
//!
//! `make test` runs a short form; `make hostile` the long one, with the figures
//! of docs/hostile-clients.md.

#[path = "../support/mod.rs"]
mod support;

mod http;
mod overload;
mod thrift;
mod tools;
