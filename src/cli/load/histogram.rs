//! Latencies: one histogram per client, merged at the end, so that clients
//! share nothing while they run.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The distribution of the latencies of calls, exact to 0.1 %.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// What is shorter is not told apart, in nanoseconds: no call over a socket is.
    const SHORTEST_NS: u64 = 100;
    /// What is longer counts as this, in nanoseconds: no call may wait so long.
    const LONGEST_NS: u64 = 600_000_000_000;

    /// No latency yet.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(Self::SHORTEST_NS, Self::LONGEST_NS, 3);
        Latencies(histogram.expect("the bounds are in order"))
    }

    /// Adds one call.
    pub fn record(&mut self, latency: Duration) {
        let ns = latency.as_nanos().min(u128::from(Self::LONGEST_NS)) as u64;
        self.0.saturating_record(ns);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many calls were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that the share `quantile` (0 to 1) of the calls stays
    /// within, in microseconds; 0 without calls.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        tenths(self.0.value_at_quantile(quantile))
    }

    /// The longest latency in microseconds; 0 without calls.
    pub fn max_us(&self) -> f64 {
        tenths(self.0.max())
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// Microseconds to one decimal: more digits would claim what 0.1 % cannot hold.
fn tenths(ns: u64) -> f64 {
    (ns as f64 / 100.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_merged_histograms() {
        let (mut even, mut odd) = (Latencies::new(), Latencies::new());
        for us in 1..=1_000u64 {
            let half = if us % 2 == 0 { &mut even } else { &mut odd };
            half.record(Duration::from_micros(us));
        }
        even.merge(&odd);
        assert_eq!(even.count(), 1_000);
        for (quantile, us) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0)] {
            let got = even.quantile_us(quantile);
            assert!((got - us).abs() <= us / 500.0, "{quantile}: {got}");
        }
        assert!((even.max_us() - 1_000.0).abs() < 2.0);
    }

    #[test]
    fn none_and_far_too_long() {
        assert_eq!(Latencies::new().quantile_us(0.99), 0.0);
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_secs(86_400));
        assert!(latencies.max_us() >= 600_000_000.0);
    }
}
