//! What a process tells of itself while it runs: its log, and traces where they are
//! configured. (Metrics are with the parts that they measure.)

mod log;
mod traces;

use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogLevel, LogSettings, TraceSettings};
pub use traces::TraceError;

/// Runs until it is dropped or [ended](Self::end).
#[must_use]
pub struct Telemetry {
    level: log::Level<Registry>,
    traces: Option<traces::Traces>,
}

impl Telemetry {
    /// Sends the events of this process to standard error from now on, and its spans
    /// to the collector, if there is one. `node` is the name of the node in traces.
    /// The first call counts; a later one changes nothing.
    pub fn start(
        log: &LogSettings,
        traces: &TraceSettings,
        node: &str,
    ) -> Result<Telemetry, TraceError> {
        let traces = traces::Traces::start(traces, node)?;
        // An error means that a log was started before.
        let (log, level) = log::layer(log);
        let _ = tracing_subscriber::registry()
            .with(log)
            .with(traces.as_ref().map(traces::Traces::layer))
            .try_init();
        Ok(Telemetry { level, traces })
    }

    /// What changes the level of the log.
    pub fn log_level(&self) -> LogLevelControl {
        LogLevelControl(self.level.clone())
    }

    /// Sends what is left. Blocks, for a few seconds at most.
    pub fn end(self) {
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}

/// Changes the level of the log while it runs.
pub struct LogLevelControl(log::Level<Registry>);

impl LogLevelControl {
    /// The level from now on.
    pub fn set(&self, level: LogLevel) {
        // Refused only after the end.
        let _ = self.0.reload(log::filter(level));
    }
}
