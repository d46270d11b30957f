//! When a type will have no ids any more, so that somebody hears of it in time.

use std::time::Duration;

use super::Parts;
use super::catalogue::TypeEntry;
use crate::domain::{AtLimit, Mode};
use crate::ports::View;

/// Shorter than this a rate of the whole cluster says little.
const SHORTEST_SPAN: Duration = Duration::from_secs(10);

/// The year 10000: what lies beyond is no date that anybody plans for.
const FAR_AWAY_MS: i64 = 253_402_300_800_000;

impl Parts {
    /// When the highest id, or the end of the epoch, is reached at the present
    /// rate, in milliseconds of the Unix epoch. `view` is what the dispatcher
    /// says of a strict type.
    pub(super) fn exhausted_at_ms(&self, entry: &TypeEntry, view: Option<&View>) -> Option<i64> {
        let record = entry.record();
        let now_ms = self.clock.now_ms();
        if record.mode == Mode::Snowflake {
            return Some(record.options.snowflake.unwrap_or_default().end_ms());
        }
        if record.options.at_limit == AtLimit::Cycle {
            return None;
        }
        let strict = view.and_then(|view| {
            // A rate of moments says nothing of weeks.
            let rate = entry.supply.rate(view.used, view.age_ms)?;
            if u128::from(view.age_ms) < SHORTEST_SPAN.as_millis() {
                return None;
            }
            Some((view.left() + record.left()) as f64 / rate)
        });
        let span = Duration::from_millis(record.load_interval_ms as u64).max(SHORTEST_SPAN);
        let leased = entry.all_leases().filter_map(|leases| {
            let local = leases.local();
            let (cluster, highest_end) = leases.growth(span);
            let lasting = local.rate.filter(|_| leases.is_older_than(SHORTEST_SPAN));
            let rate = lasting.into_iter().chain(cluster).reduce(f64::max)?;
            Some((local.left + record.left_from(highest_end)) as f64 / rate)
        });
        let seconds = strict.into_iter().chain(leased).reduce(f64::min)?;
        let at_ms = now_ms.saturating_add((seconds * 1_000.0) as i64);
        if at_ms > FAR_AWAY_MS {
            return None;
        }
        match self.period_end(entry, now_ms) {
            // The numbers restart before they run out.
            Some(end_ms) if end_ms <= at_ms => None,
            _ => Some(at_ms),
        }
    }

    fn period_end(&self, entry: &TypeEntry, now_ms: i64) -> Option<i64> {
        let settings = entry.settings();
        let period = settings.record.options.calendar?;
        let zone = &settings.writing.as_ref().ok()?.zone;
        Some(zone.period_at(period, now_ms).until_ms)
    }
}
