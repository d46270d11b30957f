//! Reading requests from bytes, without trusting any of them.
//!
//! The official crate reads from a blocking transport, allocates every string,
//! and believes the sizes that it is told. A server needs the opposite: find
//! out whether a message is complete while it trickles in, spend time in
//! proportion to the bytes received, and hand out arguments as slices.
//!
//! [`detect`] tells the dialect of a connection from its first bytes;
//! [`Scanner`] walks one message, stops anywhere and goes on there, checks
//! every length against what the message may still hold, and keeps the
//! top-level arguments. Nothing here allocates.

mod args;
mod detect;
mod scanner;
#[cfg(test)]
mod tests;
mod token;

pub use args::{Arg, Args};
pub use detect::{Dialect, Foreign, detect};
pub use scanner::{Header, Progress, Scanner};

/// How values are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TBinaryProtocol.
    Binary,
    /// TCompactProtocol, version 1.
    Compact,
}

/// Deepest nesting of structs and containers in a message, the argument
/// struct included. The service's own arguments need 1.
pub const MAX_DEPTH: usize = 16;

/// Why bytes are no Thrift message. What follows them cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// The message does not begin with a version that is known.
    #[error("the message does not begin with a known protocol version")]
    Version,
    /// A length or a container size is below zero.
    #[error("a length or container size is negative")]
    NegativeSize,
    /// The message, or something in it by its own account, is longer than the
    /// limit or its frame.
    #[error("a length or container size runs past the end of the frame or the size limit")]
    TooLong,
    /// A type code that does not exist.
    #[error("a field or element has a type that does not exist")]
    Type,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A variable-length integer with too many bytes, or out of its range.
    #[error("a variable-length integer is out of range")]
    Varint,
    /// The frame ends before the message does.
    #[error("the frame ends before the message does")]
    Truncated,
    /// The message ends before the frame does.
    #[error("the message ends before its frame does")]
    TrailingBytes,
}

impl Malformed {
    /// Every kind, for metrics.
    pub const ALL: [Malformed; 8] = [
        Malformed::Version,
        Malformed::NegativeSize,
        Malformed::TooLong,
        Malformed::Type,
        Malformed::TooDeep,
        Malformed::Varint,
        Malformed::Truncated,
        Malformed::TrailingBytes,
    ];

    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Malformed::Version => "version",
            Malformed::NegativeSize => "negative_size",
            Malformed::TooLong => "too_long",
            Malformed::Type => "type",
            Malformed::TooDeep => "too_deep",
            Malformed::Varint => "varint",
            Malformed::Truncated => "truncated",
            Malformed::TrailingBytes => "trailing_bytes",
        }
    }
}
