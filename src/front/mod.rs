//! The fronts: what clients and operators speak to over the network. They know
//! the service's interface, never its parts.

pub mod http;
mod spans;
pub mod thrift;
pub mod tls;

pub use spans::trace_one_in;
