//! The whole path from sockets to the exit code, against servers that keep
//! their promises and against servers that break them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use clap::Parser;

use super::*;
use crate::cli::load::test_server::{Asked, Reply, TestServer};

#[derive(Parser)]
#[command(args_override_self = true)]
struct Line {
    #[command(flatten)]
    args: VerifyArgs,
}

pub(super) fn args(servers: &[&TestServer], more: &[&str]) -> VerifyArgs {
    let mut line = vec!["verify".to_owned()];
    for server in servers {
        line.extend(["--node".to_owned(), server.name()]);
    }
    line.extend(["--type", "t", "--seconds", "1", "--clients", "4"].map(str::to_owned));
    line.extend(more.iter().map(|s| (*s).to_owned()));
    Line::parse_from(line).args
}

/// What a user sees: exit code, standard output, standard error.
pub(super) fn outcome(args: &VerifyArgs) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = execute(args, &Vec::new(), &mut out, &mut err, &Interrupt::default());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

pub(super) fn json(args: &VerifyArgs) -> (u8, serde_json::Value) {
    let args = VerifyArgs { json: true, ..args.clone() };
    let (code, out, err) = outcome(&args);
    let parsed = serde_json::from_str(&out);
    (code, parsed.unwrap_or_else(|e| panic!("{e}: {out:?} {err:?}")))
}

/// An honest counter; servers that share one are an honest cluster.
pub(super) fn honest(counter: &Arc<AtomicI64>) -> impl Fn(Asked) -> Reply + Send + Sync + use<> {
    let counter = Arc::clone(counter);
    move |asked| {
        let first = counter.fetch_add(asked.count, Ordering::SeqCst);
        match asked.method.as_str() {
            "nextId" => Reply::Id(first),
            _ => Reply::Ranges(vec![(first, asked.count)]),
        }
    }
}

pub(super) fn counter() -> Arc<AtomicI64> {
    Arc::new(AtomicI64::new(1))
}

#[test]
fn an_honest_cluster_is_clean() {
    let counter = counter();
    let (a, b) = (TestServer::start(honest(&counter)), TestServer::start(honest(&counter)));
    let (code, report) = json(&args(&[&a, &b], &[]));
    assert_eq!(code, exit::OK, "{report}");
    assert_eq!(report["clean"], true);
    assert_eq!(report["duplicates"], 0);
    assert_eq!(report["order_violations"], 0);
    assert_eq!(report["errors"], 0);
    // Two ids went to the probes, and those cut off at the end to nobody.
    let ids = report["ids"].as_i64().unwrap();
    assert!((1..counter.load(Ordering::SeqCst)).contains(&ids), "{report}");
    for calls in report["calls_by_node"].as_array().unwrap() {
        assert!(calls.as_u64().unwrap() > 0, "{report}");
    }
}

#[test]
fn progress_is_visible_and_apart_from_the_result() {
    let server = TestServer::start(honest(&counter()));
    let (code, out, err) = outcome(&args(&[&server], &["--json", "--seconds", "2"]));
    assert_eq!(code, exit::OK);
    assert_eq!(out.lines().count(), 1);
    serde_json::from_str::<serde_json::Value>(&out).unwrap();
    assert!(err.contains(" ids  0 errors  "), "{err}");
    let (_, table, _) = outcome(&args(&[&server], &[]));
    assert!(table.ends_with("clean\n"), "{table}");
}

#[test]
fn an_id_given_twice_is_found() {
    let server = TestServer::start(|asked| {
        // Call number 50 gets what number 49 got.
        Reply::Id(asked.number as i64 + 1 - i64::from(asked.number == 50))
    });
    let (code, report) = json(&args(&[&server], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert_eq!(report["duplicates"], 1, "{report}");
    assert_eq!(report["clean"], false);
    let violations = report["violations"].as_array().unwrap();
    let first = violations[0].as_str().unwrap();
    assert!(first.starts_with("duplicate: 50 is in 50 (from "), "{first}");
    assert!(first.contains(&server.name()), "{first}");
}

#[test]
fn decreasing_ids_are_found() {
    let server = TestServer::start(|asked| Reply::Id(1_000_000_000 - asked.number as i64));
    let (code, report) = json(&args(&[&server], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert_eq!(report["duplicates"], 0, "{report}");
    assert!(report["order_violations"].as_u64().unwrap() > 0, "{report}");
    // The same calls are fine where no order is promised.
    let (code, report) = json(&args(&[&server], &["--order", "none"]));
    assert_eq!(code, exit::OK, "{report}");
}

#[test]
fn nodes_that_count_apart_are_found_and_may_be_allowed() {
    // Unique, and increasing on each node, but not across them.
    let low = TestServer::start(honest(&counter()));
    let high = TestServer::start(honest(&Arc::new(AtomicI64::new(1_000_000_000))));
    let (code, report) = json(&args(&[&low, &high], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert_eq!(report["duplicates"], 0);
    assert!(report["order_violations"].as_u64().unwrap() > 0);
    let (code, report) = json(&args(&[&low, &high], &["--order", "node"]));
    assert_eq!(code, exit::OK, "{report}");
}

#[test]
fn ranges_are_checked_id_by_id() {
    let honest_server = TestServer::start(honest(&counter()));
    let (code, report) = json(&args(&[&honest_server], &["--count", "100"]));
    assert_eq!(code, exit::OK, "{report}");
    let (ids, calls) = (report["ids"].as_u64(), report["calls"].as_u64());
    assert_eq!(ids.unwrap(), calls.unwrap() * 100);
    // Each range repeats the last id of the one before.
    let greedy = TestServer::start(|asked| {
        let step = asked.count - 1;
        Reply::Ranges(vec![(asked.number as i64 * step + 1, asked.count)])
    });
    let (code, report) = json(&args(&[&greedy], &["--count", "100"]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert!(report["duplicates"].as_u64().unwrap() > 0);
}

#[test]
fn answers_that_break_the_contract_are_violations() {
    let too_few = TestServer::start(|asked| Reply::Ranges(vec![(asked.number as i64 * 9 + 1, 9)]));
    let (code, report) = json(&args(&[&too_few], &["--count", "10"]));
    assert_eq!(code, exit::FAILED, "{report}");
    assert_eq!(report["malformed_answers"], report["calls"]);
    let minus_one = TestServer::start(|_| Reply::Id(-1));
    let (code, report) = json(&args(&[&minus_one], &[]));
    assert_eq!(code, exit::FAILED, "{report}");
    let first = report["violations"][0].as_str().unwrap();
    assert_eq!(first, "malformed answer: -1 is no id: ids are positive");
}

#[test]
fn a_refusal_a_dead_node_and_a_check_of_nothing_have_their_exit_codes() {
    let refusing = TestServer::start(|_| Reply::Raise("UNKNOWN_TYPE", false));
    let (code, out, err) = outcome(&args(&[&refusing], &[]));
    assert_eq!(code, exit::REFUSED);
    assert!(err.contains("refuses: UNKNOWN_TYPE: as the script says"), "{err}");
    assert_eq!(out, "");

    let unavailable = TestServer::start(|_| Reply::Raise("UNAVAILABLE", true));
    let (code, _, err) = outcome(&args(&[&unavailable], &[]));
    assert_eq!(code, exit::UNAVAILABLE);
    assert!(err.contains("not one call brought an id; errors: "), "{err}");
    assert!(err.contains("(UNAVAILABLE "), "{err}");

    let gone = args(&[&unavailable], &[]);
    drop(unavailable);
    let (code, _, err) = outcome(&gone);
    assert_eq!(code, exit::UNAVAILABLE);
    assert!(err.contains("is out of reach: connect: "), "{err}");

    let no_port = VerifyArgs { nodes: vec!["localhost".to_owned()], ..gone };
    assert_eq!(outcome(&no_port).0, exit::USAGE);
}

#[test]
fn errors_are_counted_and_prove_nothing() {
    let counter = counter();
    let answers = honest(&counter);
    let server = TestServer::start(move |asked| match asked.number % 10 {
        3 => Reply::Raise("OVERLOADED", true),
        // The id is used up, and its answer is lost.
        7 => {
            answers(asked);
            Reply::Close
        }
        _ => answers(asked),
    });
    let (code, report) = json(&args(&[&server], &[]));
    assert_eq!(code, exit::OK, "{report}");
    assert!(report["errors_by_code"]["OVERLOADED"].as_u64().unwrap() > 0);
    assert!(report["errors_by_code"]["disconnected"].as_u64().unwrap() > 0);
    assert!(report["ids"].as_u64().unwrap() > 0);
}

#[test]
fn a_node_that_dies_is_used_again_when_it_is_back() {
    let counter = counter();
    let steady = TestServer::start(honest(&counter));
    let mortal = TestServer::start(honest(&counter));
    let address = mortal.address;
    let args = args(&[&steady, &mortal], &["--seconds", "3"]);
    let check = std::thread::spawn(move || json(&args));
    mortal.wait_for(100);
    drop(mortal);
    let at_death = steady.calls();
    steady.wait_for(at_death + 1_000);
    let back = TestServer::start_at(address, Default::default(), honest(&counter));
    back.wait_for(100);
    let (code, report) = check.join().unwrap();
    assert_eq!(code, exit::OK, "{report}");
    assert!(report["errors"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn a_node_that_hangs_does_not_hold_up_the_end() {
    let counter = counter();
    let answers = honest(&counter);
    let server = TestServer::start(move |asked| match asked.number {
        0..100 => answers(asked),
        _ => Reply::Hang,
    });
    let begun = crate::cli::load::now();
    let (code, report) = json(&args(&[&server], &["--timeout-ms", "60000"]));
    let took: Duration = Instant::duration_since(&crate::cli::load::now(), begun);
    assert_eq!(code, exit::OK, "{report}");
    assert_eq!(report["errors_by_code"]["cut_at_end"], 4, "{report}");
    assert_eq!(report["ids"], 99, "the first call was the probe");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_hung_call_times_out_and_the_client_goes_on() {
    let counter = counter();
    let answers = honest(&counter);
    let server = TestServer::start(move |asked| match asked.number {
        20 => Reply::Hang,
        _ => answers(asked),
    });
    let (code, report) = json(&args(&[&server], &["--timeout-ms", "100", "--clients", "1"]));
    assert_eq!(code, exit::OK, "{report}");
    assert_eq!(report["errors_by_code"]["timeout"], 1, "{report}");
    assert!(report["ids"].as_u64().unwrap() > 20, "{report}");
}

#[test]
fn memory_is_bounded() {
    let server = TestServer::start(honest(&counter()));
    let args = args(&[&server], &["--max-calls", "50", "--seconds", "600"]);
    let (code, out, err) = outcome(&VerifyArgs { json: true, ..args });
    assert_eq!(code, exit::OK, "{out}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["calls"], 50);
    assert_eq!(report["stopped_early"], true);
    assert!(err.contains("ended early: 50 calls are recorded"), "{err}");
}

#[test]
fn an_interrupt_ends_the_run_and_what_was_seen_is_judged() {
    let server = TestServer::start(honest(&counter()));
    let args = VerifyArgs { json: true, ..args(&[&server], &["--seconds", "600"]) };
    let interrupt = Interrupt::default();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = std::thread::scope(|scope| {
        let check = scope.spawn(|| execute(&args, &Vec::new(), &mut out, &mut err, &interrupt));
        server.wait_for(100);
        interrupt.now();
        check.join().unwrap()
    });
    assert_eq!(code, exit::OK);
    let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(report["stopped_early"], true, "{report}");
    assert!(report["ids"].as_u64().unwrap() > 0, "{report}");
    assert!(String::from_utf8(err).unwrap().contains("ended early: interrupted"));
}

#[test]
fn a_pause_slows_each_client() {
    let server = TestServer::start(honest(&counter()));
    let (code, report) = json(&args(&[&server], &["--pause-ms", "100"]));
    assert_eq!(code, exit::OK, "{report}");
    // Four clients, ten calls of each at most, and no more than one more.
    assert!((4..=44).contains(&report["ids"].as_u64().unwrap()), "{report}");
}

#[test]
fn stalls_and_long_calls_are_told_for_each_node_and_in_all() {
    let counter = counter();
    let answers = honest(&counter);
    let steady = TestServer::start(honest(&counter));
    // The clients of the other one wait for their time-out, four times in all.
    let silent = TestServer::start(move |asked| match asked.number {
        200..204 => Reply::Hang,
        _ => answers(asked),
    });
    let clients = ["--timeout-ms", "300", "--clients", "2", "--seconds", "3"];
    let (code, report) = json(&args(&[&steady, &silent], &clients));
    assert_eq!(code, exit::OK, "{report}");
    let by_node = report["by_node"].as_array().unwrap();
    let longest = |of: &serde_json::Value| of["longest_stall_ms"].as_f64().unwrap();
    assert!(longest(&by_node[1]) >= 4.0 * 300.0, "{report}");
    assert!(longest(&by_node[0]) < 300.0 && longest(&report) < 300.0, "{report}");
    assert!(by_node[1]["longest_call_ms"].as_f64().unwrap() < 300.0, "it brought nothing");
    assert_eq!(by_node[1]["errors_by_code"]["timeout"], 4, "{report}");
    assert!(by_node[0]["errors_by_code"].as_object().unwrap().is_empty(), "{report}");
    // The long one is listed with its place in time.
    let stalls = by_node[1]["stalls"].as_array().unwrap();
    let started = report["started_unix_ms"].as_i64().unwrap();
    let long = stalls.iter().find(|stall| stall["ms"].as_f64().unwrap() >= 1_200.0).unwrap();
    let from = long["from_unix_ms"].as_i64().unwrap() - started;
    assert!((0..3_000).contains(&from), "{report}");
}
