//! Which positions does the next range hold, which may be given back, and where
//! does a new key begin? The rules, as pure functions.
//!
//! Stores that are written in Rust call them inside their transactions; the
//! stored procedures are the same rules in SQL, and the conformance suite holds
//! both to them.
//!
//! Why no position has two owners: ranges begin at or above `next_id`, which
//! only ever rises, but for [`give_back`], which undoes the newest allocation of
//! a sequence in part or whole and nothing else. Why no slice of an opaque type
//! has two keys: [`rotation`] begins above the slice of `next_id`, and no give
//! back takes `next_id` below the slice that it is in.

use super::gate_pass::SHARDS;
use super::id_type::within;
use super::opaque::{slice_of, slice_start};
use super::options::{period_of, position_in};
use super::sizing::{next_length, update_id};
use super::{
    AtLimit, Error, ErrorCode, IdRange, Mode, OpaqueKey, PeriodSpan, SliceKey, State, TypeOptions,
    TypeRecord, TypeSpec, Usage,
};

/// Where a sequence of positions stands: that of a type, or of a shard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The first position that no range holds yet.
    pub next_id: i64,
    /// Length of the last range, in positions; `None` before the first.
    pub last_range: Option<i64>,
}

impl Sequence {
    /// That of a type as a whole; meaningless for a sharded one.
    pub fn of(record: &TypeRecord) -> Self {
        Sequence { next_id: record.next_id, last_range: record.last_range }
    }

    /// That of a shard from which no range was allocated yet.
    pub fn fresh(record: &TypeRecord) -> Self {
        Sequence { next_id: record.first_id, last_range: None }
    }
}

/// The shards that a type of `mode` has sequences for: `None` alone where there
/// is one sequence for the whole type.
pub fn shards(mode: Mode) -> Vec<Option<u8>> {
    match mode {
        Mode::Sharded => (0..SHARDS).map(Some).collect(),
        Mode::Strict | Mode::Segment | Mode::Snowflake => vec![None],
    }
}

/// What is asked of [`next_range`]; the fields of `NextRange` in the ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The shard, for a sharded type and no other.
    pub shard: Option<u8>,
    /// The period that the caller takes for the current one, for a calendar
    /// series and no other.
    pub period: Option<PeriodSpan>,
    /// What is known of the use since the last refill.
    pub usage: Option<Usage>,
    /// The highest end that the caller has ever seen, 0 if none.
    pub floor: i64,
    /// The store's clock, in milliseconds of the Unix epoch.
    pub now_ms: i64,
}

/// Why there is no range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// A rule refuses it.
    Rule(Error),
    /// The store's clock lies outside the period that was asked for.
    WrongPeriod {
        /// The store's clock, in milliseconds of the Unix epoch.
        now_ms: i64,
    },
}

impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        Denied::Rule(error)
    }
}

/// The highest number of a period: with [`TypeOptions::PERIOD_BITS`] bits of the
/// number below it, a position still fits in 63 bits.
pub const HIGHEST_PERIOD: i64 = i64::MAX >> TypeOptions::PERIOD_BITS;

/// A range takes at most this part of what is left, but `min_range` in any case:
/// a burst on a type with few ids, or a node that died with its leases, must not
/// use them up.
const SHARE: i64 = 100;

/// The next range of `sequence`, which is that of `record` or of the requested
/// shard of it, and its update id.
///
/// `start = max(next_id, floor)`, so a store that lost its latest writes is
/// repaired by the first caller that knows better. The range is cut at
/// `max_position`. In a calendar series `start` is at least the first number of
/// the given period, is the first number of its period where it would be below
/// that, and never goes back to an earlier period; the range ends with the
/// period of `start`.
///
/// Refused: `RETIRED`; `EXHAUSTED`; `INVALID_ARGUMENT` for a snowflake type
/// (`mode`), for a `shard` or `period` that is missing, not wanted or out of
/// range, and for a `floor` below 0; [`Denied::WrongPeriod`].
pub fn next_range(
    record: &TypeRecord,
    sequence: Sequence,
    request: &Request,
) -> Result<(IdRange, i64), Denied> {
    check_active(record)?;
    check_counted(record)?;
    check_shard(record, request.shard)?;
    let period = check_period(record, request.period)?;
    check_floor(request.floor)?;
    if period.is_some_and(|p| !(p.from_ms..p.until_ms).contains(&request.now_ms)) {
        return Err(Denied::WrongPeriod { now_ms: request.now_ms });
    }
    let (start, last) = match period {
        None => (above_floor(record, sequence.next_id, request.floor), record.max_position),
        Some(period) => {
            let first = position_in(period.number, record.first_id);
            let start = sequence.next_id.max(request.floor).max(first);
            // A floor may name a later period without a number in it.
            let start = start.max(position_in(period_of(start), record.first_id));
            (start, position_in(period_of(start), record.max_position))
        }
    };
    if start > last {
        return Err(exhausted(record, request.shard).into());
    }
    let last_length = sequence.last_range.map(|l| l as u64);
    let wanted = next_length(record.sizing(), last_length, request.usage) as i64;
    let length = wanted.min(((last - start + 1) / SHARE).max(record.min_range));
    // `last` is at most i64::MAX - 1, so the sum below cannot overflow.
    let end = start.saturating_add(length).min(last + 1);
    let range = IdRange::new(start, end).expect("start is at least 1 and at most last");
    Ok((range, update_id(start, range.len(), record.load_percentage)))
}

/// The first position at or above both. A floor above the next position tells of
/// a store that lost its latest writes. In an opaque type there may have been a new
/// key among them, or a new one may have been given since: the slice of the floor
/// may have been permuted under a key that nobody knows any more, so what is left
/// of it is skipped.
fn above_floor(record: &TypeRecord, next_id: i64, floor: i64) -> i64 {
    let start = next_id.max(floor);
    match record.options.opaque {
        Some(opaque) if floor > next_id => {
            let highest = record.options.highest_number(record.mode, record.max_id);
            // Past the last slice this is above `highest`: exhausted.
            slice_start(slice_of(start, highest, opaque) + 1, highest, opaque)
        }
        _ => start,
    }
}

/// Exactly `count` positions of `record`, for a bulk load. Refused as
/// [`next_range`], where fewer than `count` are left, and with
/// `INVALID_ARGUMENT` (`mode`) where positions are not one plain sequence.
pub fn reserve(record: &TypeRecord, count: i64, floor: i64) -> Result<IdRange, Error> {
    within("count", count, 1, TypeSpec::LONGEST_RANGE)?;
    check_active(record)?;
    check_one_row(record)?;
    check_floor(floor)?;
    let start = above_floor(record, record.next_id, floor);
    match start.checked_add(count) {
        Some(end) if end <= record.max_position + 1 => {
            Ok(IdRange::new(start, end).expect("count is at least 1"))
        }
        _ => Err(exhausted(record, None)),
    }
}

/// Refuses positions that are not one plain sequence.
fn check_one_row(record: &TypeRecord) -> Result<(), Error> {
    check_counted(record)?;
    let what = match (record.mode, record.options.calendar) {
        (Mode::Sharded, _) => "a sharded type",
        (_, Some(_)) => "a calendar series",
        _ => return Ok(()),
    };
    Err(Error::invalid(
        "mode",
        format!("mode of id type {}: {what} has no block to reserve", record.name),
    ))
}

/// Refuses a type that cannot give a caller ids in a row: what [`reserve`] refuses, and
/// an opaque type (`opaque`), whose ids are scattered, and one that cycles
/// (`at_limit`), whose ids repeat. Of a type that sites share, the ids of a block are
/// as far apart as there are sites.
pub fn check_block(record: &TypeRecord) -> Result<(), Error> {
    check_one_row(record)?;
    let name = &record.name;
    if record.options.opaque.is_some() {
        return Err(Error::invalid(
            "opaque",
            format!(
                "id type {name} is opaque: its ids are not in a row, so there is no block to \
                 reserve; take ids with many calls instead"
            ),
        ));
    }
    if record.options.at_limit == AtLimit::Cycle {
        return Err(Error::invalid(
            "at_limit",
            format!(
                "at_limit of id type {name} is cycle: its ids repeat, so there is no block to \
                 reserve"
            ),
        ));
    }
    Ok(())
}

/// What is left when the end of a range was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// The next position of the sequence.
    pub next_id: i64,
    /// What is left of the logged range; `None` removes it from the log.
    pub left: Option<IdRange>,
}

/// Whether `tail` goes back, and what is left of the range `logged` that it is
/// the end of. `logged` is the range of the log that holds the start of `tail`
/// and was allocated without a target, if there is one.
///
/// Only the very end of what was allocated goes back, and nothing of an opaque type.
pub fn give_back(
    record: &TypeRecord,
    sequence: Sequence,
    logged: Option<IdRange>,
    tail: IdRange,
) -> Option<GivenBack> {
    let logged = logged.filter(|logged| {
        logged.start() <= tail.start()
            && tail.start() < logged.end()
            && logged.end() == tail.end()
            && tail.end() == sequence.next_id
    })?;
    // There a floor above the next position has a meaning, and nodes remember
    // the ends of ranges (see `above_floor`).
    if record.options.opaque.is_some() {
        return None;
    }
    let left = IdRange::new(logged.start(), tail.start()).ok();
    Some(GivenBack { next_id: tail.start(), left })
}

/// Where a new key of an opaque type begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The first slice of the new key.
    pub from_slice: i64,
    /// The first position of that slice: the next one of the type, and of each
    /// of its shards.
    pub next_id: i64,
}

impl Rotation {
    /// `record` with `key` from here on, one version on, changed at `now_ms` by
    /// the store's clock.
    pub fn apply_to(self, record: &TypeRecord, key: &OpaqueKey, now_ms: i64) -> TypeRecord {
        let new = SliceKey { from_slice: self.from_slice, key: key.clone() };
        TypeRecord {
            keys: record.keys.iter().cloned().chain([new]).collect(),
            next_id: self.next_id,
            version: record.version + 1,
            updated_ms: now_ms,
            ..record.clone()
        }
    }
}

/// Where a new key begins: with the slice after that of the next position, of
/// whichever shard is the furthest. Refused: `INVALID_ARGUMENT` (`opaque`) for a
/// type that is not opaque, `EXHAUSTED` when there is no further slice.
pub fn rotation(record: &TypeRecord) -> Result<Rotation, Error> {
    let Some(opaque) = record.options.opaque else {
        return Err(Error::invalid(
            "opaque",
            format!("id type {} is not opaque: it has no key to change", record.name),
        ));
    };
    let highest = record.max_position;
    let from_slice = slice_of(record.next_id, highest, opaque) + 1;
    // The end of the last slice may lie above i64::MAX: it is never computed.
    let next_id = (from_slice < i64::from(opaque.slices))
        .then(|| slice_start(from_slice, highest, opaque))
        .filter(|start| *start <= highest);
    match next_id {
        Some(next_id) => Ok(Rotation { from_slice, next_id }),
        None => Err(Error::new(
            ErrorCode::Exhausted,
            format!(
                "id type {} is in the last of its {} slices: there is none for another key",
                record.name, opaque.slices
            ),
        )),
    }
}

/// Checks what a new type is made from, the key included: there is one exactly
/// where the type is opaque. The error names the field.
pub fn check_new(spec: &TypeSpec) -> Result<(), Error> {
    spec.validate()?;
    match (spec.options.opaque.is_some(), spec.key.is_some()) {
        (true, false) => Err(Error::invalid("key", "key is missing: an opaque type needs one")),
        (false, true) => Err(Error::invalid("key", "key is for opaque types only")),
        _ => Ok(()),
    }
}

/// Refuses a `shard` that is missing, not wanted or out of range.
pub fn check_shard(record: &TypeRecord, shard: Option<u8>) -> Result<(), Error> {
    let problem = match (record.mode, shard) {
        (Mode::Sharded, Some(0..SHARDS)) => return Ok(()),
        (Mode::Sharded, Some(shard)) => format!("shard {shard} is out of range"),
        (Mode::Sharded, None) => "shard is missing".to_owned(),
        (_, None) => return Ok(()),
        (mode, Some(_)) => {
            let name = &record.name;
            let message = format!("shard is for sharded types only, and {name} is {mode}");
            return Err(Error::invalid("shard", message));
        }
    };
    let limit = SHARDS - 1;
    Err(Error::invalid("shard", format!("{problem}: a sharded type needs one from 0 to {limit}")))
}

fn check_period(
    record: &TypeRecord,
    period: Option<PeriodSpan>,
) -> Result<Option<PeriodSpan>, Error> {
    let name = &record.name;
    let message = match (record.options.calendar, period) {
        (Some(_), Some(span)) if (0..=HIGHEST_PERIOD).contains(&span.number) => return Ok(period),
        (Some(_), Some(span)) => {
            format!("period {} is out of range: it must be from 0 to {HIGHEST_PERIOD}", span.number)
        }
        (Some(_), None) => format!("period is missing: id type {name} is a calendar series"),
        (None, Some(_)) => {
            format!("period is for calendar series only, and id type {name} is none")
        }
        (None, None) => return Ok(None),
    };
    Err(Error::invalid("period", message))
}

fn check_active(record: &TypeRecord) -> Result<(), Error> {
    match record.state {
        State::Active => Ok(()),
        State::Retired => {
            Err(Error::new(ErrorCode::Retired, format!("id type {} is retired", record.name)))
        }
    }
}

fn check_counted(record: &TypeRecord) -> Result<(), Error> {
    if record.mode != Mode::Snowflake {
        return Ok(());
    }
    Err(Error::invalid(
        "mode",
        format!("mode of id type {} is snowflake: its ids come in no ranges", record.name),
    ))
}

fn check_floor(floor: i64) -> Result<(), Error> {
    if floor >= 0 {
        return Ok(());
    }
    Err(Error::invalid(
        "floor",
        format!("floor {floor} is out of range: it must be from 0 to {}", i64::MAX),
    ))
}

fn exhausted(record: &TypeRecord, shard: Option<u8>) -> Error {
    let (name, highest) = (&record.name, record.max_id);
    let message = match (record.options.calendar, shard) {
        (Some(_), _) => format!(
            "id type {name} has used up the numbers of its period, up to {highest}; it goes on in \
             the next period"
        ),
        (None, Some(shard)) => {
            format!("shard {shard} of id type {name} has reached the highest id {highest}")
        }
        (None, None) => format!("id type {name} has reached its highest id {highest}"),
    };
    Error::new(ErrorCode::Exhausted, message)
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
