//! Whole commands: what they print, and how they end.

use std::io::Cursor;

use serde_json::{Value, json};

use super::*;
use crate::config::Settings;
use crate::front::http::fake::{Server, TOKEN};
use crate::ports::MysqlFacts;

/// What a command printed and how it ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

impl Outcome {
    pub(super) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

fn wiring() -> Wiring {
    fn facts() -> MysqlFacts {
        MysqlFacts {
            version: "8.0.36".to_owned(),
            is_mariadb: false,
            innodb_flush_log_at_trx_commit: 2,
            sync_binlog: 1,
            log_bin: true,
            read_only: false,
            tls: true,
            missing_rights: vec![],
            excess_rights: vec![],
            clock_ms: 0,
            round_trip: std::time::Duration::from_millis(1),
        }
    }
    Wiring {
        serve: |layers| {
            let settings = Settings::load(layers).map_err(Failure::usage)?;
            let addr = settings.thrift.addr.expect("not off");
            Err(Failure::failed(format_args!("would serve on {addr}")))
        },
        redis_urls: |_| Ok(Vec::new()),
        schema_apply: |_| {
            Ok(SchemaReport {
                version: Some(1),
                wanted: 1,
                lines: vec!["created procedure idgen_reserve".to_owned()],
                clean: true,
            })
        },
        schema_check: |_| {
            Ok(SchemaReport {
                version: Some(1),
                wanted: 2,
                lines: vec!["procedure idgen_reserve differs".to_owned()],
                clean: false,
            })
        },
        schema_print: || "CREATE TABLE x;\n".to_owned(),
        mysql_facts: |store| match store.mysql.as_deref() {
            Some(url) if url.contains("down") => Err(Failure::failed("connection refused")),
            _ => Ok(facts()),
        },
    }
}

pub(super) fn run_with(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Outcome {
    let arguments = std::iter::once("idgen").chain(arguments.iter().copied());
    let environment: Environment = variables.iter().map(|(k, v)| (k.into(), v.into())).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(
        arguments.map(OsString::from),
        &environment,
        &mut Console { input: &mut Cursor::new(input), out: &mut out, err: &mut err },
        &wiring(),
    );
    Outcome { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// A client command against `server`, with its token.
pub(super) fn client(server: &Server, arguments: &[&str], input: &str) -> Outcome {
    let url = server.url();
    let variables = [("IDGEN_URL", url.as_str()), ("IDGEN_ADMIN_TOKEN", TOKEN), ("USER", "alice")];
    run_with(arguments, &variables, input)
}

#[test]
fn the_definition_of_the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn a_type_lives() {
    let server = Server::start();
    let cli = |arguments: &[&str]| client(&server, arguments, "");
    let added = cli(&[
        "type",
        "add",
        "order",
        "--prefix",
        "o-",
        "--load-interval",
        "60",
        "--lock-expire",
        "5",
        "--load-percentage",
        "0.25",
        "--min-range",
        "10",
        "--max-range",
        "20",
        "--first-id",
        "100",
        "--max-id",
        "9999",
        "--mode",
        "strict",
        "--description",
        "orders",
        "--redis",
        "1",
        "--json",
    ])
    .json();
    for (field, expected) in [
        ("name", json!("order")),
        ("prefix", json!("o-")),
        ("load_interval_ms", json!(60_000)),
        ("lock_ttl_ms", json!(5_000)),
        ("load_percentage", json!(0.25)),
        ("min_range", json!(10)),
        ("max_range", json!(20)),
        ("first_id", json!(100)),
        ("max_id", json!(9_999)),
        ("description", json!("orders")),
    ] {
        assert_eq!(added[field], expected, "{field}");
    }
    assert_eq!(server.fake.0.lock().unwrap().audit[0].actor, "alice (cli)");
    assert_eq!(cli(&["type", "add", "order"]).code, exit::REFUSED);
    assert_eq!(cli(&["type", "add", "user"]).code, exit::OK);

    let listed = cli(&["type", "list"]);
    assert_eq!(listed.out.lines().count(), 3, "{listed:?}");
    assert!(listed.out.contains("order") && listed.out.contains("user"));
    let listed = cli(&["type", "list", "--contains", "us", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);

    let shown = cli(&["type", "show", "order"]);
    assert!(shown.out.contains("load interval"), "{shown:?}");
    assert!(shown.out.contains("here:5900"), "{shown:?}");
    let shown = cli(&["type", "show", "order", "--json", "--ranges", "1"]).json();
    assert_eq!(shown["dispatcher"]["live"], true);
    assert_eq!(shown["ranges"].as_array().unwrap().len(), 1);

    let set = ["type", "set", "order", "--version", "1", "--max-range", "30"];
    assert_eq!(cli(&set).code, exit::OK);
    let conflict = cli(&set);
    assert_eq!(conflict.code, exit::REFUSED);
    assert!(conflict.err.starts_with("idgen: CONFLICT: "), "{conflict:?}");
    assert_eq!(cli(&["type", "set", "order"]).code, exit::USAGE);
    assert_eq!(cli(&["type", "set", "order", "--version", "2"]).code, exit::USAGE);

    assert_eq!(cli(&["get", "order"]).out, "100\n");
    assert_eq!(cli(&["get", "order", "-n", "3"]).out, "101\n102\n103\n");
    let got = cli(&["get", "order", "-n", "2", "--json"]).json();
    assert_eq!(got, json!({"name": "order", "ids": [104, 105]}));
}

#[test]
fn a_block_is_reserved() {
    let server = Server::start();
    client(&server, &["type", "add", "order"], "");
    let block = client(&server, &["type", "reserve", "order", "500"], "");
    assert_eq!(block.out, "first id  1\nlast id   500\nids       500\n");
    let block = client(&server, &["type", "reserve", "order", "2", "--json"], "").json();
    assert_eq!(block, json!({"name": "order", "start": 501, "end": 503, "step": 1, "count": 2}));
    let refused = client(&server, &["type", "reserve", "order", "-1"], "");
    assert_eq!(refused.code, exit::REFUSED, "{refused:?}");
    assert!(refused.err.contains("count -1"), "{refused:?}");
}

#[test]
fn retiring_asks_for_the_name() {
    let server = Server::start();
    client(&server, &["type", "add", "order"], "");
    let state =
        || client(&server, &["type", "show", "order", "--json"], "").json()["state"].clone();
    for answer in ["", "yes\n", "orders\n"] {
        let kept = client(&server, &["type", "retire", "order"], answer);
        assert_eq!(kept.code, exit::FAILED, "{kept:?}");
        assert!(kept.err.contains("Type its name"), "{kept:?}");
        assert_eq!(state(), "active");
    }
    let retired = client(&server, &["type", "retire", "order"], "order\n");
    assert_eq!(retired.code, exit::OK, "{retired:?}");
    assert_eq!(state(), "retired");
    let refused = client(&server, &["get", "order"], "");
    assert_eq!(refused.code, exit::REFUSED);
    assert!(refused.err.contains("RETIRED"), "{refused:?}");
    assert_eq!(client(&server, &["type", "restore", "order"], "").code, exit::OK);
    assert_eq!(state(), "active");
    let asked_nothing = client(&server, &["type", "retire", "order", "--yes"], "");
    assert_eq!((asked_nothing.code, asked_nothing.err.as_str()), (exit::OK, ""));
}

#[test]
fn instances_are_managed_without_showing_passwords() {
    let server = Server::start();
    let cli = |arguments: &[&str], input: &str| {
        let outcome = client(&server, arguments, input);
        assert!(!outcome.out.contains("s3cr3t"), "{outcome:?}");
        assert!(!outcome.err.contains("s3cr3t"), "{outcome:?}");
        outcome
    };
    let added = cli(&["redis", "add", "main", "-"], "redis://:s3cr3t@up:6379\n");
    assert_eq!(added.code, exit::OK, "{added:?}");
    assert!(added.out.contains("redis://:***@up:6379"), "{added:?}");
    let down = ["redis", "add", "far", "redis://:s3cr3t@down:1"];
    assert_eq!(cli(&down, "").code, exit::UNAVAILABLE);
    assert_eq!(cli(&[&down[..], &["--no-test"]].concat(), "").code, exit::OK);
    let bad = cli(&["redis", "add", "bad", "http://u:s3cr3t@h"], "");
    assert_eq!(bad.code, exit::REFUSED);

    let listed = cli(&["redis", "list"], "");
    assert!(listed.out.contains("answers in 250 us"), "{listed:?}");
    assert!(listed.out.contains("connection refused"), "{listed:?}");
    assert_eq!(cli(&["redis", "list", "--json"], "").json()[0]["id"], 1);

    assert_eq!(cli(&["redis", "test", "main"], "").code, exit::OK);
    assert_eq!(cli(&["redis", "test", "far"], "").code, exit::FAILED);
    assert_eq!(cli(&["redis", "test", "redis://:s3cr3t@down"], "").code, exit::FAILED);
    assert_eq!(cli(&["redis", "test", "nothing"], "").code, exit::REFUSED);
    assert_eq!(cli(&["redis", "remove", "far"], "").code, exit::OK);
    assert_eq!(cli(&["redis", "remove", "far"], "").code, exit::REFUSED);
}

#[test]
fn exit_codes_by_cases() {
    let mut server = Server::start();
    let url = server.url();
    let right = [("IDGEN_URL", url.as_str()), ("IDGEN_ADMIN_TOKEN", TOKEN)];
    let wrong = [("IDGEN_URL", url.as_str()), ("IDGEN_ADMIN_TOKEN", "wrong-token")];
    let short = [("IDGEN_URL", url.as_str()), ("IDGEN_ADMIN_TOKEN", "short")];
    let none = [("IDGEN_URL", url.as_str()), ("IDGEN_DATA", "/no/such/folder")];
    let other = [("IDGEN_URL", "ftp://127.0.0.1:1"), ("IDGEN_ADMIN_TOKEN", TOKEN)];
    for (variables, arguments, code, text) in [
        (&right, &["get", "nothing"][..], exit::REFUSED, "UNKNOWN_TYPE"),
        (&right, &["get", "a/../../node"], exit::REFUSED, "name"),
        (&right, &["get", "order", "-n", "0"], exit::USAGE, "100000"),
        (&right, &["get", "order", "-n", "100001"], exit::USAGE, "100000"),
        (&right, &["get"], exit::USAGE, "TYPE"),
        (&right, &["fly"], exit::USAGE, "fly"),
        (&right, &["type", "add", "x", "--max-id", "0"], exit::REFUSED, "max_id"),
        (&right, &["type", "add", "x", "--max-id", "1.5"], exit::USAGE, "--max-id"),
        (&right, &["type", "add", "x", "--load-interval", "1m"], exit::USAGE, "seconds"),
        (&wrong, &["type", "list"], exit::REFUSED, "UNAUTHENTICATED"),
        (&short, &["type", "list"], exit::USAGE, "IDGEN_ADMIN_TOKEN"),
        (&none, &["type", "list"], exit::REFUSED, "/no/such/folder/admin-token"),
        (&other, &["type", "list"], exit::USAGE, "http://HOST:PORT"),
    ] {
        let outcome = run_with(arguments, variables, "");
        assert_eq!(outcome.code, code, "{arguments:?}: {outcome:?}");
        assert!(outcome.err.contains(text), "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.out, "", "{arguments:?}");
        assert!(!outcome.err.contains(TOKEN), "{outcome:?}");
    }
    server.stop();
    let gone = run_with(&["type", "list"], &right, "");
    assert_eq!(gone.code, exit::UNAVAILABLE, "{gone:?}");
    assert_eq!(gone.err.lines().count(), 1, "{gone:?}");
}

#[test]
fn the_token_is_found_in_the_data_folder() {
    let server = Server::start();
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).unwrap();
    let name = format!("idgen-cli-{:016x}", u64::from_be_bytes(random));
    let data = std::env::temp_dir().join(name);
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("admin-token"), format!("{TOKEN}\n")).unwrap();
    let url = server.url();
    let data_text = data.to_str().unwrap();
    let by_flag = ["type", "list", "--url", url.as_str(), "--data", data_text];
    let flag = run_with(&by_flag, &[], "");
    let variable =
        run_with(&["type", "list", "--url", &format!("{url}/")], &[("IDGEN_DATA", data_text)], "");
    std::fs::remove_dir_all(&data).unwrap();
    assert_eq!(flag.code, exit::OK, "{flag:?}");
    assert_eq!(variable.code, exit::OK, "{variable:?}");
}

#[test]
fn serve_gets_its_settings_or_every_problem() {
    let good = run_with(&["serve", "--thrift", "127.0.0.1:7"], &[], "");
    assert_eq!((good.code, good.err.as_str()), (1, "idgen: would serve on 127.0.0.1:7\n"));
    let variables = [("IDGEN_LOG_LEVEL", "loud")];
    let bad = run_with(&["serve", "--refill-jobs", "-1", "--http", "x"], &variables, "");
    assert_eq!(bad.code, exit::USAGE);
    for text in ["3 problems", "--refill-jobs", "--http", "IDGEN_LOG_LEVEL"] {
        assert!(bad.err.contains(text), "{bad:?}");
    }
    let token = run_with(&["serve", "--admin-token", "visible-to-all"], &[], "");
    assert_eq!(token.code, exit::USAGE, "a token is never a flag");
}

#[test]
fn schema_commands_report() {
    let mysql = ["--mysql", "mysql://u:s3cr3t@h/db"];
    let applied = run_with(&[&["schema", "apply"], &mysql[..]].concat(), &[], "");
    assert_eq!(applied.code, exit::OK, "{applied:?}");
    assert!(applied.out.contains("created procedure idgen_reserve"));
    let checked = run_with(&[&["schema", "check"], &mysql[..]].concat(), &[], "");
    assert_eq!(checked.code, exit::FAILED, "{checked:?}");
    assert!(checked.err.contains("idgen schema apply"), "{checked:?}");
    let none = run_with(&["schema", "check"], &[], "");
    assert_eq!(none.code, exit::USAGE, "{none:?}");
    let printed = run_with(&["schema", "print"], &[], "");
    assert_eq!((printed.code, printed.out.as_str()), (0, "CREATE TABLE x;\n"));
}

#[test]
fn the_doctor_fails_on_what_endangers_ids() {
    let variables = [("IDGEN_MYSQL", "mysql://u:s3cr3t@h/db")];
    let sick = run_with(&["doctor"], &variables, "");
    assert_eq!(sick.code, exit::FAILED, "{sick:?}");
    assert!(sick.out.contains("FAIL: mysql commits on disk: set innodb"), "{sick:?}");
    assert!(!sick.out.contains("s3cr3t"), "{sick:?}");
    let down = [("IDGEN_MYSQL", "mysql://u:s3cr3t@down/db")];
    assert_eq!(run_with(&["doctor"], &down, "").code, exit::FAILED);
    // Nothing listens on port 1 of this machine.
    let redis = [("IDGEN_REDIS", "redis://:s3cr3t@127.0.0.1:1")];
    let down = run_with(&["doctor", "--json"], &redis, "");
    assert_eq!(down.code, exit::FAILED, "{down:?}");
    assert!(down.out.contains("redis://:***@127.0.0.1:1"), "{down:?}");
    assert!(!down.out.contains("s3cr3t"), "{down:?}");
    let checks: Value = serde_json::from_str(&down.out).unwrap();
    assert!(checks.as_array().unwrap().iter().any(|c| c["verdict"] == "fail"));
}

#[test]
fn help_and_completions_go_to_the_output() {
    for arguments in [&["--help"][..], &["--version"], &["type", "add", "--help"]] {
        let outcome = run_with(arguments, &[], "");
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{arguments:?}");
        assert!(!outcome.out.is_empty());
    }
    for shell in ["bash", "zsh", "fish"] {
        let outcome = run_with(&["completions", shell], &[], "");
        assert_eq!(outcome.code, 0);
        assert!(outcome.out.contains("idgen"), "{shell}");
    }
}
