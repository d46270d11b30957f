//! The operating system: randomness and the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::ports::{Clock, Entropy};

/// Randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn random_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        u128::from_ne_bytes(bytes)
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        unix_ms()
    }
}

/// Milliseconds of the Unix epoch by the machine's clock.
#[expect(clippy::disallowed_methods, reason = "an adapter is where the clock is read")]
pub fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}
