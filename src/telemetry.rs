//! Logs: to standard error, a line an event, for people or for programs.

use tracing::Level;
use tracing_subscriber::fmt;

use crate::config::{LogFormat, LogLevel, LogSettings};

/// Sends the events of this process to standard error from now on. The first
/// call counts; a later one changes nothing.
pub fn start_log(settings: &LogSettings) {
    let level = match settings.level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let log = fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // An error means that a log was started before.
    let _ = match settings.format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}
