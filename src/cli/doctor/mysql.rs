//! Checks of the range store on MySQL or MariaDB.

use super::{Check, Verdict, Wiring, clock, now_ms};
use crate::config::StoreSettings;
use crate::ports::MysqlFacts;

const PART: &str = "mysql";

pub(super) fn checks(store: &StoreSettings, wiring: &Wiring) -> Vec<Check> {
    if store.mysql.is_none() {
        let found = "not given: the embedded store is used";
        return vec![Check::ok(PART, "connection", found)];
    }
    match (wiring.mysql_facts)(store) {
        Ok(facts) => judge(&facts, now_ms(), is_local(store)),
        Err(failure) => vec![Check::ok(PART, "connection", failure.message).with(
            Verdict::Fail,
            "check that the server runs, and the URL, user and password",
        )],
    }
}

/// Whether the connection stays on this machine.
fn is_local(store: &StoreSettings) -> bool {
    let url = store.mysql.as_deref().unwrap_or_default();
    let place = url.rsplit('@').next().unwrap_or_default();
    let place = place.trim_start_matches("mysql://");
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|host| place.starts_with(host))
}

/// Judges `facts` that were gathered until `now_ms`.
fn judge(facts: &MysqlFacts, now_ms: i64, local: bool) -> Vec<Check> {
    let flush = facts.innodb_flush_log_at_trx_commit;
    let half = facts.round_trip.as_millis() as i64 / 2;
    let mut checks =
        vec![
        Check::ok(PART, "connection", format!("answers in {:?}", facts.round_trip)),
        version(facts),
        Check::ok(PART, "commits on disk", format!("innodb_flush_log_at_trx_commit = {flush}"))
            .unless(
                flush == 1,
                Verdict::Fail,
                "set innodb_flush_log_at_trx_commit = 1: otherwise a crash of the server can take \
                 back ranges that were already given out, and only Redis still knows of them",
            ),
        binary_log(facts),
        Check::ok(PART, "writable", if facts.read_only { "read_only = ON" } else { "yes" })
            .unless(
                !facts.read_only,
                Verdict::Fail,
                "connect to the primary server: a replica cannot give out ranges",
            ),
        Check::ok(PART, "rights needed", some_or(&facts.missing_rights, "all there")).unless(
            facts.missing_rights.is_empty(),
            Verdict::Fail,
            "run `idgen schema apply` as an administrator, then give the account its rights \
             (procedures/account.sql)",
        ),
        Check::ok(PART, "rights to spare", some_or(&facts.excess_rights, "none")).unless(
            facts.excess_rights.is_empty(),
            Verdict::Warn,
            "a node needs none of these: give it an account of its own (procedures/account.sql), \
             and keep the administrator's for `idgen schema apply`",
        ),
        Check::ok(PART, "encryption", if facts.tls { "TLS" } else { "none" }).unless(
            facts.tls || local,
            Verdict::Warn,
            "passwords and ranges cross the network in the clear: turn TLS on with \
             store.mysql_ca_file or ?require_ssl=true in the URL",
        ),
    ];
    checks.push(clock(
        PART,
        facts.clock_ms + half - now_ms,
        facts.round_trip,
    ));
    checks
}

fn version(facts: &MysqlFacts) -> Check {
    let mut parts = facts.version.split(['.', '-']);
    let mut number = || {
        parts
            .next()
            .and_then(|p| p.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let found = (number(), number());
    let least = if facts.is_mariadb { (10, 6) } else { (8, 0) };
    Check::ok(PART, "version", facts.version.clone()).unless(
        found >= least,
        Verdict::Fail,
        "the procedures need MySQL 8.0 or MariaDB 10.6 at least",
    )
}

fn binary_log(facts: &MysqlFacts) -> Check {
    if !facts.log_bin {
        return Check::ok(PART, "binary log", "log_bin = OFF").with(
            Verdict::Warn,
            "without a binary log there is no replica and no restore to the moment of a loss; \
             fine for a test",
        );
    }
    Check::ok(
        PART,
        "binary log",
        format!("sync_binlog = {}", facts.sync_binlog),
    )
    .unless(
        facts.sync_binlog == 1,
        Verdict::Warn,
        "set sync_binlog = 1: otherwise replicas and restores can lack the latest ranges after a \
         crash",
    )
}

fn some_or(rights: &[String], none: &str) -> String {
    if rights.is_empty() {
        none.to_owned()
    } else {
        rights.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> MysqlFacts {
        MysqlFacts {
            version: "8.0.36".into(),
            is_mariadb: false,
            innodb_flush_log_at_trx_commit: 1,
            sync_binlog: 1,
            log_bin: true,
            read_only: false,
            tls: true,
            missing_rights: vec![],
            excess_rights: vec![],
            clock_ms: 1_000_000,
            round_trip: std::time::Duration::from_millis(2),
        }
    }

    #[test]
    fn a_good_server_is_ok() {
        for check in judge(&good(), 1_000_001, false) {
            assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
            assert!(check.advice.is_empty());
        }
    }

    #[test]
    fn each_fault_is_found_alone_and_has_advice() {
        type Break = fn(&mut MysqlFacts);
        let cases: [(&str, Verdict, Break); 11] = [
            ("version", Verdict::Fail, |f| f.version = "5.7.44".into()),
            ("version", Verdict::Fail, |f| {
                f.version = "10.5.9-MariaDB".into();
                f.is_mariadb = true;
            }),
            ("version", Verdict::Fail, |f| f.version = "strange".into()),
            ("commits on disk", Verdict::Fail, |f| {
                f.innodb_flush_log_at_trx_commit = 2;
            }),
            ("binary log", Verdict::Warn, |f| f.sync_binlog = 0),
            ("binary log", Verdict::Warn, |f| f.log_bin = false),
            ("writable", Verdict::Fail, |f| f.read_only = true),
            ("rights needed", Verdict::Fail, |f| {
                f.missing_rights = vec!["EXECUTE".into()];
            }),
            ("rights to spare", Verdict::Warn, |f| {
                f.excess_rights = vec!["SUPER on *.*".into()];
            }),
            ("encryption", Verdict::Warn, |f| f.tls = false),
            ("clock", Verdict::Warn, |f| f.clock_ms += 1_500),
        ];
        for (name, verdict, change) in cases {
            let mut facts = good();
            change(&mut facts);
            let bad: Vec<Check> = judge(&facts, 1_000_001, false)
                .into_iter()
                .filter(|check| check.verdict != Verdict::Ok)
                .collect();
            assert_eq!(bad.len(), 1, "{name}: {bad:?}");
            assert_eq!((bad[0].name, bad[0].verdict), (name, verdict));
            assert!(!bad[0].advice.is_empty());
        }
    }

    #[test]
    fn new_versions_are_good() {
        for (version, is_mariadb) in [
            ("10.11.6-MariaDB-0+deb12u1", true),
            ("11.4.2-MariaDB", true),
            ("9.1.0", false),
            ("8.0.11", false),
        ] {
            let facts = MysqlFacts {
                version: version.into(),
                is_mariadb,
                ..good()
            };
            assert_eq!(super::version(&facts).verdict, Verdict::Ok, "{version}");
        }
    }
}
