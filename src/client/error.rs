//! What can go wrong with a call.

use std::fmt;

use crate::thrift_api::IdGenException;

/// The longest text of a node that is kept, in characters.
const LONGEST_TEXT: usize = 500;

/// What a node says with `code` (`idl/idgen.thrift`, `IdGenException`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// No type has this name.
    UnknownType,
    /// No Redis instance has this number or name.
    UnknownInstance,
    /// The type hands out nothing any more.
    Retired,
    /// An argument is missing or breaks a rule; [`Refusal::field`] names it.
    InvalidArgument,
    /// The name is taken.
    AlreadyExists,
    /// The request key was used with other arguments.
    Conflict,
    /// The type has handed out its highest id.
    Exhausted,
    /// The node, or what it needs, is out of reach or shutting down.
    Unavailable,
    /// The node had no answer in time.
    Deadline,
    /// The node has too much to do.
    Overloaded,
    /// The caller may not do this.
    PermissionDenied,
    /// The caller has used its quota up; a moment later there is more.
    QuotaExceeded,
    /// The clock of the node went back.
    ClockBackwards,
    /// A fault of the node.
    Internal,
    /// A name that this version does not know; to be treated as [`Code::Internal`].
    Unknown(String),
}

impl Code {
    /// All but [`Code::Unknown`], with the name on the wire.
    const NAMES: [(Code, &'static str); 14] = [
        (Code::UnknownType, "UNKNOWN_TYPE"),
        (Code::UnknownInstance, "UNKNOWN_INSTANCE"),
        (Code::Retired, "RETIRED"),
        (Code::InvalidArgument, "INVALID_ARGUMENT"),
        (Code::AlreadyExists, "ALREADY_EXISTS"),
        (Code::Conflict, "CONFLICT"),
        (Code::Exhausted, "EXHAUSTED"),
        (Code::Unavailable, "UNAVAILABLE"),
        (Code::Deadline, "DEADLINE"),
        (Code::Overloaded, "OVERLOADED"),
        (Code::PermissionDenied, "PERMISSION_DENIED"),
        (Code::QuotaExceeded, "QUOTA_EXCEEDED"),
        (Code::ClockBackwards, "CLOCK_BACKWARDS"),
        (Code::Internal, "INTERNAL"),
    ];

    /// The code that is called `name` on the wire.
    fn parse(name: &str) -> Code {
        let known = Self::NAMES.iter().find(|(_, known)| *known == name);
        known.map_or_else(|| Code::Unknown(printable(name)), |(code, _)| code.clone())
    }

    /// Its name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Code::Unknown(name) => name,
            code => {
                Self::NAMES.iter().find(|(known, _)| known == code).map_or("", |(_, name)| name)
            }
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A node answered that it will not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The node, as the configuration calls it.
    pub node: String,
    /// Stable; decide on this.
    pub code: Code,
    /// For a person.
    pub message: String,
    /// Whether the same call may succeed later, or at another node.
    pub retriable: bool,
    /// The argument at fault, with [`Code::InvalidArgument`].
    pub field: Option<String>,
}

impl Refusal {
    pub(super) fn new(node: &str, raised: IdGenException) -> Refusal {
        Refusal {
            node: node.to_owned(),
            code: Code::parse(raised.code.as_deref().unwrap_or("")),
            message: printable(raised.message.as_deref().unwrap_or("")),
            retriable: raised.retriable.unwrap_or(false),
            field: raised.field.as_deref().map(printable),
        }
    }

    /// Whether another node may answer otherwise.
    pub(super) fn may_differ_elsewhere(&self) -> bool {
        // A quota is there to be kept: not to be had again from every node.
        let later = self.retriable && self.code != Code::QuotaExceeded;
        later || self.code == Code::ClockBackwards
    }
}

/// A call without an answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A node refused. What other nodes were asked before said nothing better.
    Refused(Box<Refusal>),
    /// No connection could be made, or it broke, or no answer came while the node had
    /// its turn.
    Unreachable {
        /// The node that was asked last.
        node: String,
        /// What happened.
        message: String,
    },
    /// What answered is no IdGen node, or broke the protocol, or sent an answer that
    /// does not fit the call. The connection was given up.
    BadAnswer {
        /// The node that was asked last.
        node: String,
        /// What was wrong.
        message: String,
    },
    /// The node could not make the call at all: a `TApplicationException`. With kind 1
    /// it does not know the method, as an older version.
    Application {
        /// The node that was asked last.
        node: String,
        /// The kind, as Thrift numbers them.
        kind: i32,
        /// The node's words.
        message: String,
    },
    /// The time of the call is up.
    Deadline {
        /// What went wrong before, if anything.
        last: Option<Box<Error>>,
    },
    /// The lease was closed.
    Closed,
    /// A client cannot be made of this configuration.
    Config(String),
}

impl Error {
    /// Whether the same call may succeed when it is repeated. Repeating is always
    /// safe: ids may be lost, never given twice.
    pub fn is_retriable(&self) -> bool {
        match self {
            Error::Refused(refusal) => refusal.retriable,
            Error::Unreachable { .. } | Error::BadAnswer { .. } | Error::Deadline { .. } => true,
            Error::Application { .. } | Error::Closed | Error::Config(_) => false,
        }
    }

    /// What the node said, if a node refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Error::Refused(refusal) => Some(refusal),
            Error::Deadline { last: Some(last) } => last.refusal(),
            _ => None,
        }
    }

    /// What the node refused with, if it did.
    pub fn code(&self) -> Option<&Code> {
        self.refusal().map(|refusal| &refusal.code)
    }

    /// Of the errors of two nodes, the one that says more: what a node answered tells
    /// more than that another could not be reached.
    pub(super) fn or_better(self, before: Option<Error>) -> Error {
        match before {
            Some(before @ Error::Refused(_)) if !matches!(self, Error::Refused(_)) => before,
            _ => self,
        }
    }

    pub(super) fn bad_answer(node: &str, message: impl AsRef<str>) -> Error {
        Error::BadAnswer { node: node.to_owned(), message: printable(message.as_ref()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(r) => write!(f, "{} refuses: {}: {}", r.node, r.code, r.message),
            Error::Unreachable { node, message } => write!(f, "{node} is out of reach: {message}"),
            Error::BadAnswer { node, message } => write!(f, "bad answer of {node}: {message}"),
            Error::Application { node, message, .. } => {
                write!(f, "{node} could not make the call: {message}")
            }
            Error::Deadline { last: None } => f.write_str("no answer in time"),
            Error::Deadline { last: Some(last) } => write!(f, "no answer in time; {last}"),
            Error::Closed => f.write_str("the lease is closed"),
            Error::Config(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

/// A text of a node, fit for a log: control characters are replaced, and long ones cut.
pub(super) fn printable(text: &str) -> String {
    let chars = text.chars().take(LONGEST_TEXT);
    chars.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names() {
        for (code, name) in Code::NAMES {
            assert_eq!(Code::parse(name), code);
            assert_eq!(code.as_str(), name);
        }
        assert_eq!(Code::parse("NEW"), Code::Unknown("NEW".to_owned()));
        assert_eq!(Code::parse("NEW").as_str(), "NEW");
    }

    #[test]
    fn texts_of_nodes_are_cut_and_cleaned() {
        let raised = IdGenException {
            code: Some("A\nB".repeat(1_000)),
            message: Some("\u{1b}[31m".to_owned()),
            retriable: None,
            field: None,
        };
        let refusal = Refusal::new("n", raised);
        assert_eq!(refusal.code.as_str().chars().count(), LONGEST_TEXT);
        assert_eq!(refusal.message, "\u{fffd}[31m");
        assert!(!refusal.retriable);
    }

    #[test]
    fn what_a_node_said_is_told_first() {
        let refused = || {
            let exception = IdGenException { retriable: Some(true), ..Default::default() };
            Error::Refused(Box::new(Refusal::new("a", exception)))
        };
        let lost = || Error::Unreachable { node: "b".to_owned(), message: "gone".to_owned() };
        assert_eq!(lost().or_better(Some(refused())), refused());
        assert_eq!(refused().or_better(Some(lost())), refused());
        assert_eq!(lost().or_better(None), lost());
    }
}
