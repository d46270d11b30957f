//! What operators see of the Thrift front.
//!
//! Every label value is known in advance, so each counter is looked up once,
//! at registration; on the hot path a metric is an atomic addition.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};
use thrift::ApplicationErrorKind;

use crate::domain::ErrorCode;
use crate::service::live::api::Traffic;
use crate::service::live::is_failure;

use super::method::Method;
use super::wire::{Foreign, Malformed};

/// Upper bounds of the latency buckets, in seconds: 50 µs to 2.5 s.
const BUCKETS: [f64; 15] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_5, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1,
    0.25, 1.0, 2.5,
];

/// Why a connection was not served, or was ended by the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many as are allowed are open.
    Limit,
    /// The operating system gave no connection (no file descriptors, say).
    Accept,
    /// Nothing was sent for too long.
    Idle,
    /// A message was begun and not completed in time.
    SlowMessage,
    /// A reply was not taken in time.
    SlowReply,
    /// All connections together held as much memory as they may.
    Memory,
    /// Its task broke down; a defect.
    Panic,
}

impl Refused {
    const ALL: [Refused; 7] = [
        Refused::Limit,
        Refused::Accept,
        Refused::Idle,
        Refused::SlowMessage,
        Refused::SlowReply,
        Refused::Memory,
        Refused::Panic,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Refused::Limit => "limit",
            Refused::Accept => "accept_error",
            Refused::Idle => "idle",
            Refused::SlowMessage => "slow_message",
            Refused::SlowReply => "slow_reply",
            Refused::Memory => "memory",
            Refused::Panic => "panic",
        }
    }
}

/// Calls that never reached a method, as label values of the errors.
const APPLICATION_ERRORS: [&str; 4] =
    ["UNKNOWN_METHOD", "INVALID_MESSAGE_TYPE", "PROTOCOL_ERROR", "INTERNAL_ERROR"];

fn application_error(kind: ApplicationErrorKind) -> usize {
    match kind {
        ApplicationErrorKind::UnknownMethod => 0,
        ApplicationErrorKind::InvalidMessageType => 1,
        ApplicationErrorKind::ProtocolError => 2,
        _ => 3,
    }
}

struct PerMethod {
    requests: IntCounter,
    seconds: Histogram,
}

/// The metrics of one Thrift port.
pub struct ThriftMetrics {
    pub(super) open: IntGauge,
    pub(super) accepted: IntCounter,
    pub(super) ids: IntCounter,
    pub(super) in_flight: IntGauge,
    refused: [IntCounter; Refused::ALL.len()],
    methods: [PerMethod; Method::ALL.len()],
    errors: [IntCounter; ErrorCode::ALL.len()],
    application_errors: [IntCounter; APPLICATION_ERRORS.len()],
    malformed: [IntCounter; Malformed::ALL.len()],
    foreign: [IntCounter; Foreign::ALL.len()],
}

impl ThriftMetrics {
    /// Creates the metrics and adds them to `registry`. Fails if they are
    /// there already.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let open =
            IntGauge::new("idgen_thrift_connections_open", "Thrift connections that are open")?;
        let accepted = IntCounter::new(
            "idgen_thrift_connections_accepted_total",
            "Thrift connections that were served",
        )?;
        let ids = IntCounter::new("idgen_thrift_ids_total", "Ids handed out to Thrift clients")?;
        let in_flight = IntGauge::new(
            "idgen_thrift_requests_in_flight",
            "Thrift requests that wait for their answer",
        )?;
        registry.register(Box::new(open.clone()))?;
        registry.register(Box::new(accepted.clone()))?;
        registry.register(Box::new(ids.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;

        let counters = |name: &str, help: &str, label: &str| {
            let vector = IntCounterVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(vector.clone()))?;
            prometheus::Result::Ok(vector)
        };
        let refused = counters(
            "idgen_thrift_connections_refused_total",
            "Thrift connections that the node did not serve or ended, by reason",
            "reason",
        )?;
        let requests = counters(
            "idgen_thrift_requests_total",
            "Thrift requests received completely, by method",
            "method",
        )?;
        let errors =
            counters("idgen_thrift_errors_total", "Thrift requests that failed, by code", "code")?;
        let malformed = counters(
            "idgen_thrift_malformed_total",
            "Thrift messages and connections that made no sense, by kind",
            "kind",
        )?;
        let seconds = HistogramVec::new(
            HistogramOpts::new(
                "idgen_thrift_request_duration_seconds",
                "Time from a complete Thrift request to its answer, by method",
            )
            .buckets(BUCKETS.to_vec()),
            &["method"],
        )?;
        registry.register(Box::new(seconds.clone()))?;

        Ok(ThriftMetrics {
            open,
            accepted,
            ids,
            in_flight,
            refused: Refused::ALL.map(|reason| refused.with_label_values(&[reason.as_str()])),
            methods: Method::ALL.map(|method| PerMethod {
                requests: requests.with_label_values(&[method.name()]),
                seconds: seconds.with_label_values(&[method.name()]),
            }),
            errors: ErrorCode::ALL.map(|code| errors.with_label_values(&[code.as_str()])),
            application_errors: APPLICATION_ERRORS.map(|code| errors.with_label_values(&[code])),
            malformed: Malformed::ALL.map(|kind| malformed.with_label_values(&[kind.as_str()])),
            foreign: Foreign::ALL.map(|kind| malformed.with_label_values(&[kind.as_str()])),
        })
    }

    /// How many complete requests were received so far.
    pub fn requests(&self) -> u64 {
        self.methods.iter().map(|m| m.requests.get()).sum()
    }

    /// What was served so far.
    pub fn traffic(&self) -> Traffic {
        let codes = ErrorCode::ALL.iter().zip(&self.errors);
        let failed = codes.clone().filter(|(code, _)| is_failure(**code));
        let sum = |counter: (&ErrorCode, &IntCounter)| counter.1.get();
        let unknown: u64 = self.application_errors.iter().map(IntCounter::get).sum();
        Traffic {
            ids: self.ids.get(),
            calls: self.requests(),
            errors: codes.map(sum).sum::<u64>() + unknown,
            failures: failed.map(sum).sum(),
        }
    }

    /// A complete request for `method` was received.
    pub(super) fn request(&self, method: Method) {
        self.methods[method as usize].requests.inc();
    }

    /// `method` answered after `took`.
    pub(super) fn answered(&self, method: Method, took: Duration) {
        self.methods[method as usize].seconds.observe(took.as_secs_f64());
    }

    /// A request failed with `code`.
    pub(super) fn error(&self, code: ErrorCode) {
        if let Some(at) = ErrorCode::ALL.iter().position(|known| *known == code) {
            self.errors[at].inc();
        }
    }

    /// A request was refused before it reached a method.
    pub(super) fn application_error(&self, kind: ApplicationErrorKind) {
        self.application_errors[application_error(kind)].inc();
    }

    /// A message made no sense.
    pub(super) fn malformed(&self, kind: Malformed) {
        self.malformed[kind as usize].inc();
    }

    /// A connection spoke something else.
    pub(super) fn foreign(&self, kind: Foreign) {
        self.foreign[kind as usize].inc();
    }

    /// A connection was not served, or ended by the node.
    pub(super) fn refused(&self, reason: Refused) {
        self.refused[reason as usize].inc();
    }
}

/// Holds a gauge up by one until dropped, also through a panic.
pub(super) struct Held<'a>(&'a IntGauge);

impl<'a> Held<'a> {
    pub(super) fn new(gauge: &'a IntGauge) -> Self {
        gauge.inc();
        Held(gauge)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_is_the_place_in_its_table() {
        for (at, kind) in Malformed::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
        for (at, kind) in Foreign::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
        for (at, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, at);
        }
        for (at, reason) in Refused::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }

    #[test]
    fn every_name_is_ours_and_registered_once() {
        let registry = Registry::new();
        let metrics = ThriftMetrics::register(&registry).unwrap();
        metrics.error(ErrorCode::Internal);
        let families = registry.gather();
        assert_eq!(families.len(), 9);
        for family in families {
            assert!(family.name().starts_with("idgen_thrift_"));
        }
        assert!(ThriftMetrics::register(&registry).is_err());
    }
}
