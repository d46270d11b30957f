//! Which ranges nodes leased for themselves: the witness of one type and shard.

use crate::domain::IdRange;
use crate::ports::Witness;

/// So many ranges are kept with start and end.
const MOST: usize = 16;

/// The highest ranges that were noted, and the end of all that are lower.
#[derive(Clone, Default)]
pub(super) struct Leases {
    /// Ascending and disjoint; none starts below `below`.
    ranges: Vec<IdRange>,
    /// The highest end of those that fell out of the list; 0 if none did.
    below: i64,
}

impl Leases {
    pub(super) fn highest_end(&self) -> i64 {
        self.ranges.last().map_or(self.below, |range| range.end())
    }

    pub(super) fn witness(&mut self, range: IdRange) -> Witness {
        let place = self.ranges.partition_point(|listed| listed.end() <= range.start());
        let overlaps = self.ranges.get(place).is_some_and(|next| next.start() < range.end());
        if overlaps || range.start() < self.below {
            return Witness::Overlaps { highest_end: self.highest_end() };
        }
        self.ranges.insert(place, range);
        if self.ranges.len() > MOST {
            self.below = self.ranges.remove(0).end();
        }
        Witness::Noted
    }

    /// From now on nothing that starts below `end` is new.
    pub(super) fn adopt(&mut self, end: i64) {
        self.below = self.below.max(end);
        while let Some(first) = self.ranges.first().filter(|first| first.start() < self.below) {
            self.below = self.below.max(first.end());
            self.ranges.remove(0);
        }
    }

    pub(super) fn withdraw(&mut self, tail: IdRange) -> bool {
        let is_last = self.ranges.last().is_some_and(|range| range.end() == tail.end());
        if !is_last || tail.start() < self.below {
            return false;
        }
        self.ranges.retain(|range| range.start() < tail.start());
        if let Some(last) = self.ranges.last_mut()
            && last.end() > tail.start()
        {
            *last = IdRange::new(last.start(), tail.start()).expect("it starts below the tail");
        }
        true
    }
}
