//! Snowflake ids: `time << (worker bits + sequence bits) | worker << sequence bits | sequence`.

use serde::{Deserialize, Serialize};

use super::Error;

/// The unit of the time in an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// Bits of the time since the epoch, 28 to 53.
    pub time_bits: u8,
    /// Bits of the worker id, 1 to 20.
    pub worker_bits: u8,
    /// Bits of the sequence within one unit of time, 1 to 24.
    pub sequence_bits: u8,
    /// The unit of the time.
    pub unit: TimeUnit,
    /// Time zero, in milliseconds of the Unix epoch; at least 0, and in the past
    /// when the type is made.
    pub epoch_ms: i64,
}

impl Layout {
    /// Leaf's epoch, and Twitter's: 2010-11-04T01:42:54.657Z.
    pub const LEAF_EPOCH_MS: i64 = 1_288_834_974_657;
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
        todo!()
    }

    /// Units of time from the epoch to `unix_ms`; negative before it.
    pub fn time_at(&self, unix_ms: i64) -> i64 {
        (unix_ms - self.epoch_ms).div_euclid(self.unit.ms())
    }

    /// The first millisecond, of the Unix epoch, of `time`.
    pub fn unix_ms(&self, time: i64) -> i64 {
        self.epoch_ms.saturating_add(time.saturating_mul(self.unit.ms()))
    }

    /// The first millisecond, of the Unix epoch, that has no id any more.
    pub fn end_ms(&self) -> i64 {
        self.unix_ms(1 << self.time_bits)
    }

    /// How many worker ids there are.
    pub fn workers(&self) -> i64 {
        1 << self.worker_bits
    }

    /// The id of `parts`, which fit their bits.
    pub fn compose(&self, _parts: Parts) -> i64 {
        todo!()
    }

    /// The parts of `id`.
    pub fn decompose(&self, _id: i64) -> Parts {
        todo!()
    }
}
