//! The fronts: what clients and operators speak to over the network. They know
//! the service's interface, never its parts.

pub mod http;
pub mod thrift;
pub mod tls;
