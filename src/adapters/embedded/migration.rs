//! What the embedded store knows of the histories and the moves of a type.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::rows::sqlite;
use crate::domain::migration::Known;
use crate::domain::{History, InstanceId, TypeName};
use crate::ports::StoreError;

/// [`Known`], with its history.
pub(super) struct Recorded {
    last_history: Option<History>,
    is_known: bool,
    allocated_above: bool,
}

impl Recorded {
    /// What decides about an assignment of the type called `name` to `instance`.
    pub fn of(
        connection: &Connection,
        name: &TypeName,
        instance: InstanceId,
        history: Option<&History>,
        rest_end: Option<i64>,
    ) -> Result<Self, StoreError> {
        let (name, history) = (name.as_str(), history.map(History::as_str));
        let last_history = connection
            .query_row(
                "SELECT history FROM type_history WHERE name = ?1 AND instance_id = ?2 \
                 ORDER BY id DESC LIMIT 1",
                params![name, instance.0],
                |row| row.get::<_, String>(0),
            )
            .optional()
            .map_err(sqlite)?;
        let (is_known, allocated_above) = connection
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM type_history WHERE name = ?1 AND history = ?2), \
                 EXISTS (SELECT 1 FROM range_log WHERE name = ?1 AND start_id >= ?3 \
                 AND instance_id IS NOT NULL)",
                params![name, history, rest_end],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(sqlite)?;
        Ok(Recorded { last_history: last_history.map(History::new), is_known, allocated_above })
    }

    pub fn known(&self) -> Known<'_> {
        Known {
            last_history: self.last_history.as_ref(),
            is_known: self.is_known,
            allocated_above: self.allocated_above,
        }
    }
}

/// Records a history of a type as the newest; answers whether it was not there yet.
pub(super) fn add_history(
    transaction: &Transaction<'_>,
    name: &TypeName,
    history: &History,
    instance: InstanceId,
) -> Result<bool, StoreError> {
    let inserted = transaction
        .execute(
            "INSERT OR IGNORE INTO type_history (name, history, instance_id) VALUES (?1, ?2, ?3)",
            params![name.as_str(), history.as_str(), instance.0],
        )
        .map_err(sqlite)?;
    Ok(inserted == 1)
}
