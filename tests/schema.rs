//! Making, checking and printing the schema, and its procedures by hand, on
//! MariaDB and MySQL 8.

mod support;

use idgen::adapters::mysql::schema::{self, Fault, Finding};
use idgen::adapters::mysql::{MysqlOptions, MysqlStore, sql};
use idgen::domain::{
    InstanceSpec, Period, PeriodSpan, Placement, TypeChange, TypeName, TypeOptions, TypeSpec,
};
use idgen::ports::{NextRange, RangeStore, StoreError};
use support::sql_server::{SqlServer, TestDb};

macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::support::mariadb::shared()).await;
            })+
        }
        mod on_mysql8 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::support::mysql8::shared()).await;
            })+
        }
    };
}

on_both!(
    applied_twice_changes_nothing_the_second_time,
    appliers_do_not_interfere,
    tampering_is_found_and_repaired,
    an_apply_that_died_is_run_again,
    a_schema_of_a_newer_program_is_refused,
    a_changed_migration_is_an_error,
    a_grant_survives_a_replaced_procedure,
    an_owner_of_the_database_is_enough,
    the_printed_script_makes_the_same,
    every_procedure_by_the_command_line_client,
    every_kind_by_the_command_line_client,
    migrations_by_the_command_line_client,
    older_versions_go_on,
);

fn objects() -> usize {
    sql::VIEWS.len() + sql::ROUTINES.len()
}

async fn applied_twice_changes_nothing_the_second_time(server: &SqlServer) {
    let db = TestDb::empty(server);
    let before = schema::check(&db.admin).await.unwrap();
    assert_eq!((before.version, before.current), (None, schema::current_version()));
    assert_eq!(before.findings.len(), objects() + sql::TABLES.len() + sql::MIGRATIONS.len());

    let first = schema::apply(&db.admin).await.unwrap();
    assert_eq!((first.from, first.to), (None, schema::current_version()));
    assert_eq!(first.migrations, sql::MIGRATIONS.iter().map(|m| m.name).collect::<Vec<_>>());
    assert_eq!((first.created.len(), first.unchanged), (objects(), 0));
    assert!(first.replaced.is_empty());
    let report = schema::check(&db.admin).await.unwrap();
    assert!(report.is_clean(), "{report:?}");

    let second = schema::apply(&db.admin).await.unwrap();
    assert_eq!(second.from, Some(schema::current_version()));
    assert_eq!(second.unchanged, objects(), "{second:?}");
    assert!(
        second.migrations.is_empty() && second.created.is_empty() && second.replaced.is_empty()
    );
}

async fn appliers_do_not_interfere(server: &SqlServer) {
    let db = TestDb::empty(server);
    let appliers: Vec<_> = (0..4)
        .map(|_| {
            let mut options = db.admin.clone();
            options.timeout = std::time::Duration::from_secs(60);
            tokio::spawn(async move { schema::apply(&options).await })
        })
        .collect();
    let mut created = 0;
    for applier in appliers {
        created += applier.await.unwrap().expect("applied").created.len();
    }
    assert_eq!(created, objects(), "one made it, the others found it made");
    assert!(schema::check(&db.admin).await.unwrap().is_clean());
}

async fn tampering_is_found_and_repaired(server: &SqlServer) {
    let db = TestDb::new(server).await;
    // An administrator "repairs" a procedure: the refusal of retired types is gone.
    let body = sql::ROUTINES
        .iter()
        .find(|r| r.name == "idgen_reserve")
        .unwrap()
        .text
        .replace("v_state <> 'active'", "v_state = 'never'");
    server.sql(&db.name, &format!("DROP PROCEDURE idgen_reserve;\nDELIMITER //\n{body}\n//"));
    server.sql(&db.name, "DROP PROCEDURE idgen_type_status");
    server.sql(&db.name, "DROP VIEW idgen_ranges");
    server.sql(
        &db.name,
        "CREATE OR REPLACE VIEW idgen_instances AS SELECT id, name, url, 0 AS types FROM idgen_redis_instance",
    );
    let found = |kind, name: &str, fault| Finding { kind, name: name.to_owned(), fault };
    let expected = [
        found("view", "idgen_instances", Fault::Differs),
        found("view", "idgen_ranges", Fault::Missing),
        found("procedure", "idgen_reserve", Fault::Differs),
        found("procedure", "idgen_type_status", Fault::Missing),
    ];
    assert_eq!(schema::check(&db.admin).await.unwrap().findings, expected);

    let report = schema::apply(&db.admin).await.unwrap();
    assert_eq!(report.replaced, ["idgen_instances", "idgen_reserve"]);
    assert_eq!(report.created, ["idgen_ranges", "idgen_type_status"]);
    assert_eq!(schema::check(&db.admin).await.unwrap().findings, []);

    // Another mode changes what a procedure does, without a letter of its text.
    let text = sql::ROUTINES[0].text;
    let name = sql::ROUTINES[0].name;
    server.sql(
        &db.name,
        &format!("SET sql_mode = '';\nDROP PROCEDURE {name};\nDELIMITER //\n{text}\n//"),
    );
    let expected = [found("procedure", name, Fault::Differs)];
    assert_eq!(schema::check(&db.admin).await.unwrap().findings, expected);
    schema::apply(&db.admin).await.unwrap();

    // A table cannot be repaired by a program; it is told, again and again.
    server.sql(&db.name, "ALTER TABLE idgen_range_log DROP INDEX idgen_range_log_start");
    schema::apply(&db.admin).await.unwrap();
    let expected = [found("table", "idgen_range_log", Fault::Differs)];
    assert_eq!(schema::check(&db.admin).await.unwrap().findings, expected);
}

async fn an_apply_that_died_is_run_again(server: &SqlServer) {
    // After some tables, before their record.
    let early = TestDb::empty(server);
    for statement in sql::statements(sql::MIGRATIONS[0].text).take(3) {
        server.sql(&early.name, statement);
    }
    // After the tables and some procedures: one of them is dropped and not yet
    // made again, and nothing is recorded.
    let late = TestDb::new(server).await;
    server.sql(&late.name, "DROP PROCEDURE idgen_next_range; DELETE FROM idgen_schema_object");
    // After the first statements of a migration that is not recorded.
    let between = TestDb::new(server).await;
    server.sql(
        &between.name,
        "DELETE FROM idgen_schema_history; UPDATE idgen_counter SET value = 41",
    );
    for db in [&early, &late, &between] {
        schema::apply(&db.admin).await.unwrap();
        assert!(schema::check(&db.admin).await.unwrap().is_clean());
    }
    let value = server.sql(&between.name, "SELECT value FROM idgen_counter WHERE name = 'change'");
    assert_eq!(value, "41", "what was there is kept");
}

async fn refused(options: &MysqlOptions) -> [String; 2] {
    let connect = MysqlStore::connect(options.clone()).await.err().expect("refused");
    let apply = schema::apply(options).await.expect_err("refused");
    for error in [&connect, &apply] {
        assert!(matches!(error, StoreError::Broken(_)), "{error:?}");
    }
    [connect.to_string(), apply.to_string()]
}

async fn a_schema_of_a_newer_program_is_refused(server: &SqlServer) {
    let db = TestDb::new(server).await;
    server.sql(
        &db.name,
        "INSERT INTO idgen_schema_history VALUES (77, 'later', '2027-01-01T00:00:00Z', '1')",
    );
    for said in refused(&db.admin).await {
        assert!(said.contains("version 77") && said.contains("upgrade"), "{said}");
    }
    let report = schema::check(&db.admin).await.unwrap();
    assert_eq!(report.version, Some(77));
    assert!(!report.is_clean());

    server.sql(&db.name, "DELETE FROM idgen_schema_history");
    let error = MysqlStore::connect(db.app.clone()).await.err().expect("refused");
    assert!(error.to_string().contains("idgen schema apply"), "{error}");
}

async fn a_changed_migration_is_an_error(server: &SqlServer) {
    let db = TestDb::new(server).await;
    server.sql(&db.name, "UPDATE idgen_schema_history SET checksum = '1'");
    let error = schema::apply(&db.admin).await.expect_err("refused");
    assert!(
        matches!(&error, StoreError::Broken(said) if said.contains("V1__strict_core")),
        "{error:?}"
    );
    let report = schema::check(&db.admin).await.unwrap();
    let differs = |migration: &sql::Source| Finding {
        kind: "migration",
        name: migration.name.into(),
        fault: Fault::Differs,
    };
    assert_eq!(report.findings, sql::MIGRATIONS.iter().map(differs).collect::<Vec<_>>());
}

/// Also for a node that is running, with its statements prepared.
async fn a_grant_survives_a_replaced_procedure(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store = MysqlStore::connect(db.app.clone()).await.expect("a store");
    let spec = InstanceSpec { name: "main".into(), url: "redis://h".into() };
    store.add_instance(&spec, "test").await.unwrap();
    let order = TypeName::parse("order").unwrap();
    store.create_type(&TypeSpec::new(order.clone()), "test").await.unwrap();
    store.reserve(&order, 5, 0, "test").await.unwrap();
    for source in sql::ROUTINES {
        server.sql(&db.name, &format!("DROP PROCEDURE {}", source.name));
    }
    assert!(MysqlStore::connect(db.app.clone()).await.is_err());
    let answer = store.reserve(&order, 5, 0, "test").await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    schema::apply(&db.admin).await.unwrap();
    let range = store.reserve(&order, 5, 0, "test").await.expect("as before");
    assert_eq!(range.start(), 6);
    assert_eq!(store.find_type(&order).await.unwrap().unwrap().next_id, 11);
}

/// The rights that docs/dba-guide.md names for the account that applies.
async fn an_owner_of_the_database_is_enough(server: &SqlServer) {
    let mut db = TestDb::empty(server);
    let guide = include_str!("../docs/dba-guide.md");
    let rights = guide.split("needs, on this database: `").nth(1).unwrap();
    let rights = rights.split('`').next().unwrap();
    server.sql(
        &db.name,
        &format!(
            "CREATE USER 'owner_{0}'@'%' IDENTIFIED BY '{1}'; GRANT {rights} ON {0}.* TO 'owner_{0}'@'%'",
            db.name,
            TestDb::PASSWORD
        ),
    );
    let user = format!("owner_{}", db.name);
    db.admin = MysqlOptions::new(server.url(&user, TestDb::PASSWORD, &db.name));
    schema::apply(&db.admin).await.unwrap();
    assert_eq!(schema::apply(&db.admin).await.unwrap().unchanged, objects());
    assert!(schema::check(&db.admin).await.unwrap().is_clean());
    db.create_account(server);
    let store = MysqlStore::connect(db.app.clone()).await.expect("a store");
    let spec = InstanceSpec { name: "main".into(), url: "redis://h".into() };
    store.add_instance(&spec, "test").await.expect("the owner's rights are enough to call");
    let order = TypeName::parse("order").unwrap();
    store.create_type(&TypeSpec::new(order.clone()), "test").await.unwrap();
    store.reserve(&order, 5, 0, "test").await.unwrap();
    // The service's account sees no definitions, and is told so.
    let answer = schema::check(&db.app).await;
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
}

async fn the_printed_script_makes_the_same(server: &SqlServer) {
    let db = TestDb::empty(server);
    // With and without comments, which clients may drop.
    for option in ["--comments", "--skip-comments"] {
        let output = server.client(&db.name, &schema::print(), &[option]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let report = schema::check(&db.admin).await.unwrap();
        assert!(report.is_clean(), "{option}: {report:?}");
    }
    db.create_account(server);
    MysqlStore::connect(db.app.clone()).await.expect("a store");
    let report = schema::apply(&db.admin).await.unwrap();
    assert!(report.migrations.is_empty(), "the script has recorded them");
    assert!(schema::check(&db.admin).await.unwrap().is_clean());
    assert!(schema::print_account().contains("GRANT EXECUTE ON *"));
}

/// Calls, with what the client must print: a piece of the table, or the error.
const BY_HAND: &[(&str, &str)] = &[
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45002 (45000) at line 1: no Redis instance is registered: add one with idgen_add_redis_instance",
    ),
    (
        "idgen_add_redis_instance('main', 'http://redis', 'ann')",
        "ERROR 45119 (45000) at line 1: url of a Redis instance must begin with redis[s]://, redis[s]+sentinel:// or redis[s]+cluster://, at most 1024 bytes",
    ),
    (
        "idgen_add_redis_instance('main', 'redis://:secret@redis:6379/0', 'ann')",
        "|  1 | main | redis://***@redis:6379/0 |     0 |",
    ),
    (
        "idgen_add_redis_instance('main', 'redis://redis:6379/0', 'ann')",
        "ERROR 45005 (45000) at line 1: a Redis instance called \"main\" exists already",
    ),
    (
        "idgen_create_type('order', 'fast', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45102 (45000) at line 1: mode is not known; this version has: strict, segment, sharded, snowflake",
    ),
    (
        "idgen_create_type('order', NULL, 'a\tb', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45103 (45000) at line 1: prefix must not hold control characters",
    ),
    (
        "idgen_create_type('order', NULL, _utf8mb4 X'61C285', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45103 (45000) at line 1: prefix must not hold control characters",
    ),
    (
        "idgen_create_type('order', NULL, REPEAT('é', 65), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45103 (45000) at line 1: prefix has 65 characters; the limit is 64",
    ),
    (
        "idgen_create_type('order', NULL, NULL, REPEAT('é', 32768), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45104 (45000) at line 1: description has 65536 bytes; the limit is 65535",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45105 (45000) at line 1: first_id 0 is out of range: it must be from 1 to 9223372036854775806",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, 10, 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45106 (45000) at line 1: max_id 9 is out of range: it must be from 10 to 9223372036854775806",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45107 (45000) at line 1: min_range 0 is out of range: it must be from 1 to 1000000000000",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, 999, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45108 (45000) at line 1: max_range 999 is out of range: it must be from 1000 to 1000000000000",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45109 (45000) at line 1: load_interval_ms 0 is out of range: it must be from 1 to 86400000",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1.5, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45110 (45000) at line 1: load_percentage 1.5 is out of range: it must be from 0 to 1",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10, NULL, NULL, NULL, NULL)",
        "ERROR 45111 (45000) at line 1: lock_ttl_ms 10 is out of range: it must be from 1000 to 600000",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'nope', NULL, NULL, NULL)",
        "ERROR 45002 (45000) at line 1: no Redis instance is called \"nope\"",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, REPEAT('x', 129))",
        "ERROR 45113 (45000) at line 1: actor has 129 characters; the limit is 128",
    ),
    (
        "idgen_create_type('order', 'strict', 'O-', 'orders', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'main', NULL, NULL, 'ann')",
        "| order | strict | active | O-     | orders      |",
    ),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45005 (45000) at line 1: an id type called \"order\" exists already",
    ),
    (
        "idgen_next_range('order', NULL, NULL, NULL, NULL, NULL, NULL)",
        "|        1 |   1001 |       101 |   1000 |",
    ),
    (
        "idgen_next_range('order', 1, 'aaa', 900, 60000, 0, 'ann')",
        "|     1001 |  10001 |      1901 |   9000 |",
    ),
    (
        "idgen_next_range('order', 1, 'bbb', NULL, NULL, 20000, 'ann')",
        "|    20000 |  29000 |     20900 |   9000 |",
    ),
    (
        "idgen_next_range('order', 1, 'aaa', NULL, NULL, 0, 'ann')",
        "ERROR 45009 (45000) at line 1: history of id type \"order\" was succeeded by another one: the Redis server was replaced",
    ),
    (
        "idgen_next_range('order', 7, 'bbb', NULL, NULL, 0, 'ann')",
        "ERROR 45008 (45000) at line 1: id type \"order\" is assigned to Redis instance 1, not 7",
    ),
    (
        "idgen_next_range('order', 1, NULL, NULL, NULL, 0, 'ann')",
        "ERROR 45116 (45000) at line 1: instance and history belong together: give both, or NULL for both",
    ),
    (
        "idgen_next_range('order', 1, 'b b', NULL, NULL, 0, 'ann')",
        "ERROR 45117 (45000) at line 1: history is not legal: it must be 1 to 64 letters, digits or _ . : -",
    ),
    (
        "idgen_next_range('order', NULL, NULL, -1, 5, 0, 'ann')",
        "ERROR 45114 (45000) at line 1: consumed -1 is out of range: it must be from 0 to 18446744073709551615",
    ),
    (
        "idgen_next_range('order', NULL, NULL, 1, NULL, 0, 'ann')",
        "ERROR 45115 (45000) at line 1: elapsed_ms NULL is out of range: it must be from 0 to 18446744073709551615",
    ),
    (
        "idgen_next_range('order', NULL, NULL, NULL, NULL, -1, 'ann')",
        "ERROR 45112 (45000) at line 1: floor -1 is out of range: it must be from 0 to 9223372036854775807",
    ),
    (
        "idgen_next_range('order', NULL, NULL, NULL, NULL, 9223372036854775807, 'ann')",
        "ERROR 45007 (45000) at line 1: id type \"order\" is exhausted: its highest id is 9223372036854775806",
    ),
    (
        "idgen_next_range('nobody', NULL, NULL, NULL, NULL, NULL, NULL)",
        "ERROR 45001 (45000) at line 1: no id type is called \"nobody\"",
    ),
    ("idgen_reserve('order', 500, NULL, 'ann')", "|    29000 |  29500 |   29499 |    500 |"),
    (
        "idgen_reserve('order', 0, NULL, 'ann')",
        "ERROR 45118 (45000) at line 1: count 0 is out of range: it must be from 1 to 1000000000000",
    ),
    (
        "idgen_alter_type('order', 1, 'ORD-', NULL, 29504, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "| order | strict | active | ORD-   | orders      |",
    ),
    (
        "idgen_alter_type('order', 1, 'X', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45006 (45000) at line 1: id type \"order\" has version 2, not 1: read it again",
    ),
    (
        "idgen_reserve('order', 6, NULL, 'ann')",
        "ERROR 45007 (45000) at line 1: id type \"order\" has 5 ids left up to its highest id 29504",
    ),
    ("idgen_retire_type('order', 'ann')", "| order | strict | retired |"),
    (
        "idgen_reserve('order', 5, NULL, 'ann')",
        "ERROR 45003 (45000) at line 1: id type \"order\" is retired",
    ),
    ("idgen_restore_type('order', 'ann')", "| order | strict | active |"),
    ("idgen_type_status('order')", "| order | active | strict |   29500 |  29504 |        5 |"),
    (
        "idgen_remove_redis_instance('main', 'ann')",
        "ERROR 45010 (45000) at line 1: Redis instance \"main\" has 1 id types assigned to it",
    ),
    (
        "idgen_remove_redis_instance('nope', 'ann')",
        "ERROR 45002 (45000) at line 1: no Redis instance is called \"nope\"",
    ),
];

async fn every_procedure_by_the_command_line_client(server: &SqlServer) {
    let db = TestDb::new(server).await;
    for (call, expected) in BY_HAND {
        let output = server.client(&db.name, &format!("CALL {call}"), &["--table"]);
        let (shown, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.success(), !expected.starts_with("ERROR"), "{call}: {error}");
        let said = if output.status.success() { shown } else { error };
        assert!(said.contains(expected), "{call}\nexpected {expected}\ngot {said}");
    }
    let audit =
        server.sql(&db.name, "SELECT seq, actor, action, subject FROM idgen_changes ORDER BY seq");
    assert_eq!(
        audit.lines().collect::<Vec<_>>(),
        [
            "1\tann\tadd_redis_instance\tmain",
            "2\tann\tcreate_type\torder",
            "3\tann\thistory\torder",
            "4\tann\thistory\torder",
            "5\tann\treserve\torder",
            "6\tann\talter_type\torder",
            "7\tann\tretire_type\torder",
            "8\tann\trestore_type\torder",
        ]
    );
    let secrets = "SELECT COUNT(*) FROM idgen_changes WHERE CONCAT_WS('', before_json, after_json) LIKE '%secret%'";
    assert_eq!(server.sql(&db.name, secrets), "0");
    // The table of the documentation lists every number that is raised.
    let guide = include_str!("../docs/dba-guide.md");
    for source in sql::ROUTINES {
        for errno in sql::raised(source) {
            let row = format!("| {errno} |");
            assert!(guide.contains(&row), "{row} is not in docs/dba-guide.md");
        }
    }
}

/// As [`BY_HAND`], for moving types between instances.
const MIGRATIONS_BY_HAND: &[(&str, &str)] = &[
    ("idgen_add_redis_instance('main', 'redis://main', 'ann')", "| 1 | main |"),
    ("idgen_add_redis_instance('second', 'redis://second', 'ann')", "| 2 | second |"),
    ("idgen_add_redis_instance('1', 'redis://third', 'ann')", "| 3 | 1 |"),
    (
        "idgen_create_type('order', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'main', NULL, NULL, 'ann')",
        "| order | strict | active |",
    ),
    (
        "idgen_begin_migration('order', 'main', 'ann')",
        "ERROR 45116 (45000) at line 1: instance \"main\" has id type \"order\" already",
    ),
    (
        "idgen_begin_migration('order', 'nope', 'ann')",
        "ERROR 45002 (45000) at line 1: no Redis instance is called \"nope\"",
    ),
    (
        "idgen_begin_migration('order', NULL, 'ann')",
        "ERROR 45002 (45000) at line 1: no Redis instance is called \"NULL\"",
    ),
    (
        "idgen_begin_migration('nobody', 'second', 'ann')",
        "ERROR 45001 (45000) at line 1: no id type is called \"nobody\"",
    ),
    (
        "idgen_begin_migration('order', 'second', REPEAT('x', 129))",
        "ERROR 45113 (45000) at line 1: actor has 129 characters; the limit is 128",
    ),
    ("idgen_begin_migration('order', '2', 'ann')", "| {} | 1 | 2 | NULL | 0 |"),
    (
        "idgen_begin_migration('order', 'second', 'ann')",
        "ERROR 45014 (45000) at line 1: id type \"order\" is being moved to Redis instance 2: let that end, or undo it",
    ),
    (
        "idgen_remove_redis_instance('second', 'ann')",
        "ERROR 45010 (45000) at line 1: Redis instance \"second\" has 1 id types on their way to it",
    ),
    (
        "idgen_undo_migration('order', 2, 'ann')",
        "ERROR 45014 (45000) at line 1: this migration of id type \"order\" was finished or undone already",
    ),
    (
        "idgen_undo_migration('order', NULL, 'ann')",
        "ERROR 45146 (45000) at line 1: generation NULL is out of range: it must be from 0 to 9223372036854775806",
    ),
    ("idgen_undo_migration('order', 1, 'ann')", "| {} | 2 | NULL | NULL | 0 |"),
    // A name goes before a number.
    ("idgen_begin_migration('order', '1', 'ann')", "| {} | 3 | 3 | NULL | 0 |"),
    (
        "idgen_assign_type('order', 2, 2, 'bbb', NULL, 'ann')",
        "ERROR 45014 (45000) at line 1: this migration of id type \"order\" was finished or undone already",
    ),
    (
        "idgen_assign_type('order', 9, 3, 'bbb', NULL, 'ann')",
        "ERROR 45002 (45000) at line 1: no Redis instance has the number 9",
    ),
    (
        "idgen_assign_type('order', NULL, 3, 'bbb', NULL, 'ann')",
        "ERROR 45116 (45000) at line 1: instance NULL is out of range: it must be from 1 to 9223372036854775807",
    ),
    (
        "idgen_assign_type('order', 3, 9223372036854775807, 'bbb', NULL, 'ann')",
        "ERROR 45146 (45000) at line 1: generation 9223372036854775807 is out of range: it must be from 0 to 9223372036854775806",
    ),
    (
        "idgen_assign_type('order', 3, 3, 'b b', NULL, 'ann')",
        "ERROR 45117 (45000) at line 1: history is not legal: it must be 1 to 64 letters, digits or _ . : -",
    ),
    (
        "idgen_assign_type('order', 3, 3, 'bbb', 0, 'ann')",
        "ERROR 45147 (45000) at line 1: rest_end 0 is out of range: it must be from 1 to 9223372036854775807",
    ),
    ("idgen_next_range('order', 1, 'aaa', NULL, NULL, 0, 'ann')", "| 1 | 1001 | 101 | 1000 |"),
    ("idgen_assign_type('order', 3, 3, 'bbb', 1001, 'ann')", "| {} | 4 | NULL | 1 |"),
    (
        "idgen_next_range('order', 1, 'aaa', NULL, NULL, 0, 'ann')",
        "ERROR 45008 (45000) at line 1: id type \"order\" is assigned to Redis instance 3, not 1",
    ),
    (
        "idgen_assign_type('order', 2, 4, 'aaa', 1001, 'ann')",
        "ERROR 45009 (45000) at line 1: history of id type \"order\" was succeeded by another one: the Redis server was replaced",
    ),
    ("idgen_drain_redis_instance('main', '2', 'ann')", "| 1 | main | redis://main | 0 | 2 |"),
    (
        "idgen_drain_redis_instance('second', 'second', 'ann')",
        "ERROR 45116 (45000) at line 1: an instance cannot be drained to itself",
    ),
    (
        "idgen_drain_redis_instance('second', 'main', 'ann')",
        "ERROR 45116 (45000) at line 1: instance \"main\" is being drained: it takes no id types",
    ),
    (
        "idgen_drain_redis_instance('nope', NULL, 'ann')",
        "ERROR 45002 (45000) at line 1: no Redis instance is called \"nope\"",
    ),
    (
        "idgen_remove_redis_instance('second', 'ann')",
        "ERROR 45010 (45000) at line 1: Redis instance \"main\" is being drained to \"second\"",
    ),
    (
        "idgen_create_type('item', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'main', NULL, NULL, 'ann')",
        "ERROR 45116 (45000) at line 1: instance \"main\" is being drained: it takes no id types",
    ),
    (
        "idgen_create_type('item', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "| item | strict | active |",
    ),
    ("idgen_begin_migration('item', '1', 'ann')", "| {} | 1 | 3 | NULL | 0 |"),
];

async fn migrations_by_the_command_line_client(server: &SqlServer) {
    let db = TestDb::new(server).await;
    for (call, expected) in MIGRATIONS_BY_HAND {
        let output = server.client(&db.name, &format!("CALL {call}"), &["--table"]);
        let (shown, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let said = if output.status.success() { shown } else { error };
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{call}\nexpected {expected}\ngot {said}");
    }
    let types = "SELECT name, instance_id, generation, moving_to, moved_from, moved_ms = updated_ms, version \
                 FROM idgen_types ORDER BY name";
    let expected = "item\t2\t1\t3\tNULL\t0\t2\norder\t3\t4\tNULL\t1\t1\t5";
    assert_eq!(server.sql(&db.name, types), expected);
    let moving = "SELECT name, from_instance, to_instance, generation, \
                  since_utc > UTC_TIMESTAMP() - INTERVAL 1 HOUR FROM idgen_migrations";
    assert_eq!(server.sql(&db.name, moving), "item\tsecond\t1\t1\t1");
    let audit = "SELECT action, subject_kind, subject, before_json, after_json FROM idgen_changes WHERE seq > 4";
    let audit = server.sql(&db.name, audit).replace(' ', "");
    let placed = |instance, to, generation, version| {
        format!(
            r#"{{"instance":{instance},"moving_to":{to},"generation":{generation},"version":{version}}}"#
        )
    };
    let moved = |action, name, before: String, after: String| {
        format!("{action}\ttype\t{name}\t{before}\t{after}")
    };
    let expected = [
        moved("begin_migration", "order", placed(1, "null", 0, 1), placed(1, "2", 1, 2)),
        moved("undo_migration", "order", placed(1, "2", 1, 2), placed(1, "null", 2, 3)),
        moved("begin_migration", "order", placed(1, "null", 2, 3), placed(1, "3", 3, 4)),
        "history\ttype\torder\tNULL\t{\"history\":\"aaa\"}".to_owned(),
        moved("assign_type", "order", placed(1, "3", 3, 4), placed(3, "null", 4, 5)),
        "drain_redis_instance\tinstance\tmain\t{\"drain_to\":null}\t{\"drain_to\":2}".to_owned(),
    ];
    // MySQL orders the members of an object anew.
    let members = |line: &str| {
        let mut parts: Vec<_> = line.split(['\t', ',', '{', '}']).map(str::to_owned).collect();
        parts.sort();
        parts
    };
    for (line, expected) in audit.lines().zip(&expected) {
        assert_eq!(members(line), members(expected), "{line}");
    }
    assert_eq!(audit.lines().count(), expected.len() + 2, "and a creation and a beginning");
}

/// A key that is easy to find where it must not be.
const KEY: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";

/// As [`BY_HAND`], for the kinds of ids beyond a plain sequence. `KEY` stands
/// for a key.
const KINDS_BY_HAND: &[(&str, &str)] = &[
    ("idgen_add_redis_instance('main', 'redis://redis:6379/0', 'ann')", "|  1 | main |"),
    (
        "idgen_create_type('pass', 'sharded', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45126 (45000) at line 1: app_id is missing: a sharded type needs one, from 0 to 255",
    ),
    (
        "idgen_create_type('pass', 'sharded', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{\"app_id\": 7}', NULL, 'ann')",
        "| {\"app_id\":7} |",
    ),
    (
        "idgen_next_range('pass', NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45138 (45000) at line 1: shard NULL is out of range: it must be from 0 to 63",
    ),
    (
        "idgen_lease_range('pass', 64, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45138 (45000) at line 1: shard 64 is out of range: it must be from 0 to 63",
    ),
    (
        "idgen_lease_range('pass', 63, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "|        1 |   1001 |       101 |   1000 |",
    ),
    (
        "idgen_lease_range('pass', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "|        1 |   1001 |       101 |   1000 |",
    ),
    (
        "idgen_reserve('pass', 5, NULL, 'ann')",
        "ERROR 45102 (45000) at line 1: mode of id type \"pass\": a sharded type has no block to reserve",
    ),
    (
        "idgen_type_status('pass')",
        "| pass | active | sharded |    1001 | 9223372036854775806 | 36028797018961840 |",
    ),
    ("idgen_give_back('pass', 0, 900, 1001)", "|          1 |"),
    ("idgen_give_back('pass', 0, 900, 1001)", "|          0 |"),
    (
        "idgen_give_back('pass', 0, 900, 900)",
        "ERROR 45140 (45000) at line 1: end 900 is out of range: it must be from 901 to 9223372036854775807",
    ),
    (
        "idgen_create_type('invoice', 'strict', 'R', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{\"calendar\": \"daily\"}', NULL, 'ann')",
        "ERROR 45122 (45000) at line 1: a calendar series needs a format that holds the date, such as {date:yyMMdd}{seq:06}",
    ),
    (
        "idgen_create_type('invoice', 'strict', 'R', NULL, NULL, 1000000, NULL, NULL, NULL, NULL, NULL, NULL, '{\"calendar\": \"daily\", \"format\": \"{date:yyMMdd}{seq:06}\"}', NULL, 'ann')",
        "ERROR 45122 (45000) at line 1: format has room for numbers up to 999999, but max_id is 1000000: widen it or lower max_id",
    ),
    (
        "idgen_create_type('invoice', 'strict', 'R', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{\"calendar\": \"daily\", \"format\": \"{prefix}{date:yyMMdd}{seq:06}\", \"time_zone\": \"Asia/Shanghai\"}', NULL, 'ann')",
        "| {\"format\":\"{prefix}{date:yyMMdd}{seq:06}\",\"calendar\":\"daily\",\"time_zone\":\"Asia/Shanghai\"} |",
    ),
    (
        "idgen_next_range('invoice', NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45139 (45000) at line 1: period is missing: id type \"invoice\" is a calendar series",
    ),
    (
        "idgen_lease_range('invoice', NULL, 8388608, 0, 9, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45139 (45000) at line 1: period 8388608 is out of range: it must be from 0 to 8388607",
    ),
    (
        "idgen_lease_range('invoice', NULL, 19000, 0, 9, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ms, outside the period that was asked for of id type \"invoice\"",
    ),
    (
        "idgen_lease_range('invoice', NULL, 19000, 0, 99999999999999, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "| 20890720927744001 | 20890720927745001 |",
    ),
    (
        "idgen_type_status('invoice')",
        "| invoice | active | strict | 20890720927745001 | 999999 |   998999 |",
    ),
    (
        "idgen_create_type('coupon', 'segment', NULL, NULL, NULL, 48000000, NULL, NULL, NULL, NULL, NULL, NULL, '{\"opaque\": {}}', NULL, 'ann')",
        "ERROR 45137 (45000) at line 1: key must be 64 hexadecimal digits, drawn at random: an opaque type needs one",
    ),
    (
        "idgen_create_type('coupon', 'segment', NULL, NULL, NULL, 48000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'KEY', 'ann')",
        "ERROR 45137 (45000) at line 1: key is for opaque types only",
    ),
    (
        "idgen_create_type('coupon', 'segment', NULL, NULL, NULL, 48000000, NULL, NULL, NULL, NULL, NULL, NULL, '{\"opaque\": {}}', 'KEYKEY', 'ann')",
        "ERROR 45137 (45000) at line 1: key must be 64 hexadecimal digits, drawn at random: an opaque type needs one",
    ),
    (
        "idgen_create_type('coupon', 'segment', NULL, NULL, NULL, 48000000, NULL, NULL, NULL, NULL, NULL, NULL, '{\"opaque\": {}}', 'KEY', 'ann')",
        "| {\"opaque\":{\"slices\":16}} |",
    ),
    ("idgen_rotate_key('coupon', 'KEY', 'ann')", "|        1 | 3000001 | 48000000 |"),
    ("idgen_reserve('coupon', 5, 42000005, 'ann')", "| 45000001 | 45000006 | 45000005 |"),
    (
        "idgen_rotate_key('coupon', 'KEY', 'ann')",
        "ERROR 45007 (45000) at line 1: id type \"coupon\" is in the last of its 16 slices: there is none for another key",
    ),
    (
        "idgen_rotate_key('pass', 'KEY', 'ann')",
        "ERROR 45125 (45000) at line 1: id type \"pass\" is not opaque: it has no key to change",
    ),
    (
        "idgen_create_type('user', 'segment', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{\"sites\": {\"count\": 2, \"site\": 1}}', NULL, 'ann')",
        "| 9223372036854775806 | 4611686018427387902 |",
    ),
    (
        "idgen_create_type('ticket', 'strict', NULL, NULL, NULL, 5000, NULL, NULL, NULL, NULL, NULL, NULL, '{\"at_limit\": \"cycle\"}', NULL, 'ann')",
        "|    5000 | 9223372036854775806 |",
    ),
    (
        "idgen_create_type('event', 'snowflake', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{\"snowflake\": {\"worker_bits\": 11}}', NULL, 'ann')",
        "ERROR 45133 (45000) at line 1: snowflake.time_bits 41, worker_bits 11 and sequence_bits 12 are 64 together: an id has 63",
    ),
    (
        "idgen_create_type('event', 'snowflake', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')",
        "| event | snowflake | active |",
    ),
    (
        "idgen_next_range('event', NULL, NULL, NULL, NULL, NULL, 'ann')",
        "ERROR 45102 (45000) at line 1: mode of id type \"event\" is snowflake: its ids come in no ranges",
    ),
    (
        "idgen_alter_type('pass', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'segment', '{}', 'ann')",
        "ERROR 45102 (45000) at line 1: mode of id type \"pass\" cannot change from sharded: it has issued ids; make a new type",
    ),
    (
        "idgen_alter_type('pass', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{\"app_id\": 8}', 'ann')",
        "ERROR 45126 (45000) at line 1: app_id cannot change once ids were issued, because ids could repeat: make a new type",
    ),
    ("idgen_lease_worker(1, 'node-1', 'a', 60000)", "|    1 |      0 |       0 |"),
    ("idgen_lease_worker(1, 'node-2', 'b', 60000)", "|    1 |      1 |       0 |"),
    ("idgen_lease_worker(1, 'node-1', 'a', 60000)", "|    1 |      0 |       0 |"),
    (
        "idgen_lease_worker(1, 'node-3', 'c', 60000)",
        "ERROR 45012 (45000) at line 1: all 2 worker ids of 1 bits are taken; the next one becomes free in ",
    ),
    ("idgen_renew_worker(1, 0, 'a', 90000)", "|    1 |      0 |       0 |"),
    (
        "idgen_renew_worker(1, 0, 'a ', 90000)",
        "ERROR 45013 (45000) at line 1: worker id 0 of 1 bits is not held under this token any more",
    ),
    ("idgen_release_worker(1, 0, 'a', 5)", "|        1 |"),
    ("idgen_release_worker(1, 0, 'a', 5)", "|        0 |"),
    (
        "idgen_release_worker(1, 0, 'a', NULL)",
        "ERROR 45145 (45000) at line 1: used_until_ms is missing: above every time value that was put into an id",
    ),
    ("idgen_lease_worker(1, 'node-3', 'c', 60000)", "|    1 |      0 |       5 |"),
    (
        "idgen_lease_worker(0, 'node-3', 'c', 60000)",
        "ERROR 45141 (45000) at line 1: bits 0 is out of range: it must be from 1 to 20",
    ),
    (
        "idgen_lease_worker(1, '', 'c', 60000)",
        "ERROR 45142 (45000) at line 1: holder is missing: it must have 1 to 128 printable characters",
    ),
    (
        "idgen_lease_worker(1, 'node-3', 'c\t', 60000)",
        "ERROR 45143 (45000) at line 1: token must not hold control characters",
    ),
    (
        "idgen_lease_worker(1, 'node-3', 'c', 999)",
        "ERROR 45144 (45000) at line 1: ttl_ms 999 is out of range: it must be from 1000 to 86400000",
    ),
];

async fn every_kind_by_the_command_line_client(server: &SqlServer) {
    let db = TestDb::new(server).await;
    for (call, expected) in KINDS_BY_HAND {
        let call = call.replace("KEY", KEY);
        let output = server.client(&db.name, &format!("CALL {call}"), &["--table"]);
        let (shown, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let said = if output.status.success() { &shown } else { &error };
        // How wide a column is says nothing.
        let words =
            |text: &str| text.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
        assert!(words(said).contains(&words(expected)), "{call}\nexpected {expected}\ngot {said}");
        // The client repeats the call; the server must not.
        let told = said.lines().find(|line| line.starts_with("ERROR")).unwrap_or(&shown);
        assert!(!told.to_lowercase().contains(&KEY[..16]), "{call}: {told}");
    }
    let secrets = format!(
        "SELECT COUNT(*) FROM idgen_changes WHERE CONCAT_WS('', before_json, after_json) LIKE '%{}%'",
        &KEY[..16]
    );
    assert_eq!(server.sql(&db.name, &secrets), "0");
    let workers = server.sql(
        &db.name,
        "SELECT worker, holder, from_ms, is_released FROM idgen_workers ORDER BY worker",
    );
    assert_eq!(workers, "0\tnode-3\t5\t0\n1\tnode-2\t0\t0");
}

/// A database as `version` made it, with a type that was used.
fn older(server: &SqlServer, version: usize) -> TestDb {
    let db = TestDb::empty(server);
    let script = schema::print();
    let table = script.find("CREATE TABLE IF NOT EXISTS idgen_schema_history").unwrap();
    let records = script.match_indices("INSERT IGNORE INTO idgen_schema_history");
    for at in [table].into_iter().chain(records.map(|(at, _)| at).take(version)) {
        server.sql(&db.name, script[at..].split(";\n").next().unwrap());
    }
    server.sql(&db.name, sql::MIGRATIONS[0].text);
    server.sql(
        &db.name,
        "INSERT INTO idgen_redis_instance VALUES (1, 'main', 'redis://h', 5); \
         INSERT INTO idgen_type VALUES (3, 'order', 'strict', 'active', 'O-', 'orders', 1, 5001, \
           9000, 1000, 100000000, 600000, 0.1, 10000, 1000, 77, 1, 'aaa', 4, 5, 6); \
         INSERT INTO idgen_type_history VALUES (3, 'aaa', 1, 5); \
         INSERT INTO idgen_range_log VALUES \
           (7, 3, 1, 4001, 5, 'next', 'node', 1, 'aaa', 1, 1, 0), \
           (8, 3, 4001, 5001, 77, 'next', 'node', 1, 'aaa', 1, 1, 0); \
         UPDATE idgen_counter SET value = 12",
    );
    for later in &sql::MIGRATIONS[1..version] {
        server.sql(&db.name, later.text);
    }
    db
}

/// The same, after an `apply` that died after so many statements of the next migration.
fn half_done(server: &SqlServer, version: usize, steps: usize) -> TestDb {
    let db = older(server, version);
    let statements = sql::statements(sql::MIGRATIONS[version].text).take(steps);
    server.sql(&db.name, &statements.collect::<Vec<_>>().join(";\n"));
    db
}

async fn older_versions_go_on(server: &SqlServer) {
    let order = TypeName::parse("order").unwrap();
    for (version, db) in [
        (1, older(server, 1)),
        (1, half_done(server, 1, 6)),
        (2, older(server, 2)),
        (2, half_done(server, 2, 4)),
        (2, half_done(server, 2, 7)),
    ] {
        let report = schema::apply(&db.admin).await.unwrap();
        assert_eq!((report.from, report.to), (Some(version), schema::current_version()));
        let run = sql::MIGRATIONS[version as usize..].iter().map(|m| m.name);
        assert_eq!(report.migrations, run.collect::<Vec<_>>());
        assert!(schema::check(&db.admin).await.unwrap().is_clean());
        db.create_account(server);
        let store = MysqlStore::connect(db.app.clone()).await.expect("a store");
        let record = store.find_type(&order).await.unwrap().expect("it is still there");
        assert_eq!((record.next_id, record.max_id, record.max_position), (5_001, 9_000, 9_000));
        assert_eq!(record.options, TypeOptions::default());
        assert_eq!(record.placement, Placement::default());
        assert_eq!(store.instances().await.unwrap()[0].drain_to, None);
        let log = store.range_log(&order, 9).await.unwrap();
        assert_eq!(log.iter().map(|e| e.range.start()).collect::<Vec<_>>(), [4_001, 1]);
        assert_eq!(store.find_range(&order, None, 4_000).await.unwrap().as_ref(), log.last());
        let next = NextRange::of(&order, "test");
        let given = store.next_range(next.clone()).await.unwrap();
        assert_eq!((given.range.start(), given.range.len()), (5_001, 1_000), "no id twice");
        // Its limit is still its limit, also when it is changed.
        let change = TypeChange { max_id: Some(6_500), ..TypeChange::default() };
        assert_eq!(store.alter_type(&order, &change, "test").await.unwrap().max_position, 6_500);
        let last = store.next_range(next.clone()).await.unwrap();
        assert_eq!((last.range.start(), last.range.end()), (6_001, 6_501));
        store.next_range(next).await.unwrap_err();
        // The old limit of next_id is gone, where the server had it.
        let mut daily = TypeSpec::new(TypeName::parse("invoice").unwrap());
        daily.max_id = 999_999;
        daily.options.calendar = Some(Period::Daily);
        daily.options.format = Some("{date:yyMMdd}{seq:06}".into());
        store.create_type(&daily, "test").await.unwrap();
        let period = Some(PeriodSpan { number: 19_000, from_ms: 0, until_ms: i64::MAX });
        let given = store.next_range(NextRange { period, ..NextRange::of(&daily.name, "test") });
        assert_eq!(given.await.unwrap().range.start(), (19_000 << 40) + 1);
    }
}
