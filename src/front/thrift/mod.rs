//! Thrift.
pub mod wire;
