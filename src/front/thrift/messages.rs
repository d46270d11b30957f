//! The input of one connection: cuts the bytes into messages.
//!
//! Holds at most one incomplete message and what one read brought with it.
//! Each byte is looked at once, moved at most once per read, and never trusted.

use super::request::Request;
use super::wire::{Dialect, Foreign, Header, Malformed, Progress, Scanner, detect};

/// The first allocation, and the least free space for a read, in bytes. An
/// idle connection costs this much.
const MIN_SPACE: usize = 512;

/// The largest room that is made for one read beyond what is held, in bytes.
const MAX_SPACE: usize = 32 * 1024;

/// What the bytes hold next.
pub(super) enum Next<'a> {
    /// Nothing complete.
    More,
    /// A request. Call [`Cursor::done`] afterwards.
    Request { request: Request<'a>, dialect: Dialect },
    /// A message that makes no sense.
    Malformed {
        kind: Malformed,
        /// Whom to tell, where the message got that far.
        to: Option<(Header, &'a [u8], Dialect)>,
        /// Whether the next message is known to begin behind it. Call
        /// [`Cursor::done`] then.
        in_sync: bool,
    },
    /// The connection does not speak Thrift.
    Foreign(Foreign),
}

/// Bytes received and not answered.
pub(super) struct Input {
    bytes: Vec<u8>,
    cursor: Cursor,
}

/// The place in the bytes of an input. Apart from them, so that requests, which
/// borrow the bytes, can be carried out while further ones are found.
pub(super) struct Cursor {
    /// Where the next message (or its frame) begins.
    head: usize,
    /// Where the message that was given out ends.
    end: usize,
    dialect: Option<Dialect>,
    /// The walk over the message at `head`.
    scanner: Option<Scanner>,
    limit: usize,
}

impl Input {
    /// For messages of at most `limit` bytes, the four of a frame's length not
    /// counted.
    pub(super) fn new(limit: usize) -> Self {
        let cursor = Cursor { head: 0, end: 0, dialect: None, scanner: None, limit };
        Input { bytes: Vec::new(), cursor }
    }

    /// Whether no message is begun.
    pub(super) fn is_empty(&self) -> bool {
        self.cursor.head == self.bytes.len()
    }

    /// Where to append what is received.
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        // Full means that the kernel has more, so the next read may be larger.
        // So the room follows the bytes that came, not a length that a peer
        // only claims.
        let full = self.bytes.len() == self.bytes.capacity();
        if self.cursor.head > 0 {
            self.bytes.drain(..self.cursor.head);
            self.cursor.rewind();
        }
        let wanted = match full {
            true => self.bytes.capacity().clamp(MIN_SPACE, MAX_SPACE),
            false => MIN_SPACE,
        };
        // Doubles at least, whenever there is less.
        self.bytes.reserve(wanted);
        &mut self.bytes
    }

    /// Bytes of memory held.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives all memory back if nothing is held.
    pub(super) fn shrink(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
            self.cursor.rewind();
        }
    }

    /// The bytes, and the place in them.
    pub(super) fn parts(&mut self) -> (&[u8], &mut Cursor) {
        (&self.bytes, &mut self.cursor)
    }
}

impl Cursor {
    fn rewind(&mut self) {
        self.head = 0;
        self.end = 0;
    }

    /// Passes over the message that was given out.
    pub(super) fn done(&mut self) {
        self.head = self.end;
        self.scanner = None;
    }

    /// The next message; the same again until it is [`done`](Self::done).
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> Next<'a> {
        let rest = &bytes[self.head..];
        let dialect = match self.dialect {
            Some(dialect) => dialect,
            None => match detect(rest) {
                Ok(Some(dialect)) => *self.dialect.insert(dialect),
                Ok(None) => return Next::More,
                Err(foreign) => return Next::Foreign(foreign),
            },
        };
        match dialect.framed {
            true => self.framed(bytes, dialect),
            false => self.unframed(bytes, dialect),
        }
    }

    fn framed<'a>(&mut self, bytes: &'a [u8], dialect: Dialect) -> Next<'a> {
        let start = self.head + 4;
        let Some(length) = bytes[self.head..].first_chunk::<4>() else {
            return Next::More;
        };
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return malformed(Malformed::NegativeSize, None);
        };
        if length > self.limit {
            return self.too_long(bytes, dialect);
        }
        let Some(message) = bytes.get(start..start + length) else {
            return Next::More;
        };
        self.end = start + length;
        let scanner = self.scanner.insert(Scanner::new(dialect.protocol, length));
        match scanner.whole(message) {
            Ok(()) => found(scanner, message, dialect),
            Err(kind) => {
                Next::Malformed { kind, to: addressee(scanner, message, dialect), in_sync: true }
            }
        }
    }

    /// The frame will not be read to its end, but its header tells whom to
    /// answer.
    fn too_long<'a>(&mut self, bytes: &'a [u8], dialect: Dialect) -> Next<'a> {
        let message = &bytes[self.head + 4..];
        let limit = self.limit;
        let scanner = self.scanner.get_or_insert_with(|| Scanner::new(dialect.protocol, limit));
        let progress = scanner.advance(message);
        if scanner.header().is_none() && progress.is_ok() {
            return Next::More;
        }
        let to = addressee(scanner, message, dialect);
        // After an error it must not be used again.
        self.scanner = None;
        malformed(Malformed::TooLong, to)
    }

    fn unframed<'a>(&mut self, bytes: &'a [u8], dialect: Dialect) -> Next<'a> {
        let message = &bytes[self.head..];
        if message.is_empty() {
            return Next::More;
        }
        let limit = self.limit;
        let scanner = self.scanner.get_or_insert_with(|| Scanner::new(dialect.protocol, limit));
        match scanner.advance(message) {
            Ok(Progress::NeedMore) => Next::More,
            Ok(Progress::Done(length)) => {
                self.end = self.head + length;
                found(scanner, &message[..length], dialect)
            }
            Err(kind) => {
                let to = addressee(scanner, message, dialect);
                self.scanner = None;
                malformed(kind, to)
            }
        }
    }
}

fn found<'a>(scanner: &Scanner, message: &'a [u8], dialect: Dialect) -> Next<'a> {
    match scanner.header() {
        Some(header) => {
            Next::Request { request: Request { message, header, args: *scanner.args() }, dialect }
        }
        // A walk that ended has a header; this is only for the compiler.
        None => malformed(Malformed::Truncated, None),
    }
}

/// A malformed message after which nothing can be trusted.
fn malformed(kind: Malformed, to: Option<(Header, &[u8], Dialect)>) -> Next<'_> {
    Next::Malformed { kind, to, in_sync: false }
}

fn addressee<'a>(
    scanner: &Scanner,
    message: &'a [u8],
    dialect: Dialect,
) -> Option<(Header, &'a [u8], Dialect)> {
    let header = scanner.header()?;
    let name = message.get(header.name_start..header.name_start + header.name_len)?;
    Some((header, name, dialect))
}
