//! Moving a type from one Redis instance to another.
//!
//! 1. Begin, in the range store: where to, and a generation number.
//! 2. Seal, on the old instance: nothing is taken, published or witnessed there
//!    any more; whoever tries is told the [`Seal`], and what is left stays known.
//! 3. Assign, in the range store: from now on refills go to the new instance.
//! 4. Publish what was left on the new one.
//!
//! Every step can be repeated by anyone. Only one caller ever gets the right to
//! publish what was left: the one whose assignment the store accepted; if it dies,
//! those ids are burnt. A seal outlives the migration and names its target, so
//! that a range store that went back in time learns from it that the type moved
//! (invariant 6).

use std::fmt;

use super::{Error, ErrorCode, History, InstanceId, InstanceRecord, TypeRecord};

/// Where a type is on its way between Redis instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Counts the steps of migrations: begun, assigned, undone. 0 at first.
    pub generation: i64,
    /// The Redis instance that it is being moved to.
    pub moving_to: Option<InstanceId>,
    /// The Redis instance that it was on before its present one.
    pub moved_from: Option<InstanceId>,
    /// When it came to its present one, in milliseconds of the Unix epoch by the
    /// store's clock; 0 if it has always been there.
    pub moved_ms: i64,
}

/// What closes a type on the Redis instance that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The generation of the type once the migration had begun.
    pub generation: i64,
    /// Where it goes.
    pub target: InstanceId,
}

impl fmt::Display for Seal {
    /// As dispatchers keep it: `GENERATION TARGET`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.generation, self.target)
    }
}

impl Seal {
    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Seal> {
        let (generation, target) = text.split_once(' ')?;
        let (generation, target) = (generation.parse().ok()?, target.parse().ok()?);
        Some(Seal { generation, target: InstanceId(target) })
    }
}

/// What a seal says to somebody who met it and has just read the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The type is on another instance: go there.
    Elsewhere,
    /// The migration was undone, or the type has come back since: the seal may
    /// go, and what it closed stays dead.
    Outdated,
    /// The migration is not finished, or the range store has forgotten that it
    /// was: finish it.
    Unfinished,
}

/// What `seal`, met on the instance `on`, means for `record` as the store has it.
pub fn meaning(seal: Seal, on: InstanceId, record: &TypeRecord) -> Meaning {
    if record.instance != on {
        Meaning::Elsewhere
    } else if seal.generation < record.placement.generation {
        Meaning::Outdated
    } else {
        Meaning::Unfinished
    }
}

/// The end of a migration, as the range store is asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The seal under which the old instance was closed.
    pub seal: Seal,
    /// The history of the new instance, for a strict type.
    pub history: Option<&'a History>,
    /// The end of what is left on the old instance, to keep it; `None` where
    /// nothing is left.
    pub rest_end: Option<i64>,
}

/// What the store knows beside the record of a type that is to be assigned.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The history of the new instance that was recorded last for the type.
    pub last_history: Option<&'a History>,
    /// Whether the history to assign was recorded for the type before.
    pub is_known: bool,
    /// Whether a range was allocated for Redis that starts at or above
    /// [`Assignment::rest_end`].
    pub allocated_above: bool,
}

/// Why a type was not assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAssigned {
    /// A rule; the error says which.
    Rule(Error),
    /// The history was succeeded by another one of the same instance.
    Superseded,
}

impl TypeRecord {
    /// This type on its way to `target`, at `now_ms` by the store's clock. Refused:
    /// `INVALID_ARGUMENT` (`instance`) where it is there already or the instance is
    /// being drained, `CONFLICT` where it is on its way already.
    pub fn begin_move(&self, target: &InstanceRecord, now_ms: i64) -> Result<Self, Error> {
        if let Some(to) = self.placement.moving_to {
            return Err(Error::new(
                ErrorCode::Conflict,
                format!(
                    "id type {} is being moved to Redis instance {to}: let that end, or undo it",
                    self.name
                ),
            ));
        }
        if self.instance == target.id {
            return Err(Error::invalid(
                "instance",
                format!("instance {} has id type {} already", target.name, self.name),
            ));
        }
        target.check_takes_types()?;
        let mut moved = self.next_generation(now_ms);
        moved.placement.moving_to = Some(target.id);
        Ok(moved)
    }

    /// This type on its new instance, and whether what was left may be published
    /// there: only in the migration that the store knows of, and only if nothing
    /// above it was allocated since. A store that has forgotten the migration
    /// accepts it as well. Refused: `CONFLICT` where the store is further.
    pub fn assign(
        &self,
        assignment: Assignment<'_>,
        known: Known<'_>,
        now_ms: i64,
    ) -> Result<(Self, bool), NotAssigned> {
        let Assignment { seal, history, rest_end } = assignment;
        if seal.generation < self.placement.generation {
            return Err(NotAssigned::Rule(Error::new(
                ErrorCode::Conflict,
                format!("this migration of id type {} was finished or undone already", self.name),
            )));
        }
        // A server that was replaced must not come back with the type.
        if known.is_known && history.is_some() && known.last_history != history {
            return Err(NotAssigned::Superseded);
        }
        let expected = seal.generation == self.placement.generation
            && self.placement.moving_to == Some(seal.target);
        let mut moved = self.next_generation(now_ms);
        moved.placement.generation = seal.generation + 1;
        moved.placement.moving_to = None;
        if moved.instance != seal.target {
            moved.placement.moved_from = Some(moved.instance);
            moved.placement.moved_ms = now_ms;
        }
        moved.instance = seal.target;
        if history.is_some() {
            moved.history = history.cloned();
        }
        Ok((moved, expected && rest_end.is_some() && !known.allocated_above))
    }

    /// This type, no longer on its way. Refused: `CONFLICT` where no migration of
    /// this generation is under way.
    pub fn undo_move(&self, generation: i64, now_ms: i64) -> Result<Self, Error> {
        if self.placement.moving_to.is_none() || self.placement.generation != generation {
            return Err(Error::new(
                ErrorCode::Conflict,
                format!("this migration of id type {} was finished or undone already", self.name),
            ));
        }
        let mut still = self.next_generation(now_ms);
        still.placement.moving_to = None;
        Ok(still)
    }

    fn next_generation(&self, now_ms: i64) -> Self {
        let mut next = self.clone();
        next.placement.generation += 1;
        next.version += 1;
        next.updated_ms = now_ms;
        next
    }
}

#[cfg(test)]
#[path = "migration_tests.rs"]
mod tests;
