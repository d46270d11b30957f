//! How long the next range is, and when the one after it is due.
//!
//! `length = clamp(consumed / elapsed × load_interval, min_range, max_range)`:
//! a type that is used faster gets longer ranges, one that slows down shorter
//! ones, and the range store is called about once per `load_interval` per type
//! whatever the rate (design.md §3). The stored procedure `idgen_next_range`
//! and the embedded store compute the same; the conformance suite holds every
//! adapter to the table below. Where a type has few ids left, a range is shorter
//! still: see [`super::allocation::next_range`].

use super::LoadPercentage;

/// What a refill knows about the use of a type since its last refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Ids taken since the last refill, plus ids that callers wait for.
    pub consumed: u64,
    /// Time since the last refill, in milliseconds. 0 counts as 1.
    pub elapsed_ms: u64,
}

/// The settings of a type that decide about the length of its ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizingRule {
    /// Shortest range, in ids; at least 1.
    pub min_range: u64,
    /// Longest range, in ids; at least `min_range`.
    pub max_range: u64,
    /// How long one range is meant to last, in milliseconds.
    pub load_interval_ms: u64,
}

/// Length of the next range, in ids, always within `[min_range, max_range]`.
///
/// On the first load (`last_length` is `None`) it is `min_range`. Without a
/// usage (a call by hand, or a refill after Redis lost its data) the last
/// length is kept.
pub fn next_length(rule: SizingRule, last_length: Option<u64>, usage: Option<Usage>) -> u64 {
    let wanted = match (last_length, usage) {
        (None, _) => u128::from(rule.min_range),
        (Some(last), None) => u128::from(last),
        (Some(_), Some(usage)) => {
            u128::from(usage.consumed) * u128::from(rule.load_interval_ms)
                / u128::from(usage.elapsed_ms.max(1))
        }
    };
    wanted.clamp(u128::from(rule.min_range), u128::from(rule.max_range)) as u64
}

/// The update id of `[start, start + length)`: when the next id to hand out
/// reaches it, the next range is due. `start + floor(length × load_percentage)`.
pub fn update_id(start: i64, length: u64, percentage: LoadPercentage) -> i64 {
    let offset = u128::from(length) * u128::from(percentage.basis_points())
        / u128::from(LoadPercentage::WHOLE);
    start + offset as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: SizingRule =
        SizingRule { min_range: 1_000, max_range: 100_000_000, load_interval_ms: 600_000 };

    #[test]
    fn length_by_cases() {
        let usage = |consumed, elapsed_ms| Some(Usage { consumed, elapsed_ms });
        for (last, usage, expected, why) in [
            (None, None, 1_000, "first load"),
            (None, usage(5_000, 10), 1_000, "first load, whatever the usage"),
            (Some(7_000), None, 7_000, "no usage keeps the length"),
            (Some(10), None, 1_000, "…but within the limits"),
            (Some(1_000), usage(1_000, 600_000), 1_000, "as planned"),
            (Some(1_000), usage(900, 60_000), 9_000, "ten times as fast"),
            (Some(9_000), usage(900, 600_000), 1_000, "slowed down"),
            (Some(1_000), usage(0, 600_000), 1_000, "not used"),
            (Some(1_000), usage(100, 0), 60_000_000, "no time passed"),
            (Some(1_000), usage(u64::MAX, 1), 100_000_000, "huge: no overflow"),
            (Some(1_000), usage(7, 1_999), 2_101, "rounds down"),
        ] {
            assert_eq!(next_length(RULE, last, usage), expected, "{why}");
        }
    }

    #[test]
    fn update_id_by_cases() {
        for (start, length, percentage, expected) in [
            (1, 1_000, 0.1, 101),
            (1, 1_000, 0.0, 1),
            (1, 1_000, 1.0, 1_001),
            (1, 7, 0.5, 4),
            (i64::MAX - 10, 9, 0.9999, i64::MAX - 2),
        ] {
            let percentage = LoadPercentage::from_fraction(percentage).unwrap();
            assert_eq!(update_id(start, length, percentage), expected);
        }
    }

    proptest! {
        #[test]
        fn always_within_the_limits(
            min in 1u64..1_000_000, extra in 0u64..1_000_000_000,
            interval in 1u64..86_400_000, last in proptest::option::of(0u64..u64::MAX),
            consumed: u64, elapsed_ms: u64, known: bool,
        ) {
            let rule = SizingRule { min_range: min, max_range: min + extra, load_interval_ms: interval };
            let usage = known.then_some(Usage { consumed, elapsed_ms });
            let length = next_length(rule, last, usage);
            prop_assert!((min..=min + extra).contains(&length));
        }
    }
}
