//! An administrator's connection, for making and checking the schema.
//!
//! Reads definitions as the server has them, without what changes by itself
//! (the definer of a view, the counter of a table), and keeps the record of
//! what `apply` made.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row};

use super::errors::Failure;
use super::options::{MysqlOptions, ensure_tls_provider};
use super::rows::{column, only};
use super::sql::{HISTORY_TABLE, TABLES, VERSION, normalise};
use crate::domain::{Error, ErrorCode};
use crate::ports::StoreError;

/// One statement of DDL may wait for calls that are running, and copy a table.
pub const STEP_LIMIT: Duration = Duration::from_secs(300);

/// One connection of an administrator.
pub struct Session {
    conn: Conn,
    /// Where it is connected to, without secrets.
    pub target: String,
}

impl Session {
    pub async fn open(options: &MysqlOptions) -> Result<Session, StoreError> {
        ensure_tls_provider();
        let (opts, target) = options.driver_opts()?;
        match tokio::time::timeout(options.timeout, Conn::new(opts)).await {
            Ok(Ok(conn)) => Ok(Session { conn, target }),
            Ok(Err(error)) => Err(Failure::new(&target, &error).into()),
            Err(_) => Err(StoreError::Unavailable(format!(
                "{target}: no connection within {} ms",
                options.timeout.as_millis()
            ))),
        }
    }

    async fn rows(
        &mut self,
        sql: &str,
        params: impl Into<Params> + Send,
    ) -> Result<Vec<Row>, Failure> {
        match tokio::time::timeout(STEP_LIMIT, self.conn.exec(sql, params.into())).await {
            Ok(answer) => answer.map_err(|error| Failure::new(&self.target, &error)),
            Err(_) => Err(Failure { error: too_slow(&self.target), errno: None }),
        }
    }

    /// What `SHOW CREATE` tells. By the text protocol: a prepared one repeats
    /// what it told the first time, also after the view was replaced.
    async fn show(&mut self, sql: &str) -> Result<Vec<Row>, Failure> {
        match tokio::time::timeout(STEP_LIMIT, self.conn.query(sql)).await {
            Ok(answer) => answer.map_err(|error| Failure::new(&self.target, &error)),
            Err(_) => Err(Failure { error: too_slow(&self.target), errno: None }),
        }
    }

    /// Runs one statement by the text protocol, which knows all of DDL.
    pub async fn run(&mut self, sql: &str) -> Result<(), StoreError> {
        match tokio::time::timeout(STEP_LIMIT, self.conn.query_drop(sql)).await {
            Ok(answer) => answer.map_err(|error| Failure::new(&self.target, &error).into()),
            Err(_) => Err(too_slow(&self.target)),
        }
    }

    /// Keeps other appliers out until the session ends.
    pub async fn lock(&mut self, patience: Duration) -> Result<(), StoreError> {
        // The lock's name is the server's, and has at most 64 characters.
        let sql = "SELECT GET_LOCK(CONCAT('idgen_schema_', MD5(DATABASE())), ?) AS held";
        let seconds = patience.as_secs().max(1);
        let row = only(self.rows(sql, (seconds,)).await?)?;
        match column::<Option<i64>>(&row, "held")? {
            Some(1) => Ok(()),
            _ => Err(StoreError::Unavailable(format!(
                "{}: another `idgen schema apply` is running for more than {seconds} s",
                self.target
            ))),
        }
    }

    /// The highest migration that was run; `None` in a database without any.
    pub async fn version(&mut self) -> Result<Option<i32>, StoreError> {
        let sql = format!("SELECT MAX(version) AS version FROM {HISTORY_TABLE}");
        match self.rows(&sql, ()).await {
            Ok(rows) => column(&only(rows)?, "version"),
            Err(failure) if failure.errno == Some(1146) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Version and checksum of the migrations that were run.
    pub async fn applied(&mut self, any: bool) -> Result<Vec<(i32, String)>, StoreError> {
        if !any {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT version, checksum FROM {HISTORY_TABLE}");
        let rows = self.rows(&sql, ()).await?;
        let read = |row: &Row| Ok((column(row, "version")?, column(row, "checksum")?));
        rows.iter().map(read).collect()
    }

    /// The definition as the server has it; `None` if there is no such object.
    pub async fn live(&mut self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        let (sql, text, absent) = match kind {
            "procedure" => (format!("SHOW CREATE PROCEDURE {name}"), "Create Procedure", 1305),
            "view" => (format!("SHOW CREATE VIEW {name}"), "Create View", 1146),
            _ => (format!("SHOW CREATE TABLE {name}"), "Create Table", 1146),
        };
        let row = match self.show(&sql).await {
            Ok(rows) => only(rows)?,
            Err(failure) if failure.errno == Some(absent) => return Ok(None),
            // A view onto something that is gone: there, but never as it should be.
            Err(failure) if failure.errno == Some(1356) => return Ok(Some(String::new())),
            Err(failure) => return Err(failure.into()),
        };
        let definition = column::<Option<String>>(&row, text)?.ok_or_else(|| {
            StoreError::Refused(Error::new(
                ErrorCode::PermissionDenied,
                format!("{}: the account may not read the definition of {name}", self.target),
            ))
        })?;
        Ok(Some(match kind {
            "procedure" => {
                let mode: String = column(&row, "sql_mode")?;
                let text = normalise(&definition);
                let rest = text.split_once(&format!("PROCEDURE `{name}`("));
                format!("[{mode}] ({}", rest.map_or("", |(_, rest)| rest))
            }
            "view" => without_definer(&definition),
            _ => without_counter(&definition),
        }))
    }

    /// The recorded source and definition of an object.
    pub async fn recorded(
        &mut self,
        kind: &str,
        name: &str,
    ) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT source, live FROM idgen_schema_object WHERE kind = ? AND name = ?";
        let rows = self.rows(sql, (kind, name)).await?;
        let read = |row: &Row| Ok((column(row, "source")?, column(row, "live")?));
        rows.first().map(read).transpose()
    }

    /// Records the definition that the server has now as the right one.
    pub async fn record(&mut self, kind: &str, name: &str, source: &str) -> Result<(), StoreError> {
        let live = self.live(kind, name).await?.unwrap_or_default();
        let sql = "REPLACE INTO idgen_schema_object (kind, name, source, live) VALUES (?, ?, ?, ?)";
        self.rows(sql, (kind, name, source, live)).await?;
        Ok(())
    }

    /// Records the tables once per version, so that a later change by hand is
    /// found, also by the next `apply`.
    pub async fn record_tables(&mut self) -> Result<(), StoreError> {
        let version = VERSION.to_string();
        for name in TABLES {
            let recorded = self.recorded("table", name).await?;
            if recorded.is_none_or(|(source, _)| source != version) {
                self.record("table", name, &version).await?;
            }
        }
        Ok(())
    }
}

/// A view's definition without the account that made it.
fn without_definer(definition: &str) -> String {
    match (definition.find(" DEFINER="), definition.find(" SQL SECURITY ")) {
        (Some(start), Some(end)) if start < end => {
            format!("{}{}", &definition[..start], &definition[end..])
        }
        _ => definition.to_owned(),
    }
}

/// A table's definition without the counter of AUTO_INCREMENT.
fn without_counter(definition: &str) -> String {
    let words = definition.split(' ');
    let kept: Vec<_> = words.filter(|w| !w.starts_with("AUTO_INCREMENT=")).collect();
    kept.join(" ")
}

/// A step of the schema did not end within [`STEP_LIMIT`].
pub fn too_slow(target: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "{target}: a step of the schema took longer than {} s",
        STEP_LIMIT.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_by_itself_is_left_out() {
        let view =
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW `v` AS x";
        assert_eq!(
            without_definer(view),
            "CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `v` AS x"
        );
        let table =
            "CREATE TABLE `t` (`id` bigint AUTO_INCREMENT) ENGINE=InnoDB AUTO_INCREMENT=7 X";
        assert_eq!(
            without_counter(table),
            "CREATE TABLE `t` (`id` bigint AUTO_INCREMENT) ENGINE=InnoDB X"
        );
    }
}
