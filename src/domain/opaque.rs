//! Opaque ids: a keyed, reversible permutation of `1..=highest`.
//!
//! `1..=highest` is cut into equal slices. Slice after slice, the positions of
//! a slice are permuted within that slice by FF1 (NIST SP 800-38G) over four
//! numerals of the smallest radix that covers it, with cycle walking for what
//! falls outside. So ids have the same width as positions, tell nothing about
//! how many there are within a slice, and can be turned back.
//!
//! Each slice has one key for ever: a new key begins at the next slice, in the
//! same transaction that moves the next position there. As ids of different
//! slices differ whatever the keys, a rotation cannot repeat an id. A node that
//! knows the type as it was before may not use slices that were free then; see
//! [`Permutation::knows`].

use std::fmt;

use super::{Error, Opaque};

/// A secret of 256 bits. Shows itself to nobody: `Debug` prints stars.
#[derive(Clone, PartialEq, Eq)]
pub struct OpaqueKey([u8; 32]);

impl OpaqueKey {
    /// From its bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        OpaqueKey(bytes)
    }

    /// From 64 hexadecimal digits; the error names the field `key` and does not
    /// repeat the text.
    pub fn from_hex(_text: &str) -> Result<Self, Error> {
        todo!()
    }

    /// As 64 lower-case hexadecimal digits, for the range store alone.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for OpaqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpaqueKey(***)")
    }
}

/// A key and the first slice that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceKey {
    /// The first slice; it holds until the next key's first slice.
    pub from_slice: i64,
    /// The key.
    pub key: OpaqueKey,
}

/// See the module.
pub struct Permutation(());

impl Permutation {
    /// The permutation of `1..=highest` with `keys`, in the order of their
    /// slices and beginning with slice 0. `next_position` is the first position
    /// that was free when the keys were read.
    pub fn new(
        _highest: i64,
        _opaque: Opaque,
        _keys: &[SliceKey],
        _next_position: i64,
    ) -> Result<Self, Error> {
        todo!()
    }

    /// Whether the key of the slice of `position` is final: slices after that
    /// of the first free position may still get another key, so the type must
    /// be read again before a position there is used.
    pub fn knows(&self, _position: i64) -> bool {
        todo!()
    }

    /// The id at `position` (1 to `highest`). `shard` keeps the permutations of
    /// the shards apart.
    pub fn id(&self, _position: i64, _shard: Option<u8>) -> i64 {
        todo!()
    }

    /// The position of `id` (1 to `highest`).
    pub fn position(&self, _id: i64, _shard: Option<u8>) -> i64 {
        todo!()
    }
}

/// The slice that holds `position`, from 0.
pub fn slice_of(position: i64, highest: i64, opaque: Opaque) -> i64 {
    (position - 1) / slice_length(highest, opaque)
}

/// The first position of `slice`.
pub fn slice_start(slice: i64, highest: i64, opaque: Opaque) -> i64 {
    1 + slice * slice_length(highest, opaque)
}

fn slice_length(highest: i64, opaque: Opaque) -> i64 {
    let slices = i64::from(opaque.slices);
    highest / slices + i64::from(highest % slices > 0)
}
