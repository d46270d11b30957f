//! Section `traces`: what is told to an OpenTelemetry collector.

use super::reader::Reader;
use super::setting::{Kind, Setting};

const ENDPOINT: Setting = Setting {
    key: "traces.endpoint",
    flag: Some("traces-endpoint"),
    env: "IDGEN_TRACES_ENDPOINT",
    kind: Kind::Url { schemes: &["http://", "https://"] },
    meaning: "An OpenTelemetry collector that takes OTLP over HTTP, such as \
              `http://127.0.0.1:4318`; without it nothing is traced",
};

const ONE_IN: Setting = Setting {
    key: "traces.one_in",
    flag: Some("traces-one-in"),
    env: "IDGEN_TRACES_ONE_IN",
    // 100 traces a second at the highest rate of one core; a trace costs some µs.
    kind: Kind::Integer { default: 1_000, low: 1, high: 1_000_000_000 },
    meaning: "One of so many calls is traced; refills, moves and HTTP requests with a sampled \
              `traceparent` always are",
};

pub(super) const SETTINGS: &[&Setting] = &[&ENDPOINT, &ONE_IN];

/// Settings of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// The collector; `None` for no traces.
    pub endpoint: Option<String>,
    /// One of so many calls is traced; at least 1.
    pub one_in: u64,
}

impl TraceSettings {
    /// One of so many calls is traced; 0 where there is no collector.
    pub fn rate(&self) -> u64 {
        self.endpoint.as_ref().map_or(0, |_| self.one_in)
    }

    pub(super) fn read(reader: &mut Reader) -> Self {
        TraceSettings {
            endpoint: reader.url(&ENDPOINT, |_| Ok(())),
            one_in: reader.integer(&ONE_IN),
        }
    }
}
