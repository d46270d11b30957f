//! Snowflake ids: `time << (worker bits + sequence bits) | worker << sequence bits | sequence`.
//!
//! The time is counted in units from the epoch of the type. Unit 0 is never
//! used, because its first id would be 0, and the last one is not either, because
//! its last id could be `i64::MAX`: neither is an id.
//!
//! A worker id is held for a span of time (see `ports::worker_ids`), and a unit
//! may be used only if all of it lies in that span ([`Layout::lies_within`]). Spans
//! of one worker id never overlap, so no two holders ever use the same unit,
//! whatever the epoch and the unit of a type are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;
use super::id_type::within;

/// The unit of the time in an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TimeUnit {
    /// Milliseconds.
    #[default]
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
}

impl TimeUnit {
    /// Its length in milliseconds.
    pub fn ms(self) -> i64 {
        match self {
            TimeUnit::Milliseconds => 1,
            TimeUnit::Seconds => 1_000,
        }
    }
}

/// How the 63 bits of an id are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// Bits of the time since the epoch, 28 to 53.
    #[schemars(range(min = 28, max = 53))]
    pub time_bits: u8,
    /// Bits of the worker id, 1 to 20.
    #[schemars(range(min = 1, max = 20))]
    pub worker_bits: u8,
    /// Bits of the sequence within one unit of time, 1 to 24.
    #[schemars(range(min = 1, max = 24))]
    pub sequence_bits: u8,
    /// The unit of the time.
    pub unit: TimeUnit,
    /// Time zero, in milliseconds of the Unix epoch; from 0 to
    /// [`Layout::LATEST_EPOCH_MS`], and in the past when the type is made.
    #[schemars(range(min = 0, max = Layout::LATEST_EPOCH_MS))]
    #[schemars(description = "Time zero, in milliseconds of the Unix epoch; in the past when \
                              the type is made.")]
    pub epoch_ms: i64,
}

impl Layout {
    /// Leaf's epoch, and Twitter's: 2010-11-04T01:42:54.657Z.
    pub const LEAF_EPOCH_MS: i64 = 1_288_834_974_657;
    /// The end of the year 9999, so that no sum of times overflows.
    pub const LATEST_EPOCH_MS: i64 = 253_402_300_799_999;
    /// Bits of an id: those of a positive `i64`.
    pub const ID_BITS: u8 = 63;
    /// The time of the first ids; see the module.
    pub const FIRST_TIME: i64 = 1;
}

impl Default for Layout {
    /// That of Twitter and Leaf: 41/10/12 milliseconds.
    fn default() -> Self {
        Layout {
            time_bits: 41,
            worker_bits: 10,
            sequence_bits: 12,
            unit: TimeUnit::Milliseconds,
            epoch_ms: Self::LEAF_EPOCH_MS,
        }
    }
}

/// The parts of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Units of time since the epoch.
    pub time: i64,
    /// The worker id.
    pub worker: i64,
    /// The number within the unit of time.
    pub sequence: i64,
}

impl Layout {
    /// Checks the limits above, and that the bits are 63 at most together; the
    /// error names the field, as `snowflake.worker_bits`.
    pub fn validate(&self) -> Result<(), Error> {
        within("snowflake.time_bits", self.time_bits.into(), 28, 53)?;
        within("snowflake.worker_bits", self.worker_bits.into(), 1, 20)?;
        within("snowflake.sequence_bits", self.sequence_bits.into(), 1, 24)?;
        within("snowflake.epoch_ms", self.epoch_ms, 0, Self::LATEST_EPOCH_MS)?;
        let sum = self.time_bits + self.worker_bits + self.sequence_bits;
        if sum > Self::ID_BITS {
            return Err(Error::invalid(
                "snowflake.time_bits",
                format!(
                    "snowflake.time_bits {}, worker_bits {} and sequence_bits {} are {sum} \
                     together: an id has {}",
                    self.time_bits,
                    self.worker_bits,
                    self.sequence_bits,
                    Self::ID_BITS
                ),
            ));
        }
        Ok(())
    }

    /// Refuses an epoch that has not begun by `now_ms`, or whose end is reached;
    /// for a type that is being made.
    pub fn check_epoch(&self, now_ms: i64) -> Result<(), Error> {
        let problem = if self.epoch_ms > now_ms {
            "lies in the future"
        } else if self.end_ms() <= now_ms {
            "is too long ago: the time does not fit its bits any more"
        } else {
            return Ok(());
        };
        Err(Error::invalid(
            "snowflake.epoch_ms",
            format!("snowflake.epoch_ms {} {problem}; it is {now_ms} now", self.epoch_ms),
        ))
    }

    /// Units of time from the epoch to `unix_ms`; negative before it.
    pub fn time_at(&self, unix_ms: i64) -> i64 {
        (unix_ms - self.epoch_ms).div_euclid(self.unit.ms())
    }

    /// The first millisecond, of the Unix epoch, of `time`.
    pub fn unix_ms(&self, time: i64) -> i64 {
        self.epoch_ms.saturating_add(time.saturating_mul(self.unit.ms()))
    }

    /// The time of the last ids; see the module.
    pub fn last_time(&self) -> i64 {
        (1 << self.time_bits) - 2
    }

    /// The first millisecond, of the Unix epoch, that has no id any more.
    pub fn end_ms(&self) -> i64 {
        self.unix_ms(self.last_time() + 1)
    }

    /// Whether all of the unit `time` lies in `[from_ms, until_ms)`.
    pub fn lies_within(&self, time: i64, from_ms: i64, until_ms: i64) -> bool {
        from_ms <= self.unix_ms(time) && self.unix_ms(time + 1) <= until_ms
    }

    /// The first unit that begins at `unix_ms` or after it.
    pub fn first_time_from(&self, unix_ms: i64) -> i64 {
        // Not with the sum of both, which could overflow.
        -(self.epoch_ms - unix_ms).div_euclid(self.unit.ms())
    }

    /// How many ids one worker can make in one unit of time.
    pub fn capacity(&self) -> i64 {
        1 << self.sequence_bits
    }

    /// A new unit begins with a sequence below this one, the next at each turn: so
    /// the ids of a type with few ids in each unit do not all end in the same
    /// digits. A power of two: an eighth of the capacity, so that less than an
    /// eighth of it is lost, and at most 128; 1, which is no rotation, for 1 to 3
    /// bits.
    pub fn starts(&self) -> i64 {
        (self.capacity() / 8).clamp(1, 128)
    }

    /// How many worker ids there are.
    pub fn workers(&self) -> i64 {
        1 << self.worker_bits
    }

    /// The id of `parts`, which fit their bits.
    pub fn compose(&self, parts: Parts) -> i64 {
        debug_assert!((0..1 << self.time_bits).contains(&parts.time));
        debug_assert!((0..self.workers()).contains(&parts.worker));
        debug_assert!((0..self.capacity()).contains(&parts.sequence));
        (((parts.time << self.worker_bits) | parts.worker) << self.sequence_bits) | parts.sequence
    }

    /// The parts of `id`, which is not negative. Whether its time fits the bits,
    /// and an id can look like that, is for the caller to see.
    pub fn decompose(&self, id: i64) -> Parts {
        let high = id >> self.sequence_bits;
        Parts {
            time: high >> self.worker_bits,
            worker: high & (self.workers() - 1),
            sequence: id & (self.capacity() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::IdRange;
    use proptest::prelude::*;

    #[test]
    fn the_default_is_that_of_twitter() {
        let layout = Layout::default();
        layout.validate().unwrap();
        // The example of Twitter's announcement of snowflake: a status of
        // 2010-11-04, not long after its epoch.
        let parts = Parts { time: 1, worker: 2, sequence: 3 };
        assert_eq!(layout.compose(parts), (1 << 22) + (2 << 12) + 3);
        // 69 years after 2010.
        assert_eq!(layout.end_ms(), Layout::LEAF_EPOCH_MS + (1 << 41) - 1);
        assert_eq!(layout.starts(), 128);
    }

    #[test]
    fn each_broken_rule_names_its_field() {
        type Break = fn(&mut Layout);
        let cases: [(&str, Break); 9] = [
            ("snowflake.time_bits", |l| l.time_bits = 27),
            ("snowflake.time_bits", |l| l.time_bits = 54),
            ("snowflake.worker_bits", |l| l.worker_bits = 0),
            ("snowflake.worker_bits", |l| l.worker_bits = 21),
            ("snowflake.sequence_bits", |l| l.sequence_bits = 0),
            ("snowflake.sequence_bits", |l| l.sequence_bits = 25),
            ("snowflake.epoch_ms", |l| l.epoch_ms = -1),
            ("snowflake.epoch_ms", |l| l.epoch_ms = i64::MAX),
            ("snowflake.time_bits", |l| l.time_bits = 42),
        ];
        for (field, change) in cases {
            let mut layout = Layout::default();
            change(&mut layout);
            let error = layout.validate().unwrap_err();
            assert_eq!(error.field, Some(field), "{error}");
            assert!(error.message.contains(field), "{error}");
        }
        let smallest =
            Layout { time_bits: 28, worker_bits: 1, sequence_bits: 1, ..Layout::default() };
        smallest.validate().unwrap();
        let widest =
            Layout { time_bits: 53, worker_bits: 9, sequence_bits: 1, ..Layout::default() };
        widest.validate().unwrap();
    }

    #[test]
    fn an_epoch_has_begun_and_is_not_over() {
        let layout = Layout { time_bits: 28, epoch_ms: 1_000, ..Layout::default() };
        let field = |now_ms| layout.check_epoch(now_ms).map_err(|e| e.field);
        assert_eq!(field(999), Err(Some("snowflake.epoch_ms")));
        assert_eq!(field(1_000), Ok(()));
        assert_eq!(field(layout.end_ms() - 1), Ok(()));
        assert_eq!(field(layout.end_ms()), Err(Some("snowflake.epoch_ms")));
    }

    #[test]
    fn json_names_the_unit_and_fills_in_the_rest() {
        let layout: Layout = serde_json::from_str(r#"{"unit":"s","time_bits":32}"#).unwrap();
        assert_eq!(layout, Layout { unit: TimeUnit::Seconds, time_bits: 32, ..Layout::default() });
        serde_json::from_str::<Layout>(r#"{"bits":3}"#).unwrap_err();
        serde_json::from_str::<Layout>(r#"{"unit":"m"}"#).unwrap_err();
    }

    #[test]
    fn starts_lose_less_than_an_eighth() {
        for sequence_bits in 1..=24 {
            let layout = Layout { sequence_bits, ..Layout::default() };
            let (starts, capacity) = (layout.starts(), layout.capacity());
            assert!(starts.count_ones() == 1 && starts <= 128, "{starts}");
            assert!((starts - 1) * 8 < capacity, "{starts} of {capacity}");
        }
    }

    pub(super) fn any_layout() -> impl Strategy<Value = Layout> {
        let bits = (28u8..=53).prop_flat_map(|time_bits| {
            let rest = Layout::ID_BITS - time_bits;
            (1..=20.min(rest - 1)).prop_flat_map(move |worker_bits| {
                let sequence_bits = 1..=24.min(rest - worker_bits);
                sequence_bits.prop_map(move |s| (time_bits, worker_bits, s))
            })
        });
        (bits, any::<bool>(), 0..=Layout::LATEST_EPOCH_MS).prop_map(|(bits, seconds, epoch_ms)| {
            Layout {
                time_bits: bits.0,
                worker_bits: bits.1,
                sequence_bits: bits.2,
                unit: if seconds { TimeUnit::Seconds } else { TimeUnit::Milliseconds },
                epoch_ms,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_composed_decomposes(
            layout in any_layout(), time: u64, worker: u64, sequence: u64,
        ) {
            layout.validate().unwrap();
            let parts = Parts {
                time: Layout::FIRST_TIME + (time % layout.last_time() as u64) as i64,
                worker: (worker % layout.workers() as u64) as i64,
                sequence: (sequence % layout.capacity() as u64) as i64,
            };
            let id = layout.compose(parts);
            prop_assert!(IdRange::new(id, id + 1).is_ok(), "{} is an id", id);
            prop_assert_eq!(layout.decompose(id), parts);
        }

        #[test]
        fn ids_are_in_the_order_of_their_times(layout in any_layout(), time: u64) {
            let time = 1 + (time % (layout.last_time() as u64 - 1)) as i64;
            let highest = Parts {
                time, worker: layout.workers() - 1, sequence: layout.capacity() - 1,
            };
            let lowest = Parts { time: time + 1, worker: 0, sequence: 0 };
            prop_assert!(layout.compose(highest) < layout.compose(lowest));
        }

        #[test]
        fn units_cover_time_without_gaps(layout in any_layout(), at in 0..=Layout::LATEST_EPOCH_MS) {
            let time = layout.time_at(at);
            prop_assert!(layout.unix_ms(time) <= at && at < layout.unix_ms(time + 1));
            let first = layout.first_time_from(at);
            prop_assert!(layout.unix_ms(first) >= at && layout.unix_ms(first - 1) < at);
        }

        /// Two holders one after the other share no unit, and what lies between
        /// them is less than two units.
        #[test]
        fn no_unit_lies_in_two_spans(
            layout in any_layout(), border in 0..=Layout::LATEST_EPOCH_MS, near in -3i64..=3,
        ) {
            let time = layout.time_at(border) + near;
            let before = layout.lies_within(time, 0, border);
            let after = layout.lies_within(time, border, i64::MAX);
            prop_assert!(!(before && after));
            let first = layout.first_time_from(border);
            prop_assert!(layout.lies_within(first, border, i64::MAX));
            prop_assert!(!layout.lies_within(first - 1, border, i64::MAX));
        }
    }
}
