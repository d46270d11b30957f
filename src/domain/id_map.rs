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
//! different positions never make the same id. For a calendar series, which has
//! texts only, nothing is done: [`super::options::period_of`] and
//! [`super::options::number_of`] tell what to write.

use super::gate_pass::SHARDS;
use super::id_type::within;
use super::opaque::Permutation;
use super::options::{number_of, period_of};
use super::{AtLimit, Error, IdRange, Mode, TypeOptions, TypeRecord, TypeSpec};

/// The ids of one type. Made once per version of its settings.
#[derive(Debug)]
pub struct IdMap {
    first_id: i64,
    /// The highest number before composition; of each period, in a calendar series.
    highest: i64,
    step: Step,
    composition: Composition,
}

/// What is done within `1..=highest`.
#[derive(Debug)]
enum Step {
    Plain,
    Cycle,
    Opaque(Box<Permutation>),
    Calendar,
}

/// What makes an id of it.
#[derive(Debug)]
enum Composition {
    None,
    Sites { count: i64, site: i64 },
    Sharded { app: i64 },
}

impl IdMap {
    /// The map of a type that is not snowflake; fails for settings that make no
    /// sense (somebody wrote them past the checks).
    pub fn new(record: &TypeRecord) -> Result<Self, Error> {
        let options = &record.options;
        within("max_id", record.max_id, 1, TypeSpec::HIGHEST_ID)?;
        let composition = match (record.mode, options.sites) {
            (Mode::Snowflake, _) => {
                return Err(Error::invalid("mode", "mode snowflake has no positions"));
            }
            (Mode::Sharded, _) => {
                let missing = || Error::invalid("app_id", "app_id of a sharded type is missing");
                let app = options.app_id.ok_or_else(missing)?;
                within("app_id", app, 0, TypeOptions::MAX_APP_ID)?;
                Composition::Sharded { app }
            }
            (_, Some(sites)) => {
                sites.validate()?;
                Composition::Sites { count: sites.count.into(), site: sites.site.into() }
            }
            (_, None) => Composition::None,
        };
        let highest = options.highest_number(record.mode, record.max_id);
        within("first_id", record.first_id, 1, highest)?;
        let step = match options.opaque {
            Some(opaque) => {
                let permutation = Permutation::new(highest, opaque, &record.keys, record.next_id)?;
                Step::Opaque(Box::new(permutation))
            }
            None if options.calendar.is_some() => Step::Calendar,
            None if options.at_limit == AtLimit::Cycle => Step::Cycle,
            None => Step::Plain,
        };
        Ok(IdMap { first_id: record.first_id, highest, step, composition })
    }

    /// Whether ids are positions, so that a range of one is a range of the other.
    pub fn is_identity(&self) -> bool {
        matches!(self.step, Step::Plain | Step::Calendar)
            && matches!(self.composition, Composition::None)
    }

    /// Whether this map may be used for `position`; if not, the type must be
    /// read again from the store (see [`Permutation::knows`]).
    pub fn knows(&self, position: i64) -> bool {
        match &self.step {
            Step::Opaque(permutation) => permutation.knows(position),
            _ => true,
        }
    }

    /// The id at `position`, which the range store has allocated, so that it is
    /// from `first_id` to the type's `max_position`. `shard` is that of the
    /// position, for a sharded type.
    pub fn id(&self, position: i64, shard: Option<u8>) -> i64 {
        let number = match &self.step {
            Step::Plain | Step::Calendar => position,
            Step::Cycle => self.wrap(position),
            Step::Opaque(permutation) => permutation.id(position, shard),
        };
        self.compose(number, shard)
    }

    /// Appends the ids of `positions` to `ids`, in order, as runs of
    /// consecutive ids, as few as there can be. Where ids are not in runs it
    /// takes time and room for each position: callers bound how many they give.
    pub fn append(&self, positions: IdRange, shard: Option<u8>, ids: &mut Vec<IdRange>) {
        let composed = !matches!(self.composition, Composition::None);
        let mut rest = Some(positions);
        while let Some(range) = rest {
            let in_a_run = match self.step {
                _ if composed => 1,
                Step::Plain | Step::Calendar => range.len(),
                Step::Cycle => (self.highest - self.wrap(range.start()) + 1) as u64,
                Step::Opaque(_) => 1,
            };
            let (run, left) = range.split(in_a_run);
            rest = left;
            let first = self.id(run.start(), shard);
            let end = first + run.len() as i64;
            match ids.last_mut() {
                Some(last) if last.end() == first => {
                    *last = IdRange::new(last.start(), end).expect("longer than it was");
                }
                _ => ids.push(IdRange::new(first, end).expect("ids are at least 1")),
            }
        }
    }

    /// Position and shard of `id`; the error names `id` where no position has it.
    /// For a type that cycles it is the first position with that id.
    pub fn position(&self, id: i64) -> Result<(i64, Option<u8>), Error> {
        let (number, shard) = self.decompose(id)?;
        if let Step::Calendar = self.step {
            let in_period = (self.first_id..=self.highest).contains(&number_of(number));
            if number < 1 || period_of(number) < 0 || !in_period {
                return Err(foreign(id, "it is no position of this calendar series"));
            }
            return Ok((number, shard));
        }
        if number > self.highest {
            return Err(foreign(
                id,
                &format!("the highest is {}", self.compose(self.highest, Some(SHARDS - 1))),
            ));
        }
        let position = match &self.step {
            Step::Opaque(permutation) if number >= 1 => permutation.position(number, shard),
            _ => number,
        };
        if position < self.first_id {
            return Err(foreign(id, &format!("the first position is {}", self.first_id)));
        }
        Ok((position, shard))
    }

    fn wrap(&self, position: i64) -> i64 {
        self.first_id + (position - self.first_id) % (self.highest - self.first_id + 1)
    }

    fn compose(&self, number: i64, shard: Option<u8>) -> i64 {
        match self.composition {
            Composition::None => number,
            Composition::Sites { count, site } => number * count + site,
            Composition::Sharded { app } => {
                debug_assert!(shard.is_some_and(|shard| shard < SHARDS));
                let shard = i64::from(shard.unwrap_or(0) % SHARDS);
                number << TypeOptions::SHARD_BITS | shard << TypeOptions::APP_BITS | app
            }
        }
    }

    fn decompose(&self, id: i64) -> Result<(i64, Option<u8>), Error> {
        if id < 1 {
            return Err(foreign(id, "ids begin at 1"));
        }
        match self.composition {
            Composition::None => Ok((id, None)),
            Composition::Sites { count, site } => match id % count {
                other if other != site => Err(foreign(
                    id,
                    &format!("it belongs to site {other}, and this range store is site {site}"),
                )),
                _ => Ok((id / count, None)),
            },
            Composition::Sharded { app } => match id & TypeOptions::MAX_APP_ID {
                other if other != app => {
                    Err(foreign(id, &format!("it has the app id {other}, and this type {app}")))
                }
                _ => {
                    let shard = (id >> TypeOptions::APP_BITS) % i64::from(SHARDS);
                    Ok((id >> TypeOptions::SHARD_BITS, Some(shard as u8)))
                }
            },
        }
    }
}

fn foreign(id: i64, why: &str) -> Error {
    Error::invalid("id", format!("id {id} is none of this type: {why}"))
}

#[cfg(test)]
mod tests;
