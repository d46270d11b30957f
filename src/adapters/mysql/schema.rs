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

use mysql_async::{Pool as DriverPool, PoolConstraints, PoolOpts};
use refinery_core::{Migration, Runner};

use super::errors::{APPLY_HINT, Failure};
use super::options::MysqlOptions;
use super::pool::Pool;
use super::rows::{column, only};
use super::session::{STEP_LIMIT, Session, too_slow};
use super::sql::{
    ACCOUNT, HISTORY_TABLE, MIGRATIONS, ROUTINES, SQL_MODE, Source, TABLES, VERSION, VIEWS,
    normalise,
};
use crate::domain::{Error, ErrorCode};
use crate::ports::StoreError;

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
    let mut report = ApplyReport { from, to: VERSION, ..ApplyReport::default() };
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
        session.run(&format!("DROP PROCEDURE IF EXISTS {}", routine.name)).await?;
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
        Ok(Err(error)) => {
            Err(StoreError::Broken(format!("{target}: migration: {}", with_causes(&error))))
        }
        Err(_) => Err(too_slow(target)),
    }
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
    let mut report =
        CheckReport { version: session.version().await?, current: VERSION, findings: Vec::new() };
    let mut find = |kind, name: &str, fault| {
        report.findings.push(Finding { kind, name: name.to_owned(), fault });
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
    let has_records = session.live("table", "idgen_schema_object").await?.is_some();
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
    let rows = match pool.rows("SELECT version AS version FROM idgen_schema_version", ()).await {
        Ok(rows) => rows,
        // For a table that is not there, an account without rights on the
        // whole database is told that it has no right to it.
        Err(Failure { errno: Some(1142 | 1143 | 1146 | 1356), .. }) => {
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
    let names: Vec<String> =
        rows.iter().map(|row| column(row, "name")).collect::<Result<_, _>>()?;
    for routine in ROUTINES {
        if !names.iter().any(|name| name == routine.name) {
            missing.push(format!("EXECUTE on {}", routine.name));
        }
    }
    for view in VIEWS {
        match pool.rows(&format!("SELECT 1 AS one FROM {} LIMIT 0", view.name), ()).await {
            Ok(_) => {}
            Err(Failure { errno: Some(1142 | 1143 | 1146 | 1356), .. }) => {
                missing.push(format!("SELECT on {}", view.name))
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_holds_everything() {
        let script = print();
        for source in MIGRATIONS.iter().chain(VIEWS).chain(ROUTINES) {
            assert!(script.contains(source.text.trim_end()), "{}", source.name);
        }
        assert_eq!(migrations().len(), MIGRATIONS.len());
    }
}
