//! Sequences, the range log and keys in the embedded store.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::rows::{put_type, sqlite};
use crate::domain::allocation::Sequence;
use crate::domain::{IdRange, InstanceId, OpaqueKey, SliceKey, TypeName, TypeRecord};
use crate::ports::{RangeLogEntry, StoreError};

/// Where `record`, or that shard of it, stands.
pub(super) fn sequence(
    connection: &Connection,
    record: &TypeRecord,
    shard: Option<u8>,
) -> Result<Sequence, StoreError> {
    let Some(shard) = shard else { return Ok(Sequence::of(record)) };
    let found = connection
        .prepare_cached("SELECT next_id, last_range FROM type_shard WHERE name = ?1 AND shard = ?2")
        .and_then(|mut s| {
            s.query_row(params![record.name.as_str(), shard], |row| {
                Ok(Sequence { next_id: row.get(0)?, last_range: row.get(1)? })
            })
            .optional()
        })
        .map_err(sqlite)?;
    Ok(found.unwrap_or(Sequence::fresh(record)))
}

/// Writes `record`, which, or that shard of which, stands at `sequence` now.
pub(super) fn put_sequence(
    transaction: &Transaction<'_>,
    record: &mut TypeRecord,
    shard: Option<u8>,
    sequence: Sequence,
) -> Result<(), StoreError> {
    record.next_id = match shard {
        None => sequence.next_id,
        Some(shard) => {
            let name = record.name.as_str();
            transaction
                .prepare_cached(
                    "INSERT INTO type_shard (name, shard, next_id, last_range) \
                     VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name, shard) \
                     DO UPDATE SET next_id = excluded.next_id, last_range = excluded.last_range",
                )
                .and_then(|mut s| {
                    s.execute(params![name, shard, sequence.next_id, sequence.last_range])
                })
                .and_then(|_| {
                    transaction
                        .prepare_cached("SELECT max(next_id) FROM type_shard WHERE name = ?1")?
                        .query_row([name], |row| row.get(0))
                })
                .map_err(sqlite)?
        }
    };
    put_type(transaction, record)
}

const LOG_COLUMNS: &str = "start_id, end_id, at_ms, owner, instance_id, history, shard";

fn log_entry(row: &Row<'_>) -> rusqlite::Result<Result<RangeLogEntry, StoreError>> {
    let Ok(range) = IdRange::new(row.get("start_id")?, row.get("end_id")?) else {
        let what = "the embedded store's log holds something that is no range";
        return Ok(Err(StoreError::Broken(what.into())));
    };
    Ok(Ok(RangeLogEntry {
        range,
        at_ms: row.get("at_ms")?,
        owner: row.get("owner")?,
        instance: row.get::<_, Option<i64>>("instance_id")?.map(InstanceId),
        history: row.get("history")?,
        shard: row.get("shard")?,
    }))
}

pub(super) fn log_range(
    transaction: &Transaction<'_>,
    name: &TypeName,
    entry: &RangeLogEntry,
) -> Result<(), StoreError> {
    transaction
        .prepare_cached(&format!(
            "INSERT INTO range_log (name, {LOG_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        ))
        .and_then(|mut s| {
            s.execute(params![
                name.as_str(),
                entry.range.start(),
                entry.range.end(),
                entry.at_ms,
                entry.owner,
                entry.instance.map(|i| i.0),
                entry.history,
                entry.shard
            ])
        })
        .map_err(sqlite)?;
    Ok(())
}

/// The newest ranges of a type.
pub(super) fn range_log(
    connection: &Connection,
    name: &TypeName,
    limit: u32,
) -> Result<Vec<RangeLogEntry>, StoreError> {
    connection
        .prepare_cached(&format!(
            "SELECT {LOG_COLUMNS} FROM range_log WHERE name = ?1 ORDER BY id DESC LIMIT ?2"
        ))
        .and_then(|mut s| {
            s.query_map(params![name.as_str(), limit], log_entry)?
                .collect::<rusqlite::Result<Vec<_>>>()
        })
        .map_err(sqlite)?
        .into_iter()
        .collect()
}

/// The range that holds `position`. Ranges of a sequence do not overlap, so it
/// is the one with the highest start that is not above.
pub(super) fn range_at(
    connection: &Connection,
    name: &TypeName,
    shard: Option<u8>,
    position: i64,
) -> Result<Option<RangeLogEntry>, StoreError> {
    let entry = connection
        .prepare_cached(&format!(
            "SELECT {LOG_COLUMNS} FROM range_log WHERE name = ?1 \
             AND coalesce(shard, -1) = coalesce(?2, -1) AND start_id <= ?3 \
             ORDER BY start_id DESC LIMIT 1"
        ))
        .and_then(|mut s| {
            s.query_row(params![name.as_str(), shard, position], log_entry).optional()
        })
        .map_err(sqlite)?
        .transpose()?;
    Ok(entry.filter(|entry| position < entry.range.end()))
}

/// Lets `left` be what is left of the logged range of that start; nothing
/// removes it.
pub(super) fn cut_range(
    transaction: &Transaction<'_>,
    name: &TypeName,
    shard: Option<u8>,
    start: i64,
    left: Option<IdRange>,
) -> Result<(), StoreError> {
    const ROW: &str = "name = ?1 AND coalesce(shard, -1) = coalesce(?2, -1) AND start_id = ?3";
    let name = name.as_str();
    let changed = match left {
        Some(left) => transaction
            .prepare_cached(&format!("UPDATE range_log SET end_id = ?4 WHERE {ROW}"))
            .and_then(|mut s| s.execute(params![name, shard, start, left.end()])),
        None => transaction
            .prepare_cached(&format!("DELETE FROM range_log WHERE {ROW}"))
            .and_then(|mut s| s.execute(params![name, shard, start])),
    };
    match changed.map_err(sqlite)? {
        1 => Ok(()),
        rows => Err(StoreError::Broken(format!("the embedded store logged {rows} such ranges"))),
    }
}

pub(super) fn put_key(
    transaction: &Transaction<'_>,
    name: &TypeName,
    key: &SliceKey,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT INTO type_key (name, from_slice, key) VALUES (?1, ?2, unhex(?3))",
            params![name.as_str(), key.from_slice, key.key.to_hex()],
        )
        .map_err(sqlite)?;
    Ok(())
}

/// `record` with its keys, if it is opaque.
pub(super) fn with_keys(
    connection: &Connection,
    mut record: TypeRecord,
) -> Result<TypeRecord, StoreError> {
    if record.options.opaque.is_some() {
        record.keys = connection
            .prepare_cached(
                "SELECT from_slice, key FROM type_key WHERE name = ?1 ORDER BY from_slice",
            )
            .and_then(|mut s| {
                s.query_map([record.name.as_str()], |row| {
                    let key = OpaqueKey::new(row.get(1)?);
                    Ok(SliceKey { from_slice: row.get(0)?, key })
                })?
                .collect()
            })
            .map_err(sqlite)?;
    }
    Ok(record)
}
