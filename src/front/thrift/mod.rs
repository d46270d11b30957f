//! Thrift.
pub mod wire;

#[allow(missing_docs, unused, dead_code, clippy::all)]
#[rustfmt::skip]
pub mod generated;
