//! Section `log`: what is logged to standard error, and how.

use super::reader::Reader;
use super::setting::{Kind, Setting};

const LEVEL: Setting = Setting {
    key: "log.level",
    flag: Some("log-level"),
    env: "IDGEN_LOG_LEVEL",
    kind: Kind::Choice {
        default: "info",
        choices: &["error", "warn", "info", "debug", "trace"],
    },
    meaning: "The least important kind of line that is logged",
};

const FORMAT: Setting = Setting {
    key: "log.format",
    flag: Some("log-format"),
    env: "IDGEN_LOG_FORMAT",
    kind: Kind::Choice {
        default: "text",
        choices: &["text", "json"],
    },
    meaning: "Lines for people, or JSON for programs",
};

pub(super) const SETTINGS: &[&Setting] = &[&LEVEL, &FORMAT];

/// The least important kind of line that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Something failed that a person should look at.
    Error,
    /// Something is not as it should be; the node goes on.
    Warn,
    /// What an operator wants to know of a healthy node.
    Info,
    /// What helps to find a fault.
    Debug,
    /// Everything.
    Trace,
}

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Settings of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// The least important kind of line.
    pub level: LogLevel,
    /// How lines look.
    pub format: LogFormat,
}

impl LogSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        LogSettings {
            level: match reader.choice(&LEVEL) {
                "error" => LogLevel::Error,
                "warn" => LogLevel::Warn,
                "debug" => LogLevel::Debug,
                "trace" => LogLevel::Trace,
                _ => LogLevel::Info,
            },
            format: match reader.choice(&FORMAT) {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            },
        }
    }
}
