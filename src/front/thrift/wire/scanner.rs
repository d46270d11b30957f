//! The resumable walk over one message.
//!
//! The walk is a loop over small pieces (a field header, an integer, a length)
//! with an explicit stack instead of recursion. When a piece is not complete,
//! the position stays before it, and the next call goes on there with the
//! same bytes and more: a message that arrives byte by byte costs as much as
//! one that arrives at once. Text and fixed-size elements are jumped over.
//!
//! Promise: no panic and no loop on any bytes; every size is checked against
//! what the message may still hold before it is believed.

use super::args::{Arg, Args};
use super::token::{Cursor, Kind, Stop};
use super::{MAX_DEPTH, Malformed, Protocol};

/// What stands before the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Offset of the method's name from the start of the message.
    pub name_start: usize,
    /// Its length in bytes.
    pub name_len: usize,
    /// Message type as sent: 1 is a call, 4 a one-way call.
    pub kind: u8,
    /// Sequence number, to be sent back.
    pub seqid: i32,
    /// For the binary protocol, whether the version was sent; the reply then
    /// has one too.
    pub strict: bool,
}

/// How far the walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The message goes on after the bytes that are there.
    NeedMore,
    /// The message ends at this offset.
    Done(usize),
}

/// An open struct or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// A struct; compact field ids count from the one before.
    Struct { last_id: i16 },
    /// `left` values to come: of a list all `first`, of a map `first` and
    /// `second` in turn.
    Values {
        first: Kind,
        second: Kind,
        left: usize,
    },
}

/// Walks one message. See the module.
#[derive(Clone, Debug)]
pub struct Scanner {
    protocol: Protocol,
    /// The message may not be longer, in bytes.
    limit: usize,
    /// Offset of the next piece; beyond the bytes received after a jump.
    at: usize,
    header: Option<Header>,
    /// A value whose field header is read: its kind, and its field id if it
    /// is a top-level argument (else 0).
    pending: Option<(Kind, i16)>,
    args: Args,
    levels: [Level; MAX_DEPTH],
    depth: usize,
}

impl Scanner {
    /// For a message of at most `limit` bytes. Within a frame, `limit` is the
    /// length of the frame.
    pub fn new(protocol: Protocol, limit: usize) -> Self {
        Scanner {
            protocol,
            limit,
            at: 0,
            header: None,
            pending: None,
            args: Args::default(),
            levels: [Level::Struct { last_id: 0 }; MAX_DEPTH],
            depth: 0,
        }
    }

    /// The header, as soon as it is complete.
    pub fn header(&self) -> Option<Header> {
        self.header
    }

    /// The arguments, complete after [`Progress::Done`].
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// How far it came: what lies before is never looked at again.
    #[cfg(test)]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes on with `message`: the bytes of earlier calls, and perhaps more.
    ///
    /// After an error the scanner must not be used again, except to ask for
    /// the header.
    pub fn advance(&mut self, message: &[u8]) -> Result<Progress, Malformed> {
        match self.walk(message)? {
            // What is not complete at the limit never will be.
            Progress::NeedMore if message.len() >= self.limit => Err(Malformed::TooLong),
            progress => Ok(progress),
        }
    }

    /// Walks a message that fills its frame exactly.
    pub fn whole(&mut self, frame: &[u8]) -> Result<(), Malformed> {
        match self.walk(frame)? {
            Progress::Done(end) if end == frame.len() => Ok(()),
            Progress::Done(_) => Err(Malformed::TrailingBytes),
            Progress::NeedMore => Err(Malformed::Truncated),
        }
    }

    fn walk(&mut self, message: &[u8]) -> Result<Progress, Malformed> {
        loop {
            if self.at > self.limit {
                return Err(Malformed::TooLong);
            }
            if self.at > message.len() {
                return Ok(Progress::NeedMore);
            }
            if self.header.is_some() && self.depth == 0 {
                return Ok(Progress::Done(self.at));
            }
            let mut cursor = Cursor::new(message, self.at);
            match self.piece(&mut cursor) {
                Ok(()) => self.at = cursor.at,
                Err(Stop::More) => return Ok(Progress::NeedMore),
                Err(Stop::Bad(bad)) => return Err(bad),
            }
        }
    }

    /// Reads the next piece. State may change only when nothing after the
    /// change can answer [`Stop::More`].
    fn piece(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        if self.header.is_none() {
            let header = match self.protocol {
                Protocol::Binary => self.binary_header(cursor)?,
                Protocol::Compact => self.compact_header(cursor)?,
            };
            self.header = Some(header);
            return self.open(Level::Struct { last_id: 0 });
        }
        if let Some((kind, id)) = self.pending {
            self.value(cursor, kind, id)?;
            // A value that opened a level took `pending` with it.
            self.pending = None;
            return Ok(());
        }
        let top = self.depth - 1;
        match self.levels[top] {
            Level::Struct { last_id } => self.field(cursor, top, last_id),
            Level::Values { left: 0, .. } => {
                self.depth -= 1;
                Ok(())
            }
            Level::Values {
                first,
                second,
                left,
            } => {
                // Lists have two equal kinds; maps begin with an even count.
                let kind = if left % 2 == 0 { first } else { second };
                self.levels[top] = Level::Values {
                    first,
                    second,
                    left: left - 1,
                };
                self.pending = Some((kind, 0));
                Ok(())
            }
        }
    }

    fn open(&mut self, level: Level) -> Result<(), Stop> {
        let slot = self
            .levels
            .get_mut(self.depth)
            .ok_or(Stop::Bad(Malformed::TooDeep))?;
        *slot = level;
        self.depth += 1;
        Ok(())
    }

    /// A field header, or the end of the struct.
    fn field(&mut self, cursor: &mut Cursor<'_>, top: usize, last_id: i16) -> Result<(), Stop> {
        let byte = cursor.byte()?;
        let (id, code) = match self.protocol {
            Protocol::Binary if byte == 0 => (0, 0),
            Protocol::Binary => (cursor.be_i16()?, byte),
            Protocol::Compact if byte & 0x0f == 0 => (0, 0),
            Protocol::Compact => {
                let id = match byte >> 4 {
                    0 => cursor.var_i16()?,
                    delta => last_id
                        .checked_add(i16::from(delta))
                        .ok_or(Stop::Bad(Malformed::Varint))?,
                };
                (id, byte & 0x0f)
            }
        };
        if code == 0 {
            self.depth -= 1;
            return Ok(());
        }
        let kind = match self.protocol {
            Protocol::Binary => Kind::from_binary(code)?,
            Protocol::Compact => Kind::from_compact(code)?,
        };
        self.levels[top] = Level::Struct { last_id: id };
        let id = if top == 0 { id } else { 0 };
        if self.protocol == Protocol::Compact && kind == Kind::Bool {
            // The value of a compact bool field is its type.
            self.args.set(id, Arg::Bool(code == 1));
        } else {
            self.pending = Some((kind, id));
        }
        Ok(())
    }

    /// A value, or the beginning of one that has parts.
    fn value(&mut self, cursor: &mut Cursor<'_>, kind: Kind, id: i16) -> Result<(), Stop> {
        let compact = self.protocol == Protocol::Compact;
        match kind {
            Kind::Bool => {
                let byte = cursor.byte()?;
                let value = if compact { byte == 1 } else { byte != 0 };
                self.args.set(id, Arg::Bool(value));
            }
            Kind::I8 => {
                cursor.byte()?;
                self.args.set(id, Arg::Missing);
            }
            Kind::I16 => {
                if compact {
                    cursor.var_i32()?;
                } else {
                    cursor.be_i16()?;
                }
                self.args.set(id, Arg::Missing);
            }
            Kind::I32 => {
                let value = if compact {
                    cursor.var_i32()?
                } else {
                    cursor.be_i32()?
                };
                self.args.set(id, Arg::I32(value));
            }
            Kind::I64 => {
                let value = if compact {
                    cursor.var_i64()?
                } else {
                    cursor.be_i64()?
                };
                self.args.set(id, Arg::I64(value));
            }
            Kind::Double => {
                cursor.array::<8>()?;
                self.args.set(id, Arg::Missing);
            }
            Kind::Uuid => {
                cursor.array::<16>()?;
                self.args.set(id, Arg::Missing);
            }
            Kind::Text => {
                let len = self.size(cursor)?;
                let start = cursor.at;
                self.jump(cursor, len)?;
                self.args.set(id, Arg::Bytes { start, len });
            }
            Kind::Struct => {
                self.open(Level::Struct { last_id: 0 })?;
                self.args.set(id, Arg::Missing);
            }
            Kind::List => {
                self.list(cursor)?;
                self.args.set(id, Arg::Missing);
            }
            Kind::Map => {
                self.map(cursor)?;
                self.args.set(id, Arg::Missing);
            }
        }
        Ok(())
    }

    fn size(&self, cursor: &mut Cursor<'_>) -> Result<usize, Stop> {
        match self.protocol {
            Protocol::Binary => cursor.be_size(),
            Protocol::Compact => cursor.var_size(),
        }
    }

    /// Passes over `len` bytes, received or not, if the message may hold them.
    fn jump(&self, cursor: &mut Cursor<'_>, len: usize) -> Result<(), Stop> {
        if len > self.limit.saturating_sub(cursor.at) {
            return Err(Malformed::TooLong.into());
        }
        cursor.at += len;
        Ok(())
    }

    fn kind(&self, code: u8) -> Result<Kind, Stop> {
        match self.protocol {
            Protocol::Binary => Kind::from_binary(code),
            Protocol::Compact => Kind::from_compact(code),
        }
    }

    fn list(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let (code, count) = match self.protocol {
            Protocol::Binary => (cursor.byte()?, cursor.be_size()?),
            Protocol::Compact => {
                let byte = cursor.byte()?;
                match byte >> 4 {
                    15 => (byte & 0x0f, cursor.var_size()?),
                    count => (byte & 0x0f, usize::from(count)),
                }
            }
        };
        // The element type of an empty list is not checked: some writers put 0.
        if count == 0 {
            return Ok(());
        }
        let kind = self.kind(code)?;
        self.values(cursor, kind, kind, count, count)
    }

    fn map(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let (key, value, count) = match self.protocol {
            Protocol::Binary => (cursor.byte()?, cursor.byte()?, cursor.be_size()?),
            Protocol::Compact => match cursor.var_size()? {
                0 => (0, 0, 0),
                count => {
                    let codes = cursor.byte()?;
                    (codes >> 4, codes & 0x0f, count)
                }
            },
        };
        if count == 0 {
            return Ok(());
        }
        let (key, value) = (self.kind(key)?, self.kind(value)?);
        self.values(cursor, key, value, count, count.saturating_mul(2))
    }

    /// `count` elements follow, in `left` values.
    fn values(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: Kind,
        second: Kind,
        count: usize,
        left: usize,
    ) -> Result<(), Stop> {
        let per_element = match left == count {
            true => first.min_len(self.protocol),
            false => first.min_len(self.protocol) + second.min_len(self.protocol),
        };
        if count.saturating_mul(per_element) > self.limit.saturating_sub(cursor.at) {
            return Err(Malformed::TooLong.into());
        }
        let fixed =
            first.fixed_len(self.protocol).is_some() && second.fixed_len(self.protocol).is_some();
        if fixed {
            return self.jump(cursor, count * per_element);
        }
        self.open(Level::Values {
            first,
            second,
            left,
        })
    }

    fn binary_header(&self, cursor: &mut Cursor<'_>) -> Result<Header, Stop> {
        let first = cursor.be_i32()?;
        let strict = first < 0;
        if strict && first as u32 >> 16 != 0x8001 {
            return Err(Malformed::Version.into());
        }
        let name_len = match strict {
            true => cursor.be_size()?,
            false => first as usize,
        };
        let name_start = self.name(cursor, name_len)?;
        let kind = match strict {
            true => first as u8,
            false => cursor.byte()?,
        };
        let seqid = cursor.be_i32()?;
        Ok(Header {
            name_start,
            name_len,
            kind,
            seqid,
            strict,
        })
    }

    fn compact_header(&self, cursor: &mut Cursor<'_>) -> Result<Header, Stop> {
        let [id, version] = cursor.array()?;
        if id != 0x82 || version & 0x1f != 1 {
            return Err(Malformed::Version.into());
        }
        let seqid = cursor.var_u32()? as i32;
        let name_len = cursor.var_size()?;
        let name_start = self.name(cursor, name_len)?;
        Ok(Header {
            name_start,
            name_len,
            kind: version >> 5,
            seqid,
            strict: true,
        })
    }

    /// Where the name starts. Unlike other text it must be there whole, so
    /// that a header is never seen without it.
    fn name(&self, cursor: &mut Cursor<'_>, len: usize) -> Result<usize, Stop> {
        let start = cursor.at;
        self.jump(cursor, len)?;
        match cursor.is_within() {
            true => Ok(start),
            false => Err(Stop::More),
        }
    }
}
