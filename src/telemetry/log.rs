//! The log: to standard error, a line an event, for people or for programs.

use std::io::{IsTerminal, stderr};

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, fmt, reload};

use crate::config::{LogFormat, LogLevel, LogSettings};

/// Changes the level of a log that runs.
pub(super) type Level<S> = reload::Handle<LevelFilter, S>;

/// Writes events as `settings` say. Spans are for traces: lines do not repeat them.
pub(super) fn layer<S>(settings: &LogSettings) -> (Box<dyn Layer<S> + Send + Sync>, Level<S>)
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let (level, handle) = reload::Layer::new(filter(settings.level));
    let events = filter_fn(|data| data.is_event());
    let log = fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(false);
    let log = match settings.format {
        LogFormat::Text => log.with_filter(events).with_filter(level).boxed(),
        LogFormat::Json => {
            log.json().flatten_event(true).with_filter(events).with_filter(level).boxed()
        }
    };
    (log, handle)
}

pub(super) fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
