//! What a type would be like: its first ids, how its ranges grow, how long it lasts.
//!
//! Computed by the same functions that nodes and stores use, so that the preview cannot
//! promise anything else than what comes.

use super::allocation::{Request, Sequence, next_range};
use super::calendar::Zone;
use super::format::Format;
use super::gate_pass::{SHARDS, shard_of};
use super::id_map::IdMap;
use super::options::{number_of, position_in};
use super::prefetch::lease_usage;
use super::snowflake::{Layout, Parts};
use super::{
    AtLimit, Error, InstanceId, Mode, OpaqueKey, Period, PeriodSpan, TypeRecord, TypeSpec, Usage,
};

/// How many ids are shown.
pub const IDS: usize = 5;
/// How many ranges are shown.
pub const RANGES: usize = 12;
/// The highest rate that can be asked about, in ids a second.
pub const MAX_RATE: f64 = 1e12;
/// The gate pass of the ids that are shown of a sharded type.
pub const GATE_PASS: &str = "alice";
/// The key of the ids that are shown of an opaque type; no type ever has it.
const EXAMPLE_KEY: [u8; 32] = *b"an example, the key of no type!!";

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The first ids as callers see them, [`IDS`] at most; fewer where there are fewer.
    pub ids: Vec<PreviewId>,
    /// Whether ids come in ascending order, within the promise of the mode.
    pub ascending: bool,
    /// The first ranges, [`RANGES`] at most, of the type or of one shard of it; none
    /// without a rate after the first, and none of a snowflake type.
    pub growth: Vec<Growth>,
    /// For how long the ids last at this rate, in seconds: of a calendar series those
    /// of a period where they end before it, of a snowflake type its epoch. `None`
    /// where they do not end.
    pub lasts_s: Option<f64>,
    /// What is to be known about the above.
    pub note: Option<String>,
}

/// An id, as a number and as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewId {
    /// The number; `None` for a calendar series, which has texts only.
    pub id: Option<i64>,
    /// The text.
    pub text: String,
}

/// A range that is allocated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// When, in seconds from the first id.
    pub at_s: f64,
    /// Its length, in positions.
    pub length: u64,
    /// One above its last position; within the period, for a calendar series.
    pub end: i64,
}

/// What a type of `spec`, which is valid, would be like at `rate` ids a second (0 to
/// [`MAX_RATE`]), if it were made at `now_ms` of the Unix epoch. The error names `rate`,
/// or what `spec` breaks.
pub fn preview(spec: &TypeSpec, rate: f64, now_ms: i64) -> Result<Preview, Error> {
    spec.validate()?;
    if !(0.0..=MAX_RATE).contains(&rate) {
        return Err(Error::invalid(
            "rate",
            format!("rate {rate} is out of range: it must be from 0 to {MAX_RATE} ids a second"),
        ));
    }
    let key = spec.options.opaque.map(|_| OpaqueKey::new(EXAMPLE_KEY));
    let spec = TypeSpec { key, ..spec.clone() };
    let record = TypeRecord::created(&spec, InstanceId(0), now_ms);
    let zone = Zone::parse(record.options.time_zone.as_deref())?;
    let period = record.options.calendar.map(|period| (period, zone.period_at(period, now_ms)));
    Ok(Preview {
        ids: match record.mode {
            Mode::Snowflake => snowflake_ids(&record, &zone, now_ms)?,
            _ => counted_ids(&record, &zone, now_ms, period)?,
        },
        ascending: record.options.opaque.is_none(),
        growth: match record.mode {
            Mode::Snowflake => Vec::new(),
            _ => growth(&record, rate, now_ms, period.map(|(_, span)| span)),
        },
        lasts_s: lasts_s(&record, rate, now_ms, period.map(|(_, span)| span)),
        note: note(&record, rate),
    })
}

fn counted_ids(
    record: &TypeRecord,
    zone: &Zone,
    now_ms: i64,
    period: Option<(Period, PeriodSpan)>,
) -> Result<Vec<PreviewId>, Error> {
    let map = IdMap::new(record)?;
    let format = record.options.format.as_deref().map(Format::parse).transpose()?;
    let shard = (record.mode == Mode::Sharded).then(|| shard_of(GATE_PASS));
    let write = |number, date| match &format {
        Some(format) => format.write(&record.prefix, number, date),
        None => format!("{}{number}", record.prefix),
    };
    let first = record.first_id;
    let positions = first..=record.max_position.min(first.saturating_add(IDS as i64 - 1));
    let id = |position| match period {
        Some((period, span)) => {
            let number = number_of(position_in(span.number, position));
            PreviewId { id: None, text: write(number, period.first_day(span.number)) }
        }
        None => {
            let id = map.id(position, shard);
            PreviewId { id: Some(id), text: write(id, zone.moment(now_ms)) }
        }
    };
    Ok(positions.map(id).collect())
}

/// Those of worker 0 from now on; the real ones begin at a sequence that changes.
fn snowflake_ids(record: &TypeRecord, zone: &Zone, now_ms: i64) -> Result<Vec<PreviewId>, Error> {
    let layout = record.options.snowflake.unwrap_or_default();
    let format = record.options.format.as_deref().map(Format::parse).transpose()?;
    let now = layout.time_at(now_ms).clamp(Layout::FIRST_TIME, layout.last_time());
    let id = |n: i64| {
        let time = (now + n / layout.capacity()).min(layout.last_time());
        let id = layout.compose(Parts { time, worker: 0, sequence: n % layout.capacity() });
        let date = zone.moment(now_ms);
        let text = match &format {
            Some(format) => format.write(&record.prefix, id, date),
            None => format!("{}{id}", record.prefix),
        };
        PreviewId { id: Some(id), text }
    };
    Ok((0..IDS as i64).map(id).collect())
}

/// Range after range: each is allocated when the ids before its update id are used.
fn growth(record: &TypeRecord, rate: f64, now_ms: i64, period: Option<PeriodSpan>) -> Vec<Growth> {
    let sharded = record.mode == Mode::Sharded;
    // Of one of the shards, if callers spread over them.
    let rate = if sharded { rate / f64::from(SHARDS) } else { rate };
    let mut sequence = Sequence::fresh(record);
    let mut request =
        Request { shard: sharded.then_some(0), period, usage: None, floor: 0, now_ms };
    let first = period.map_or(record.first_id, |p| position_in(p.number, record.first_id));
    let (mut at_s, mut used) = (0.0, 0);
    let mut growth: Vec<Growth> = Vec::new();
    while growth.len() < RANGES {
        let Ok((range, update_id)) = next_range(record, sequence, &request) else { break };
        let end = if period.is_some() { number_of(range.last()) + 1 } else { range.end() };
        growth.push(Growth { at_s, length: range.len(), end });
        if rate == 0.0 {
            break;
        }
        let due = (update_id - first).max(0) as u64;
        let due_s = due as f64 / rate;
        let (consumed, elapsed_ms) = (due - used, ((due_s - at_s) * 1_000.0) as u64);
        request.usage = Some(match record.mode {
            Mode::Strict => Usage { consumed, elapsed_ms },
            // Nodes let their leases grow in steps.
            _ => lease_usage(record.sizing(), Some(range.len()), consumed, elapsed_ms),
        });
        sequence = Sequence { next_id: range.end(), last_range: Some(range.len() as i64) };
        (at_s, used) = (due_s, due);
    }
    growth
}

fn lasts_s(record: &TypeRecord, rate: f64, now_ms: i64, period: Option<PeriodSpan>) -> Option<f64> {
    if record.mode == Mode::Snowflake {
        let layout = record.options.snowflake.unwrap_or_default();
        return Some((layout.end_ms().saturating_sub(now_ms)).max(0) as f64 / 1_000.0);
    }
    if rate == 0.0 || record.options.at_limit == AtLimit::Cycle {
        return None;
    }
    let sequences = if record.mode == Mode::Sharded { f64::from(SHARDS) } else { 1.0 };
    let lasts_s = (record.max_position - record.first_id + 1) as f64 * sequences / rate;
    let ends = period.is_none_or(|span| {
        let length_s = span.until_ms.saturating_sub(span.from_ms) as f64 / 1_000.0;
        lasts_s < length_s
    });
    ends.then_some(lasts_s)
}

fn note(record: &TypeRecord, rate: f64) -> Option<String> {
    let mut notes = Vec::new();
    if record.options.opaque.is_some() {
        notes
            .push("The ids are examples of another key: the key is made with the type.".to_owned());
    }
    if record.mode == Mode::Sharded {
        notes.push(format!(
            "The ids are those of the shard of the gate pass {GATE_PASS}; the ranges are those of \
             one of {SHARDS} shards."
        ));
    }
    if record.mode == Mode::Segment && rate > 0.0 {
        notes.push("The ranges are those of one node that hands out all ids.".to_owned());
    }
    if record.mode == Mode::Snowflake {
        let layout = record.options.snowflake.unwrap_or_default();
        notes.push(
            "The ids are those of worker 0 now; worker and sequence will be others.".to_owned(),
        );
        let per_node = layout.capacity() as f64 * 1_000.0 / layout.unit.ms() as f64;
        if rate > per_node {
            notes.push(format!("One node makes at most {per_node} ids a second."));
        }
    }
    if record.options.at_limit == AtLimit::Cycle {
        notes.push(format!(
            "After {} ids come again from {} on: they repeat.",
            record.max_id, record.first_id
        ));
    }
    if record.options.calendar.is_some() {
        notes.push("The number starts again with each period; ids are texts.".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

#[cfg(test)]
mod tests;
