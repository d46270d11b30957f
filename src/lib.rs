//! IdGen: a service that hands out unique, cluster-wide ordered 64-bit ids, and
//! its client.
//!
//! `docs/architecture.md` is the map of the parts. The feature `server`, on by
//! default, is the service; `client` is the client ([`client`]), which builds without it.

#[cfg(feature = "server")]
pub mod adapters;
#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod domain;
#[cfg(feature = "server")]
pub mod front;
#[cfg(feature = "server")]
pub mod lifecycle;
#[cfg(feature = "server")]
pub mod ports;
#[cfg(feature = "server")]
pub mod reload;
#[cfg(feature = "server")]
pub mod service;
#[cfg(feature = "server")]
pub mod telemetry;
#[allow(missing_docs, dead_code, unused_imports, clippy::all)] // As the compiler makes it.
#[rustfmt::skip]
pub mod thrift_api;

/// The version of the program.
#[cfg(feature = "server")]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, where the build was told (`IDGEN_COMMIT`, which
/// packages and images set); else `unknown`.
#[cfg(feature = "server")]
pub const COMMIT: &str = match option_env!("IDGEN_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
