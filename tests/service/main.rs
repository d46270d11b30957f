//! The service over memory adapters, with faults, on tokio's clock: time
//! passes at once where everybody waits, so nothing here really sleeps.

mod kinds;
mod migration;
mod reserve;
mod schedules;
mod segment;
mod stale;
mod strict;
mod support;
