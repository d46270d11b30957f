//! Every operation of the admin API with requests that are made up from its own
//! document: schemathesis sends what the document allows and what it forbids to real
//! nodes, and holds the answers against it. `tests/openapi/` says how.

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::TempFolder;
use support::node::{Cluster, Node, TOKEN, data_folder};
use support::redis::RedisServer;

/// A type of each kind, as arguments of `idgen type add`.
const TYPES: [&[&str]; 6] = [
    &["order"],
    &["event", "--mode", "segment"],
    &["account", "--mode", "sharded", "--app-id", "7"],
    &["trace", "--mode", "snowflake"],
    &["ticket", "--opaque", "--max-id", "2000000000"],
    &["invoice", "--calendar", "daily", "--format", "{date:yyMMdd}{seq:06}"],
];

/// How many operations the document has, but for the stream, which has no end.
const OPERATIONS: u32 = 45;

/// The answer to a request that makes something.
fn made(node: &Node, path: &str, body: &Value) -> Value {
    let mut answer = ureq::post(format!("{}/api/v1{path}", node.url))
        .header("Authorization", format!("Bearer {TOKEN}"))
        .send_json(body)
        .expect(path);
    answer.body_mut().read_json().expect("JSON")
}

/// Makes two accounts and two API tokens, and logs in; the ids of the tokens and of the
/// session.
fn let_people_in(node: &Node) -> Vec<String> {
    let mut ids = Vec::new();
    for (name, role) in [("ann", "administer"), ("bob", "operate")] {
        let account = json!({"name": name, "role": role, "password": "correct horse"});
        made(node, "/accounts", &account);
        let token = made(node, "/tokens", &json!({"name": name, "role": role}));
        ids.push(token["token"]["id"].as_str().expect("an id").to_owned());
    }
    made(node, "/session", &json!({"name": "bob", "password": "correct horse"}));
    let sessions = ureq::get(format!("{}/api/v1/sessions", node.url))
        .header("Authorization", format!("Bearer {TOKEN}"))
        .call();
    let sessions: Value = sessions.expect("sessions").body_mut().read_json().expect("JSON");
    ids.push(sessions["items"][0]["id"].as_str().expect("an id").to_owned());
    ids
}

/// Runs `phases` of schemathesis against `node`, at least `cases` requests; panics with
/// its report if it finds anything.
fn try_everything(node: &Node, phases: &str, cases: u32) {
    // So that types can move, and that new instances can be reached.
    let redis = RedisServer::start();
    node.run(&["redis", "add", "second", &format!("{}/1", redis.url())]);
    for arguments in TYPES {
        node.run(&[&["type", "add"], arguments].concat());
    }
    let names: Vec<_> = TYPES.iter().map(|arguments| arguments[0]).collect();
    let credentials = let_people_in(node);
    let folder = TempFolder::new("schemathesis");
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/schemathesis.sh"))
        .args(["run", &format!("{}/api/v1/openapi.json", node.url)])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .args(["--continue-on-failure", "--no-color", "--phases", phases])
        .args(["--request-timeout", "20"])
        // It keeps what it found where it runs, to begin with that the next time.
        .current_dir(folder.path())
        .env("IDGEN_TYPES", names.join(","))
        .env("IDGEN_INSTANCES", "embedded,default,second")
        .env("IDGEN_ACCOUNTS", "ann,bob")
        .env("IDGEN_CREDENTIALS", credentials.join(","))
        .env("IDGEN_REDIS", redis.url())
        .output()
        .expect("scripts/schemathesis.sh runs");
    let report = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}\n{error}\n{}", node.log());
    // A run that tried nothing finds nothing.
    let counted = |after: &str| {
        let rest = report.split(after).nth(1).unwrap_or_default().trim_start();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().unwrap_or(0)
    };
    assert!(counted("Tested:") >= OPERATIONS, "{report}");
    assert!(counted("Test cases:") >= cases, "{report}");
    assert!(node.is_ready(), "{}", node.log());
    assert!(!node.log().contains("panicked"), "{}", node.log());
}

#[test]
fn a_node_with_the_embedded_store_keeps_to_its_document() {
    let (_folder, data) = data_folder();
    let node = Node::start(&["--data", data.to_str().expect("UTF-8")]);
    try_everything(&node, "examples,coverage,fuzzing,stateful", 1_500);
}

#[test]
fn a_node_of_a_cluster_keeps_to_its_document() {
    let cluster = Cluster::start();
    // Without the many requests at the limits of each field, which never get to the store.
    try_everything(&cluster.node(), "examples,fuzzing,stateful", 300);
}
