//! Reads the table of another system, for an import.
//!
//! One connection, one read-only transaction, closed hard at the end or at the time
//! limit. The server is not ours: what it sends is bounded in rows and in bytes.

use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Row as MysqlRow, Value};

use super::errors::Failure;
use super::options::{MysqlOptions, ensure_tls_provider};
use crate::domain::import::{Cell, KNOWN_COLUMNS, Kind, MAX_COLUMNS, MAX_ROWS, Place, Row, Table};
use crate::domain::{Error, ErrorCode};
use crate::ports::StoreError;
use crate::ports::import_source::{ForeignTable, ImportSource};

/// For connecting and reading together; below what an HTTP request may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Most bytes of text of all rows.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Largest row that the server may send, in bytes.
const MAX_PACKET: usize = 1024 * 1024;

/// Reads from MySQL and MariaDB.
#[derive(Clone, Copy, Debug, Default)]
pub struct MysqlImportSource;

#[async_trait]
impl ImportSource for MysqlImportSource {
    async fn read(&self, wanted: &ForeignTable) -> Result<Table, Error> {
        match tokio::time::timeout(TIMEOUT, read(wanted)).await {
            Ok(read) => read,
            Err(_) => Err(Error::new(
                ErrorCode::Unavailable,
                format!("source.url: no answer within {} s", TIMEOUT.as_secs()),
            )),
        }
    }
}

async fn read(wanted: &ForeignTable) -> Result<Table, Error> {
    ensure_tls_provider();
    let (opts, target) = MysqlOptions::new(wanted.url.as_str()).driver_opts().map_err(told)?;
    if opts.socket().is_some() {
        let why = "source.url: a socket is a file of the node: name a host and a port";
        return Err(Error::invalid("source.url", why));
    }
    let database = opts.db_name().unwrap_or_default().to_owned();
    let opts = OptsBuilder::from_opts(opts).max_allowed_packet(Some(MAX_PACKET));
    let failed = |error: mysql_async::Error| told(Failure::new(&target, &error).error);
    let mut conn = Conn::new(opts).await.map_err(failed)?;
    // From here on nothing can be written, and all statements see one moment.
    conn.query_drop("START TRANSACTION READ ONLY").await.map_err(failed)?;
    let columns = "SELECT table_name, column_name FROM information_schema.columns \
                   WHERE table_schema = ? AND table_name IN (?, ?, ?, ?, ?) \
                   ORDER BY ordinal_position LIMIT 10000";
    let known = Kind::ALL.into_iter().filter_map(Kind::table);
    let mut names: Vec<&str> = match (&wanted.table, wanted.kind.and_then(Kind::table)) {
        (Some(table), _) => vec![table],
        (None, Some(table)) => vec![table],
        (None, None) => known.clone().collect(),
    };
    let looked_for = names.join(", ");
    names.resize(5, names[0]);
    let params: Vec<Value> =
        std::iter::once(database.as_str()).chain(names).map(Value::from).collect();
    let found: Vec<(String, String)> = conn.exec(columns, params).await.map_err(failed)?;
    let mut tables: Vec<&str> = found.iter().map(|(table, _)| table.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    let table = match tables[..] {
        [table] => table.to_owned(),
        [] => {
            let why = format!(
                "source.table: {target} has no table {looked_for} that this account may read"
            );
            return Err(Error::invalid("source.table", why));
        }
        _ => {
            let why = format!("source.table must be named: {target} has {}", tables.join(", "));
            return Err(Error::invalid("source.table", why));
        }
    };
    let all: Vec<String> = found.into_iter().map(|(_, column)| column.to_lowercase()).collect();
    let kind = wanted.kind.or_else(|| Kind::of_columns(&all));
    let known = KNOWN_COLUMNS.iter().find(|(of, _)| Some(*of) == kind).map(|(_, known)| *known);
    // Only what is looked at: the other columns may hold anything, of any size. A list of
    // our own form has no others.
    let wanted_columns: Vec<String> = match known {
        Some(known) if kind != Some(Kind::Csv) => {
            all.into_iter().filter(|column| known.contains(&column.as_str())).collect()
        }
        _ => all,
    };
    if wanted_columns.is_empty() || wanted_columns.len() > MAX_COLUMNS {
        let why = format!("source.table: {table} has none of the columns of a known system");
        return Err(Error::invalid("source.table", why));
    }
    let listed: Vec<_> =
        wanted_columns.iter().map(|name| format!("CAST({} AS CHAR)", quoted(name))).collect();
    let sql =
        format!("SELECT {} FROM {} LIMIT {}", listed.join(", "), quoted(&table), MAX_ROWS + 1);
    let rows = read_rows(&mut conn, &sql, &target).await?;
    let _ = conn.disconnect().await;
    Ok(Table { columns: wanted_columns, rows })
}

async fn read_rows(conn: &mut Conn, sql: &str, target: &str) -> Result<Vec<Row>, Error> {
    let failed = |error: mysql_async::Error| told(Failure::new(target, &error).error);
    let too_much = |what: String| {
        Err(Error::invalid("source.table", format!("source.table has more than {what}")))
    };
    let mut result = conn.query_iter(sql).await.map_err(failed)?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = result.next().await.map_err(failed)? {
        if rows.len() == MAX_ROWS {
            return too_much(format!("{MAX_ROWS} rows"));
        }
        let cells = cells_of(row, rows.len() + 1)?;
        bytes += cells.iter().filter_map(|cell| cell.text.as_ref()).map(String::len).sum::<usize>();
        if bytes > MAX_BYTES {
            return too_much(format!("{MAX_BYTES} bytes"));
        }
        rows.push(Row { cells });
    }
    Ok(rows)
}

fn cells_of(row: MysqlRow, number: usize) -> Result<Vec<Cell>, Error> {
    let place = Place { line: number, column: 0 };
    let cell = |value: Value| match value {
        Value::NULL => Ok(Cell { text: None, place }),
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Cell { text: Some(text), place }),
            Err(_) => Err(Error::invalid(
                "source.table",
                format!("source.table, {place}: a text is no UTF-8"),
            )),
        },
        _ => Err(Error::new(ErrorCode::Internal, "source.table: a value that is no text")),
    };
    row.unwrap().into_iter().map(cell).collect()
}

/// A name in backquotes.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// What an error of the other server means for the caller: it is never that of our own
/// store, nor of the caller's rights here.
fn told(error: StoreError) -> Error {
    match error {
        StoreError::Unavailable(why) => {
            Error::new(ErrorCode::Unavailable, format!("source.url: {why}"))
        }
        StoreError::Refused(error) => {
            Error::invalid("source.url", format!("source.url: {}", error.message))
        }
        other => Error::invalid("source.url", format!("source.url: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_cannot_work_is_told_without_the_password() {
        // Nothing listens on port 1 of this machine.
        for (url, code) in [
            ("mysql://u:hush@127.0.0.1:1/db", ErrorCode::Unavailable),
            ("mysql://u:hush@127.0.0.1:1", ErrorCode::InvalidArgument),
            ("http://u:hush@127.0.0.1:1/db", ErrorCode::InvalidArgument),
            ("mysql://u:hush@127.0.0.1:1/db?socket=/run/x.sock", ErrorCode::InvalidArgument),
            ("hush", ErrorCode::InvalidArgument),
        ] {
            let wanted = ForeignTable { url: url.to_owned(), table: None, kind: None };
            let error = MysqlImportSource.read(&wanted).await.unwrap_err();
            assert_eq!(error.code, code, "{error}");
            assert!(!error.message.contains("u:hush"), "{error}");
            assert!(!format!("{wanted:?}").contains("u:hush"));
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a`; DROP TABLE x; --"), "`a``; DROP TABLE x; --`");
    }
}
