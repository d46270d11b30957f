//! IdGen: a service that hands out unique, cluster-wide ordered 64-bit ids.
//!
//! `docs/architecture.md` is the map of the parts.

pub mod adapters;
pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub mod front;
pub mod lifecycle;
pub mod ports;
pub mod service;
pub mod telemetry;
