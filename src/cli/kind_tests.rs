//! Whole commands about every kind of id.

use serde_json::{Value, json};

use super::exit;
use super::tests::{Outcome, client};
use crate::front::http::fake::Server;

fn run(server: &Server, line: &[&str]) -> Outcome {
    client(server, line, "")
}

/// The JSON of `type add` with these flags.
fn add(server: &Server, name: &str, flags: &[&str]) -> Value {
    run(server, &[&["type", "add", name, "--json"][..], flags].concat()).json()
}

#[test]
fn flags_make_options() {
    let server = Server::start();
    for (at, (flags, mode, options)) in [
        (&[][..], "strict", json!({})),
        (&["--on-redis-loss", "segment"], "strict", json!({"on_redis_loss": "segment"})),
        (&["--at-limit", "cycle"], "strict", json!({"at_limit": "cycle"})),
        (&["--at-limit", "error", "--on-redis-loss", "fail"], "strict", json!({})),
        (
            &[
                "--format",
                "{prefix}{date:yyMMdd}{seq:06}",
                "--calendar",
                "daily",
                "--time-zone",
                "Asia/Tokyo",
                "--mode",
                "segment",
            ],
            "segment",
            json!({
                "format": "{prefix}{date:yyMMdd}{seq:06}", "calendar": "daily",
                "time_zone": "Asia/Tokyo"
            }),
        ),
        (&["--opaque"], "strict", json!({"opaque": {"slices": 16}})),
        (&["--opaque", "--slices", "4"], "strict", json!({"opaque": {"slices": 4}})),
        (
            &["--mode", "segment", "--sites", "2", "--site", "1"],
            "segment",
            json!({"sites": {"count": 2, "site": 1}}),
        ),
        (&["--mode", "sharded", "--app-id", "0"], "sharded", json!({"app_id": 0})),
        (&["--mode", "snowflake"], "snowflake", json!({})),
        (
            &[
                "--mode",
                "snowflake",
                "--layout",
                "32/11/20",
                "--unit",
                "s",
                "--epoch",
                "2020-09-13T12:26:40Z",
            ],
            "snowflake",
            json!({"snowflake": {
                "time_bits": 32, "worker_bits": 11, "sequence_bits": 20, "unit": "s",
                "epoch_ms": 1_600_000_000_000_i64
            }}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let made = add(&server, &format!("t{at}"), flags);
        assert_eq!((&made["mode"], &made["options"]), (&json!(mode), &options), "{flags:?}");
    }
}

#[test]
fn flags_that_make_no_sense() {
    let server = Server::start();
    for (flags, code, part) in [
        (&["--mode", "wild"][..], exit::USAGE, "snowflake"),
        (&["--at-limit", "wrap"], exit::USAGE, "error or cycle"),
        (&["--on-redis-loss", "x"], exit::USAGE, "fail or segment"),
        (&["--calendar", "weekly"], exit::USAGE, "daily, monthly, yearly"),
        (&["--unit", "min"], exit::USAGE, "ms or s"),
        (&["--layout", "41/10"], exit::USAGE, "41/10/12"),
        (&["--epoch", "yesterday"], exit::USAGE, "2024-01-01T00:00:00Z"),
        (&["--slices", "4"], exit::USAGE, "--opaque"),
        (&["--sites", "4"], exit::USAGE, "--site"),
        (&["--site", "4"], exit::USAGE, "--sites"),
        (&["--app-id", "3"], exit::REFUSED, "app_id"),
        (&["--mode", "sharded"], exit::REFUSED, "app_id"),
        (&["--mode", "sharded", "--app-id", "-1"], exit::REFUSED, "from 0 to 255"),
        (&["--calendar", "daily"], exit::REFUSED, "format"),
    ] {
        let outcome = run(&server, &[&["type", "add", "x"][..], flags].concat());
        assert_eq!(outcome.code, code, "{flags:?}: {outcome:?}");
        assert!(outcome.err.contains(part), "{flags:?}: {outcome:?}");
    }
    assert!(server.fake.0.lock().unwrap().types.is_empty());
}

#[test]
fn a_change_of_one_option_keeps_the_others() {
    let server = Server::start();
    add(&server, "t", &["--at-limit", "cycle", "--format", "{seq:08}"]);
    let set = |flags: &[&str]| {
        run(&server, &[&["type", "alter", "t", "--json"][..], flags].concat()).json()
    };
    let changed = set(&["--on-redis-loss", "segment"]);
    let options = json!({"at_limit": "cycle", "format": "{seq:08}", "on_redis_loss": "segment"});
    assert_eq!((&changed["options"], &changed["version"]), (&options, &json!(2)));
    // Read and written in one version, whatever others do meanwhile.
    assert_eq!(server.fake.0.lock().unwrap().changes[0].expected_version, Some(1));
    // Other settings leave the options alone, and an empty text takes one away.
    assert_eq!(set(&["--description", "x"])["options"], options);
    let options = json!({"at_limit": "cycle", "on_redis_loss": "segment"});
    assert_eq!(set(&["--format", ""])["options"], options);
    let changed = set(&["--mode", "segment", "--on-redis-loss", "fail", "--at-limit", "error"]);
    assert_eq!((&changed["mode"], &changed["options"]), (&json!("segment"), &json!({})));

    let stale = run(&server, &["type", "set", "t", "--at-limit", "cycle", "--version", "1"]);
    assert_eq!(stale.code, exit::REFUSED);
    assert!(stale.err.contains("CONFLICT"), "{stale:?}");
    // The flags of what never changes are not there.
    assert_eq!(run(&server, &["type", "set", "t", "--opaque"]).code, exit::USAGE);
    let unknown = run(&server, &["type", "set", "nothing", "--at-limit", "cycle"]);
    assert_eq!(unknown.code, exit::REFUSED);
}

#[test]
fn a_type_in_words() {
    let server = Server::start();
    add(&server, "op", &["--mode", "segment", "--opaque", "--slices", "4"]);
    add(&server, "snow", &["--mode", "snowflake", "--epoch", "2024-01-01T00:00:00Z"]);
    add(&server, "plain", &[]);
    let shown = run(&server, &["type", "show", "op"]).out;
    for part in [
        "ids tell nothing; 4 slices for keys",
        "1500 ids in 2 ranges; keeps 2 ahead",
        "2.5 ids/s",
        "10.0 min without the range store",
        "2023-11-15 22:13:20.000Z, at the rate of now",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("dispatcher"), "{shown}");
    let shown = run(&server, &["type", "show", "snow"]).out;
    assert!(shown.contains("41 bits of milliseconds since 2024-01-01 00:00:00.000Z"), "{shown}");
    assert!(shown.contains("worker id of this node  3"), "{shown}");
    assert!(!shown.contains("max id"), "nothing is counted there: {shown}");
    let shown = run(&server, &["type", "show", "plain"]).out;
    assert!(shown.contains("dispatcher") && !shown.contains("this node"), "{shown}");
    assert!(shown.contains("not in sight"), "{shown}");
    let shown = run(&server, &["type", "show", "op", "--json"]).json();
    assert_eq!(shown["local"]["left"], 1_500);
    assert_eq!(shown["exhausted_at_ms"], 1_700_086_400_000_i64);

    let rotated = run(&server, &["type", "rotate-key", "op", "--json"]).json();
    assert_eq!(rotated["version"], 2);
    let refused = run(&server, &["type", "rotate-key", "plain"]);
    assert_eq!(refused.code, exit::REFUSED);
    assert!(refused.err.contains("opaque"), "{refused:?}");
}

#[test]
fn ids_of_every_form() {
    let server = Server::start();
    add(&server, "s", &["--mode", "sharded", "--app-id", "5"]);
    add(&server, "inv", &["--prefix", "R-", "--format", "{prefix}{seq:06}"]);
    let shard = i64::from(crate::domain::gate_pass::shard_of("a b&c"));
    let got = run(&server, &["get", "s", "--gate-pass", "a b&c"]);
    assert_eq!(got.out, format!("{}\n", 1 << 14 | shard << 8 | 5));
    let refused = run(&server, &["get", "s"]);
    assert_eq!(refused.code, exit::REFUSED);
    assert!(refused.err.contains("gate_pass"), "{refused:?}");
    let keyed = ["get", "inv", "-n", "2", "--request-key", "k-1"];
    assert_eq!(run(&server, &keyed).out, "1\n2\n");
    assert_eq!(run(&server, &keyed).out, "1\n2\n");
    assert_eq!(run(&server, &["get", "inv", "--text", "-n", "2"]).out, "R-000003\nR-000004\n");
    let got = run(&server, &["get", "inv", "--text", "--json"]).json();
    assert_eq!(got, json!({"name": "inv", "texts": ["R-000005"]}));
    assert_eq!(run(&server, &["get", "inv", "--text", "-n", "10001"]).code, exit::REFUSED);
}

#[test]
fn leases_and_decoding() {
    let server = Server::start();
    add(&server, "seg", &["--mode", "segment"]);
    add(&server, "o", &["--prefix", "o-"]);
    add(&server, "s", &["--mode", "sharded", "--app-id", "5"]);
    let lease = run(&server, &["lease", "seg", "--count", "100", "--ttl", "60"]);
    assert_eq!(lease.code, exit::OK, "{lease:?}");
    for part in ["first id", "last id            100\n", "60000 ms from the call"] {
        assert!(lease.out.contains(part), "{part}: {lease:?}");
    }
    let lease = run(&server, &["lease", "seg", "-n", "5", "--ttl", "1", "--json"]).json();
    assert_eq!(lease, json!({"name": "seg", "first": 101, "count": 5, "step": 1, "ttl_ms": 1_000}));
    for (arguments, code) in [
        (&["lease", "seg", "--ttl", "1"][..], exit::USAGE),
        (&["lease", "seg", "--count", "1"], exit::USAGE),
        (&["lease", "seg", "--count", "0", "--ttl", "1"], exit::USAGE),
        (&["lease", "seg", "--count", "1", "--ttl", "1m"], exit::USAGE),
        (&["lease", "seg", "--count", "1", "--ttl", "86401"], exit::REFUSED),
        (&["lease", "o", "--count", "1", "--ttl", "1"], exit::REFUSED),
        (&["decode", "o"], exit::USAGE),
        (&["decode", "o", "x"], exit::REFUSED),
        (&["decode", "nothing", "1"], exit::REFUSED),
    ] {
        assert_eq!(run(&server, arguments).code, code, "{arguments:?}");
    }

    let told = run(&server, &["decode", "s", &(1 << 14 | 9 << 8 | 5).to_string()]);
    assert_eq!(told.code, exit::OK, "{told:?}");
    for part in
        ["shard            9\n", "app id           5\n", "1000 positions from 1 on", "lies ahead"]
    {
        assert!(told.out.contains(part), "{part}: {told:?}");
    }
    assert!(!told.out.contains("worker"), "{told:?}");
    let told = run(&server, &["decode", "o", "o-7", "--json"]).json();
    assert_eq!((&told["id"], &told["issued"]), (&json!(7), &json!(false)));
    // A negative number is an id, if a bad one, and not a flag.
    let told = run(&server, &["decode", "o", "-7", "--json"]).json();
    assert_eq!(told["id"], -7);
}
