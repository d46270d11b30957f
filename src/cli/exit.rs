//! Exit codes, and failures that carry one.

use std::fmt;

/// Done, and all is well.
pub const OK: u8 = 0;
/// It failed, or a check found a violation.
pub const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
pub const USAGE: u8 = 2;
/// The service refused: an unknown type, a wrong token, a broken rule.
pub const REFUSED: u8 = 3;
/// The service, or a part that it needs, is out of reach: try again.
pub const UNAVAILABLE: u8 = 4;

/// Why a command failed: an exit code and one message for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of the codes above, not [`OK`].
    pub code: u8,
    /// What went wrong and what to do. Without secrets.
    pub message: String,
}

impl Failure {
    /// [`FAILED`] with `message`.
    pub fn failed(message: impl fmt::Display) -> Self {
        Failure::new(FAILED, message)
    }

    /// [`USAGE`] with `message`.
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure::new(USAGE, message)
    }

    /// `code` with `message`.
    pub fn new(code: u8, message: impl fmt::Display) -> Self {
        Failure {
            code,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<std::io::Error> for Failure {
    /// A failure to write the result, most often because its reader is gone.
    fn from(error: std::io::Error) -> Self {
        Failure::failed(format_args!("cannot write the result: {error}"))
    }
}
