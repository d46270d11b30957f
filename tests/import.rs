//! Types of other systems, taken over from real tables: through the node's own
//! connection to their database, and through what `mariadb-dump` writes of it. The first
//! id that is handed out afterwards must be right to the id.

mod support;

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::node::{Cluster, Node, TOKEN, command};

/// The tables as their systems make them, with types whose names begin with `{p}`.
const LEGACY: &str = "
CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL
  DEFAULT '1', step int(11) NOT NULL, description varchar(256) DEFAULT NULL, update_time timestamp
  NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag));
INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES
  ('{p}leaf', 5001, 2000, 'it''s \\'quoted\\'; -- (1,2),\n`x` \\\\ 订单'), ('{p}new', 1, 100, NULL);
CREATE TABLE tiny_id_info (id bigint(20) unsigned NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT
  NULL DEFAULT '', begin_id bigint(20) NOT NULL DEFAULT '0', max_id bigint(20) NOT NULL DEFAULT '0',
  step int(11) DEFAULT '0', delta int(11) NOT NULL DEFAULT '1', remainder int(11) NOT NULL DEFAULT
  '0', create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL
  DEFAULT '2010-01-01 00:00:00', version bigint(20) NOT NULL DEFAULT '0', PRIMARY KEY (id),
  UNIQUE KEY uniq_biz_type (biz_type));
INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES
  ('{p}tiny', 1, 200001, 100000, 1, 0, 3), ('{p}odd', 1, 300000, 100, 2, 1, 3),
  ('{p}third', 1, 300001, 100, 2, 1, 3);
CREATE TABLE tiny_id_token (id int(11) unsigned NOT NULL AUTO_INCREMENT, token varchar(255) NOT NULL
  DEFAULT '', biz_type varchar(63) NOT NULL DEFAULT '', remark varchar(255) NOT NULL DEFAULT '',
  create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL
  DEFAULT '2010-01-01 00:00:00', PRIMARY KEY (id));
INSERT INTO tiny_id_token (token, biz_type, remark) VALUES
  ('{p}0f673adf80504e2eaa552f5d791b644c', '{p}tiny', '1'),
  ('{p}0f673adf80504e2eaa552f5d791b644c', '{p}odd', 'it''s'), ('{p}other-token-of-bill', '{p}bill', '');
CREATE TABLE id_info (project_name varchar(128) NOT NULL, id_name varchar(128) NOT NULL, id_prifx
  varchar(32) DEFAULT NULL, id_start bigint(20) NOT NULL DEFAULT '1000', last_range bigint(20) NOT
  NULL DEFAULT '50000', max_range bigint(20) NOT NULL DEFAULT '1000000', min_range bigint(20) NOT
  NULL DEFAULT '10000', last_load_time bigint(20) NOT NULL, applicant varchar(128) NOT NULL,
  redis_flag varchar(128) NOT NULL, state tinyint(3) NOT NULL DEFAULT '1', min_load_interval
  int(11) NOT NULL DEFAULT '1800', load_percentage float NOT NULL DEFAULT '0.9', lock_expire
  smallint(6) NOT NULL DEFAULT '60', other_info varchar(128) DEFAULT NULL, PRIMARY KEY (id_name));
INSERT INTO id_info VALUES ('shop', '{p}bill', 'B', 7000, 2000, 100000, 500, 1700000000, 'ann',
  'r1', 1, 1800, 0.25, 60, NULL), ('shop', '{p}gone', NULL, 10, 0, 100, 10, 0, 'ann', 'r1', 2, 60,
  0.9, 60, 'old');
CREATE TABLE cosid (name varchar(100) NOT NULL, last_max_id bigint NOT NULL DEFAULT 0,
  last_fetch_time bigint NOT NULL, PRIMARY KEY (name));
INSERT INTO cosid VALUES ('{p}cos.order', 4200, 1700000000);
CREATE TABLE id_alloc (app_id int NOT NULL, shard_id int NOT NULL, max_id bigint NOT NULL, step int
  NOT NULL, max_limit_id bigint NOT NULL, PRIMARY KEY (app_id, shard_id));
INSERT INTO id_alloc VALUES ({app}, 0, 500, 100, 1000000), ({app}, 63, 900, 100, 1000000);
";

/// What each type must hand out first: name, what `idgen get` needs, the id.
fn expected(prefix: &str, app: i64) -> Vec<(String, Vec<&'static str>, i64)> {
    let of = |name: &str, id| (format!("{prefix}{name}"), vec![], id);
    // The shard of the gate pass "hello" is 18.
    let sharded = 901 << 14 | 18 << 8 | app;
    vec![
        of("leaf", 5_001),
        of("new", 1),
        of("tiny", 200_002),
        // The first odd ones above 300 000 and 300 001.
        of("odd", 300_001),
        of("third", 300_003),
        of("bill", 7_001),
        of("cos.order", 4_201),
        (format!("app-{app}"), vec!["--gate-pass", "hello"], sharded),
    ]
}

/// What each system does to get its next range, and the first id of it by its own rule; of
/// shards, the sequence. Rolled back at once.
fn next_there(cluster: &Cluster, database: &str, prefix: &str, app: i64) -> Vec<(String, i64)> {
    let step = "max_id = max_id + step";
    let leaf = |name: &str| {
        (
            format!("{prefix}{name}"),
            format!("UPDATE leaf_alloc SET {step} WHERE biz_tag = '{prefix}{name}'"),
            format!("SELECT max_id - step FROM leaf_alloc WHERE biz_tag = '{prefix}{name}'"),
        )
    };
    let tinyid = |name: &str| {
        (
            format!("{prefix}{name}"),
            format!("UPDATE tiny_id_info SET {step} WHERE biz_type = '{prefix}{name}'"),
            format!(
                "SELECT MIN(seq) FROM tiny_id_info JOIN seq_200000_to_400000 ON seq > max_id - step \
                 AND seq <= max_id AND seq % delta = remainder WHERE biz_type = '{prefix}{name}'"
            ),
        )
    };
    let rules = [
        leaf("leaf"),
        leaf("new"),
        tinyid("tiny"),
        tinyid("odd"),
        tinyid("third"),
        (
            format!("{prefix}bill"),
            format!("UPDATE id_info SET id_start = id_start + 2000 WHERE id_name = '{prefix}bill'"),
            format!("SELECT id_start - 2000 + 1 FROM id_info WHERE id_name = '{prefix}bill'"),
        ),
        (
            format!("{prefix}cos.order"),
            "UPDATE cosid SET last_max_id = last_max_id + 100".to_owned(),
            "SELECT last_max_id - 100 + 1 FROM cosid".to_owned(),
        ),
        (
            format!("app-{app}"),
            format!("UPDATE id_alloc SET {step} WHERE app_id = {app} AND shard_id = 63"),
            format!(
                "SELECT max_id - step + 1 FROM id_alloc WHERE app_id = {app} AND shard_id = 63"
            ),
        ),
    ];
    let ask = |(name, update, select): (String, String, String)| {
        let sql = format!("START TRANSACTION; {update}; {select}; ROLLBACK");
        let id = cluster.mariadb.sql(database, &sql);
        (name, id.trim().parse().unwrap_or_else(|e| panic!("{sql}: {id:?}: {e}")))
    };
    rules.into_iter().map(ask).collect()
}

/// The dry runs must say what comes next there, and begin here with just that.
fn check_dry_runs(node: &Node, url: &str, next_there: &[(String, i64)]) {
    let mut seen = 0;
    for (format, _) in TABLES {
        let all = ["type", "import", "--from", url, "--format", format, "--dry-run", "--json"];
        let dry: Value = serde_json::from_str(&node.run(&all)).unwrap();
        for item in dry["items"].as_array().unwrap() {
            let Some((_, next)) = next_there.iter().find(|(name, _)| item["name"] == **name) else {
                assert!(item["name"].as_str().unwrap().ends_with("gone"), "{item}");
                continue;
            };
            seen += 1;
            let first: i64 = item["first_id"].as_str().unwrap().parse().unwrap();
            assert_eq!(if format == "id_alloc" { first >> 14 } else { first }, *next, "{item}");
            if format != "id_alloc" {
                assert_eq!(item["source"]["next"], next.to_string(), "{item}");
            }
        }
    }
    assert_eq!(seen, next_there.len());
}

const TABLES: [(&str, &str); 5] = [
    ("leaf", "leaf_alloc"),
    ("tinyid", "tiny_id_info"),
    ("original", "id_info"),
    ("cosid", "cosid"),
    ("id_alloc", "id_alloc"),
];

/// A node of site 1, so that it shares ids with the other database of tinyid.
fn node(cluster: &Cluster, data: &std::path::Path) -> Node {
    let data = data.to_str().unwrap();
    let mysql = &cluster.db.app.url;
    let redis = cluster.redis.url();
    let store = ["--mysql", mysql, "--redis", &redis, "--data", data, "--store-site", "1"];
    Node::start(&[&store[..], &["--compat-tinyid", "on"]].concat())
}

fn legacy(cluster: &Cluster, database: &str, prefix: &str, app: i64) {
    cluster.sql(&format!(
        "CREATE DATABASE {database} CHARACTER SET utf8mb4; CREATE OR REPLACE USER reader IDENTIFIED BY 's3cr3t-word'; \
         GRANT SELECT ON legacy_u.* TO reader; GRANT SELECT ON legacy_d.* TO reader;"
    ));
    let sql = LEGACY.replace("{p}", prefix).replace("{app}", &app.to_string());
    cluster.mariadb.sql(database, &sql);
}

fn check_first_ids(node: &Node, prefix: &str, app: i64) {
    for (name, flags, id) in expected(prefix, app) {
        let found = node.run(&[&["get", name.as_str()], &flags[..]].concat());
        assert_eq!(found.trim(), id.to_string(), "{name}");
    }
    let gone = node.try_run(&["get", &format!("{prefix}gone")]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("RETIRED"), "{gone:?}");
    let shown = node.run(&["type", "show", &format!("{prefix}leaf"), "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["description"], "it's 'quoted'; -- (1,2),\n`x` \\ 订单");
    assert_eq!(shown["min_range"], 2_000);
    let bill = node.run(&["get", &format!("{prefix}bill"), "--text"]);
    assert_eq!(bill.trim(), "B7002");
}

#[test]
fn tables_are_taken_over_to_the_id() {
    let cluster = Cluster::start();
    let data = support::TempFolder::new("import");
    let node = node(&cluster, data.path());
    let port = cluster.mariadb.port();

    // Through the node's own connection.
    legacy(&cluster, "legacy_u", "u-", 7);
    let url = format!("mysql://reader:s3cr3t-word@127.0.0.1:{port}/legacy_u");
    let next = next_there(&cluster, "legacy_u", "u-", 7);
    check_dry_runs(&node, &url, &next);
    for (format, _) in TABLES {
        let dry = node.run(&["type", "import", "--from", &url, "--format", format, "--dry-run"]);
        assert!(dry.contains(&format!("format {format}: ")) && dry.contains(" 0 failed"), "{dry}");
        let done = node.run(&["type", "import", "--from", &url, "--format", format]);
        assert!(done.contains(" 0 there already, 0 failed"), "{done}");
        // Again: nothing happens twice.
        let done = node.run(&["type", "import", "--from", &url, "--format", format, "--json"]);
        let done: Value = serde_json::from_str(&done).unwrap();
        assert_eq!((&done["create"], &done["fail"]), (&json!(0), &json!(0)), "{done}");
    }
    check_first_ids(&node, "u-", 7);
    let actor =
        cluster.sql("SELECT DISTINCT actor FROM idgen_changes WHERE action = 'create_type'");
    assert!(actor.ends_with("(cli)") || actor == "command line", "{actor}");

    // As a text.
    legacy(&cluster, "legacy_d", "d-", 8);
    for (format, table) in TABLES {
        for further in [&[][..], &["--complete-insert", "--no-create-info", "--compact"]] {
            let dump = dump(port, "legacy_d", &[further, &[table]].concat());
            let done = import_text(&node, &["--format", format], &dump);
            assert!(done.contains(" 0 failed"), "{done}");
            if further.is_empty() {
                assert!(done.contains(" 0 there already"), "{done}");
                // Nothing of a dump that was cut is taken.
                let cut = dump.len() * 2 / 3;
                let cut = (cut..).find(|at| dump.is_char_boundary(*at)).unwrap();
                let refused = try_import_text(&node, &[], &dump[..cut]);
                assert_eq!(refused.status.code(), Some(3), "{refused:?}");
            }
        }
    }
    check_first_ids(&node, "d-", 8);

    // The whole database at once holds tables of several systems.
    let all = dump(port, "legacy_d", &[]);
    let refused = try_import_text(&node, &[], &all);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("format must be named"));
    let done = import_text(&node, &["--format", "cosid"], &all);
    assert!(done.contains("1 there already"), "{done}");

    // And our own export, in both forms.
    for form in ["json", "csv"] {
        let text = node.run(&["type", "export", "--format", form]);
        let done = import_text(&node, &["--json"], &text);
        let done: Value = serde_json::from_str(&done).unwrap();
        assert_eq!((&done["create"], &done["fail"]), (&json!(0), &json!(0)), "{done}");
        assert_eq!(done["skip"].as_u64().unwrap() as usize, 2 * (expected("", 0).len() + 1));
        let problems = done["items"].as_array().unwrap().iter().filter(|i| !i["problem"].is_null());
        assert_eq!(problems.count(), 0, "{done}");
    }
    assert!(!node.log().contains("s3cr3t-word"), "{}", node.log());
}

#[test]
fn tokens_of_tinyid_go_on_working() {
    let cluster = Cluster::start();
    let data = support::TempFolder::new("import");
    let node = node(&cluster, data.path());
    let port = cluster.mariadb.port();
    legacy(&cluster, "legacy_u", "u-", 7);
    legacy(&cluster, "legacy_d", "d-", 8);
    let url = format!("mysql://reader:s3cr3t-word@127.0.0.1:{port}/legacy_u");
    node.run(&["type", "import", "--from", &url, "--format", "tinyid"]);
    let code = |name: &str, token: &str| {
        let url = format!("{}/tinyid/id/nextId?bizType={name}&token={token}", node.url);
        let mut answer = ureq::post(url).send_empty().unwrap();
        let answer: Value = answer.body_mut().read_json().unwrap();
        (answer["code"].as_i64().unwrap(), answer["data"][0].as_i64())
    };
    let token = |prefix: &str| format!("{prefix}0f673adf80504e2eaa552f5d791b644c");
    let hidden = |said: String| {
        assert!(!said.contains("0f673adf") && !said.contains("other-token"), "{said}");
        said
    };
    let all = ["token", "import", "--from", &url];
    let dry = hidden(node.run(&[&all[..], &["--dry-run"]].concat()));
    assert!(dry.contains("u-odd u-tiny") && dry.contains("2 would be made, 0 there"), "{dry}");
    assert!(node.run(&["token", "list", "--json"]).trim() == "[]");
    let done = hidden(node.run(&all));
    assert!(done.contains("2 made, 0 there already, 0 failed"), "{done}");
    // The first id is still the one that would have come next there.
    assert_eq!(code("u-tiny", &token("u-")), (200, Some(200_002)));
    assert_eq!(code("u-odd", &token("u-")), (200, Some(300_001)));
    assert_eq!(code("u-third", &token("u-")), (5, None));
    assert_eq!(code("u-tiny", "u-other-token-of-bill"), (5, None));
    let done = hidden(node.run(&all));
    assert!(done.contains("0 made, 2 there already, 0 failed"), "{done}");

    // Of a dump of everything, and of one that was cut.
    let dumped = dump(port, "legacy_d", &[]);
    let import = |flags: &[&str], text: &str| {
        let output = try_with_input(&node, &[&["token", "import", "-"], flags].concat(), text);
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), hidden(said.to_string()))
    };
    let cut = dumped.find("d-0f673adf").unwrap() + 20;
    let (exit, said) = import(&[], &dumped[..cut]);
    assert_eq!(exit, Some(3), "{said}");
    assert!(said.contains("cut short") && said.contains("line "), "{said}");
    let (exit, said) = import(&[], &dumped);
    assert!(exit == Some(0) && said.contains("2 made"), "{said}");
    import_text(&node, &["--format", "tinyid"], &dumped);
    assert_eq!(code("d-tiny", &token("d-")), (200, Some(200_002)));
    let stored = cluster.sql("SELECT * FROM idgen_credential");
    assert!(stored.contains("tinyid-") && !stored.contains("0f673adf8"), "{stored}");
    let audit = cluster.sql("SELECT * FROM idgen_changes");
    assert!(audit.contains("add_token") && !audit.contains("0f673adf8"), "{audit}");
    hidden(node.log());
}

#[test]
fn a_database_that_does_not_fit_is_told_without_its_password() {
    let cluster = Cluster::start();
    let data = support::TempFolder::new("import");
    let node = node(&cluster, data.path());
    let port = cluster.mariadb.port();
    legacy(&cluster, "legacy_u", "u-", 7);
    cluster.mariadb.sql(
        "legacy_u",
        "CREATE TABLE many (biz_tag varchar(20), max_id bigint); \
         INSERT INTO many SELECT CONCAT('t', seq), 1 FROM seq_1_to_100001; \
         CREATE TABLE other (x int); \
         CREATE TABLE renamed AS SELECT biz_tag, max_id, step FROM leaf_alloc;",
    );
    let good = format!("mysql://reader:s3cr3t-word@127.0.0.1:{port}/legacy_u");
    let wrong = format!("mysql://reader:wr0ng-word@127.0.0.1:{port}/legacy_u");
    for (url, flags, code, text) in [
        (&good, &[][..], 3, "source.table must be named"),
        (&good, &["--table", "many"], 3, "more than 100000 rows"),
        (&good, &["--table", "other"], 3, "format cannot be told"),
        (&good, &["--table", "other", "--format", "leaf"], 3, "none of the columns"),
        (&good, &["--table", "nothing"], 3, "no table nothing"),
        (&good, &["--table", "x` WHERE 1=0; DROP TABLE leaf_alloc; -- "], 3, "no table"),
        (&wrong, &["--format", "leaf"], 3, "Access denied"),
    ] {
        let refused = node.try_run(&[&["type", "import", "--from", url.as_str()], flags].concat());
        let error = String::from_utf8_lossy(&refused.stderr).to_string();
        assert_eq!(refused.status.code(), Some(code), "{flags:?}: {error}");
        assert!(error.contains(text), "{flags:?}: {error}");
        assert!(!error.contains("s3cr3t-word") && !error.contains("wr0ng-word"), "{error}");
    }
    let renamed = ["type", "import", "--from", &good, "--table", "renamed", "--dry-run"];
    assert!(node.run(&renamed).contains("format leaf: 2 would be created"));
    assert!(node.run(&["type", "list", "--json"]).trim() == "[]");
    let log = node.log();
    assert!(!log.contains("s3cr3t-word") && !log.contains("wr0ng-word"), "{log}");
}

fn dump(port: u16, database: &str, arguments: &[&str]) -> String {
    let (before, tables): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    let output = Command::new("mariadb-dump")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp"])
        .args(["--default-character-set=utf8mb4", &format!("--port={port}")])
        .args(before)
        .arg(database)
        .args(tables)
        .output()
        .expect("mariadb-dump is installed: run `make test-deps`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn try_import_text(node: &Node, flags: &[&str], text: &str) -> std::process::Output {
    try_with_input(node, &[&["type", "import", "-"], flags].concat(), text)
}

fn try_with_input(node: &Node, arguments: &[&str], text: &str) -> std::process::Output {
    let mut child = command(arguments)
        .env("IDGEN_URL", &node.url)
        .env("IDGEN_ADMIN_TOKEN", TOKEN)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, text.as_bytes()).expect("the program reads");
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

fn import_text(node: &Node, flags: &[&str], text: &str) -> String {
    let output = try_import_text(node, flags, text);
    let error = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(output.status.success(), "{error}\n{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).to_string()
}
