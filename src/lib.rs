//! IdGen: a service that hands out unique, cluster-wide ordered 64-bit ids.
//!
//! `docs/architecture.md` is the map of the parts.

pub mod cli;
pub mod domain;
pub mod front;
pub mod ports;
pub mod service;
