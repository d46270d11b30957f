//! Which ids does the next range hold? The rule, as a pure function.
//!
//! Stores that are written in Rust call it inside their transaction; the
//! stored procedure `idgen_next_range` is the same rule in SQL, and the
//! conformance suite holds both to it.

use super::sizing::{next_length, update_id};
use super::{Error, ErrorCode, IdRange, State, TypeRecord, TypeSpec, Usage};

/// The next range of `record`, and its update id.
///
/// `start = max(next_id, floor)`, so a store that lost its latest writes is
/// repaired by the first caller that knows better. The range is cut at
/// `max_id`. Refused: `RETIRED`, `EXHAUSTED`, `INVALID_ARGUMENT` for the floor.
pub fn next_range(
    record: &TypeRecord,
    usage: Option<Usage>,
    floor: i64,
) -> Result<(IdRange, i64), Error> {
    let start = first_free(record, floor)?;
    let length = next_length(record.sizing(), record.last_range.map(|l| l as u64), usage) as i64;
    // max_id is at most i64::MAX - 1, so the sum below cannot overflow.
    let end = start.saturating_add(length).min(record.max_id + 1);
    let range = IdRange::new(start, end).expect("start is at least 1 and at most max_id");
    Ok((range, update_id(start, range.len(), record.load_percentage)))
}

/// Exactly `count` ids of `record`, for a bulk load. Refused as
/// [`next_range`], and where fewer than `count` are left.
pub fn reserve(record: &TypeRecord, count: i64, floor: i64) -> Result<IdRange, Error> {
    if !(1..=TypeSpec::LONGEST_RANGE).contains(&count) {
        return Err(Error::invalid(
            "count",
            format!(
                "count {count} is out of range: it must be from 1 to {}",
                TypeSpec::LONGEST_RANGE
            ),
        ));
    }
    let start = first_free(record, floor)?;
    match start.checked_add(count) {
        Some(end) if end <= record.max_id + 1 => {
            Ok(IdRange::new(start, end).expect("count is at least 1"))
        }
        _ => Err(exhausted(record)),
    }
}

fn first_free(record: &TypeRecord, floor: i64) -> Result<i64, Error> {
    if record.state == State::Retired {
        return Err(Error::new(ErrorCode::Retired, format!("id type {} is retired", record.name)));
    }
    if floor < 0 {
        return Err(Error::invalid(
            "floor",
            format!("floor {floor} is out of range: it must be from 0 to {}", i64::MAX),
        ));
    }
    let start = record.next_id.max(floor);
    if start > record.max_id {
        return Err(exhausted(record));
    }
    Ok(start)
}

fn exhausted(record: &TypeRecord) -> Error {
    Error::new(
        ErrorCode::Exhausted,
        format!("id type {} has reached its highest id {}", record.name, record.max_id),
    )
}
