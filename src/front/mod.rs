//! The fronts: what clients speak to. They know the service's interface, never
//! its parts.

pub mod thrift;
