//! What operators see of the service itself; the fronts have metrics of their own.

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGaugeVec, Opts,
    Registry,
};

/// Metrics of ranges and refills.
#[derive(Clone)]
pub struct ServiceMetrics {
    /// `idgen_refills_total{result}`: published, refused, held, done, failed.
    pub refills: IntCounterVec,
    /// `idgen_refill_range_ids`: length of the ranges that refills published.
    pub refill_length: Histogram,
    /// `idgen_refill_duration_seconds`: from the try for the lock to the publication.
    pub refill_duration: Histogram,
    /// `idgen_lock_contention_total`: a refill found the lock held.
    pub lock_contention: IntCounter,
    /// `idgen_lock_takeovers_total`: a silent holder lost its lock to this node.
    pub lock_takeovers: IntCounter,
    /// `idgen_migrations_total{outcome}`: types that this node moved to another
    /// Redis instance: moved, undone, failed.
    pub migrations: IntCounterVec,
    /// `idgen_stale_histories_total{where}`: data that may have been rolled
    /// back was met and dropped, by the dispatcher or by this node.
    pub stale_histories: IntCounterVec,
    /// `idgen_burnt_ranges_total{reason}`: allocated, but never published.
    pub burnt_ranges: IntCounterVec,
    /// `idgen_burnt_ids_total`: ids in such ranges, and ids taken for callers
    /// that were gone. What was published and is lost with a Redis is not
    /// counted: nobody knows how much of it was handed out.
    pub burnt_ids: IntCounter,
    /// `idgen_order_drops_total`: answers below an id that this node had
    /// returned already.
    pub order_drops: IntCounter,
    /// `idgen_takes_total`: calls to dispatchers for ids; ids ÷ takes is how
    /// well waiting callers are coalesced.
    pub takes: IntCounter,
    /// `idgen_runway_seconds{type}`: how long the ids at hand last at the
    /// current rate, with the range store down.
    pub runway: GaugeVec,
    /// `idgen_ids_left{type}`: ids at hand in the dispatcher.
    pub left: IntGaugeVec,
    /// `idgen_exhaustion_seconds{type}`: how long until the highest id, or the
    /// end of the epoch, is reached at the current rate.
    pub exhaustion: GaugeVec,
    /// `idgen_waits_total`: calls that found no leased ids and had to wait.
    pub waits: IntCounter,
    /// `idgen_unwitnessed_leases_total`: ranges that nodes leased for themselves
    /// and Redis could not note; only the store knows of them.
    pub unwitnessed: IntCounter,
    /// `idgen_returned_ids_total`: leased ids that were not used and went back.
    pub returned_ids: IntCounter,
    /// `idgen_alone_ids_total`: ids of strict types that this node issued from
    /// leases while Redis was away: unique, but not in order across nodes.
    pub alone_ids: IntCounter,
    /// `idgen_evictions_total`: types that left the memory because nobody used them.
    pub evictions: IntCounter,
    /// `idgen_worker_lease_seconds{bits}`: how long the leased worker id for
    /// snowflake types may still be used, by the store's clock.
    pub worker_lease: GaugeVec,
    /// `idgen_clock_offset_seconds`: how far the node's clock is ahead of the
    /// range store's, as of the latest lease or renewal of a worker id.
    pub clock_offset: Gauge,
    /// `idgen_snowflake_waits_total`: calls that waited for the next unit of time
    /// because the sequence was used up.
    pub snowflake_waits: IntCounter,
    /// `idgen_clock_backwards_total`: calls refused because the node's clock was
    /// behind the last time used.
    pub clock_backwards: IntCounter,
    /// `idgen_part_up{part}`: whether the store and each instance answer.
    pub part_up: IntGaugeVec,
}

impl ServiceMetrics {
    /// Makes the metrics and registers them. Fails when they are registered already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name: &str, help: &str| IntCounter::new(name, help);
        let counters = |name: &str, help: &str, label: &str| {
            IntCounterVec::new(Opts::new(name, help), &[label])
        };
        // 1 000 to 100 000 000 ids, the default limits, by decades.
        let lengths = prometheus::exponential_buckets(1_000.0, 10.0, 6)?;
        // 1 ms, a store on the same machine, to 8 s, above every time limit.
        let durations = prometheus::exponential_buckets(0.001, 2.0, 14)?;
        let metrics = ServiceMetrics {
            refills: counters("idgen_refills_total", "Refills by result", "result")?,
            refill_length: Histogram::with_opts(
                HistogramOpts::new("idgen_refill_range_ids", "Length of published ranges")
                    .buckets(lengths),
            )?,
            refill_duration: Histogram::with_opts(
                HistogramOpts::new("idgen_refill_duration_seconds", "Duration of refills")
                    .buckets(durations),
            )?,
            lock_contention: counter(
                "idgen_lock_contention_total",
                "Refills that found the lock held",
            )?,
            lock_takeovers: counter(
                "idgen_lock_takeovers_total",
                "Locks taken over from a silent holder",
            )?,
            migrations: counters(
                "idgen_migrations_total",
                "Types that this node moved to another Redis instance, by outcome",
                "outcome",
            )?,
            stale_histories: counters(
                "idgen_stale_histories_total",
                "Data that may have been rolled back, met and dropped",
                "where",
            )?,
            burnt_ranges: counters(
                "idgen_burnt_ranges_total",
                "Ranges allocated but never published",
                "reason",
            )?,
            burnt_ids: counter(
                "idgen_burnt_ids_total",
                "Ids that this node knows nobody will ever get",
            )?,
            order_drops: counter(
                "idgen_order_drops_total",
                "Answers below an id that was returned already",
            )?,
            takes: counter("idgen_takes_total", "Calls to dispatchers for ids")?,
            runway: GaugeVec::new(
                Opts::new("idgen_runway_seconds", "How long the ids at hand last"),
                &["type"],
            )?,
            exhaustion: GaugeVec::new(
                Opts::new("idgen_exhaustion_seconds", "How long until the highest id"),
                &["type"],
            )?,
            waits: counter("idgen_waits_total", "Calls that waited for a lease")?,
            unwitnessed: counter(
                "idgen_unwitnessed_leases_total",
                "Leases that Redis could not note",
            )?,
            returned_ids: counter("idgen_returned_ids_total", "Leased ids that went back unused")?,
            alone_ids: counter(
                "idgen_alone_ids_total",
                "Ids of strict types issued while Redis was away",
            )?,
            evictions: counter("idgen_evictions_total", "Idle types that left the memory")?,
            left: IntGaugeVec::new(Opts::new("idgen_ids_left", "Ids at hand"), &["type"])?,
            worker_lease: GaugeVec::new(
                Opts::new("idgen_worker_lease_seconds", "How long the worker id may be used"),
                &["bits"],
            )?,
            clock_offset: Gauge::new(
                "idgen_clock_offset_seconds",
                "How far the node's clock is ahead of the range store's",
            )?,
            snowflake_waits: counter(
                "idgen_snowflake_waits_total",
                "Waits for the next unit of time, the sequence being used up",
            )?,
            clock_backwards: counter(
                "idgen_clock_backwards_total",
                "Calls refused because the node's clock went back",
            )?,
            part_up: IntGaugeVec::new(
                Opts::new("idgen_part_up", "Whether the store and each instance answer"),
                &["part"],
            )?,
        };
        metrics.show_zeros();
        let built = IntGaugeVec::new(
            Opts::new("idgen_build_info", "Always 1: which program runs"),
            &["version", "commit"],
        )?;
        built.with_label_values(&[crate::VERSION, crate::COMMIT]).set(1);
        registry.register(Box::new(built))?;
        registry.register(Box::new(metrics.refills.clone()))?;
        registry.register(Box::new(metrics.refill_length.clone()))?;
        registry.register(Box::new(metrics.refill_duration.clone()))?;
        registry.register(Box::new(metrics.lock_contention.clone()))?;
        registry.register(Box::new(metrics.lock_takeovers.clone()))?;
        registry.register(Box::new(metrics.migrations.clone()))?;
        registry.register(Box::new(metrics.stale_histories.clone()))?;
        registry.register(Box::new(metrics.burnt_ranges.clone()))?;
        registry.register(Box::new(metrics.burnt_ids.clone()))?;
        registry.register(Box::new(metrics.order_drops.clone()))?;
        registry.register(Box::new(metrics.takes.clone()))?;
        registry.register(Box::new(metrics.runway.clone()))?;
        registry.register(Box::new(metrics.left.clone()))?;
        registry.register(Box::new(metrics.exhaustion.clone()))?;
        registry.register(Box::new(metrics.waits.clone()))?;
        registry.register(Box::new(metrics.unwitnessed.clone()))?;
        registry.register(Box::new(metrics.returned_ids.clone()))?;
        registry.register(Box::new(metrics.alone_ids.clone()))?;
        registry.register(Box::new(metrics.evictions.clone()))?;
        registry.register(Box::new(metrics.worker_lease.clone()))?;
        registry.register(Box::new(metrics.clock_offset.clone()))?;
        registry.register(Box::new(metrics.snowflake_waits.clone()))?;
        registry.register(Box::new(metrics.clock_backwards.clone()))?;
        registry.register(Box::new(metrics.part_up.clone()))?;
        Ok(metrics)
    }

    /// A counter that is missing until it first counts hides that first event from
    /// `increase` and `rate`: these are there from the start.
    fn show_zeros(&self) {
        let counters: [(&IntCounterVec, &[&str]); 4] = [
            (&self.refills, &["published", "refused", "held", "done", "leased", "failed"]),
            (&self.migrations, &["moved", "undone", "failed"]),
            (&self.stale_histories, &["dispatcher", "node", "store"]),
            (
                &self.burnt_ranges,
                &["history", "token", "order", "full", "unknown", "overlap", "moved"],
            ),
        ];
        for (counter, labels) in counters {
            for label in labels {
                counter.with_label_values(&[label]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_there_before_they_count() {
        let registry = Registry::new();
        ServiceMetrics::register(&registry).expect("new names");
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for zero in [
            r#"idgen_refills_total{result="failed"} 0"#,
            r#"idgen_migrations_total{outcome="failed"} 0"#,
            r#"idgen_burnt_ranges_total{reason="unknown"} 0"#,
            r#"idgen_stale_histories_total{where="store"} 0"#,
        ] {
            assert!(text.contains(zero), "{zero} is missing in\n{text}");
        }
        assert!(text.contains("idgen_build_info{commit=\"unknown\",version=\""), "{text}");
    }
}
