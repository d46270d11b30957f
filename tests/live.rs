//! The live view of whole clusters: several nodes over a real MariaDB and real Redis
//! servers, watched through one of them.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use support::node::{Cluster, Node, TOKEN, Verify, data_folder, exclusive};
use support::redis::RedisServer;

/// An answer of the admin API.
fn get(node: &Node, path: &str) -> Value {
    let answer = ureq::get(format!("{}/api/v1{path}", node.url))
        .header("authorization", format!("Bearer {TOKEN}"))
        .call();
    let mut answer = answer.unwrap_or_else(|e| panic!("{path}: {e}\n{}", node.log()));
    let text = answer.body_mut().read_to_string().expect("text");
    serde_json::from_str(&text).expect("JSON")
}

/// A stream of events, read by a thread of its own as long as it is open.
struct Watch {
    events: Receiver<(String, Value)>,
    connection: TcpStream,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.connection.shutdown(std::net::Shutdown::Both);
    }
}

impl Watch {
    fn start(node: &Node, types: &str) -> Self {
        let address = node.url.strip_prefix("http://").expect("a URL of HTTP");
        let mut connection = TcpStream::connect(address).expect("a connection");
        let request = format!(
            "GET /api/v1/stream?types={types}&ids=string HTTP/1.1\r\nHost: h\r\n\
             Authorization: Bearer {TOKEN}\r\n\r\n"
        );
        connection.write_all(request.as_bytes()).expect("sent");
        let reader = BufReader::new(connection.try_clone().expect("a second handle"));
        let (tell, events) = channel();
        std::thread::spawn(move || {
            let mut name = String::new();
            for line in reader.lines().map_while(Result::ok) {
                if let Some(event) = line.strip_prefix("event: ") {
                    name = event.to_owned();
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let data = serde_json::from_str(data).expect("JSON");
                    if tell.send((name.clone(), data)).is_err() {
                        return;
                    }
                }
            }
        });
        Watch { events, connection }
    }

    /// The first event called `name` of which `holds`, within `limit`.
    fn wait_for(
        &self,
        what: &str,
        limit: Duration,
        name: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let bound = Instant::now() + limit;
        let mut last = Value::Null;
        loop {
            let left = bound.saturating_duration_since(Instant::now());
            let Ok((event, data)) = self.events.recv_timeout(left) else {
                panic!("waited for {what} in vain; the last {name}: {last:#}");
            };
            if event == name {
                if holds(&data) {
                    return data;
                }
                last = data;
            }
        }
    }
}

fn node_of<'a>(overview: &'a Value, http: &str) -> Option<&'a Value> {
    let nodes = overview["nodes"].as_array()?;
    nodes.iter().find(|node| http.ends_with(node["http"].as_str().unwrap_or("?")))
}

fn has_attention(overview: &Value, kind: &str, field: &str, subject: &str) -> bool {
    let all = overview["attention"].as_array().expect("a list");
    all.iter().any(|entry| entry["kind"] == kind && entry["subject"][field] == subject)
}

const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_stream_shows_nodes_rates_losses_and_changes() {
    let cluster = Cluster::start();
    let mut second = RedisServer::start();
    let (watched, mut other) = (cluster.node(), cluster.node());
    watched.run(&["redis", "add", "second", &second.url()]);
    watched.run(&["type", "add", "order", "--min-range", "1000"]);
    watched.run(&["type", "add", "ticket", "--mode", "segment"]);
    let watch = Watch::start(&watched, "order,ticket,nothing");
    let hello = watch.wait_for("the greeting", SOON, "hello", |_| true);
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));

    // Traffic through both nodes.
    let both = [&watched, &other];
    let strict = Verify::start(&both, "order", 14, &["--clients", "4"]);
    let leased = Verify::start(&both, "ticket", 14, &["--clients", "4"]);
    let seen = watch.wait_for("the rates of both nodes", SOON, "overview", |overview| {
        let rate = |url: &str| node_of(overview, url).map(|node| &node["ids_per_s"]);
        let busy = |url: &str| rate(url).and_then(Value::as_f64).is_some_and(|rate| rate > 10.0);
        busy(&watched.url) && busy(&other.url)
    });
    assert_eq!(seen["node"], hello["node"]);
    assert_eq!(seen["types"], json!({"active": 2, "retired": 0}), "{seen:#}");
    assert_eq!(seen["store"]["kind"], "mysql");
    assert_eq!(seen["store"]["reachable"], true);
    assert!(seen["store"]["round_trip_us"].as_u64().unwrap() > 0);
    let instance = &seen["instances"][1];
    assert_eq!((&instance["name"], &instance["role"]), (&json!("second"), &json!("master")));
    assert!(instance["memory_bytes"].as_u64().unwrap() > 1_000, "{instance}");
    assert!(instance["version"].as_str().unwrap().contains('.'), "{instance}");
    assert!(node_of(&seen, &other.url).unwrap()["age_ms"].as_u64().unwrap() < 10_000);
    // Rates of types count what all nodes hand out.
    let types = watch.wait_for("the rates of both types", SOON, "types", |types| {
        let items = types["items"].as_array().unwrap();
        let busy = |item: &Value| {
            item["rate"].as_f64().is_some_and(|rate| rate > 20.0) && item["rate_of"] == "cluster"
        };
        items.len() == 2 && items.iter().all(busy)
    });
    let (order, ticket) = (&types["items"][0], &types["items"][1]);
    assert_eq!((&order["name"], &ticket["name"]), (&json!("order"), &json!("ticket")));
    assert!(order["dispatcher"]["cursor"].is_string(), "{order}");
    assert!(order["runway_s"].as_f64().unwrap() > 0.0, "{order}");
    assert!(order["last_load_ms"].as_i64().is_some(), "{order}");
    assert!(ticket["local"]["left"].as_u64().unwrap() > 0, "{ticket}");
    let report = strict.finish_clean();
    leased.finish();
    let mean = report["ids"].as_f64().unwrap() / 14.0;
    let rate = order["rate"].as_f64().unwrap();
    assert!((mean / 4.0..mean * 4.0).contains(&rate), "{rate} per second, {mean} on average");

    // An edit through the other node.
    while watch.events.try_recv().is_ok() {}
    other.run(&["type", "set", "order", "--description", "news"]);
    let within = Duration::from_secs(2); // the second of the contract, and a busy machine
    watch.wait_for("the change", within, "changed", |changed| {
        changed["types"].as_array().unwrap().contains(&json!("order"))
    });

    // A Redis that is gone, and a node that is killed.
    second.kill();
    watch.wait_for("the lost Redis", SOON, "overview", |overview| {
        has_attention(overview, "instance_down", "instance", "second")
            && overview["instances"][1]["reachable"] == false
    });
    other.kill();
    let silent = watch.wait_for("the killed node", SOON, "overview", |overview| {
        node_of(overview, &other.url).is_some_and(|node| node["silent"] == true)
    });
    let name = node_of(&silent, &other.url).unwrap()["node"].as_str().unwrap();
    assert!(has_attention(&silent, "node_silent", "node", name), "{silent:#}");
    assert!(node_of(&silent, &watched.url).is_some_and(|node| node["silent"] == false));

    // It comes back, and takes its entry away when it stops in order.
    second.start_again();
    other.start_again();
    watch.wait_for("the node's return", SOON, "overview", |overview| {
        node_of(overview, &other.url).is_some_and(|node| node["silent"] == false)
            && !has_attention(overview, "instance_down", "instance", "second")
    });
    assert!(other.stop().success());
    watch.wait_for("the node's farewell", SOON, "overview", |overview| {
        node_of(overview, &other.url).is_none()
    });
}

#[test]
fn series_show_what_happened_and_what_is_in_the_range_log() {
    let cluster = Cluster::start();
    let mut node = cluster.node();
    node.run(&["type", "add", "order", "--min-range", "90", "--max-range", "90"]);
    Verify::start(&[&node], "order", 4, &["--clients", "2"]).finish_clean();
    let measured = |series: &Value| {
        let points = series["ids_per_s"].as_array().unwrap();
        points.iter().filter_map(Value::as_f64).fold(0.0, f64::max)
    };
    let series = get(&node, "/types/order/series?span=hour");
    assert_eq!(series["scope"], "cluster");
    assert_eq!(series["step_ms"], 10_000);
    let (from, to) = (series["from_ms"].as_i64().unwrap(), series["to_ms"].as_i64().unwrap());
    assert!((3_590_000..=3_600_000).contains(&(to - from)), "{}", to - from);
    assert_eq!(series["at_ms"].as_array().unwrap().len(), 360);
    assert!(measured(&series) > 4.0, "{series:#}");
    let ranges = series["ranges"].as_array().unwrap();
    assert!(ranges.len() > 1, "{ranges:?}");
    assert!(ranges.iter().all(|range| range["length"] == 90));
    assert!(ranges.iter().any(|range| range["refill_ms"].as_u64().is_some()), "{ranges:?}");
    assert!(ranges.windows(2).all(|w| w[0]["start"].as_i64() < w[1]["start"].as_i64()));
    assert!(measured(&get(&node, "/series?span=day")) > 0.1);

    // A new process knows from the range log what was before it.
    node.kill();
    node.start_again();
    let series = get(&node, "/types/order/series?span=hour");
    assert!(measured(&series) > 4.0, "{series:#}");
    let ranges = series["ranges"].as_array().unwrap();
    assert!(ranges.iter().all(|range| range["refill_ms"].is_null()), "{ranges:?}");
}

/// MySQL is away: the runway counts, and the streams go on.
#[test]
fn without_the_store_the_runway_is_short_and_streams_go_on() {
    let mut cluster = Cluster::start();
    let mut node = cluster.node();
    node.run(&["type", "add", "order"]);
    let watch = Watch::start(&node, "order");
    let traffic = Verify::start(&[&node], "order", 20, &["--clients", "2"]);
    watch.wait_for("a runway", SOON, "types", |types| types["items"][0]["runway_s"].is_number());
    cluster.mariadb.kill();
    let seen = watch.wait_for("the lost store", SOON, "overview", |overview| {
        let short = has_attention(overview, "runway_short", "type", "order");
        short && overview["store"]["reachable"] == false
    });
    let first = &seen["attention"][0];
    assert_eq!((&first["kind"], &first["severity"]), (&json!("store_down"), &json!("critical")));
    assert!(!seen.to_string().contains("password"), "{seen:#}");
    traffic.interrupt();
    traffic.finish();
    cluster.mariadb.start_again();
    watch.wait_for("the store's return", SOON, "overview", |overview| {
        overview["store"]["reachable"] == true && overview["attention"][0]["kind"] != "store_down"
    });
    // The node stops at once though a stream is open: HTTP waits 5 s for requests.
    let began = Instant::now();
    assert!(node.stop().success());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// The embedded store: nobody to report to, and ids that are handed out over HTTP.
#[test]
fn a_node_alone_sees_itself() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let node = Node::start(&["--data", data.to_str().expect("UTF-8")]);
    node.run(&["type", "add", "order"]);
    node.run(&["type", "add", "flake", "--mode", "snowflake"]);
    let watch = Watch::start(&node, "order,flake");
    let (began, mut seen) = (Instant::now(), Value::Null);
    while began.elapsed() < SOON {
        node.run(&["get", "order", "-n", "7"]);
        node.run(&["get", "flake", "-n", "3"]);
        if let Ok((name, data)) = watch.events.try_recv()
            && name == "overview"
        {
            seen = data;
        }
        if seen["ids_per_s"].as_f64().is_some_and(|rate| rate > 1.0) {
            break;
        }
    }
    assert_eq!(seen["nodes"].as_array().map(Vec::len), Some(1), "{seen:#}");
    assert_eq!(seen["store"]["kind"], "embedded");
    assert_eq!(seen["instances"][0]["url"], "memory://", "{seen:#}");
    assert!(seen["ids_per_s"].as_f64().unwrap() > 1.0, "{seen:#}");
    watch.wait_for("ids of the clock that count", SOON, "types", |types| {
        let flake = &types["items"][1];
        flake["rate"].as_f64().is_some_and(|rate| rate > 0.0) && flake["rate_of"] == "cluster"
    });
}
