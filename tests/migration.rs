//! Types move between two real Redis servers while they are in use: under load from
//! `idgen verify`, with nodes, servers and the range store failing in the middle.

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idgen::front::thrift::generated::TIdGenServiceSyncClient;
use serde_json::{Value, json};
use support::node::{Cluster, Node, TOKEN, Verify};
use support::redis::RedisServer;
use support::send_signal;
use support::thrift_client::{Client, client};
use tokio::time::Instant;

/// The number of the instance that a cluster's nodes register, and of the other.
const FIRST: i64 = 1;
const OTHER: i64 = 2;

/// A cluster of `count` nodes, and a second Redis, registered as `other`.
fn cluster_of(count: usize) -> (Cluster, RedisServer, Vec<Node>) {
    let cluster = Cluster::start();
    let other = RedisServer::start();
    let nodes: Vec<Node> = (0..count).map(|_| cluster.node()).collect();
    nodes[0].run(&["redis", "add", "other", &other.url()]);
    for node in &nodes {
        wait_for("every node knows the second Redis", || reachable(node, "other"));
    }
    (cluster, other, nodes)
}

fn reachable(node: &Node, instance: &str) -> bool {
    let list = answer(node, &["redis", "list"]);
    let found = list.as_array().unwrap().iter().find(|i| i["name"] == instance);
    found.is_some_and(|i| i["check"]["reachable"] == true)
}

/// The JSON that a command prints.
fn answer(node: &Node, arguments: &[&str]) -> Value {
    serde_json::from_str(&node.run(&[arguments, &["--json"]].concat())).unwrap()
}

fn show(node: &Node, name: &str) -> Value {
    answer(node, &["type", "show", name])
}

fn place(node: &Node, name: &str) -> i64 {
    show(node, name)["instance"].as_i64().unwrap()
}

fn move_to(node: &Node, name: &str, instance: i64) -> Value {
    let moved = answer(node, &["type", "migrate", name, "--to", &instance.to_string()]);
    assert_eq!(moved["record"]["instance"], instance, "{moved}");
    moved
}

/// A request to the admin API that may fail, or lose its node; the status, if any.
fn post(url: &str, path: &str, body: &Value) -> Option<u16> {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent = ureq::Agent::new_with_config(config.proxy(None).build());
    let request = agent
        .post(format!("{url}/api/v1{path}"))
        .header("Authorization", format!("Bearer {TOKEN}"))
        .header("Content-Type", "application/json");
    request.send(body.to_string()).ok().map(|answer| answer.status().as_u16())
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let bound = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < bound, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn all(nodes: &[Node]) -> Vec<&Node> {
    nodes.iter().collect()
}

/// No call brought an error. One that the end of the check cut off brought nothing.
fn assert_no_errors(report: &Value, nodes: &[Node]) {
    let by_code = report["errors_by_code"].as_object().unwrap();
    let logs = || nodes.iter().map(Node::log).collect::<Vec<_>>().join("\n\n");
    assert!(by_code.keys().all(|code| code == "cut_at_end"), "{report:#}\n{}", logs());
}

/// One client that takes id after id until it is told to stop: each must be above the
/// one before. Returns how many there were, and the longest call.
struct Single {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(u64, Duration)>,
}

impl Single {
    fn start(node: &Node, name: &str) -> Single {
        let (mut client, name) = (client(&node.thrift).unwrap(), name.to_owned());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut last, mut count, mut longest) = (0, 0, Duration::ZERO);
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                let id = client.next_id(name.clone()).expect("a caller sees no error");
                longest = longest.max(began.elapsed());
                assert!(id > last, "{id} after {last}");
                (last, count) = (id, count + 1);
            }
            (count, longest)
        });
        Single { stop, thread }
    }

    fn finish(self) -> (u64, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn a_strict_type_moves_to_and_fro_and_callers_see_nothing_of_it() {
    let (_cluster, _other, nodes) = cluster_of(3);
    nodes[0].run(&["type", "add", "order", "--min-range", "5000"]);
    nodes[0].run(&["get", "order"]);
    let verify = Verify::start(&all(&nodes), "order", 7, &["--clients", "24"]);
    verify.wait_until_busy();
    let single = Single::start(&nodes[2], "order");
    for round in 0..6 {
        let to = if round % 2 == 0 { OTHER } else { FIRST };
        let moved = move_to(&nodes[round % 3], "order", to);
        println!("kept {}, burnt {}, {} ms", moved["kept"], moved["burnt"], moved["took_ms"]);
        std::thread::sleep(Duration::from_millis(200)); // some load on each side
    }
    let (calls, longest) = single.finish();
    let report = verify.finish_clean();
    println!("{calls} calls of one client, the longest took {longest:?}");
    assert_no_errors(&report, &nodes);
    assert!(longest < Duration::from_secs(2), "the deadline of calls: {longest:?}");
    assert_eq!(answer(&nodes[1], &["type", "migrations"]), json!([]));
    assert_eq!(show(&nodes[1], "order")["generation"], 12, "two steps for each move");
}

#[test]
fn a_plan_changes_nothing_an_undo_moves_back_and_request_keys_last() {
    let (cluster, other, nodes) = cluster_of(2);
    let node = &nodes[0];
    node.run(&["type", "add", "order", "--min-range", "1000"]);
    let keyed = |node: &Node| node.run(&["get", "order", "-n", "5", "--request-key", "cart-1"]);
    let before = keyed(node);
    let plan = answer(node, &["type", "migrate", "order", "--to", "other", "--dry-run"]);
    assert_eq!(plan["from"]["instance"], FIRST, "{plan:#}");
    assert_eq!(plan["from"]["reachable"], true);
    assert_eq!((&plan["to"]["instance"], &plan["to"]["reachable"]), (&json!(OTHER), &json!(true)));
    assert_eq!((&plan["keeps_rest"], &plan["problems"]), (&json!(true), &json!([])));
    assert_ne!(plan["from"]["history"], plan["to"]["history"]);
    assert_eq!(other.cli(&["keys", "*"]), "", "nothing was written there");
    let shown = show(node, "order");
    assert_eq!((&shown["generation"], &shown["instance"]), (&json!(0), &json!(FIRST)));
    assert_eq!(shown["dispatcher"]["left"], plan["rest"], "{shown:#}");

    let moved = move_to(node, "order", OTHER);
    assert_eq!((&moved["kept"], &moved["burnt"]), (&plan["rest"], &json!(0)), "as planned");
    // The next id is the one that was next, and the old key its old answer.
    assert_eq!(node.run(&["get", "order"]), "6\n");
    assert_eq!(keyed(&nodes[1]), before);
    assert_eq!(keyed(node), before);
    assert_eq!(cluster.redis.cli(&["hexists", "idgen:{order}", "sealed"]), "1");

    // What was not taken there before comes back with the type.
    let plan = answer(node, &["type", "migrate", "order", "--to", "default", "--dry-run"]);
    assert_eq!((&plan["rest"], &plan["keeps_rest"]), (&json!(994), &json!(true)), "{plan:#}");
    let back = answer(&nodes[1], &["type", "migrate", "order", "--undo"]);
    assert_eq!((&back["instance"], &back["moved_from"]), (&json!(FIRST), &json!(OTHER)));
    assert_eq!(nodes[1].run(&["get", "order"]), "7\n");
    assert_eq!(keyed(node), before);
    // What is there already, is not there, or cannot be undone.
    for (arguments, text) in [
        (&["order", "--to", "default"][..], "already"),
        (&["order", "--to", "nowhere"], "UNKNOWN_INSTANCE"),
        (&["nothing", "--to", "other"], "UNKNOWN_TYPE"),
    ] {
        let refused = node.try_run(&[&["type", "migrate"], arguments].concat());
        let told = String::from_utf8_lossy(&refused.stderr).to_string();
        assert_eq!(refused.status.code(), Some(3), "{told}");
        assert!(told.contains(text), "{told}");
    }
    node.run(&["type", "add", "user"]);
    assert_eq!(node.try_run(&["type", "migrate", "user", "--undo"]).status.code(), Some(3));
}

/// The node at work on a migration dies before or after it has closed the old instance;
/// the others end what it began, and nobody gets a wrong id.
#[test]
fn a_node_killed_in_the_middle_of_a_migration() {
    let (cluster, other, mut nodes) = cluster_of(3);
    nodes[0].run(&["type", "add", "order", "--min-range", "5000"]);
    nodes[0].run(&["get", "order"]);
    let verify = Verify::start(&all(&nodes), "order", 20, &["--clients", "12"]);
    verify.wait_until_busy();
    for closed in [false, true, true] {
        let from = place(&nodes[0], "order");
        let to = FIRST + OTHER - from;
        let old = if from == FIRST { &cluster.redis } else { &other };
        let generation = "SELECT generation FROM idgen_type WHERE name = 'order'";
        let before: i64 = cluster.sql(generation).parse().unwrap();
        let has_come_so_far = || match closed {
            false => cluster.sql(generation).parse::<i64>().unwrap() > before,
            true => old.cli(&["hget", "idgen:{order}", "sealed"]) == format!("{} {to}", before + 1),
        };
        let url = nodes[2].url.clone();
        let body = json!({ "to": to.to_string() });
        let begin = || {
            let (url, body) = (url.clone(), body.clone());
            std::thread::spawn(move || post(&url, "/types/order/migration", &body))
        };
        let mut moving = begin();
        // Step by step: it stands still while somebody looks how far it is.
        wait_for("the migration has begun", || {
            send_signal(nodes[2].pid(), "STOP");
            let is_there = has_come_so_far();
            if !is_there {
                send_signal(nodes[2].pid(), "CONT");
                if moving.is_finished() {
                    // It stood still for longer than a call to Redis may take.
                    moving = begin();
                }
                std::thread::sleep(Duration::from_millis(1)); // the length of a step
            }
            is_there
        });
        nodes[2].kill();
        let status = moving.join().unwrap();
        let began = Instant::now();
        wait_for("somebody ends the migration", || {
            answer(&nodes[0], &["type", "migrations"]) == json!([])
        });
        let took = began.elapsed();
        wait_for("ids", || nodes[1].try_run(&["get", "order"]).status.success());
        println!("closed: {closed}, {from} -> {to}, answer {status:?}, ended after {took:?}");
        assert_eq!(place(&nodes[0], "order"), to);
        nodes[2].start_again();
    }
    let report = verify.finish_clean();
    let by_code = report["errors_by_code"].as_object().unwrap();
    let connection =
        |code: &String| ["connect", "disconnected", "cut_at_end"].contains(&code.as_str());
    assert!(by_code.keys().all(connection), "only the killed node's calls: {report:#}");
}

#[test]
fn leased_types_move_under_load() {
    let (_cluster, _other, nodes) = cluster_of(2);
    for (name, add) in [
        ("event", &["--mode", "segment", "--min-range", "100", "--max-range", "1000"][..]),
        ("account", &["--mode", "sharded", "--app-id", "7", "--min-range", "100"]),
        ("trace", &["--mode", "snowflake"]),
    ] {
        nodes[0].run(&[&["type", "add", name], add].concat());
        let verify = Verify::start(&all(&nodes), name, 3, &["--clients", "8"]);
        verify.wait_until_busy();
        for to in [OTHER, FIRST, OTHER] {
            let moved = move_to(&nodes[0], name, to);
            assert_eq!((&moved["kept"], &moved["burnt"]), (&json!(0), &json!(0)), "{moved}");
            std::thread::sleep(Duration::from_millis(200)); // some load on each side
        }
        let report = verify.finish_clean();
        assert_no_errors(&report, &nodes);
        assert_eq!(place(&nodes[1], name), OTHER);
    }
}

/// Hundreds of types leave an instance, some of them in use, one of them closed by a
/// node that is not there any more; then the instance can go.
#[test]
fn an_instance_is_drained_and_removed() {
    let (mut cluster, _other, mut nodes) = cluster_of(3);
    for n in 0..200 {
        let body = json!({"name": format!("t{n:03}"), "min_range": 1_000});
        assert_eq!(post(&nodes[n % 3].url, "/types", &body), Some(201), "{}", nodes[n % 3].log());
    }
    for n in 0..10 {
        nodes[n % 3].run(&["get", &format!("t{n:03}")]);
    }
    let refused = nodes[0].try_run(&["redis", "remove", "default"]);
    let told = String::from_utf8_lossy(&refused.stderr).to_string();
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains("CONFLICT") && told.contains("redis drain default"), "{told}");

    assert!(nodes[2].stop().success());
    let loads: Vec<_> = ["t003", "t150"]
        .iter()
        .map(|name| Verify::start(&all(&nodes[..2]), name, 8, &["--clients", "4"]))
        .collect();
    loads.iter().for_each(Verify::wait_until_busy);
    let began = Instant::now();
    let drained = nodes[0].try_run(&[
        "redis",
        "drain",
        "default",
        "--to",
        "other",
        "--wait",
        "--timeout",
        "60",
    ]);
    let told = String::from_utf8_lossy(&drained.stderr).to_string();
    assert_eq!(drained.status.code(), Some(0), "{told}\n{}\n{}", nodes[0].log(), nodes[1].log());
    println!("200 types in {:?}; looks: {:?}", began.elapsed(), told.lines().collect::<Vec<_>>());
    for load in loads {
        assert_no_errors(&load.finish_clean(), &nodes);
    }
    // Nothing new goes there, and a node that comes back finds everything.
    let late = nodes[0].try_run(&["type", "add", "late", "--redis", "default"]);
    assert_eq!(late.status.code(), Some(3), "it is being drained");
    nodes[2].start_again();
    nodes[2].run(&["get", "t003"]);
    let list = answer(&nodes[2], &["redis", "list"]);
    assert_eq!((&list[0]["types"], &list[1]["types"]), (&json!(0), &json!(200)), "{list:#}");
    assert_eq!(list[0]["drain_to"], json!({"id": OTHER, "name": "other"}));
    nodes[1].run(&["redis", "remove", "default"]);
    cluster.redis.kill();
    for node in &nodes {
        for name in ["t003", "t100"] {
            node.run(&["get", name]);
        }
    }
}

/// The new instance does not answer: the type stays where it is, and goes on. The old
/// one is gone for good: the type leaves it without it.
#[test]
fn a_redis_out_of_reach_on_either_side() {
    let (mut cluster, mut other, nodes) = cluster_of(2);
    nodes[0].run(&["type", "add", "order", "--min-range", "1000"]);
    let mut first = client(&nodes[0].thrift).unwrap();
    let mut last = first.next_id("order".to_owned()).unwrap();
    let go_on = |client: &mut Client, last: &mut i64| {
        wait_for("ids", || match client.next_id("order".to_owned()) {
            Ok(id) => {
                assert!(id > *last, "{id} after {last}");
                *last = id;
                true
            }
            Err(_) => false,
        });
    };
    for signal in ["STOP", "KILL"] {
        match signal {
            "STOP" => other.signal("STOP"),
            _ => other.kill(),
        }
        let refused = nodes[0].try_run(&["type", "migrate", "order", "--to", "other"]);
        let told = String::from_utf8_lossy(&refused.stderr).to_string();
        assert_eq!(refused.status.code(), Some(4), "{signal}: {told}");
        assert!(told.contains("UNAVAILABLE"), "{told}");
        let began = Instant::now();
        go_on(&mut first, &mut last);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(place(&nodes[1], "order"), FIRST);
        assert_eq!(answer(&nodes[1], &["type", "migrations"]), json!([]));
        assert_eq!(cluster.redis.cli(&["hexists", "idgen:{order}", "sealed"]), "0");
        let plan = nodes[0].try_run(&["type", "migrate", "order", "--to", "other", "--dry-run"]);
        assert_eq!(plan.status.code(), Some(1), "{plan:?}");
        if signal == "STOP" {
            other.signal("CONT");
        }
    }
    other.start_again();
    wait_for("the second Redis is back", || nodes.iter().all(|node| reachable(node, "other")));

    cluster.redis.kill();
    let refused = nodes[0].try_run(&["type", "migrate", "order", "--to", "other"]);
    assert_eq!(refused.status.code(), Some(4), "the old instance must be asked");
    let moved = ["type", "migrate", "order", "--to", "other", "--abandon", "--yes"];
    let moved = answer(&nodes[0], &moved);
    assert_eq!(moved["record"]["instance"], OTHER, "{moved}");
    go_on(&mut first, &mut last);
    for node in &nodes {
        let mut client = client(&node.thrift).unwrap();
        for _ in 0..50 {
            go_on(&mut client, &mut last);
        }
    }
    // The old one comes back empty: nobody uses it any more.
    cluster.redis.start_again();
    go_on(&mut first, &mut last);
    assert_eq!(cluster.redis.cli(&["exists", "idgen:{order}"]), "0");
    Verify::start(&all(&nodes), "order", 2, &["--clients", "8"]).finish_clean();
}

/// MariaDB is put back to a backup from before the migration: it believes the type on
/// the old instance, whose seal tells otherwise.
#[test]
fn a_range_store_restored_from_before_a_migration() {
    let (cluster, _other, mut nodes) = cluster_of(3);
    nodes[0].run(&["type", "add", "order", "--min-range", "2000"]);
    nodes[0].run(&["get", "order"]);
    let backup = dump(&cluster);
    let verify = Verify::start(&all(&nodes), "order", 12, &["--clients", "12"]);
    verify.wait_until_busy();
    move_to(&nodes[0], "order", OTHER);
    for node in &nodes {
        node.run(&["get", "order"]);
    }
    cluster.sql(&backup);
    // One node that knows nothing, and two that ran all the time.
    nodes[2].kill();
    nodes[2].start_again();
    for node in &nodes {
        wait_for("ids", || node.try_run(&["get", "order"]).status.success());
    }
    wait_for("the type is on the new instance", || {
        nodes.iter().all(|node| place(node, "order") == OTHER)
    });
    verify.finish_clean();
    let logs: String = nodes.iter().map(Node::log).collect();
    assert!(logs.contains("has forgotten a migration"), "{logs}");
    assert_eq!(answer(&nodes[2], &["type", "migrations"]), json!([]));
}

/// The rows of all tables, and the statements to put them back.
fn dump(cluster: &Cluster) -> String {
    let output = Command::new("mariadb-dump")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp"])
        .arg(format!("--port={}", cluster.mariadb.port()))
        .args(["--single-transaction", &cluster.db.name])
        .output()
        .expect("the mariadb client is installed: run `make test-deps`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_type_does_not_move_within_one_server() {
    let (cluster, _other, nodes) = cluster_of(1);
    let node = &nodes[0];
    node.run(&["redis", "add", "twin", &format!("{}/1", cluster.redis.url())]);
    wait_for("the node knows the twin", || reachable(node, "twin"));
    node.run(&["type", "add", "order"]);
    node.run(&["get", "order"]);
    let output = node.try_run(&["type", "migrate", "order", "--to", "twin"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("on the same Redis server"), "{error}");
    assert_eq!(place(node, "order"), FIRST);
    node.run(&["get", "order"]);
}
