//! Makes, checks and prints the schema of `procedures/`.
//!
//! Tables come from versioned migrations, each run once and recorded with its
//! checksum in `idgen_schema_history`. Views and procedures are compared with
//! what is there, and only those that differ are made again. DDL is not
//! transactional on MySQL, so every step can be repeated: an `apply` that died
//! anywhere is simply run again. A named lock of the server keeps two of them
//! apart.
//!
//! A server rewrites the text of a view or a table, so these are compared with
//! the rewritten text that was recorded in `idgen_schema_object` when they were
//! made. A procedure it keeps as it was sent; that is compared directly.

use std::fmt::Write as _;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Pool as DriverPool, PoolConstraints, PoolOpts, Row};
use refinery_core::{Migration, Runner};

use super::errors::{APPLY_HINT, Failure};
use super::options::{MysqlOptions, ensure_tls_provider};
use super::pool::Pool;
use super::rows::{column, only};
use super::sql::{
    ACCOUNT, HISTORY_TABLE, MIGRATIONS, ROUTINES, SQL_MODE, Source, TABLES, VERSION, VIEWS,
    normalise,
};
use crate::domain::{Error, ErrorCode};
use crate::ports::StoreError;

/// One statement of DDL may wait for calls that are running, and copy a table.
const STEP_LIMIT: Duration = Duration::from_secs(300);

/// What `apply` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// The version before; `None` for a new database.
    pub from: Option<i32>,
    /// The version now.
    pub to: i32,
    /// The migrations that were run, such as `V1__strict_core`.
    pub migrations: Vec<String>,
    /// Views and procedures that were not there and are now.
    pub created: Vec<String>,
    /// Views and procedures that differed and were made again.
    pub replaced: Vec<String>,
    /// How many views and procedures were as they should be.
    pub unchanged: usize,
}

/// What is wrong with an object of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not there.
    Missing,
    /// It is not what this program would make.
    Differs,
}

/// An object of the schema that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `migration`, `table`, `view` or `procedure`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What `check` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The version of the database; `None` when it has no schema.
    pub version: Option<i32>,
    /// The version that this program works with.
    pub current: i32,
    /// Everything that is not as it should be.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// Whether the schema is exactly what this program would make.
    pub fn is_clean(&self) -> bool {
        self.version == Some(self.current) && self.findings.is_empty()
    }
}

/// The version of the schema that this program works with.
pub fn current_version() -> i32 {
    VERSION
}

/// The statement that makes the account of the service.
pub fn print_account() -> String {
    ACCOUNT.to_owned()
}

/// The whole schema as a script for the `mysql` client, for a new database.
pub fn print() -> String {
    let mut out = format!(
        "-- The schema of IdGen, version {VERSION}, for a new and empty database:\n\
         --   mysql -u root -p idgen < this-file\n\
         -- To upgrade, use `idgen schema apply`.\n\
         SET NAMES utf8mb4;\n\
         SET SESSION sql_mode = '{SQL_MODE}';\n\n\
         CREATE TABLE IF NOT EXISTS {HISTORY_TABLE} (\n  version INT PRIMARY KEY,\n  \
         name VARCHAR(255),\n  applied_on VARCHAR(255),\n  checksum VARCHAR(255)\n);\n\n"
    );
    for (source, migration) in MIGRATIONS.iter().zip(migrations()) {
        let _ = write!(
            out,
            "{}\nINSERT IGNORE INTO {HISTORY_TABLE} (version, name, applied_on, checksum) VALUES\n  \
             ({}, '{}', DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ'), '{}');\n\n",
            source.text,
            migration.version(),
            migration.name(),
            migration.checksum()
        );
    }
    for view in VIEWS {
        let _ = write!(out, "{};\n\n", view.text.trim_end());
    }
    out.push_str("DELIMITER //\n\n");
    for routine in ROUTINES {
        let (name, text) = (routine.name, routine.text.trim_end());
        let _ = write!(out, "DROP PROCEDURE IF EXISTS {name}//\n{text}\n//\n\n");
    }
    out.push_str("DELIMITER ;\n");
    out
}

fn migrations() -> Vec<Migration> {
    let parse = |source: &Source| {
        Migration::unapplied(&format!("{}.sql", source.name), source.text)
            .expect("a unit test parses every name")
    };
    MIGRATIONS.iter().map(parse).collect()
}

/// Makes the schema, or brings it up to date. Needs an administrator's account.
///
/// May be run again at any time, also after a crash, and beside another one.
/// Errors: as [`MysqlStore::connect`](super::MysqlStore::connect), `Broken` for
/// a database that a newer program made or whose migrations differ, and
/// `Unavailable` when another `apply` holds the lock for longer than the time
/// limit of the options.
pub async fn apply(options: &MysqlOptions) -> Result<ApplyReport, StoreError> {
    let mut session = Session::open(options).await?;
    session.lock(options.timeout).await?;
    let from = session.version().await?;
    if let Some(version) = from.filter(|v| *v > VERSION) {
        return Err(newer(&session.target, version));
    }
    let mut report = ApplyReport {
        from,
        to: VERSION,
        ..ApplyReport::default()
    };
    report.migrations = migrate(options, &session.target).await?;
    session.record_tables().await?;
    for view in VIEWS {
        let live = session.live("view", view.name).await?;
        let recorded = session.recorded("view", view.name).await?;
        let same = |live: &String| recorded == Some((view.text.to_owned(), live.clone()));
        if live.as_ref().is_some_and(same) {
            report.unchanged += 1;
            continue;
        }
        session.run(view.text).await?;
        session.record("view", view.name, view.text).await?;
        report.note(live.is_some(), view.name);
    }
    for routine in ROUTINES {
        let live = session.live("procedure", routine.name).await?;
        if live.as_deref() == Some(&signature_and_body(routine)) {
            report.unchanged += 1;
            continue;
        }
        session
            .run(&format!("DROP PROCEDURE IF EXISTS {}", routine.name))
            .await?;
        session.run(routine.text).await?;
        report.note(live.is_some(), routine.name);
    }
    Ok(report)
}

impl ApplyReport {
    fn note(&mut self, was_there: bool, name: &str) {
        match was_there {
            true => self.replaced.push(name.to_owned()),
            false => self.created.push(name.to_owned()),
        }
    }
}

fn newer(target: &str, version: i32) -> StoreError {
    StoreError::Broken(format!(
        "{target}: the schema has version {version}, made by a newer program; this one knows \
         version {VERSION}: upgrade it"
    ))
}

/// Runs what was not run yet, each migration with its record.
async fn migrate(options: &MysqlOptions, target: &str) -> Result<Vec<String>, StoreError> {
    let (opts, _) = options.driver_opts()?;
    let one = PoolConstraints::new(0, 1).expect("0 is not above 1");
    let pool_opts = PoolOpts::default().with_constraints(one);
    let builder = mysql_async::OptsBuilder::from_opts(opts).pool_opts(pool_opts);
    let mut pool = DriverPool::new(builder);
    let mut runner = Runner::new(&migrations());
    runner.set_migration_table_name(HISTORY_TABLE);
    let outcome = tokio::time::timeout(STEP_LIMIT, runner.run_async(&mut pool)).await;
    // Bounded too: it waits for a server that may be gone.
    let _ = tokio::time::timeout(options.timeout, pool.disconnect()).await;
    match outcome {
        Ok(Ok(report)) => {
            let named = report.applied_migrations().iter();
            Ok(named.map(ToString::to_string).collect())
        }
        Ok(Err(error)) => Err(StoreError::Broken(format!(
            "{target}: migration: {}",
            with_causes(&error)
        ))),
        Err(_) => Err(too_slow(target)),
    }
}

fn too_slow(target: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "{target}: a step of the schema took longer than {} s",
        STEP_LIMIT.as_secs()
    ))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// Compares the schema of a database with what this program would make, and
/// changes nothing. Needs an account that may read the definitions.
pub async fn check(options: &MysqlOptions) -> Result<CheckReport, StoreError> {
    let mut session = Session::open(options).await?;
    let mut report = CheckReport {
        version: session.version().await?,
        current: VERSION,
        findings: Vec::new(),
    };
    let mut find = |kind, name: &str, fault| {
        report.findings.push(Finding {
            kind,
            name: name.to_owned(),
            fault,
        });
    };
    let applied = session.applied(report.version.is_some()).await?;
    for migration in migrations() {
        let checksum = migration.checksum().to_string();
        match applied.iter().find(|(v, _)| *v == migration.version()) {
            None => find("migration", &migration.to_string(), Fault::Missing),
            Some((_, c)) if *c != checksum => {
                find("migration", &migration.to_string(), Fault::Differs);
            }
            Some(_) => {}
        }
    }
    let tables = TABLES.iter().map(|name| ("table", *name, None));
    let views = VIEWS.iter().map(|v| ("view", v.name, Some(v.text)));
    let has_records = session
        .live("table", "idgen_schema_object")
        .await?
        .is_some();
    for (kind, name, source) in tables.chain(views) {
        let Some(live) = session.live(kind, name).await? else {
            find(kind, name, Fault::Missing);
            continue;
        };
        // A schema that was made from the printed script has no records.
        let recorded = match has_records {
            true => session.recorded(kind, name).await?,
            false => None,
        };
        if let Some((recorded_source, recorded_live)) = recorded
            && (live != recorded_live || source.is_some_and(|s| s != recorded_source))
        {
            find(kind, name, Fault::Differs);
        }
    }
    for routine in ROUTINES {
        match session.live("procedure", routine.name).await? {
            None => find("procedure", routine.name, Fault::Missing),
            Some(live) if live != signature_and_body(routine) => {
                find("procedure", routine.name, Fault::Differs);
            }
            Some(_) => {}
        }
    }
    Ok(report)
}

/// What a procedure is, apart from its name and its definer: parameters,
/// characteristics, body, and the mode that is kept with it.
fn signature_and_body(routine: &Source) -> String {
    let text = normalise(routine.text);
    let (_, rest) = text
        .split_once(&format!("{}(", routine.name))
        .expect("a unit test checks the head of every file");
    format!("[{SQL_MODE}] ({rest}")
}

/// Checks, with the rights of the service's account, that this program knows
/// the schema and can do all that a node does.
pub(super) async fn verify(pool: &Pool) -> Result<(), StoreError> {
    let target = pool.target().to_owned();
    let rows = match pool
        .rows("SELECT version AS version FROM idgen_schema_version", ())
        .await
    {
        Ok(rows) => rows,
        // For a table that is not there, an account without rights on the
        // whole database is told that it has no right to it.
        Err(Failure {
            errno: Some(1142 | 1143 | 1146 | 1356),
            ..
        }) => {
            return Err(StoreError::Broken(format!(
                "{target}: the database has no schema of IdGen, or the account may not read it; \
                 {APPLY_HINT}, then procedures/account.sql"
            )));
        }
        Err(failure) => return Err(failure.into()),
    };
    match column::<Option<i32>>(&only(rows)?, "version")? {
        Some(VERSION) => {}
        Some(version) if version > VERSION => return Err(newer(&target, version)),
        found => {
            let found = found.map_or("none".to_owned(), |v| v.to_string());
            return Err(StoreError::Broken(format!(
                "{target}: the schema has version {found}, this program needs {VERSION}; \
                 {APPLY_HINT}"
            )));
        }
    }
    let missing = missing_rights(pool).await?;
    if missing.is_empty() {
        return Ok(());
    }
    Err(StoreError::Refused(Error::new(
        ErrorCode::PermissionDenied,
        format!(
            "{target}: missing, or without a right for this account: {}; {APPLY_HINT}, then \
             procedures/account.sql",
            missing.join(", ")
        ),
    )))
}

/// The procedures and views that the account does not see, as `EXECUTE on …`
/// and `SELECT on …`.
pub(super) async fn missing_rights(pool: &Pool) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    // A routine is listed only for those who may call or read it.
    let sql = "SELECT routine_name AS name FROM information_schema.routines \
               WHERE routine_schema = DATABASE() AND routine_type = 'PROCEDURE'";
    let rows = pool.rows(sql, ()).await?;
    let names: Vec<String> = rows
        .iter()
        .map(|row| column(row, "name"))
        .collect::<Result<_, _>>()?;
    for routine in ROUTINES {
        if !names.iter().any(|name| name == routine.name) {
            missing.push(format!("EXECUTE on {}", routine.name));
        }
    }
    for view in VIEWS {
        match pool
            .rows(&format!("SELECT 1 AS one FROM {} LIMIT 0", view.name), ())
            .await
        {
            Ok(_) => {}
            Err(Failure {
                errno: Some(1142 | 1143 | 1146 | 1356),
                ..
            }) => missing.push(format!("SELECT on {}", view.name)),
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(missing)
}

/// One connection of an administrator.
struct Session {
    conn: Conn,
    target: String,
}

impl Session {
    async fn open(options: &MysqlOptions) -> Result<Session, StoreError> {
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
            Err(_) => Err(Failure {
                error: too_slow(&self.target),
                errno: None,
            }),
        }
    }

    /// Runs one statement by the text protocol, which knows all of DDL.
    async fn run(&mut self, sql: &str) -> Result<(), StoreError> {
        match tokio::time::timeout(STEP_LIMIT, self.conn.query_drop(sql)).await {
            Ok(answer) => answer.map_err(|error| Failure::new(&self.target, &error).into()),
            Err(_) => Err(too_slow(&self.target)),
        }
    }

    /// Keeps other appliers out until the session ends.
    async fn lock(&mut self, patience: Duration) -> Result<(), StoreError> {
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
    async fn version(&mut self) -> Result<Option<i32>, StoreError> {
        let sql = format!("SELECT MAX(version) AS version FROM {HISTORY_TABLE}");
        match self.rows(&sql, ()).await {
            Ok(rows) => column(&only(rows)?, "version"),
            Err(failure) if failure.errno == Some(1146) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Version and checksum of the migrations that were run.
    async fn applied(&mut self, any: bool) -> Result<Vec<(i32, String)>, StoreError> {
        if !any {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT version, checksum FROM {HISTORY_TABLE}");
        let rows = self.rows(&sql, ()).await?;
        let read = |row: &Row| Ok((column(row, "version")?, column(row, "checksum")?));
        rows.iter().map(read).collect()
    }

    /// The definition as the server has it; `None` if there is no such object.
    async fn live(&mut self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        let (sql, text, absent) = match kind {
            "procedure" => (
                format!("SHOW CREATE PROCEDURE {name}"),
                "Create Procedure",
                1305,
            ),
            "view" => (format!("SHOW CREATE VIEW {name}"), "Create View", 1146),
            _ => (format!("SHOW CREATE TABLE {name}"), "Create Table", 1146),
        };
        let row = match self.rows(&sql, ()).await {
            Ok(rows) => only(rows)?,
            Err(failure) if failure.errno == Some(absent) => return Ok(None),
            // A view onto something that is gone: there, but never as it should be.
            Err(failure) if failure.errno == Some(1356) => return Ok(Some(String::new())),
            Err(failure) => return Err(failure.into()),
        };
        let definition = column::<Option<String>>(&row, text)?.ok_or_else(|| {
            StoreError::Refused(Error::new(
                ErrorCode::PermissionDenied,
                format!(
                    "{}: the account may not read the definition of {name}",
                    self.target
                ),
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
    async fn recorded(
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
    async fn record(&mut self, kind: &str, name: &str, source: &str) -> Result<(), StoreError> {
        let live = self.live(kind, name).await?.unwrap_or_default();
        let sql = "REPLACE INTO idgen_schema_object (kind, name, source, live) VALUES (?, ?, ?, ?)";
        self.rows(sql, (kind, name, source, live)).await?;
        Ok(())
    }

    /// Records the tables once per version, so that a later change by hand is
    /// found, also by the next `apply`.
    async fn record_tables(&mut self) -> Result<(), StoreError> {
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
    match (
        definition.find(" DEFINER="),
        definition.find(" SQL SECURITY "),
    ) {
        (Some(start), Some(end)) if start < end => {
            format!("{}{}", &definition[..start], &definition[end..])
        }
        _ => definition.to_owned(),
    }
}

/// A table's definition without the counter of AUTO_INCREMENT.
fn without_counter(definition: &str) -> String {
    let words = definition.split(' ');
    let kept: Vec<_> = words
        .filter(|w| !w.starts_with("AUTO_INCREMENT="))
        .collect();
    kept.join(" ")
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

    #[test]
    fn the_script_holds_everything() {
        let script = print();
        for source in MIGRATIONS.iter().chain(VIEWS).chain(ROUTINES) {
            assert!(script.contains(source.text.trim_end()), "{}", source.name);
        }
        assert_eq!(migrations().len(), MIGRATIONS.len());
    }
}
