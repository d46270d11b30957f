//! What an id tells: from what clients see back to the range store's log.

use tokio::time::timeout_at;

use super::Parts;
use super::api::{Decoded, MAX_ID_TEXT};
use super::catalogue::{Settings, Source, Writing};
use crate::domain::format::DateParts;
use crate::domain::options::{number_of, period_of, position_in};
use crate::domain::snowflake::Layout;
use crate::domain::{Error, ErrorCode, Mode, TypeRecord};

/// Clocks of nodes and of the store are not further apart, where anybody looks
/// after them.
const CLOCKS_APART_MS: i64 = 60_000;

/// What a text says before anything is looked up.
enum Read {
    /// An id.
    Id(i64),
    /// A position of a calendar series.
    Position(i64),
}

impl Parts {
    /// See [`IdApi::decode`](super::api::IdApi::decode).
    pub(super) async fn decode(&self, name: &str, id: &str) -> Result<Decoded, Error> {
        if id.len() > MAX_ID_TEXT {
            return Err(invalid(format!("id has {} bytes; the limit is {MAX_ID_TEXT}", id.len())));
        }
        let deadline = self.deadline();
        let entry = self.find(name, deadline).await?;
        let work = async {
            // As the store has it now: how far the type is, and its newest key.
            let entry = match self.store.find_type(&entry.name).await? {
                Some(record) => self.catalogue.put(record, Source::Need),
                None => entry,
            };
            let settings = entry.settings_held();
            let writing = settings.writing.as_ref().map_err(Error::clone)?;
            let read = read(&settings.record, writing, id)?;
            let decoded = Decoded {
                id_type: entry.name.to_string(),
                mode: settings.record.mode.as_str(),
                ..Decoded::default()
            };
            match (settings.record.mode, read) {
                (Mode::Snowflake, Read::Id(id)) => {
                    self.decode_snowflake(&settings, writing, decoded, id).await
                }
                (_, Read::Id(id)) => {
                    let (position, shard) = match &writing.map {
                        Some(map) => map.position(id)?,
                        None => (id, None),
                    };
                    let decoded = Decoded { id: Some(id), shard, ..decoded };
                    self.decode_position(&settings, writing, decoded, position).await
                }
                (_, Read::Position(position)) => {
                    self.decode_position(&settings, writing, decoded, position).await
                }
            }
        };
        timeout_at(deadline, work).await.unwrap_or_else(|_| {
            Err(Error::new(ErrorCode::Deadline, "the range store's log could not be read in time"))
        })
    }

    async fn decode_position(
        &self,
        settings: &Settings,
        writing: &Writing,
        decoded: Decoded,
        position: i64,
    ) -> Result<Decoded, Error> {
        let record = &*settings.record;
        let shard = decoded.shard;
        let range = self.store.find_range(&record.name, shard, position).await?;
        let at_ms = range.as_ref().map(|range| range.at_ms);
        let calendar = record.options.calendar;
        Ok(Decoded {
            text: writing.text(record, position, shard, at_ms.unwrap_or_default(), &record.prefix),
            position: Some(calendar.map_or(position, |_| number_of(position))),
            period: calendar.map(|period| period.first_day(period_of(position)).date()),
            app_id: record.options.app_id,
            at_ms,
            // The log may have been pruned; of a shard and of a period only it knows.
            issued: range.is_some()
                || (shard.is_none()
                    && calendar.is_none()
                    && (record.first_id..record.next_id).contains(&position)),
            range_first: range.as_ref().map(|range| range.range.start()),
            range_count: range.as_ref().map(|range| range.range.len() as i64),
            node: range.map(|range| range.owner),
            ..decoded
        })
    }

    async fn decode_snowflake(
        &self,
        settings: &Settings,
        writing: &Writing,
        decoded: Decoded,
        id: i64,
    ) -> Result<Decoded, Error> {
        let record = &*settings.record;
        let layout: Layout = record.options.snowflake.unwrap_or_default();
        if id < 0 {
            return Err(invalid(format!("id {id} is negative")));
        }
        let parts = layout.decompose(id);
        let at_ms = layout.unix_ms(parts.time);
        // The first tenure of a worker id begins with time itself.
        let is_too_old = at_ms < record.created_ms - CLOCKS_APART_MS;
        let tenure = self.workers.tenure_at(layout.worker_bits, parts.worker, at_ms).await?;
        Ok(Decoded {
            id: Some(id),
            text: writing.text(record, id, None, at_ms, &record.prefix),
            worker: Some(parts.worker),
            sequence: Some(parts.sequence),
            at_ms: Some(at_ms),
            issued: tenure.is_some() && !is_too_old,
            node: tenure.filter(|_| !is_too_old).map(|tenure| tenure.holder),
            ..decoded
        })
    }
}

/// A number in decimal, or a text of the type's format, with or without its prefix.
fn read(record: &TypeRecord, writing: &Writing, text: &str) -> Result<Read, Error> {
    let Some(format) = &writing.format else {
        let digits = text.strip_prefix(&record.prefix).unwrap_or(text);
        return digits.parse().map(Read::Id).map_err(|_| {
            invalid(
                "id is neither a number nor a text of the id type: it must be decimal, with \
                     or without the prefix",
            )
        });
    };
    let parsed =
        format.read(&record.prefix, text).or_else(|error| format.read("", text).map_err(|_| error));
    match (parsed, record.options.calendar) {
        (Ok(parsed), Some(period)) => {
            let number = number(parsed.number)?;
            let period = DateParts::period(parsed.date, period)
                .ok_or_else(|| invalid("id lacks the date of its period"))?;
            Ok(Read::Position(position_in(period, number)))
        }
        (Ok(parsed), None) => Ok(Read::Id(number(parsed.number)?)),
        // The number alone, as nextId gives it; but not a text whose check
        // character is wrong.
        (Err(error), None) => match text.parse() {
            Ok(id) if !(format.has_check() && is_as_long(record, writing, id, text)) => {
                Ok(Read::Id(id))
            }
            _ => Err(error),
        },
        (Err(error), Some(_)) => Err(error),
    }
}

/// Whether `text` is as long as the text of the number that it is.
fn is_as_long(record: &TypeRecord, writing: &Writing, id: i64, text: &str) -> bool {
    let date = writing.zone.moment(0);
    let as_long = |prefix| {
        let written = writing.format.as_ref().map(|format| format.write(prefix, id.max(0), date));
        written.is_some_and(|written| written.len() == text.len())
    };
    as_long(record.prefix.as_str()) || as_long("")
}

fn number(number: u64) -> Result<i64, Error> {
    i64::try_from(number).map_err(|_| invalid("id holds a number above the highest id"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid("id", message)
}
