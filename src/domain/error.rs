//! The one error that callers of the service see, and its stable codes.
//!
//! Inner layers have their own error types; they are turned into this one
//! where a use case ends, and into wire codes once, in `front`.

use std::fmt;

/// Stable, documented code of a failure. The names are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// No id type of that name exists.
    UnknownType,
    /// No Redis instance of that name or number is registered.
    UnknownInstance,
    /// The type exists, but hands out no ids any more.
    Retired,
    /// An argument breaks a rule; the message names the field and the limit.
    InvalidArgument,
    /// A type or an instance of that name exists already.
    AlreadyExists,
    /// Somebody else changed the object since the caller read it.
    Conflict,
    /// The type has reached its highest id.
    Exhausted,
    /// A part that the answer needs is out of reach. Try again, perhaps on another node.
    Unavailable,
    /// The answer was not there by the deadline. Try again.
    Deadline,
    /// Too much is waiting already. Try again later or on another node.
    Overloaded,
    /// The caller may not do this.
    PermissionDenied,
    /// The caller took as many ids as it may. Try again in a moment.
    QuotaExceeded,
    /// The clock of the node went back further than it may wait.
    ClockBackwards,
    /// A defect of the service.
    Internal,
}

impl ErrorCode {
    /// Every code, for tables and metrics.
    pub const ALL: [ErrorCode; 14] = [
        ErrorCode::UnknownType,
        ErrorCode::UnknownInstance,
        ErrorCode::Retired,
        ErrorCode::InvalidArgument,
        ErrorCode::AlreadyExists,
        ErrorCode::Conflict,
        ErrorCode::Exhausted,
        ErrorCode::Unavailable,
        ErrorCode::Deadline,
        ErrorCode::Overloaded,
        ErrorCode::PermissionDenied,
        ErrorCode::QuotaExceeded,
        ErrorCode::ClockBackwards,
        ErrorCode::Internal,
    ];

    /// The name on the wire, in logs and in metrics, such as `UNKNOWN_TYPE`.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::UnknownType => "UNKNOWN_TYPE",
            ErrorCode::UnknownInstance => "UNKNOWN_INSTANCE",
            ErrorCode::Retired => "RETIRED",
            ErrorCode::InvalidArgument => "INVALID_ARGUMENT",
            ErrorCode::AlreadyExists => "ALREADY_EXISTS",
            ErrorCode::Conflict => "CONFLICT",
            ErrorCode::Exhausted => "EXHAUSTED",
            ErrorCode::Unavailable => "UNAVAILABLE",
            ErrorCode::Deadline => "DEADLINE",
            ErrorCode::Overloaded => "OVERLOADED",
            ErrorCode::PermissionDenied => "PERMISSION_DENIED",
            ErrorCode::QuotaExceeded => "QUOTA_EXCEEDED",
            ErrorCode::ClockBackwards => "CLOCK_BACKWARDS",
            ErrorCode::Internal => "INTERNAL",
        }
    }

    /// Whether the same call may succeed when it is tried again.
    pub fn is_retriable(self) -> bool {
        matches!(
            self,
            ErrorCode::Unavailable
                | ErrorCode::Deadline
                | ErrorCode::Overloaded
                | ErrorCode::QuotaExceeded
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed use case: a stable code, a message for a person, and the field
/// that is at fault where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Error {
    /// The stable code.
    pub code: ErrorCode,
    /// What went wrong and what to do, for a person. Never holds a secret.
    pub message: String,
    /// The argument at fault, for [`ErrorCode::InvalidArgument`].
    pub field: Option<&'static str>,
}

impl Error {
    /// An error with `code` and `message`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error { code, message: message.into(), field: None }
    }

    /// `field` breaks the rule that `message` tells; the message must name the field.
    pub fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Error { code: ErrorCode::InvalidArgument, message: message.into(), field: Some(field) }
    }

    /// No type is called `name`.
    pub fn unknown_type(name: &str) -> Self {
        Error::new(ErrorCode::UnknownType, format!("no id type is called {name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_have_distinct_names() {
        let names: HashSet<_> = ErrorCode::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
    }
}
