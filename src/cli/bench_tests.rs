use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clap::Parser;

use super::*;
use crate::cli::load::test_server::{Info, Reply, TestServer};
use crate::cli::load::{Protocol, Transport};

#[derive(Parser)]
#[command(args_override_self = true)]
struct Line {
    #[command(flatten)]
    args: BenchArgs,
}

fn args(node: &str, more: &[&str]) -> BenchArgs {
    let mut line = vec!["bench", "--node", node, "--type", "t"];
    line.extend(["--connections", "4", "--seconds", "1", "--json"]);
    line.extend(more);
    Line::parse_from(line).args
}

fn outcome(args: &BenchArgs) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = execute(args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

#[test]
fn measures_over_every_transport_and_protocol() {
    for transport in [Transport::Framed, Transport::Unframed] {
        for protocol in [Protocol::Binary, Protocol::Compact] {
            let wire = WireArgs { transport, protocol, ..WireArgs::default() };
            let any = "127.0.0.1:0".parse().unwrap();
            let server =
                TestServer::start_at(any, wire.clone(), |asked| Reply::Id(asked.number as i64));
            let args = BenchArgs { wire: wire.clone(), ..args(&server.name(), &[]) };
            let report = measure(&args).unwrap();
            assert_eq!(report.errors, 0, "{wire:?}: {report:?}");
            assert!(report.requests > 0 && report.requests < server.calls());
        }
    }
}

#[test]
fn the_json_object_is_flat_and_adds_up() {
    let next = Arc::new(AtomicI64::new(1));
    let server = TestServer::start(move |asked| {
        assert_eq!((asked.method.as_str(), asked.id_type.as_str()), ("nextIds", "t"));
        if asked.number % 10 == 9 {
            return Reply::Raise("OVERLOADED", true);
        }
        Reply::Ranges(vec![(next.fetch_add(7, Ordering::SeqCst), asked.count)])
    });
    let (code, out, _) = outcome(&args(&server.name(), &["--count", "7"]));
    assert_eq!(code, exit::OK);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let number = |key: &str| report[key].as_f64().unwrap_or_else(|| panic!("{key}: {out}"));
    assert_eq!(number("requests_per_s"), number("requests"));
    assert_eq!(number("ids"), 7.0 * number("requests"));
    assert_eq!(number("ids_per_s"), number("ids"));
    let latencies = ["p50_us", "p99_us", "p999_us", "max_us"].map(number);
    assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{out}");
    assert!(number("errors") > 0.0);
    assert_eq!(report["errors_by_code"]["OVERLOADED"], report["errors"]);
    assert_eq!(report["node"], server.name());
    assert_eq!(report["type"], "t");
    assert_eq!(report["connections"], 4);
    assert_eq!(report["seconds"], 1);
    let table = BenchArgs { json: false, ..args(&server.name(), &["--count", "7"]) };
    let (_, table, _) = outcome(&table);
    for row in ["requests_per_s ", "ids_per_s ", "p999_us ", "errors "] {
        assert!(table.contains(row), "{table}");
    }
}

#[test]
fn a_slow_call_shows_in_the_latencies() {
    // One of 4 clients at a time is held for 50 ms.
    let gate = std::sync::Mutex::new(());
    let server = TestServer::start(move |asked| {
        let _held = gate.lock().unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(50));
        Reply::Id(asked.number as i64 + 1)
    });
    let report = measure(&args(&server.name(), &[])).unwrap();
    assert!(report.p50_us > 150_000.0, "{report:?}");
    assert!(report.max_us < 600_000.0, "{report:?}");
    assert!(report.requests_per_s <= 21.0, "{report:?}");
}

#[test]
fn the_original_method_and_its_codes() {
    let server = TestServer::start(|asked| match (asked.method.as_str(), asked.number % 3) {
        ("getId", 0) => Reply::Original(200, asked.number as i64 + 1, ""),
        ("getId", 1) => Reply::Original(553, -1, "something else"),
        ("getId", _) => Reply::Original(553, -1, "UNAVAILABLE: Redis is gone"),
        (other, _) => panic!("{other}"),
    });
    let report = measure(&args(&server.name(), &["--method", "getId"])).unwrap();
    assert!(report.requests > 0);
    assert!(report.errors_by_code.of("RES_553") > 0, "{report:?}");
    assert!(report.errors_by_code.of("UNAVAILABLE") > 0, "{report:?}");
    let several = args(&server.name(), &["--method", "getId", "--count", "2"]);
    assert_eq!(outcome(&several).0, exit::USAGE);
}

#[test]
fn an_unknown_type_and_a_dead_node_have_their_exit_codes() {
    let original = TestServer::start(|_| Reply::Original(553, -1, ""));
    let (code, out, err) = outcome(&args(&original.name(), &["--method", "getId"]));
    assert_eq!((code, out.as_str()), (exit::REFUSED, ""));
    assert!(err.contains("refuses: RES_553"), "{err}");
    let typed = TestServer::start(|_| Reply::Raise("UNKNOWN_TYPE", false));
    let (code, _, err) = outcome(&args(&typed.name(), &[]));
    assert_eq!(code, exit::REFUSED);
    assert!(err.contains("refuses: UNKNOWN_TYPE"), "{err}");
    let name = typed.name();
    drop(typed);
    let (code, _, err) = outcome(&args(&name, &[]));
    assert_eq!(code, exit::UNAVAILABLE);
    assert!(err.contains(&name), "{err}");
}

#[test]
fn a_node_that_dies_is_not_hammered() {
    // Nobody gets an answer but the probe.
    let server = TestServer::start(|asked| match asked.number {
        0 => Reply::Id(1),
        _ => Reply::Close,
    });
    let error = measure(&args(&server.name(), &[])).unwrap_err();
    assert_eq!(error.exit_code(), exit::UNAVAILABLE);
    // 6 tries to 320 ms, then one each 320 ms: 11 in 2 s; 4 clients.
    assert!(server.calls() <= 1 + 4 * 12, "{}", server.calls());
}

#[test]
fn asks_for_what_the_type_hands_out() {
    let methods = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let server = |info| {
        let methods = Arc::clone(&methods);
        TestServer::start_of(info, move |asked| {
            methods.lock().unwrap().insert((asked.method.clone(), asked.gate_pass));
            match asked.method.as_str() {
                "issueStringIds" => Reply::Texts(vec!["a".into(); asked.count as usize]),
                "nextIds" | "issueIds" => Reply::Ranges(vec![(1, asked.count)]),
                _ => Reply::Id(1),
            }
        })
    };
    let asked = |info, more: &[&str]| {
        let report = measure(&args(&server(info).name(), more)).unwrap();
        assert!(report.requests > 0 && report.errors == 0, "{report:?}");
        let asked = std::mem::take(&mut *methods.lock().unwrap());
        asked.into_iter().map(|(method, pass)| format!("{method} {pass}")).collect::<Vec<_>>()
    };
    let sharded = || Info::of("sharded", r#"{"app_id":1}"#);
    let two = ["--gate-passes", "2"];
    assert_eq!(asked(sharded(), &two), ["nextShardedId gate-0", "nextShardedId gate-1"]);
    let several = ["--gate-passes", "1", "--count", "7"];
    assert_eq!(asked(sharded(), &several), ["issueIds gate-0"]);
    assert_eq!(asked(sharded(), &[]).len(), 256);
    let calendar = Info::of("strict", r#"{"format":"{date:yyMMdd}{seq}","calendar":"daily"}"#);
    assert_eq!(asked(calendar, &["--count", "3"]), ["issueStringIds "]);
    assert_eq!(asked(Info::of("segment", "{}"), &["--texts"]), ["issueStringIds "]);
    assert_eq!(asked(Info::of("segment", "{}"), &[]), ["nextId "]);

    let plain = server(Info::default());
    assert_eq!(outcome(&args(&plain.name(), &two)).0, exit::USAGE);
    let original = ["--method", "getId", "--texts"];
    assert_eq!(outcome(&args(&plain.name(), &original)).0, exit::USAGE);
}
