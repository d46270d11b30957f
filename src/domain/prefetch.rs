//! How far ahead a node leases ranges for itself, and how long they are.
//!
//! The number of ranges kept ahead doubles whenever a caller had to wait, and
//! falls by one after each load interval in which nobody did (as the segment
//! chain of CosId has it). The length follows the node's own rate by the rule
//! of [`super::sizing`], but grows at most eightfold from one lease to the
//! next, so that a short burst does not lease a day's worth of ids.

use super::Usage;
use super::sizing::SizingRule;

/// Ranges ahead of the one in use, at least: with the next one due after
/// `load_percentage` of the current one, more than a whole load interval is
/// always at hand.
pub const LEAST_AHEAD: usize = 2;
/// Ranges ahead, at most; bounds what a crash burns.
pub const MOST_AHEAD: usize = 16;
/// A lease is at most so many times as long as the one before it.
const GROWTH: u64 = 8;
/// A rate measured over less than this many milliseconds says little.
const SHORTEST_SPAN_MS: u64 = 1_000;

/// How many ranges to keep ahead after a caller had to wait.
pub fn hungry(ahead: usize) -> usize {
    (ahead * 2).clamp(LEAST_AHEAD, MOST_AHEAD)
}

/// How many ranges to keep ahead after `calm_ms` in which nobody waited.
pub fn calm(ahead: usize, calm_ms: u64, load_interval_ms: u64) -> usize {
    let steps = (calm_ms / load_interval_ms.max(1)) as usize;
    ahead.saturating_sub(steps).max(LEAST_AHEAD)
}

/// The usage to tell the store for the next lease: `consumed` ids (those that
/// callers wait for included) in `elapsed_ms`, where this node's last lease had
/// `last_length` ids (`None`: it had none yet, and starts small whatever other
/// nodes use).
pub fn lease_usage(
    rule: SizingRule,
    last_length: Option<u64>,
    consumed: u64,
    elapsed_ms: u64,
) -> Usage {
    let elapsed_ms = elapsed_ms.max(SHORTEST_SPAN_MS);
    let most_length = match last_length {
        Some(last) => last.saturating_mul(GROWTH),
        None => rule.min_range,
    };
    // The store answers with consumed × interval ÷ elapsed.
    let wanted = u128::from(consumed) * u128::from(rule.load_interval_ms) / u128::from(elapsed_ms);
    match wanted > u128::from(most_length) {
        true => Usage { consumed: most_length, elapsed_ms: rule.load_interval_ms },
        false => Usage { consumed, elapsed_ms },
    }
}

#[cfg(test)]
mod tests {
    use super::super::sizing::next_length;
    use super::*;

    const RULE: SizingRule =
        SizingRule { min_range: 1_000, max_range: 100_000_000, load_interval_ms: 600_000 };

    #[test]
    fn distance_by_cases() {
        assert_eq!([2, 4, 8, 15, 16].map(hungry), [4, 8, 16, 16, 16]);
        assert_eq!(calm(16, 599_999, 600_000), 16, "not a whole interval yet");
        assert_eq!(calm(16, 600_000, 600_000), 15);
        assert_eq!(calm(16, 3_000_000, 600_000), 11);
        assert_eq!(calm(3, u64::MAX, 1), LEAST_AHEAD, "never fewer");
    }

    #[test]
    fn length_by_cases() {
        for (last, consumed, elapsed_ms, expected, why) in [
            (None, 100_000, 1, 1_000, "the first lease is short"),
            (Some(1_000), 1_000, 600_000, 1_000, "as planned"),
            (Some(1_000), 1_000, 10, 8_000, "a burst: eightfold at most"),
            (Some(8_000), 9_000, 100, 64_000, "and again"),
            (Some(64_000_000), 200_000, 2_000, 60_000_000, "100 000 ids/s"),
            (Some(64_000_000), 1_000, 600_000, 1_000, "slowed down: at once"),
            (Some(1_000), 0, 0, 1_000, "nothing is known: the shortest"),
            (Some(u64::MAX), u64::MAX, 1, 100_000_000, "no overflow"),
        ] {
            let usage = lease_usage(RULE, last, consumed, elapsed_ms);
            let length = next_length(RULE, Some(last.unwrap_or(5_000_000)), Some(usage));
            assert_eq!(length, expected, "{why}");
        }
    }
}
