//! Facts about the server and the account, for `idgen doctor`.

use crate::ports::MysqlFacts;

use super::options::MysqlOptions;
use super::rows::{column, only};
use super::sql::VIEWS;
use super::{open_pool, schema};
use crate::ports::StoreError;


/// Connects with the service's account and asks. Errors: as
/// [`MysqlStore::connect`](super::MysqlStore::connect), but a missing schema and
/// missing rights are no errors here: they are in `missing_rights`.
pub async fn doctor(options: &MysqlOptions) -> Result<MysqlFacts, StoreError> {
    let pool = open_pool(options)?;
    let sql = "SELECT VERSION() AS version, \
               CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS SIGNED) AS flush_log, \
               CAST(@@GLOBAL.sync_binlog AS SIGNED) AS sync_binlog, \
               CAST(@@GLOBAL.log_bin AS SIGNED) AS log_bin, \
               CAST(@@GLOBAL.read_only AS SIGNED) AS read_only";
    let facts = only(pool.rows(sql, ()).await?)?;
    let version: String = column(&facts, "version")?;

    let cipher = only(
        pool.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'", ())
            .await?,
    )?;
    let grants = pool.rows("SHOW GRANTS FOR CURRENT_USER()", ()).await?;
    let database: String = column(
        &only(pool.rows("SELECT DATABASE() AS name", ()).await?)?,
        "name",
    )?;
    let mut excess_rights = Vec::new();
    for row in &grants {
        let line: String = row.get_opt(0).and_then(Result::ok).unwrap_or_default();
        excess_rights.extend(excess(&line, &database));
    }
    let missing_rights = schema::missing_rights(&pool).await?;

    let sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 \
               AS clock_ms";
    // Once to prepare the statement, once to measure.
    pool.rows(sql, ()).await?;
    let began = tokio::time::Instant::now();
    let clock = only(pool.rows(sql, ()).await?)?;
    let round_trip = began.elapsed();
    Ok(MysqlFacts {
        is_mariadb: version.contains("MariaDB"),
        version,
        innodb_flush_log_at_trx_commit: column(&facts, "flush_log")?,
        sync_binlog: column(&facts, "sync_binlog")?,
        log_bin: column::<i64>(&facts, "log_bin")? != 0,
        read_only: column::<i64>(&facts, "read_only")? != 0,
        tls: !column::<String>(&cipher, "Value")?.is_empty(),
        missing_rights,
        excess_rights,
        clock_ms: column(&clock, "clock_ms")?,
        round_trip,
    })
}

/// The rights of one line of `SHOW GRANTS` that a node does not need.
fn excess(line: &str, database: &str) -> Vec<String> {
    let Some((rights, rest)) = line
        .strip_prefix("GRANT ")
        .and_then(|line| line.split_once(" ON "))
    else {
        // A role, whose rights are listed elsewhere.
        let role = line.strip_prefix("GRANT ").unwrap_or(line);
        return vec![format!(
            "role {}",
            role.split(" TO ").next().unwrap_or(role)
        )];
    };
    let scope = rest.split(" TO ").next().unwrap_or(rest);
    // In a grant on a whole database, `_` is written with a backslash.
    let plain = scope.replace('\\', "");
    let whole_database = plain == format!("`{database}`.*");
    let view = VIEWS
        .iter()
        .any(|view| plain == format!("`{database}`.`{}`", view.name));
    let procedure = plain.starts_with("PROCEDURE ");
    let mut out: Vec<String> = rights
        .split(", ")
        .filter(|right| match *right {
            "USAGE" => false,
            "EXECUTE" => !(whole_database || procedure),
            "SELECT" => !view,
            _ => true,
        })
        .map(|right| format!("{right} on {scope}"))
        .collect();
    if rest.contains("WITH GRANT OPTION") {
        out.push(format!("GRANT OPTION on {scope}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_by_cases() {
        let none: [&str; 0] = [];
        for (line, expected) in [
            (
                "GRANT USAGE ON *.* TO `app`@`%` IDENTIFIED BY PASSWORD 'x'",
                &none[..],
            ),
            ("GRANT EXECUTE ON `id_gen`.* TO `app`@`%`", &none),
            ("GRANT EXECUTE ON `id\\_gen`.* TO `app`@`%`", &none),
            ("GRANT SELECT ON `id_gen`.`idgen_types` TO `app`@`%`", &none),
            (
                "GRANT SELECT ON `id_gen`.`idgen_type` TO `app`@`%`",
                &["SELECT on `id_gen`.`idgen_type`"],
            ),
            (
                "GRANT SELECT, EXECUTE ON `id_gen`.* TO `app`@`%`",
                &["SELECT on `id_gen`.*"],
            ),
            ("GRANT EXECUTE ON *.* TO `app`@`%`", &["EXECUTE on *.*"]),
            (
                "GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION",
                &["ALL PRIVILEGES on *.*", "GRANT OPTION on *.*"],
            ),
            ("GRANT `boss`@`%` TO `app`@`%`", &["role `boss`@`%`"]),
        ] {
            assert_eq!(excess(line, "id_gen"), expected, "{line}");
        }
    }
}
