//! Rows of the embedded store, from and to domain values.

use rusqlite::{Connection, OptionalExtension, Params, Row, named_params};

use super::ranges::with_keys;
use crate::domain::{
    Error, History, InstanceId, InstanceRecord, LoadPercentage, Mode, Placement, State, TypeName,
    TypeOptions, TypeRecord,
};
use crate::ports::StoreError;

/// Turns what SQLite says into the port's error. A busy file is somebody
/// else's; a full disk or a broken file may have happened after the write.
pub(super) fn sqlite(error: rusqlite::Error) -> StoreError {
    StoreError::Unavailable(format!("embedded store: {error}"))
}

fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("the embedded store holds {what} that this version does not know"))
}

const TYPE_COLUMNS: &str = "name, mode, state, prefix, description, options, first_id, \
    next_id, max_id, min_range, max_range, load_interval_ms, load_basis_points, lock_ttl_ms, last_range, \
    last_load_ms, instance_id, history, version, created_ms, updated_ms, \
    generation, moving_to, moved_from, moved_ms";

/// The record of a row, without its keys (see [`with_keys`]).
fn type_record(row: &Row<'_>) -> rusqlite::Result<Result<TypeRecord, StoreError>> {
    let name: String = row.get("name")?;
    let mode: String = row.get("mode")?;
    let state: String = row.get("state")?;
    let options: String = row.get("options")?;
    let max_id = row.get("max_id")?;
    let basis_points: i64 = row.get("load_basis_points")?;
    let history: Option<String> = row.get("history")?;
    let percentage = basis_points as f64 / f64::from(LoadPercentage::WHOLE);
    let (Ok(name), Ok(mode), Some(state), Ok(options), Ok(load_percentage)) = (
        TypeName::parse(&name),
        Mode::parse(&mode),
        State::parse(&state),
        TypeOptions::from_json(&options),
        LoadPercentage::from_fraction(percentage),
    ) else {
        return Ok(Err(broken("a type")));
    };
    Ok(Ok(TypeRecord {
        placement: Placement {
            generation: row.get("generation")?,
            moving_to: row.get::<_, Option<i64>>("moving_to")?.map(InstanceId),
            moved_from: row.get::<_, Option<i64>>("moved_from")?.map(InstanceId),
            moved_ms: row.get("moved_ms")?,
        },
        name,
        mode,
        state,
        prefix: row.get("prefix")?,
        description: row.get("description")?,
        max_position: options.max_position(mode, max_id),
        options,
        keys: Default::default(),
        first_id: row.get("first_id")?,
        next_id: row.get("next_id")?,
        max_id,
        min_range: row.get("min_range")?,
        max_range: row.get("max_range")?,
        load_interval_ms: row.get("load_interval_ms")?,
        load_percentage,
        lock_ttl_ms: row.get("lock_ttl_ms")?,
        last_range: row.get("last_range")?,
        last_load_ms: row.get("last_load_ms")?,
        instance: InstanceId(row.get("instance_id")?),
        history: history.map(History::new),
        version: row.get("version")?,
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
    }))
}

pub(super) fn find_type(
    connection: &Connection,
    name: &TypeName,
) -> Result<Option<TypeRecord>, StoreError> {
    connection
        .prepare_cached(&format!("SELECT {TYPE_COLUMNS} FROM id_type WHERE name = ?1"))
        .and_then(|mut s| s.query_row([name.as_str()], type_record).optional())
        .map_err(sqlite)?
        .transpose()?
        .map(|record| with_keys(connection, record))
        .transpose()
}

/// Types that meet the condition, with their keys.
pub(super) fn types_where(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<TypeRecord>, StoreError> {
    connection
        .prepare_cached(&format!("SELECT {TYPE_COLUMNS} FROM id_type WHERE {condition}"))
        .and_then(|mut s| s.query_map(params, type_record)?.collect::<rusqlite::Result<Vec<_>>>())
        .map_err(sqlite)?
        .into_iter()
        .map(|record| with_keys(connection, record?))
        .collect()
}

pub(super) fn must_find(
    connection: &Connection,
    name: &TypeName,
) -> Result<TypeRecord, StoreError> {
    find_type(connection, name)?
        .ok_or_else(|| StoreError::Refused(Error::unknown_type(name.as_str())))
}

/// Writes the whole row, new or not; not the keys, which are only ever added.
pub(super) fn put_type(connection: &Connection, record: &TypeRecord) -> Result<(), StoreError> {
    connection
        .prepare_cached(&format!(
            "INSERT INTO id_type ({TYPE_COLUMNS}) VALUES (:name, :mode, :state, :prefix, \
             :description, :options, :first_id, :next_id, :max_id, :min_range, :max_range, \
             :load_interval_ms, :load_basis_points, :lock_ttl_ms, :last_range, :last_load_ms, \
             :instance_id, :history, :version, :created_ms, :updated_ms, \
             :generation, :moving_to, :moved_from, :moved_ms) \
             ON CONFLICT (name) DO UPDATE SET mode = excluded.mode, state = excluded.state, \
             prefix = excluded.prefix, description = excluded.description, \
             options = excluded.options, next_id = excluded.next_id, \
             max_id = excluded.max_id, min_range = excluded.min_range, \
             max_range = excluded.max_range, load_interval_ms = excluded.load_interval_ms, \
             load_basis_points = excluded.load_basis_points, lock_ttl_ms = excluded.lock_ttl_ms, \
             last_range = excluded.last_range, last_load_ms = excluded.last_load_ms, \
             instance_id = excluded.instance_id, history = excluded.history, \
             version = excluded.version, updated_ms = excluded.updated_ms, \
             generation = excluded.generation, moving_to = excluded.moving_to, \
             moved_from = excluded.moved_from, moved_ms = excluded.moved_ms"
        ))
        .and_then(|mut s| {
            s.execute(named_params! {
                ":name": record.name.as_str(),
                ":mode": record.mode.as_str(),
                ":state": record.state.as_str(),
                ":prefix": record.prefix,
                ":description": record.description,
                ":options": record.options.to_json(),
                ":first_id": record.first_id,
                ":next_id": record.next_id,
                ":max_id": record.max_id,
                ":min_range": record.min_range,
                ":max_range": record.max_range,
                ":load_interval_ms": record.load_interval_ms,
                ":load_basis_points": record.load_percentage.basis_points(),
                ":lock_ttl_ms": record.lock_ttl_ms,
                ":last_range": record.last_range,
                ":last_load_ms": record.last_load_ms,
                ":instance_id": record.instance.0,
                ":history": record.history.as_ref().map(History::as_str),
                ":version": record.version,
                ":created_ms": record.created_ms,
                ":updated_ms": record.updated_ms,
                ":generation": record.placement.generation,
                ":moving_to": record.placement.moving_to.map(|id| id.0),
                ":moved_from": record.placement.moved_from.map(|id| id.0),
                ":moved_ms": record.placement.moved_ms,
            })
        })
        .map_err(sqlite)?;
    Ok(())
}

pub(super) fn instances(connection: &Connection) -> Result<Vec<InstanceRecord>, StoreError> {
    let read = || {
        connection
            .prepare_cached(
                "SELECT id, name, url, (SELECT count(*) FROM id_type WHERE instance_id = i.id), \
                 drain_to FROM redis_instance i ORDER BY id",
            )?
            .query_map([], |row| {
                Ok(InstanceRecord {
                    id: InstanceId(row.get(0)?),
                    name: row.get(1)?,
                    url: row.get(2)?,
                    types: row.get::<_, i64>(3)? as u64,
                    drain_to: row.get::<_, Option<i64>>(4)?.map(InstanceId),
                })
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    read().map_err(sqlite)
}
