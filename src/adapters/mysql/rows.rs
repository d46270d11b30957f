//! From rows of the views and procedures to the types of the domain.

use std::sync::Arc;

use mysql_async::Row;
use mysql_async::prelude::FromValue;

use crate::domain::{
    History, IdRange, InstanceId, InstanceRecord, LoadPercentage, Mode, OpaqueKey, Placement,
    SliceKey, State, TypeName, TypeOptions, TypeRecord,
};
use crate::ports::{AuditEntry, Change, RangeLogEntry, StoreError, Subject};

/// The columns of `idgen_types` that [`type_record`] reads.
pub const TYPE_COLUMNS: &str = "name, mode, state, prefix, description, first_id, next_id, max_id, \
    min_range, max_range, load_interval_ms, load_percentage, lock_ttl_ms, last_range, \
    last_load_ms, instance_id, history, version, created_ms, updated_ms, options, max_position, \
    generation, moving_to, moved_from, moved_ms";

/// An answer of the server that cannot be.
pub fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("an answer that breaks the contract: {what}"))
}

/// The one row that a procedure answers with.
pub fn only(rows: Vec<Row>) -> Result<Row, StoreError> {
    let mut rows = rows.into_iter();
    match (rows.next(), rows.next()) {
        (Some(row), None) => Ok(row),
        _ => Err(broken("not exactly one row")),
    }
}

/// The value of a column; its name goes into the error, its value does not.
pub fn column<T: FromValue>(row: &Row, name: &str) -> Result<T, StoreError> {
    match row.get_opt(name) {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) => Err(broken(&format!("column {name} has an unexpected value"))),
        None => Err(broken(&format!("no column {name}"))),
    }
}

fn type_name(text: &str) -> Result<TypeName, StoreError> {
    TypeName::parse(text).map_err(|_| broken(&format!("name {text:?} is not legal")))
}

/// The range in two columns, checked.
pub fn range(row: &Row) -> Result<IdRange, StoreError> {
    let (start, end) = (column(row, "start_id")?, column(row, "end_id")?);
    IdRange::new(start, end).map_err(|error| broken(&error.to_string()))
}

/// A row of `idgen_types`.
pub fn type_record(row: &Row) -> Result<TypeRecord, StoreError> {
    let text = |name: &str| column::<String>(row, name);
    let (mode, state) = (text("mode")?, text("state")?);
    let percentage = text("load_percentage")?;
    Ok(TypeRecord {
        placement: Placement {
            generation: column(row, "generation")?,
            moving_to: column::<Option<i64>>(row, "moving_to")?.map(InstanceId),
            moved_from: column::<Option<i64>>(row, "moved_from")?.map(InstanceId),
            moved_ms: column(row, "moved_ms")?,
        },
        name: type_name(&text("name")?)?,
        // A newer program may know more modes; this one must not guess.
        mode: Mode::parse(&mode).map_err(|_| broken(&format!("mode {mode:?} is not known")))?,
        state: State::parse(&state).ok_or_else(|| broken(&format!("state {state:?}")))?,
        prefix: text("prefix")?,
        description: text("description")?,
        // As with the mode: an option that is not known may change every id.
        options: TypeOptions::from_json(&text("options")?)
            .map_err(|error| broken(&error.message))?,
        // Another view has them; see `MysqlStore::with_keys`.
        keys: Arc::default(),
        max_position: column(row, "max_position")?,
        first_id: column(row, "first_id")?,
        next_id: column(row, "next_id")?,
        max_id: column(row, "max_id")?,
        min_range: column(row, "min_range")?,
        max_range: column(row, "max_range")?,
        load_interval_ms: column(row, "load_interval_ms")?,
        load_percentage: percentage
            .parse()
            .ok()
            .and_then(|fraction| LoadPercentage::from_fraction(fraction).ok())
            .ok_or_else(|| broken(&format!("load_percentage {percentage:?}")))?,
        lock_ttl_ms: column(row, "lock_ttl_ms")?,
        last_range: column(row, "last_range")?,
        last_load_ms: column(row, "last_load_ms")?,
        instance: InstanceId(column(row, "instance_id")?),
        history: column::<Option<String>>(row, "history")?.map(History::new),
        version: column(row, "version")?,
        created_ms: column(row, "created_ms")?,
        updated_ms: column(row, "updated_ms")?,
    })
}

/// A row of `idgen_type_keys`: the name of the type and one of its keys.
pub fn slice_key(row: &Row) -> Result<(String, SliceKey), StoreError> {
    let key = OpaqueKey::from_hex(&column::<String>(row, "key_hex")?)
        .map_err(|_| broken("a key that is none"))?;
    Ok((column(row, "name")?, SliceKey { from_slice: column(row, "from_slice")?, key }))
}

/// A row of `idgen_node_instances`.
pub fn instance(row: &Row) -> Result<InstanceRecord, StoreError> {
    Ok(InstanceRecord {
        drain_to: column::<Option<i64>>(row, "drain_to")?.map(InstanceId),
        id: InstanceId(column(row, "id")?),
        name: column(row, "name")?,
        url: column(row, "url")?,
        types: column(row, "types")?,
    })
}

/// A row of `idgen_changes`, as an entry of the feed.
pub fn change(row: &Row) -> Result<Change, StoreError> {
    let kind: String = column(row, "subject_kind")?;
    let subject = match kind.as_str() {
        "type" => Subject::Type(type_name(&column::<String>(row, "subject")?)?),
        "access" => Subject::Access,
        // Also for a kind that a newer version knows: one row that is not
        // understood must not stop the feed, and to look again is harmless.
        _ => Subject::Instances,
    };
    Ok(Change { seq: column(row, "seq")?, at_ms: column(row, "at_ms")?, subject })
}

/// A row of `idgen_changes`, as an entry of the audit log.
pub fn audit_entry(row: &Row) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        seq: column(row, "seq")?,
        at_ms: column(row, "at_ms")?,
        actor: column(row, "actor")?,
        action: column(row, "action")?,
        subject: column(row, "subject")?,
        before: column(row, "before_json")?,
        after: column(row, "after_json")?,
    })
}

/// A row of `idgen_ranges`.
pub fn range_log_entry(row: &Row) -> Result<RangeLogEntry, StoreError> {
    Ok(RangeLogEntry {
        range: range(row)?,
        at_ms: column(row, "at_ms")?,
        owner: column(row, "owner")?,
        instance: column::<Option<i64>>(row, "instance_id")?.map(InstanceId),
        history: column(row, "history")?,
        // -1 in a sequence without shards.
        shard: match column::<i64>(row, "shard")? {
            -1 => None,
            shard => Some(u8::try_from(shard).map_err(|_| broken("a shard out of range"))?),
        },
    })
}
