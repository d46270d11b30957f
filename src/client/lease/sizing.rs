//! How many ids the next lease is to have.

use std::time::Duration;

/// A lease is at most this many times as long as the one before.
const GROWTH: f64 = 8.0;
/// And at least this part of it, so that a quiet moment does not undo what was learnt.
const SHRINKAGE: f64 = 0.5;

/// The bounds of [`next_count`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long a lease is meant to last.
    pub lasting: Duration,
    /// The shortest lease, in ids.
    pub min: u32,
    /// The longest.
    pub max: u32,
}

/// The length of the lease after one of `before` ids, of which `used` were used in
/// `elapsed`.
pub(super) fn next_count(bounds: &Bounds, before: u32, used: u64, elapsed: Duration) -> u32 {
    let rate = used as f64 / elapsed.as_secs_f64().max(1e-6);
    let wanted = rate * bounds.lasting.as_secs_f64();
    let before = f64::from(before);
    let next = wanted.clamp(before * SHRINKAGE, before * GROWTH).round();
    (next as u32).clamp(bounds.min, bounds.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_as_long_as_it_is_meant_to() {
        let bounds = Bounds { lasting: Duration::from_secs(10), min: 1_000, max: 1_000_000 };
        let cases = [
            // before, used, in ms, next
            (1_000, 500, 5_000, 1_000),
            (1_000, 500, 2_500, 2_000),
            (1_000, 500, 1, 8_000),
            (1_000, 500, 0, 8_000),
            (500_000, 250_000, 10, 1_000_000),
            (8_000, 4_000, 20_000, 4_000),
            (8_000, 4_000, 8_000, 5_000),
            (1_000, 3, 60_000, 1_000),
            (1_000, 0, 60_000, 1_000),
        ];
        for (before, used, ms, next) in cases {
            let found = next_count(&bounds, before, used, Duration::from_millis(ms));
            assert_eq!(found, next, "{before} {used} {ms}");
        }
    }
}
