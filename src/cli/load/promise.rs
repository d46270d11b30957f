//! What a type promises, read from its settings, and what a single answer
//! tells: are its ids within the limits, in the right shard, of the right time?
//!
//! The layout of ids is worked out here once more, apart from the code that
//! makes them, so that one mistake does not hide the other.

use super::checker::{Order, shard_in};
use crate::domain::gate_pass::shard_of;
use crate::domain::options::{Sites, TypeOptions};
use crate::domain::snowflake::Layout;
use crate::domain::{AtLimit, Mode, OnRedisLoss};
use crate::front::thrift::generated::TypeInfo;

/// How many gate passes there are unless told: they reach every shard.
const GATE_PASSES: u32 = 256;

/// What a type promises.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Its mode.
    pub mode: Mode,
    /// The order of its ids.
    pub order: Order,
    /// Whether it gives up that order while Redis is away, so that a breach of
    /// it proves nothing.
    pub order_may_lapse: bool,
    /// Whether its ids are texts: with a format, or of a calendar series.
    pub has_format: bool,
    /// Whether it has no ids but texts: a calendar series.
    pub only_texts: bool,
    /// Whether the ids of one answer ascend.
    pub ascending: bool,
    /// How many ids there are until they repeat, where they do.
    pub cycle: Option<i64>,
    shape: Shape,
    /// Lowest number, before it is composed into an id.
    lowest: i64,
    max_id: i64,
}

/// How ids are composed.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Plain,
    Sites(Sites),
    Sharded { app_id: i64 },
    Snowflake(Layout),
}

impl Promise {
    /// The promise of the type that a node described; the message says what
    /// this program does not understand.
    pub fn of(info: &TypeInfo) -> Result<Promise, String> {
        let mode = Mode::parse(info.mode.as_deref().unwrap_or("")).map_err(|e| e.message)?;
        let options = info.options.as_deref().unwrap_or("{}");
        let options = TypeOptions::from_json(options).map_err(|e| e.message)?;
        let (Some(first_id), Some(max_id)) = (info.first_id, info.max_id) else {
            return Err("the node does not tell firstId and maxId".to_owned());
        };
        let may_lapse = options.on_redis_loss == OnRedisLoss::Segment;
        let opaque = options.opaque.is_some();
        let cycles = options.at_limit == AtLimit::Cycle;
        let order = match mode {
            _ if opaque || cycles => Order::None,
            Mode::Strict => Order::Strict,
            Mode::Segment | Mode::Snowflake => Order::Node,
            Mode::Sharded => Order::Shard,
        };
        let shape = match (mode, options.sites) {
            (Mode::Snowflake, _) => Shape::Snowflake(options.snowflake.unwrap_or_default()),
            (Mode::Sharded, _) => Shape::Sharded {
                app_id: options.app_id.ok_or("the node does not tell the app id")?,
            },
            (_, Some(sites)) => Shape::Sites(sites),
            (_, None) => Shape::Plain,
        };
        Ok(Promise {
            mode,
            order,
            order_may_lapse: may_lapse,
            has_format: options.format.is_some() || options.calendar.is_some(),
            only_texts: options.calendar.is_some(),
            ascending: order != Order::None && !may_lapse,
            cycle: cycles.then(|| options.highest_number(mode, max_id) - first_id + 1),
            shape,
            lowest: if opaque { 1 } else { first_id },
            max_id,
        })
    }

    /// How many gate passes to use: as many as wanted, or 256; 0 for a type that
    /// is not sharded. The message refuses them there.
    pub fn gate_passes(&self, wanted: Option<u32>) -> Result<u32, String> {
        match (self.mode, wanted) {
            (Mode::Sharded, wanted) => Ok(wanted.unwrap_or(GATE_PASSES)),
            (_, None) => Ok(0),
            (mode, Some(_)) => {
                Err(format!("--gate-passes is for sharded types; this one is {mode}"))
            }
        }
    }

    /// What is wrong with `count` adjacent ids from `first` on, got with
    /// `gate_pass`. Only numbers that can be ids are judged here.
    pub fn breach(&self, first: i64, count: i64, gate_pass: Option<&str>) -> Option<String> {
        let last = first.checked_add(count.checked_sub(1)?)?;
        // The second one shows whether ids may be adjacent at all.
        [first, first.saturating_add(1).min(last), last]
            .into_iter()
            .find_map(|id| self.breach_of(id, gate_pass))
    }

    fn breach_of(&self, id: i64, gate_pass: Option<&str>) -> Option<String> {
        if id > self.max_id {
            return Some(format!("{id} is above the highest id {}", self.max_id));
        }
        let number = match self.shape {
            Shape::Plain => id,
            Shape::Snowflake(_) => return None,
            Shape::Sites(Sites { count, site }) => {
                let (count, site) = (i64::from(count), i64::from(site));
                if id % count != site {
                    return Some(format!("{id} is of site {}, not {site}", id % count));
                }
                id / count
            }
            Shape::Sharded { app_id } => {
                if id & 0xff != app_id {
                    return Some(format!("{id} is of app {}, not {app_id}", id & 0xff));
                }
                let shard = shard_in(id);
                if let Some(pass) = gate_pass
                    && shard != shard_of(pass)
                {
                    let right = shard_of(pass);
                    return Some(format!("{id} is of shard {shard}; {pass:?} is of {right}"));
                }
                id >> TypeOptions::SHARD_BITS
            }
        };
        let lowest = self.lowest;
        (number < lowest).then(|| format!("{id} is below the first one: {number} < {lowest}"))
    }

    /// The first and the last millisecond, of the Unix epoch, that the time in
    /// `id` stands for, where there is one.
    pub fn time_in(&self, id: i64) -> Option<(i64, i64)> {
        let Shape::Snowflake(layout) = self.shape else { return None };
        let time = id >> (layout.worker_bits + layout.sequence_bits);
        let from = layout.unix_ms(time);
        Some((from, from.saturating_add(layout.unit.ms() - 1)))
    }
}

/// How far times in ids lie from real time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skew {
    /// Most milliseconds after the answer came.
    pub ahead_ms: i64,
    /// Most milliseconds before the call began.
    pub behind_ms: i64,
}

impl Skew {
    /// Of an id whose time is `from..=until`, from a call that lasted from
    /// `begun` to `ended`; all in milliseconds of the Unix epoch.
    pub fn of((from, until): (i64, i64), (begun, ended): (i64, i64)) -> Self {
        Skew {
            ahead_ms: from.saturating_sub(ended).max(0),
            behind_ms: begun.saturating_sub(until).max(0),
        }
    }

    /// The larger of each.
    pub fn max(self, other: Skew) -> Self {
        Skew {
            ahead_ms: self.ahead_ms.max(other.ahead_ms),
            behind_ms: self.behind_ms.max(other.behind_ms),
        }
    }

    /// Whether either is more than `most_ms`.
    pub fn exceeds(self, most_ms: i64) -> bool {
        self.ahead_ms.max(self.behind_ms) > most_ms
    }
}

#[cfg(test)]
#[path = "promise_tests.rs"]
mod tests;
