//! The fronts: what speaks to clients and operators over the network.

pub mod http;
