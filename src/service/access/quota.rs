//! How many ids a caller may take: a rate, and what has gathered of it for at most a
//! second.
//!
//! One number, without a lock. Time is counted in ids at the rate of the quota: after
//! `t` seconds `t * rate` ids have come in. `used` is up to where they were taken; it
//! may run ahead of the time by one second's worth, which is the burst, and where it
//! lies behind the time, what lies between is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// See the module.
#[derive(Debug)]
pub(super) struct Quota {
    /// Ids per second, and the most at once.
    rate: u64,
    used: AtomicU64,
}

/// Why a quota gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Short {
    /// It never gives so many at once.
    Never,
    /// It gives so many after this time.
    In(Duration),
}

const SECOND: u128 = 1_000_000_000;

impl Quota {
    /// Of `rate` ids per second, 1 to 10^9; full.
    pub(super) fn new(rate: u64) -> Self {
        Quota { rate, used: AtomicU64::new(0) }
    }

    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Takes `count` ids, `now` nanoseconds after a moment that is always the same.
    pub(super) fn take(&self, count: u64, now: u64) -> Result<(), Short> {
        if count > self.rate {
            return Err(Short::Never);
        }
        // 10^9 a second fit for 500 years.
        let come = (u128::from(now) * u128::from(self.rate) / SECOND) as u64;
        let most = come.saturating_add(self.rate);
        let after = |used: u64| used.max(come).saturating_add(count);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(after(used)).filter(|after| *after <= most)
        });
        taken.map(drop).map_err(|used| {
            let missing = u128::from(after(used) - most);
            let nanos = (missing * SECOND).div_ceil(u128::from(self.rate));
            Short::In(Duration::from_nanos(nanos as u64))
        })
    }

    /// `count` ids that were taken were not given.
    pub(super) fn give_back(&self, count: u64) {
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used.saturating_sub(count))
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_second_s_worth_at_once_then_the_rate() {
        let quota = Quota::new(1_000);
        assert_eq!(quota.take(1_000, 0), Ok(()));
        assert_eq!(quota.take(1, 0), Err(Short::In(Duration::from_millis(1))));
        assert_eq!(quota.take(10, 4 * MS), Err(Short::In(Duration::from_millis(6))));
        assert_eq!(quota.take(10, 10 * MS), Ok(()));
        assert_eq!(quota.take(1_001, u64::MAX), Err(Short::Never));
    }

    #[test]
    fn no_more_gathers_than_a_second_s_worth() {
        let quota = Quota::new(5);
        let hour = 3_600 * 1_000 * MS;
        assert_eq!(quota.take(5, hour), Ok(()));
        assert_eq!(quota.take(1, hour), Err(Short::In(Duration::from_millis(200))));
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let quota = Quota::new(10);
        assert_eq!(quota.take(10, 0), Ok(()));
        quota.give_back(4);
        assert_eq!(quota.take(4, 0), Ok(()));
        assert_eq!(quota.take(1, 0), Err(Short::In(Duration::from_millis(100))));
        // What is given back too often is not more than a second's worth.
        quota.give_back(1_000);
        assert_eq!(quota.take(10, 0), Ok(()));
        assert_eq!(quota.take(1, 0), Err(Short::In(Duration::from_millis(100))));
    }

    #[test]
    fn the_largest_quota_for_ten_years() {
        let quota = Quota::new(1_000_000_000);
        let now = 3_650 * 86_400 * 1_000 * MS;
        assert_eq!(quota.take(1_000_000_000, now), Ok(()));
        assert_eq!(quota.take(1, now), Err(Short::In(Duration::from_nanos(1))));
    }

    proptest! {
        /// Within any time, no more than the rate and one burst; and who waits as long
        /// as told gets what was asked for.
        #[test]
        fn never_more_than_the_rate(
            rate in 1_u64..=1_000_000_000,
            steps in prop::collection::vec((0_u64..2_000_000_000, 1_u64..2_000), 1..60),
        ) {
            let quota = Quota::new(rate);
            let (mut now, mut given) = (0, 0_u64);
            for (pause, count) in steps {
                now += pause;
                match quota.take(count, now) {
                    Ok(()) => given += count,
                    Err(Short::Never) => prop_assert!(count > rate),
                    Err(Short::In(wait)) => {
                        now += wait.as_nanos() as u64;
                        prop_assert_eq!(quota.take(count, now), Ok(()));
                        given += count;
                    }
                }
                let come = u128::from(now) * u128::from(rate) / SECOND;
                prop_assert!(u128::from(given) <= come + u128::from(rate));
            }
        }
    }
}
