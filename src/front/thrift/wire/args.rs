//! The top-level arguments of a call, as values and slices of its message.

/// Field ids that are kept: no method has more than five arguments.
const SLOTS: usize = 5;

/// One argument as it was sent. Kinds that no method takes are not kept, and
/// so count as missing, as in every Thrift implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arg {
    /// Not sent, or with a kind that no method takes.
    #[default]
    Missing,
    /// A bool.
    Bool(bool),
    /// An i32.
    I32(i32),
    /// An i64.
    I64(i64),
    /// A string or binary: where it lies, from the start of the message.
    Bytes {
        /// Offset of its first byte.
        start: usize,
        /// Its length in bytes.
        len: usize,
    },
}

/// The arguments of one call, by field id. Of a field sent twice, the last counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Args {
    slots: [Arg; SLOTS],
}

impl Args {
    /// Whether a field of this id is kept at all.
    pub(super) fn keeps(id: i16) -> bool {
        (1..=SLOTS as i16).contains(&id)
    }

    pub(super) fn set(&mut self, id: i16, arg: Arg) {
        if Self::keeps(id) {
            self.slots[id as usize - 1] = arg;
        }
    }

    /// The argument with field id `id`.
    pub fn get(&self, id: i16) -> Arg {
        match Self::keeps(id) {
            true => self.slots[id as usize - 1],
            false => Arg::Missing,
        }
    }

    /// The bool with field id `id`, unless it is missing or of another kind.
    pub fn bool(&self, id: i16) -> Option<bool> {
        match self.get(id) {
            Arg::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The i32 with field id `id`, likewise.
    pub fn i32(&self, id: i16) -> Option<i32> {
        match self.get(id) {
            Arg::I32(value) => Some(value),
            _ => None,
        }
    }

    /// The i64 with field id `id`, likewise.
    pub fn i64(&self, id: i16) -> Option<i64> {
        match self.get(id) {
            Arg::I64(value) => Some(value),
            _ => None,
        }
    }

    /// The string or binary with field id `id`, likewise; `message` is what
    /// was scanned.
    pub fn bytes<'a>(&self, id: i16, message: &'a [u8]) -> Option<&'a [u8]> {
        match self.get(id) {
            Arg::Bytes { start, len } => message.get(start..start + len),
            _ => None,
        }
    }
}
