//! What `benches/micro.rs` reaches of the service's inside.

use super::catalogue::{Catalogue, Source};
use super::segment;
use crate::domain::{IdRange, TypeRecord};

/// Types that a node knows.
pub struct Types(Catalogue);

impl Types {
    /// All of `records`.
    pub fn new(records: impl IntoIterator<Item = TypeRecord>) -> Self {
        let catalogue = Catalogue::default();
        for record in records {
            catalogue.put(record, Source::Feed);
        }
        Types(catalogue)
    }

    /// Looks `name` up, as a call does.
    pub fn knows(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }
}

/// Takes one position after another from a pool that holds `range`.
pub fn takes_of(range: IdRange) -> impl Fn() -> Option<i64> {
    segment::takes_of(range)
}
