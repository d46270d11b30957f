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

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, where the build was told (`IDGEN_COMMIT`, which
/// packages and images set); else `unknown`.
pub const COMMIT: &str = match option_env!("IDGEN_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
