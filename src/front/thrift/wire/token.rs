//! The smallest pieces of both encodings: fixed and variable integers, lengths
//! and type codes. A piece is read whole or not at all.

use super::{Malformed, Protocol};

/// Why a piece was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It is not complete yet.
    More,
    /// It never will be right.
    Bad(Malformed),
}

impl From<Malformed> for Stop {
    fn from(bad: Malformed) -> Self {
        Stop::Bad(bad)
    }
}

/// The kind of a value, in either encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Text,
    Struct,
    List,
    Map,
    Uuid,
}

impl Kind {
    /// From a type code of the binary protocol. Sets are read as lists.
    pub(super) fn from_binary(code: u8) -> Result<Kind, Stop> {
        Ok(match code {
            2 => Kind::Bool,
            3 => Kind::I8,
            4 => Kind::Double,
            6 => Kind::I16,
            8 => Kind::I32,
            10 => Kind::I64,
            11 => Kind::Text,
            12 => Kind::Struct,
            13 => Kind::Map,
            14 | 15 => Kind::List,
            16 => Kind::Uuid,
            _ => return Err(Malformed::Type.into()),
        })
    }

    /// From a type code of the compact protocol, of a field or an element.
    pub(super) fn from_compact(code: u8) -> Result<Kind, Stop> {
        Ok(match code {
            1 | 2 => Kind::Bool,
            3 => Kind::I8,
            4 => Kind::I16,
            5 => Kind::I32,
            6 => Kind::I64,
            7 => Kind::Double,
            8 => Kind::Text,
            9 | 10 => Kind::List,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Uuid,
            _ => return Err(Malformed::Type.into()),
        })
    }

    /// Its length in bytes where every value of the kind has the same.
    pub(super) fn fixed_len(self, protocol: Protocol) -> Option<usize> {
        match (self, protocol) {
            (Kind::Bool | Kind::I8, _) => Some(1),
            (Kind::Double, _) => Some(8),
            (Kind::Uuid, _) => Some(16),
            (Kind::I16, Protocol::Binary) => Some(2),
            (Kind::I32, Protocol::Binary) => Some(4),
            (Kind::I64, Protocol::Binary) => Some(8),
            _ => None,
        }
    }

    /// The fewest bytes that one value takes; at least 1, so that a container
    /// size can be checked against the bytes that are left.
    pub(super) fn min_len(self, protocol: Protocol) -> usize {
        match (self, protocol) {
            (Kind::Text, Protocol::Binary) => 4,
            (Kind::List, Protocol::Binary) => 5,
            (Kind::Map, Protocol::Binary) => 6,
            _ => self.fixed_len(protocol).unwrap_or(1),
        }
    }
}

/// A place in a buffer. Reading moves it on; a failed read leaves it anywhere,
/// so callers copy it back only after success.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Cursor { bytes, at }
    }

    /// Whether everything before the place is there.
    pub(super) fn is_within(&self) -> bool {
        self.at <= self.bytes.len()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let piece = rest.first_chunk::<N>().ok_or(Stop::More)?;
        self.at += N;
        Ok(*piece)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn be_i16(&mut self) -> Result<i16, Stop> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn be_i32(&mut self) -> Result<i32, Stop> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn be_i64(&mut self) -> Result<i64, Stop> {
        self.array().map(i64::from_be_bytes)
    }

    /// A length or size of the binary protocol.
    pub(super) fn be_size(&mut self) -> Result<usize, Stop> {
        let size = self.be_i32()?;
        usize::try_from(size).map_err(|_| Malformed::NegativeSize.into())
    }

    /// A variable-length integer of at most `BITS` bits.
    fn varint<const BITS: u32>(&mut self) -> Result<u64, Stop> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            // The last byte may only hold the bits that are left.
            if shift + 7 > BITS && part >> (BITS - shift) != 0 {
                return Err(Malformed::Varint.into());
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift >= BITS {
                return Err(Malformed::Varint.into());
            }
        }
    }

    pub(super) fn var_u32(&mut self) -> Result<u32, Stop> {
        self.varint::<32>().map(|value| value as u32)
    }

    pub(super) fn var_i32(&mut self) -> Result<i32, Stop> {
        let raw = self.var_u32()?;
        Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
    }

    pub(super) fn var_i64(&mut self) -> Result<i64, Stop> {
        let raw = self.varint::<64>()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    pub(super) fn var_i16(&mut self) -> Result<i16, Stop> {
        i16::try_from(self.var_i32()?).map_err(|_| Malformed::Varint.into())
    }

    /// A length or size of the compact protocol: not signed there, but no
    /// implementation takes one above `i32::MAX`.
    pub(super) fn var_size(&mut self) -> Result<usize, Stop> {
        let size = self.var_u32()? as i32;
        usize::try_from(size).map_err(|_| Malformed::NegativeSize.into())
    }
}
