//! The clock on the wall, passed in so that tests can move it.

/// Tells the time of day. May jump in either direction: nothing that must be
/// unique may rest on it.
pub trait Clock: Send + Sync {
    /// Milliseconds of the Unix epoch.
    fn now_ms(&self) -> i64;
}
