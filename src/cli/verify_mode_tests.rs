//! The promise of each mode: kept by honest servers, broken by others, and
//! never asked for more than it is.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::Value;

use super::tests::{args, counter, honest, json, outcome};
use super::*;
use crate::cli::load::test_server::{Asked, Info, Reply, TestServer};
use crate::domain::gate_pass::shard_of;
use crate::domain::snowflake::Layout;

fn number(report: &Value, field: &str) -> i64 {
    report[field].as_i64().unwrap_or_else(|| panic!("{field}: {report}"))
}

fn first_violation(report: &Value) -> &str {
    report["violations"][0].as_str().unwrap_or_else(|| panic!("{report}"))
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

/// A node of a segment type that counts by itself from `first` on.
fn segment(first: i64) -> TestServer {
    let counter = Arc::new(AtomicI64::new(first));
    TestServer::start_of(Info::of("segment", "{}"), honest(&counter))
}

#[test]
fn nodes_of_a_segment_type_have_no_order_between_them() {
    let (low, high) = (segment(1), segment(1_000_000_000));
    for more in [&[][..], &["--count", "50"]] {
        let (code, report) = json(&args(&[&low, &high], more));
        assert_eq!(code, exit::OK, "{report}");
        assert_eq!((&report["mode"], &report["order"]), (&"segment".into(), &"node".into()));
    }
    let (code, report) = json(&args(&[&low, &high], &["--order", "strict"]));
    assert_eq!(code, exit::FAILED, "as it is told to: {report}");
}

#[test]
fn a_node_of_a_segment_type_that_goes_back_is_found() {
    let honest = segment(1);
    // Hands out from two ranges in turn, as if each connection had its own.
    let back = TestServer::start_of(Info::of("segment", "{}"), |asked| {
        let range = 1_000_000_000 * (1 + asked.number as i64 % 2);
        Reply::Id(range + asked.number as i64)
    });
    let (code, report) = json(&args(&[&honest, &back], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(number(&report, "order_violations") > 0, "{report}");
    assert_eq!(number(&report, "duplicates"), 0, "{report}");
    assert!(first_violation(&report).contains(&back.name()), "{report}");
}

#[test]
fn a_range_leased_to_two_nodes_is_found() {
    let (one, other) = (segment(1), segment(1));
    let (code, report) = json(&args(&[&one, &other], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(number(&report, "duplicates") > 0, "{report}");
    assert_eq!(number(&report, "order_violations"), 0, "{report}");
}

/// A sharded type of app 7, whose ids `twist` may change.
fn sharded(
    options: &'static str,
    twist: impl Fn(&Asked, i64) -> i64 + Send + Sync + 'static,
) -> TestServer {
    let shards: Vec<AtomicI64> = (0..64).map(|_| AtomicI64::new(1)).collect();
    TestServer::start_of(Info::of("sharded", options), move |asked| {
        let shard = shard_of(&asked.gate_pass);
        let id = || {
            let number = shards[usize::from(shard)].fetch_add(1, Ordering::SeqCst);
            twist(&asked, number << 14 | i64::from(shard) << 8 | 7)
        };
        match asked.method.as_str() {
            "nextShardedId" => Reply::Id(id()),
            "issueIds" => Reply::Ranges((0..asked.count).map(|_| (id(), 1)).collect()),
            other => panic!("{other}"),
        }
    })
}

const APP_7: &str = r#"{"app_id":7}"#;

#[test]
fn an_honest_sharded_type_is_clean_through_many_gate_passes() {
    let passes = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let seen = Arc::clone(&passes);
    let server = sharded(APP_7, move |asked, id| {
        seen.lock().unwrap().insert(asked.gate_pass.clone());
        id
    });
    let (code, report) = json(&args(&[&server], &["--gate-passes", "9", "--count", "5"]));
    assert_eq!(code, exit::OK, "{report}");
    assert_eq!((&report["order"], number(&report, "gate_passes")), (&"shard".into(), 9));
    let expected: Vec<String> = (0..9).map(|n| format!("gate-{n}")).collect();
    assert!(passes.lock().unwrap().iter().eq(&expected), "{passes:?}");
    let (code, report) = json(&args(&[&server], &[]));
    assert_eq!((code, number(&report, "gate_passes")), (exit::OK, 256), "{report}");
}

#[test]
fn a_wrong_shard_or_app_is_found() {
    // The 20th id in the wrong shard, by a far number, so that it is no repeat.
    let wrong_shard = |asked: &Asked, id| match asked.number {
        20 => id + (1 << 8) + (1 << 40),
        _ => id,
    };
    let (code, report) = json(&args(&[&sharded(APP_7, wrong_shard)], &["--order", "none"]));
    assert_eq!((code, number(&report, "wrong_ids")), (exit::FAILED, 1), "{report}");
    assert!(first_violation(&report).starts_with("wrong id: "), "{report}");
    assert!(first_violation(&report).contains("is of shard "), "{report}");
    let wrong_app = |asked: &Asked, id| id + i64::from(asked.number == 20);
    let (code, report) = json(&args(&[&sharded(APP_7, wrong_app)], &["--order", "none"]));
    assert_eq!((code, number(&report, "wrong_ids")), (exit::FAILED, 1), "{report}");
    assert!(first_violation(&report).contains("is of app 8, not 7"), "{report}");
}

#[test]
fn a_shard_that_goes_back_is_found() {
    let back = |asked: &Asked, id| match asked.number {
        0..100 => id + (1 << 40),
        _ => id,
    };
    let (code, report) = json(&args(&[&sharded(APP_7, back)], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(number(&report, "order_violations") > 0, "{report}");
    assert_eq!((number(&report, "duplicates"), number(&report, "wrong_ids")), (0, 0), "{report}");
    let opaque = r#"{"app_id":7,"opaque":{}}"#;
    let (code, report) = json(&args(&[&sharded(opaque, back)], &[]));
    assert_eq!(code, exit::OK, "an opaque one promises no order: {report}");
}

/// A snowflake node whose clock is wrong by `skew_ms`.
fn snowflake(worker: i64, skew_ms: i64) -> TestServer {
    let last = AtomicI64::new(0);
    TestServer::start_of(Info::of("snowflake", "{}"), move |_| {
        let time = unix_ms() + skew_ms - Layout::LEAF_EPOCH_MS;
        let least = time << 22 | worker << 12;
        let next = |last: i64| Some(least.max(last + 1));
        let before = last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).unwrap();
        Reply::Id(least.max(before + 1))
    })
}

#[test]
fn an_honest_snowflake_type_is_clean_and_its_skew_is_told() {
    let (one, other) = (snowflake(3, 0), snowflake(2, -2_000));
    let (code, report) = json(&args(&[&one, &other], &[]));
    assert_eq!(code, exit::OK, "{report}");
    assert_eq!((&report["order"], number(&report, "wrong_ids")), (&"node".into(), 0), "{report}");
    let behind = number(&report["skew"], "behind_ms");
    assert!((1_000..10_000).contains(&behind), "{report}");
    assert!(number(&report["skew"], "ahead_ms") < 1_000, "{report}");
    let (_, table, _) = outcome(&args(&[&one], &[]));
    assert!(table.contains("times in ids: up to "), "{table}");
}

#[test]
fn times_far_from_real_time_are_found() {
    for (hours, word) in [(1, "ahead"), (-1, "behind")] {
        let server = snowflake(1, hours * 3_600_000);
        let (code, report) = json(&args(&[&server], &[]));
        assert_eq!(code, exit::FAILED, "{report}");
        assert_eq!(number(&report, "wrong_ids"), number(&report, "ids"), "{report}");
        assert!(first_violation(&report).contains(word), "{report}");
        let (code, report) = json(&args(&[&server], &["--max-skew-ms", "7200000"]));
        assert_eq!(code, exit::OK, "{report}");
    }
}

#[test]
fn two_snowflake_nodes_with_one_worker_id_are_found() {
    let time = (unix_ms() - Layout::LEAF_EPOCH_MS) << 22;
    let node = || {
        let counter = Arc::new(AtomicI64::new(time));
        TestServer::start_of(Info::of("snowflake", "{}"), honest(&counter))
    };
    let (code, report) = json(&args(&[&node(), &node()], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(number(&report, "duplicates") > 0, "{report}");
}

/// A strict type with ids `1..=16_000_000` in an order of its own.
fn opaque(step: i64) -> TestServer {
    let options = r#"{"opaque":{"slices":1}}"#;
    let info = Info { max_id: 16_000_000, ..Info::of("strict", options) };
    let counter = counter();
    TestServer::start_of(info, move |asked| {
        let first = counter.fetch_add(asked.count, Ordering::SeqCst);
        let id = |position: i64| 1 + (position * step) % 16_000_000;
        match asked.method.as_str() {
            "nextId" => Reply::Id(id(first)),
            _ => Reply::Ranges((first..first + asked.count).map(|p| (id(p), 1)).collect()),
        }
    })
}

#[test]
fn an_opaque_type_is_unique_and_no_more() {
    // The step is prime to 16 000 000: every id comes once.
    for more in [&[][..], &["--count", "20"]] {
        let (code, report) = json(&args(&[&opaque(15_999_989)], more));
        assert_eq!(code, exit::OK, "{report}");
        assert_eq!(report["order"], "none");
    }
    // This one is not: 100 ids are all there are.
    let (code, report) = json(&args(&[&opaque(160_000)], &["--count", "20"]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(number(&report, "duplicates") > 0, "{report}");
    let server = TestServer::start_of(
        Info { max_id: 1_000, ..Info::of("strict", r#"{"opaque":{"slices":1}}"#) },
        |asked| Reply::Id(asked.number as i64 + 995),
    );
    let (code, report) = json(&args(&[&server], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(first_violation(&report).contains(" is above the highest id 1000"), "{report}");
}

/// A type that cycles through `1..=max_id`; `repeat` is issued twice.
fn cycling(max_id: i64, repeat: u64) -> TestServer {
    let counter = counter();
    let next = Arc::clone(&counter);
    let info = Info {
        max_id,
        next_id: Box::new(move || next.load(Ordering::SeqCst)),
        ..Info::of("strict", r#"{"at_limit":"cycle"}"#)
    };
    TestServer::start_of(info, move |asked| {
        let mut position = counter.fetch_add(1, Ordering::SeqCst);
        if asked.number == repeat {
            position -= 1;
        }
        Reply::Id((position - 1) % max_id + 1)
    })
}

#[test]
fn a_cycle_repeats_by_design_but_not_within_itself() {
    let never = u64::MAX;
    let (code, report) = json(&args(&[&cycling(50, never)], &[]));
    assert_eq!(code, exit::OK, "{report}");
    assert!(number(&report, "duplicates") > 0, "{report}");
    assert!(notes(&report).contains("a cycle has 50"), "{report}");
    let (code, report) = json(&args(&[&cycling(1 << 40, never)], &[]));
    assert_eq!((code, number(&report, "duplicates")), (exit::OK, 0), "{report}");
    assert!(notes(&report).contains("within one cycle of 1099511627776"), "{report}");
    let (code, report) = json(&args(&[&cycling(1 << 40, 30)], &[]));
    assert_eq!((code, number(&report, "duplicates")), (exit::FAILED, 1), "{report}");
}

#[test]
fn texts_are_checked_for_repeats() {
    let server = |info, repeat| {
        let counter = counter();
        TestServer::start_of(info, move |asked| {
            assert_eq!(asked.method, "issueStringIds");
            let first = counter.fetch_add(asked.count, Ordering::SeqCst);
            let back = i64::from(asked.number == repeat);
            let text = |n| format!("PAY-2026-11-21-{n:09}");
            Reply::Texts((first..first + asked.count).map(|n| text(n - back)).collect())
        })
    };
    let daily = || Info::of("strict", r#"{"format":"{date:yyyyMMdd}{seq}","calendar":"daily"}"#);
    let never = u64::MAX;
    let (code, report) = json(&args(&[&server(daily(), never)], &["--count", "3"]));
    assert_eq!(code, exit::OK, "{report}");
    assert_eq!(number(&report, "ids"), 3 * number(&report, "calls"), "{report}");
    assert_eq!(report["calls_by_node"][0], report["calls"], "{report}");
    assert!(notes(&report).contains("as texts"), "{report}");
    let padded = Info::of("segment", r#"{"format":"{seq:09}"}"#);
    let (code, report) = json(&args(&[&server(padded, 30)], &["--count", "3"]));
    assert_eq!((code, number(&report, "duplicates")), (exit::FAILED, 1), "{report}");
    assert!(first_violation(&report).starts_with("duplicate: "), "{report}");

    let calendar = server(daily(), never);
    for more in [&["--numbers"][..], &["--order", "strict"]] {
        assert_eq!(outcome(&args(&[&calendar], more)).0, exit::USAGE, "{more:?}");
    }
    let padded = Info::of("strict", r#"{"format":"{seq:09}"}"#);
    let numbers = TestServer::start_of(padded, honest(&counter()));
    let (code, report) = json(&args(&[&numbers], &["--numbers"]));
    assert_eq!((code, &report["order"]), (exit::OK, &"strict".into()), "{report}");
}

#[test]
fn a_strict_type_that_may_lose_its_order_is_told_but_not_blamed() {
    let info = || Info::of("strict", r#"{"on_redis_loss":"segment"}"#);
    let down = || TestServer::start_of(info(), |asked| Reply::Id(1 << 40 ^ asked.number as i64));
    let backwards =
        TestServer::start_of(info(), |asked| Reply::Id((1 << 40) - asked.number as i64));
    let (code, report) = json(&args(&[&backwards], &[]));
    assert_eq!(code, exit::OK, "{report}");
    assert!(number(&report, "order_violations") > 0, "{report}");
    assert!(notes(&report).contains("order: "), "{report}");
    assert_eq!(report["violations"], Value::Array(vec![]));
    let (code, report) = json(&args(&[&backwards], &["--order", "strict"]));
    assert_eq!(code, exit::FAILED, "{report}");
    let (code, report) = json(&args(&[&down(), &down()], &[]));
    assert_eq!(code, exit::FAILED, "uniqueness is promised always: {report}");
}

#[test]
fn what_does_not_fit_the_type_is_refused() {
    let strict = TestServer::start(honest(&counter()));
    let strange = TestServer::start_of(Info::of("quantum", "{}"), |_| Reply::Close);
    for (servers, more, part) in [
        (&[&strict][..], &["--gate-passes", "4"][..], "--gate-passes is for sharded types"),
        (&[&strict], &["--order", "shard"], "--order shard is for sharded types"),
        (&[&strict], &["--mode", "segment"], "type t is strict, not segment"),
        (&[&strict, &segment(1)], &[], "do not serve the same type"),
        (&[&strange], &[], "quantum"),
    ] {
        let (code, out, err) = outcome(&args(servers, more));
        assert_eq!((code, out.as_str()), (exit::USAGE, ""), "{err}");
        assert!(err.contains(part), "{err}");
    }
    assert_eq!(strict.calls(), 0, "before an id is used up");
}

#[test]
fn a_type_that_is_missing_is_made() {
    let known = Arc::new(AtomicBool::new(false));
    let info = Info { known: Arc::clone(&known), ..Info::of("segment", "{}") };
    let node = TestServer::start_of(info, honest(&counter()));
    let (code, _, err) = outcome(&args(&[&node], &[]));
    assert_eq!(code, exit::REFUSED, "nobody asked for it: {err}");

    let admin = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", admin.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut socket, _) = admin.accept().unwrap();
        let mut reader = BufReader::new(socket.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let from = head.len();
            reader.read_line(&mut head).unwrap();
            if let Some(value) = head[from..].to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        known.store(true, Ordering::SeqCst);
        let answer = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\
                      Content-Length: 2\r\nConnection: close\r\n\r\n{}";
        socket.write_all(answer.as_bytes()).unwrap();
        (head, serde_json::from_slice::<Value>(&body).unwrap())
    });
    let options = r#"{"sites":{"count":2,"site":0}}"#;
    let more = ["--mode", "segment", "--options", options, "--url", &url];
    let (code, report) = json(&args(&[&node], &more));
    assert_eq!(code, exit::OK, "{report}");
    let (head, body) = asked.join().unwrap();
    assert!(head.starts_with("POST ") && head.contains("/types "), "{head}");
    let expected = serde_json::json!({
        "name": "t", "mode": "segment", "options": { "sites": { "count": 2, "site": 0 } }
    });
    assert_eq!(body, expected);
    // It is there now, so that nobody asks the admin API again.
    assert_eq!(json(&args(&[&node], &more)).0, exit::OK);
}
