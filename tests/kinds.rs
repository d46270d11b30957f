//! Every kind of id through whole processes: three nodes over a real MariaDB
//! and a real Redis, under load from `idgen verify`, which knows what each mode
//! promises; one node is killed and started again in the middle.

mod support;

use std::collections::HashSet;
use std::time::Duration;

use idgen::front::thrift::generated::{IdGenException, TIdGenServiceSyncClient};
use serde_json::Value;
use support::node::{Cluster, Node, Verify};
use support::thrift_client::{Client, client};

/// What a failed call says: code, field and message.
fn told<T: std::fmt::Debug>(result: thrift::Result<T>) -> String {
    match result.unwrap_err() {
        thrift::Error::User(error) => format!("{:?}", error.downcast::<IdGenException>().unwrap()),
        other => panic!("no typed error: {other}"),
    }
}

/// Three nodes under load; one is killed, another stopped in order, and both
/// come back. Nothing may repeat, within the promise of the type's mode.
fn killed_and_restarted(cluster: &Cluster, add: &[&str], verify: &[&str]) {
    let mut nodes = [cluster.node(), cluster.node(), cluster.node()];
    let name = add[0];
    nodes[0].run(&[&["type", "add"], add].concat());
    let running = {
        let all: Vec<_> = nodes.iter().collect();
        Verify::start(&all, name, 5, &[&["--clients", "24"], verify].concat())
    };
    running.wait_until_busy();
    nodes[1].kill();
    nodes[1].start_again();
    assert!(nodes[2].stop().success(), "{}", nodes[2].log());
    nodes[2].start_again();
    let report = running.finish_clean();
    for node in 0..3 {
        assert!(report["calls_by_node"][node].as_u64().unwrap() > 0, "{report:#}");
    }
    // Connections that broke, or that a starting node had not served yet, and
    // calls of the node that stopped: nothing else.
    let by_code = report["errors_by_code"].as_object().unwrap();
    let expected = ["connect", "disconnected", "timeout", "UNAVAILABLE"];
    let logs: Vec<_> = nodes.iter().map(Node::log).collect();
    let typed = by_code.keys().all(|code| expected.contains(&code.as_str()));
    assert!(typed, "{report:#}\n{}", logs.join("\n\n"));
}

#[test]
fn segment() {
    let cluster = Cluster::start();
    let ranges = ["--min-range", "500", "--max-range", "50000"];
    killed_and_restarted(&cluster, &[&["order", "--mode", "segment"], &ranges[..]].concat(), &[]);
    let log = "SELECT COUNT(*) FROM idgen_ranges WHERE name = 'order'";
    assert!(cluster.sql(log).parse::<u32>().unwrap() > 3);
}

#[test]
fn sharded() {
    let cluster = Cluster::start();
    let app = ["--mode", "sharded", "--app-id", "200", "--min-range", "50", "--max-range", "500"];
    killed_and_restarted(&cluster, &[&["order"], &app[..]].concat(), &["--gate-passes", "300"]);
}

#[test]
fn snowflake() {
    let cluster = Cluster::start();
    killed_and_restarted(&cluster, &["order", "--mode", "snowflake"], &[]);
    let holders = "SELECT COUNT(*) FROM idgen_workers";
    assert!(cluster.sql(holders).parse::<u32>().unwrap() >= 3);
}

#[test]
fn opaque() {
    let cluster = Cluster::start();
    let flags = ["--mode", "segment", "--opaque", "--max-id", "9007199254740991"];
    killed_and_restarted(&cluster, &[&["order"], &flags[..]].concat(), &[]);
}

#[test]
fn a_new_key_under_load() {
    let cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node(), cluster.node()];
    let flags = ["--opaque", "--slices", "8", "--max-id", "80000000", "--min-range", "200"];
    for (name, mode) in [("order", "segment"), ("strict", "strict")] {
        let ranges = ["--mode", mode, "--max-range", "5000"];
        nodes[0].run(&[&["type", "add", name], &flags[..], &ranges[..]].concat());
        let all: Vec<_> = nodes.iter().collect();
        let running = Verify::start(&all, name, 4, &["--clients", "24"]);
        running.wait_until_busy();
        for node in &nodes {
            node.run(&["type", "rotate-key", name]);
        }
        assert_eq!(running.finish_clean()["errors"], 0);
    }
    let keys = cluster.sql("SELECT key_hex FROM idgen_type_key");
    assert_eq!(keys.lines().collect::<HashSet<_>>().len(), 2 * 4, "a key each, and three new ones");
    let logs: String = nodes.iter().map(Node::log).collect();
    let audit = cluster.sql("SELECT after_json FROM idgen_change");
    assert!(audit.contains("from_slice"), "{audit}");
    for key in keys.lines() {
        assert!(!logs.contains(key) && !audit.contains(key), "a key is a secret");
    }
}

#[test]
fn calendar_series() {
    let cluster = Cluster::start();
    let format = ["--format", "{prefix}{date:yyMMdd}{seq:09}", "--prefix", "R"];
    let zone = ["--calendar", "daily", "--time-zone", "Asia/Shanghai"];
    for (name, mode) in [("order", "strict"), ("invoice", "segment")] {
        let add = [&[name, "--mode", mode], &format[..], &zone[..]].concat();
        killed_and_restarted(&cluster, &add, &[]);
    }
}

#[test]
fn a_strict_type_without_redis() {
    let mut cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--on-redis-loss", "segment", "--min-range", "500"]);
    let all: Vec<_> = nodes.iter().collect();
    let running = Verify::start(&all, "order", 6, &["--clients", "24"]);
    running.wait_until_busy();
    cluster.redis.kill();
    std::thread::sleep(Duration::from_secs(2)); // the load goes on meanwhile
    cluster.redis.start_again();
    let report = running.finish();
    assert_eq!(report["duplicates"], 0, "{report:#}");
    assert_eq!(report["clean"], true, "{report:#}");
    assert!(nodes.iter().any(|node| node.metric("idgen_alone_ids_total") > 100.0));
    // In order again.
    assert_eq!(Verify::start(&all, "order", 2, &["--order", "strict"]).finish_clean()["errors"], 0);
}

/// A backup of the range store, put back while nodes run and after: Redis and
/// the nodes know what the store forgot.
#[test]
fn a_restored_store_repeats_nothing() {
    let cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node()];
    let ranges = ["--min-range", "100", "--max-range", "2000"];
    nodes[0].run(&[&["type", "add", "order", "--mode", "segment"], &ranges[..]].concat());
    let mut seen = HashSet::new();
    let mut take = |node: &Node, count: i32| {
        let ranges = client(&node.thrift).unwrap().next_ids("order".to_owned(), count).unwrap();
        for id in ranges.iter().flat_map(|r| r.first..r.first + r.count) {
            assert!(seen.insert(id), "{id} was issued twice");
        }
    };
    take(&nodes[0], 50);
    let next = cluster.sql("SELECT next_id FROM idgen_type WHERE name = 'order'");
    take(&nodes[0], 5_000);
    take(&nodes[1], 5_000);
    cluster.sql(&format!(
        "DELETE FROM idgen_range_log WHERE end_id > {next}; \
         UPDATE idgen_type SET next_id = {next}, last_range = 100 WHERE name = 'order'"
    ));
    // One that was there, and one that knows of nothing but from Redis.
    let third = cluster.node();
    for _ in 0..5 {
        take(&third, 3_000);
        take(&nodes[0], 3_000);
    }
}

#[test]
fn each_call_of_each_kind_by_thrift() {
    let cluster = Cluster::start();
    let (a, b) = (cluster.node(), cluster.node());
    a.run(&["type", "add", "seg", "--mode", "segment", "--prefix", "S-"]);
    a.run(&["type", "add", "shard", "--mode", "sharded", "--app-id", "9"]);
    a.run(&["type", "add", "flake", "--mode", "snowflake"]);
    let (mut first, mut second) = (client(&a.thrift).unwrap(), client(&b.thrift).unwrap());

    // The same key gives the same ids, on another node too.
    let keyed = |client: &mut Client, count| {
        client.issue_ids("seg".into(), count, "request-1".into(), String::new())
    };
    let ids = keyed(&mut first, 1_500).unwrap();
    assert_eq!(ids.iter().map(|r| r.count).sum::<i64>(), 1_500);
    assert_eq!(keyed(&mut second, 1_500).unwrap(), ids);
    let error = told(keyed(&mut second, 3));
    assert!(error.contains("CONFLICT"), "{error}");

    let texts = first.issue_string_ids("seg".into(), 2, true, String::new(), String::new());
    assert!(texts.unwrap().iter().all(|text| text.starts_with("S-")));

    let lease = first.lease_range("seg".into(), 400, 60_000).unwrap();
    assert!((1..=400).contains(&lease.count) && lease.step == 1 && lease.ttl_ms == 60_000);
    let error = told(first.lease_range("seg".into(), 20_000_000, 60_000));
    assert!(error.contains("INVALID_ARGUMENT") && error.contains("count"), "{error}");

    let id = first.next_sharded_id("shard".into(), "polygenelubricants".into()).unwrap();
    assert_eq!((id & 0xff, (id >> 8) & 0x3f), (9, 0), "Integer.MIN_VALUE is shard 0");
    let decoded = second.decode_id("shard".into(), id.to_string()).unwrap();
    assert_eq!(
        (decoded.shard, decoded.app_id, decoded.position),
        (Some(0), Some(9), Some(id >> 14))
    );

    let id = first.next_id("flake".into()).unwrap();
    let decoded = second.decode_id("flake".into(), id.to_string()).unwrap();
    assert_eq!(decoded.node.as_deref().map(str::is_empty), Some(false), "{decoded:?}");
    let at_ms = decoded.at_ms.unwrap();
    let now_ms = cluster.sql("SELECT ROUND(UNIX_TIMESTAMP(NOW(3)) * 1000)").parse::<i64>().unwrap();
    assert!((now_ms - 60_000..=now_ms + 1_000).contains(&at_ms), "{at_ms} at {now_ms}");

    let error = told(first.next_id("shard".into()));
    assert!(error.contains("gatePass"), "{error}");
}

#[test]
fn each_kind_by_command_line() {
    let cluster = Cluster::start();
    let node = cluster.node();
    let show = |name: &str| -> Value {
        serde_json::from_str(&node.run(&["type", "show", name, "--json"])).unwrap()
    };
    node.run(&[
        "type",
        "add",
        "cycle",
        "--mode",
        "segment",
        "--at-limit",
        "cycle",
        "--max-id",
        "3",
    ]);
    let ids = node.run(&["get", "cycle", "-n", "7"]);
    assert_eq!(ids.split_whitespace().collect::<Vec<_>>(), ["1", "2", "3", "1", "2", "3", "1"]);

    let format = ["--format", "INV-{seq36:06}{check:luhn}"];
    let output = node.try_run(&[&["type", "add", "bad"], &format[..]].concat());
    let error = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(!output.status.success() && error.contains("format"), "{error}");

    let format = ["--format", "INV-{seq:06}{check:luhn}", "--mode", "segment"];
    node.run(&[&["type", "add", "invoice"], &format[..]].concat());
    let text = node.run(&["get", "invoice", "--text"]);
    assert_eq!(text.trim(), "INV-0000018");
    let told = node.run(&["decode", "invoice", "INV-0000018"]);
    assert!(told.contains("position") && told.contains('1'), "{told}");
    assert_eq!(show("invoice")["max_id"], 999_999, "what the format has room for");

    let lease = node.run(&["lease", "invoice", "--count", "10", "--ttl", "60"]);
    assert!(lease.contains('2'), "{lease}");

    for wrong in [
        ["--mode", "sharded", "--app-id", "256"],
        ["--mode", "snowflake", "--layout", "50/10/12"],
        ["--calendar", "daily", "--mode", "strict"],
        ["--mode", "segment", "--on-redis-loss", "segment"],
    ] {
        let output = node.try_run(&[&["type", "add", "wrong"], &wrong[..]].concat());
        assert!(!output.status.success(), "{wrong:?}");
    }
    let output = node.try_run(&["type", "set", "invoice", "--mode", "strict"]);
    let error = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(!output.status.success() && error.contains("mode"), "{error}");
}
