//! The positions, or ids, of one call: nearly always one range.

use crate::domain::{Error, ErrorCode, IdRange};

/// See the module. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) first: IdRange,
    /// What follows, where ranges ended in between. Does not allocate when empty.
    pub(super) rest: Vec<IdRange>,
}

impl Granted {
    pub(super) fn of(first: IdRange) -> Self {
        Granted { first, rest: Vec::new() }
    }

    /// All of `ranges`; an internal error if there are none.
    pub(super) fn all(mut ranges: Vec<IdRange>) -> Result<Self, Error> {
        if ranges.is_empty() {
            return Err(Error::new(ErrorCode::Internal, "a call for ids got none"));
        }
        let first = ranges.remove(0);
        Ok(Granted { first, rest: ranges })
    }

    pub(super) fn push(&mut self, range: IdRange) {
        self.rest.push(range);
    }

    pub(super) fn len(&self) -> u64 {
        self.first.len() + self.rest.iter().map(|r| r.len()).sum::<u64>()
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = IdRange> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}
