//! Two nodes on one MariaDB: who is let in by one is let in by the other, until it is
//! revoked through either.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::node::{Cluster, Node, TOKEN, idgen};
use support::sql_server::TestDb;
use tokio::time::Instant;

const PASSWORD: &str = "correct horse";

/// What the store may take to tell a node, and what a loaded machine adds.
const WITHIN: Duration = Duration::from_secs(10);

struct Reply {
    status: u16,
    body: Value,
    cookie: Option<String>,
}

fn send(node: &Node, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    let agent = ureq::Agent::new_with_config(config.build());
    let uri = format!("{}/api/v1{path}", node.url);
    let mut request = ureq::http::Request::builder().method(method).uri(uri);
    request = request.header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent.run(request.body(body.to_string()).unwrap()).unwrap();
    let cookie = answer.headers().get("set-cookie").map(|c| c.to_str().unwrap().to_owned());
    let text = answer.body_mut().read_to_string().unwrap();
    Reply {
        status: answer.status().as_u16(),
        body: serde_json::from_str(&text).unwrap_or_default(),
        cookie: cookie.and_then(|c| c.split(';').next().map(str::to_owned)),
    }
}

/// Somebody who is logged in, through whatever node.
struct Person {
    cookie: String,
    csrf: String,
}

impl Person {
    fn of(reply: Reply) -> Person {
        let csrf = reply.body["csrf"].as_str().expect("a session").to_owned();
        Person { cookie: reply.cookie.expect("a cookie"), csrf }
    }

    fn log_in(node: &Node, name: &str) -> Person {
        let login = json!({"name": name, "password": PASSWORD});
        Person::of(send(node, "POST", "/session", &[], &login))
    }

    fn call(&self, node: &Node, method: &str, path: &str, body: Value) -> Reply {
        let headers = [("Cookie", self.cookie.as_str()), ("X-Idgen-Csrf", self.csrf.as_str())];
        send(node, method, path, &headers, &body)
    }

    fn status(&self, node: &Node) -> u16 {
        self.call(node, "GET", "/session", Value::Null).status
    }
}

fn with_token(node: &Node, token: &str, path: &str) -> u16 {
    let shown = format!("Bearer {token}");
    send(node, "GET", path, &[("Authorization", &shown)], &Value::Null).status
}

/// Waits for what must come within a second, and a little more where the machine is
/// busy.
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let bound = Instant::now() + WITHIN;
    while !holds() {
        assert!(Instant::now() < bound, "waited in vain: {what}");
    }
}

/// The secret of the set-up link that a node has printed.
fn link(node: &mut Node) -> String {
    node.wait_for("the banner", WITHIN, |node| node.said().contains("The first id"));
    let said = node.said();
    let line = said.lines().find(|line| line.trim_start().starts_with("set-up")).expect("a link");
    let (address, secret) = line.split_once("/setup#").expect("a secret");
    assert!(address.ends_with(&node.url), "{address}");
    assert_eq!(secret.len(), 64);
    secret.to_owned()
}

#[test]
fn two_nodes_let_in_the_same_people() {
    let cluster = Cluster::start();
    let (mut a, mut b) = (cluster.node(), cluster.node());
    let (first, second) = (link(&mut a), link(&mut b));

    // Only the link that was shown last is valid, and on every node.
    let set_up = |token: &str| {
        let body = json!({"token": token, "name": "ann", "password": PASSWORD});
        send(&a, "POST", "/setup", &[], &body)
    };
    assert_eq!(set_up(&first).status, 403);
    let made = set_up(&second);
    assert_eq!(made.status, 201, "{}", made.body);
    let ann = Person::of(made);
    assert_eq!(set_up(&second).status, 403, "once");

    // A session of one node works on the other, and ends on both.
    assert_eq!((ann.status(&a), ann.status(&b)), (200, 200));
    let bob = json!({"name": "bob", "role": "view", "password": PASSWORD});
    assert_eq!(ann.call(&b, "POST", "/accounts", bob).status, 201);
    let bob = Person::log_in(&a, "bob");
    assert_eq!((bob.status(&a), bob.status(&b)), (200, 200));
    assert_eq!(bob.call(&b, "POST", "/types", json!({"name": "x"})).status, 403);
    let promote = json!({"role": "operate"});
    assert_eq!(ann.call(&a, "PATCH", "/accounts/bob", promote).status, 200);
    assert_eq!(bob.call(&a, "POST", "/types", json!({"name": "x"})).status, 201, "at once");
    soon("the other node knows the new role", || {
        bob.call(&b, "POST", "/types", json!({"name": "y"})).status == 201
    });
    assert_eq!(bob.call(&a, "DELETE", "/session", Value::Null).status, 204);
    assert_eq!(bob.status(&a), 401, "at once");
    soon("the session has ended on the other node", || bob.status(&b) == 401);

    // So does a token.
    let made = ann.call(&b, "POST", "/tokens", json!({"name": "ci", "role": "view"}));
    assert_eq!(made.status, 201, "{}", made.body);
    let token = made.body["secret"].as_str().unwrap();
    assert_eq!((with_token(&a, token, "/types"), with_token(&b, token, "/types")), (200, 200));
    a.run(&["token", "revoke", "ci"]);
    assert_eq!(with_token(&a, token, "/types"), 401, "at once");
    soon("the other node knows of it", || with_token(&b, token, "/types") == 401);

    // The admin token is what it was, and the last administrator stays.
    assert_eq!(with_token(&a, TOKEN, "/accounts"), 200);
    let refused = a.try_run(&["account", "remove", "ann"]);
    assert_eq!(refused.status.code(), Some(3));
    let audit = ann.call(&a, "GET", "/audit?limit=100", Value::Null).body;
    let told: Vec<_> = audit["items"].as_array().unwrap().iter().rev().collect();
    let told: Vec<_> = told
        .iter()
        .map(|e| format!("{} {} by {}", e["action"], e["subject"], e["actor"]).replace('"', ""))
        .filter(|line| !line.contains("redis_instance"))
        .collect();
    let expected = [
        "add_account ann by ann",
        "log_in ann by ann",
        "add_account bob by ann",
        "log_in bob by bob",
        "change_account bob by ann",
        "create_type x by bob",
        "create_type y by bob",
        "end_session bob by bob",
        "add_token ci by ann",
    ];
    assert_eq!(told[..expected.len()], expected);
    assert!(told[expected.len()].starts_with("revoke_token ci by "), "{told:?}");

    // A node that is started now shows no link; nothing shows a secret.
    let mut c = cluster.node();
    c.wait_for("the banner", WITHIN, |node| node.said().contains("The first id"));
    assert!(!c.said().contains("set-up"), "{}", c.said());
    assert_eq!(ann.status(&c), 200);
    let secret = ann.cookie.split('=').nth(1).unwrap();
    for node in [&a, &b, &c] {
        for text in [PASSWORD, secret, token, &second, "argon2id"] {
            assert!(!node.log().contains(text), "{}", node.log());
        }
    }
    let dump = cluster.sql("SELECT * FROM idgen_credential; SELECT * FROM idgen_account");
    for text in [PASSWORD, secret, token, &second] {
        assert!(!dump.contains(text), "only hashes are stored");
    }
}

#[test]
fn operators_stay_logged_in_while_the_store_is_away() {
    let mut cluster = Cluster::start();
    let node = cluster.node();
    let add = json!({"name": "ann", "role": "operate", "password": PASSWORD});
    let admin = format!("Bearer {TOKEN}");
    let added = send(&node, "POST", "/accounts", &[("Authorization", &admin)], &add);
    assert_eq!(added.status, 201, "{}", added.body);
    let (ann, stranger) = (Person::log_in(&node, "ann"), Person::log_in(&node, "ann"));
    assert_eq!(ann.status(&node), 200);
    cluster.mariadb.kill();
    let bound = Instant::now() + Duration::from_secs(3);
    while Instant::now() < bound {
        assert_eq!(ann.status(&node), 200, "she was let in before");
    }
    assert_eq!(stranger.status(&node), 503, "he was not, by this node");
    cluster.mariadb.start_again();
    soon("the store is back", || stranger.status(&node) == 200);
}

/// The account of the service, which anybody may have who can read the settings of a
/// node, reads no table.
#[test]
fn the_schema_is_checked_with_the_new_rights() {
    let cluster = Cluster::start();
    let TestDb { name, app, .. } = &cluster.db;
    cluster.sql(&format!("REVOKE SELECT ON idgen_credentials FROM '{name}'@'%'"));
    let refused = idgen(&["serve", "--mysql", &app.url, "--http", "127.0.0.1:0"]);
    let error = String::from_utf8_lossy(&refused.stderr).to_string();
    assert!(error.contains("SELECT on idgen_credentials"), "{error}");
}
