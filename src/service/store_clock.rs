//! What the range store's clock shows now, as far as the node knows.
//!
//! Every answer of the store that holds its time is a sample. Between samples
//! the node's own monotonic clock goes on; its wall clock has no say. Only for
//! choosing a period early or late by an instant: the store compares the period
//! with its clock itself.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::Parts;
use super::catalogue::TypeEntry;
use crate::domain::{Error, PeriodSpan};

/// See the module.
#[derive(Default)]
pub(super) struct StoreClock {
    sample: Mutex<Option<(i64, Instant)>>,
}

impl StoreClock {
    /// The store just said that its clock is at `now_ms`.
    pub(super) fn learn(&self, now_ms: i64) {
        *self.sample.lock().expect("never poisoned") = Some((now_ms, Instant::now()));
    }

    /// The store's clock now, in milliseconds of the Unix epoch; `None` before
    /// the first sample.
    pub(super) fn now_ms(&self) -> Option<i64> {
        let sample = self.sample.lock().expect("never poisoned");
        sample.map(|(ms, at)| ms + at.elapsed().as_millis() as i64)
    }

    /// When the store's clock will be at `ms`; now, for the past and before the
    /// first sample.
    pub(super) fn instant_of(&self, ms: i64) -> Instant {
        let left = self.now_ms().map_or(0, |now| (ms - now).max(0));
        Instant::now() + Duration::from_millis(left as u64)
    }
}

impl Parts {
    /// The period now, of a calendar series; `None` for other types.
    pub(super) async fn current_period(
        &self,
        entry: &TypeEntry,
    ) -> Result<Option<PeriodSpan>, Error> {
        let Some(period) = entry.settings().record.options.calendar else {
            return Ok(None);
        };
        let zone = entry.settings().writing.as_ref().map_err(Error::clone)?.zone.clone();
        let now_ms = match self.store_clock.now_ms() {
            Some(now_ms) => now_ms,
            None => {
                let now_ms = self.store.ping().await?;
                self.store_clock.learn(now_ms);
                now_ms
            }
        };
        Ok(Some(zone.period_at(period, now_ms)))
    }
}
