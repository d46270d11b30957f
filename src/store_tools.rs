//! What the commands `schema` and `doctor` need of the MySQL adapter, in the
//! shapes of the command line.

use std::future::Future;

use idgen::adapters::mysql::schema::{self, ApplyReport, CheckReport, Fault};
use idgen::adapters::mysql::{self, MysqlOptions};
use idgen::cli::doctor::MysqlFacts;
use idgen::cli::exit::{FAILED, Failure, REFUSED, UNAVAILABLE, USAGE};
use idgen::cli::schema::SchemaReport;
use idgen::config::StoreSettings;
use idgen::domain::ErrorCode;
use idgen::ports::StoreError;

/// Makes the schema of a MySQL, or brings it up to date.
pub fn schema_apply(store: &StoreSettings) -> Result<SchemaReport, Failure> {
    run(schema::apply(&options(store))).map(applied)
}

/// Compares the schema of a MySQL with that of this version.
pub fn schema_check(store: &StoreSettings) -> Result<SchemaReport, Failure> {
    run(schema::check(&options(store))).map(checked)
}

/// Asks a MySQL about itself and the account of the service.
pub fn mysql_facts(store: &StoreSettings) -> Result<MysqlFacts, Failure> {
    let facts = run(mysql::doctor(&options(store)))?;
    Ok(MysqlFacts {
        version: facts.version,
        is_mariadb: facts.is_mariadb,
        innodb_flush_log_at_trx_commit: facts.innodb_flush_log_at_trx_commit,
        sync_binlog: facts.sync_binlog,
        log_bin: facts.log_bin,
        read_only: facts.read_only,
        tls: facts.tls,
        missing_rights: facts.missing_rights,
        excess_rights: facts.excess_rights,
        clock_ms: facts.clock_ms,
        round_trip: facts.round_trip,
    })
}

fn options(store: &StoreSettings) -> MysqlOptions {
    MysqlOptions {
        // The command line refuses a missing URL before it gets here.
        url: store.mysql.clone().unwrap_or_default(),
        ca_file: store.mysql_ca_file.clone(),
        pool_max: store.pool_max,
        timeout: store.timeout,
    }
}

/// Runs one call on a runtime of its own, and gives its failure an exit code.
fn run<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format_args!("cannot start: {error}")))?;
    runtime.block_on(work).map_err(|error| {
        let code = match &error {
            StoreError::Unavailable(_) => UNAVAILABLE,
            StoreError::Refused(why) if why.code == ErrorCode::InvalidArgument => USAGE,
            StoreError::Refused(_) => REFUSED,
            _ => FAILED,
        };
        Failure::new(code, error)
    })
}

fn applied(report: ApplyReport) -> SchemaReport {
    let done = [
        ("ran migration", report.migrations),
        ("created", report.created),
        ("replaced", report.replaced),
    ];
    let mut lines = Vec::new();
    for (verb, names) in done {
        lines.extend(names.into_iter().map(|name| format!("{verb} {name}")));
    }
    if lines.is_empty() {
        lines.push("nothing to do".to_owned());
    }
    SchemaReport { version: Some(report.to), wanted: schema::current_version(), lines, clean: true }
}

fn checked(report: CheckReport) -> SchemaReport {
    let clean = report.is_clean();
    let line = |finding: schema::Finding| {
        let fault = match finding.fault {
            Fault::Missing => "is missing",
            Fault::Differs => "differs",
        };
        format!("{} {} {fault}", finding.kind, finding.name)
    };
    SchemaReport {
        version: report.version,
        wanted: report.current,
        lines: report.findings.into_iter().map(line).collect(),
        clean,
    }
}
