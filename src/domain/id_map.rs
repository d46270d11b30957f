//! From positions, which the range store counts, to ids, which callers see, and back.
//!
//! ```text
//! position ─ cycle: wrap into first_id..=highest
//!          ─ opaque: permute 1..=highest
//!          ─ sites: × count + site       or, sharded: << 14 | shard << 8 | app
//!          → id
//! ```
//!
//! Each step is injective (but for `cycle`, whose purpose is to repeat), so
//! different positions never make the same id.

use super::{Error, IdRange, TypeRecord};

/// The ids of one type. Made once per version of its settings.
pub struct IdMap(());

impl IdMap {
    /// The map of a type that is not snowflake; fails for settings that make no
    /// sense (somebody wrote them past the checks).
    pub fn new(_record: &TypeRecord) -> Result<Self, Error> {
        todo!()
    }

    /// Whether ids are positions, so that a range of one is a range of the other.
    pub fn is_identity(&self) -> bool {
        todo!()
    }

    /// Whether this map may be used for `position`; if not, the type must be
    /// read again from the store (see [`super::opaque::Permutation::knows`]).
    pub fn knows(&self, _position: i64) -> bool {
        todo!()
    }

    /// The id at `position`. `shard` is that of the position, for a sharded type.
    pub fn id(&self, _position: i64, _shard: Option<u8>) -> i64 {
        todo!()
    }

    /// Appends the ids of `positions` to `ids`, in order, as runs of
    /// consecutive ids, as few as there can be.
    pub fn append(&self, _positions: IdRange, _shard: Option<u8>, _ids: &mut Vec<IdRange>) {
        todo!()
    }

    /// Position and shard of `id`; the error names `id` where no position has it.
    /// For a type that cycles it is the first position with that id.
    pub fn position(&self, _id: i64) -> Result<(i64, Option<u8>), Error> {
        todo!()
    }
}
