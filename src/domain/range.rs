//! Half-open ranges of ids.

use std::fmt;

/// The ids `start, start + 1, … end - 1`, all positive. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdRange {
    start: i64,
    end: i64,
}

/// Why two numbers are no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{start}, {end}) is no range of ids: it must hold 1 <= start < end")]
pub struct NotARange {
    /// The start that was given.
    pub start: i64,
    /// The end that was given.
    pub end: i64,
}

impl IdRange {
    /// `[start, end)`; refused unless `1 <= start < end`. The highest possible
    /// id is therefore `i64::MAX - 1`.
    pub fn new(start: i64, end: i64) -> Result<Self, NotARange> {
        if start >= 1 && start < end {
            Ok(IdRange { start, end })
        } else {
            Err(NotARange { start, end })
        }
    }

    /// The first id.
    pub fn start(self) -> i64 {
        self.start
    }

    /// One above the last id.
    pub fn end(self) -> i64 {
        self.end
    }

    /// The last id.
    pub fn last(self) -> i64 {
        self.end - 1
    }

    /// How many ids it holds; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        (self.end - self.start) as u64
    }

    /// Splits off the first `count` ids: they, and what is left, if anything.
    /// `count` must be at least 1; more than there are takes all.
    pub fn split(self, count: u64) -> (IdRange, Option<IdRange>) {
        debug_assert!(count >= 1);
        if count >= self.len() {
            return (self, None);
        }
        let middle = self.start + count as i64;
        (IdRange { start: self.start, end: middle }, Some(IdRange { start: middle, end: self.end }))
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_positive_and_not_empty() {
        assert!(IdRange::new(0, 5).is_err());
        assert!(IdRange::new(-3, 5).is_err());
        assert!(IdRange::new(5, 5).is_err());
        assert!(IdRange::new(6, 5).is_err());
        assert_eq!(IdRange::new(1, i64::MAX).unwrap().last(), i64::MAX - 1);
    }

    proptest! {
        #[test]
        fn a_split_loses_and_repeats_nothing(start in 1i64..i64::MAX / 2, len in 1i64..1_000_000, count in 1u64..2_000_000) {
            let range = IdRange::new(start, start + len).unwrap();
            let (head, tail) = range.split(count);
            prop_assert_eq!(head.start(), range.start());
            prop_assert_eq!(head.len(), count.min(range.len()));
            match tail {
                Some(tail) => {
                    prop_assert_eq!(head.end(), tail.start());
                    prop_assert_eq!(tail.end(), range.end());
                }
                None => prop_assert_eq!(head.end(), range.end()),
            }
        }
    }
}
