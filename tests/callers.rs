//! Programs with tokens, over Thrift and HTTP, on nodes that want them: who may take
//! which ids, how many, and for how long that holds.

mod support;

use idgen::front::thrift::generated::{
    IdGenServiceSyncClient, RES_INNER_ERROR, RES_SUCCESS, TIdGenServiceSyncClient,
};
use serde_json::Value;
use std::io::{Read, Write};
use std::time::Duration;

use support::node::{Cluster, Node, TOKEN};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TOutputProtocol,
};
use thrift::transport::{TFramedReadTransport, TFramedWriteTransport, TIoChannel, TTcpChannel};
use tokio::time::Instant;

/// What the store may take to tell a node, and what a loaded machine adds.
const WITHIN: Duration = Duration::from_secs(20);

type Client =
    IdGenServiceSyncClient<Box<dyn TInputProtocol + Send>, Box<dyn TOutputProtocol + Send>>;

fn client(node: &Node) -> Client {
    let mut channel = TTcpChannel::new();
    channel.open(&node.thrift).unwrap();
    let (read, write) = channel.split().unwrap();
    let read: Box<dyn Read + Send> = Box::new(TFramedReadTransport::new(read));
    let write: Box<dyn Write + Send> = Box::new(TFramedWriteTransport::new(write));
    IdGenServiceSyncClient::new(
        Box::new(TBinaryInputProtocol::new(read, true)),
        Box::new(TBinaryOutputProtocol::new(write, true)),
    )
}

/// A client that said who it is.
fn client_with(node: &Node, token: &str) -> Client {
    let mut client = client(node);
    client.authenticate(token.to_owned()).unwrap();
    client
}

/// The code and the message of a typed failure; two empty texts for none.
fn failure<T>(result: thrift::Result<T>) -> (String, String) {
    match result {
        Ok(_) => Default::default(),
        Err(thrift::Error::User(error)) => {
            let raised = error.downcast::<idgen::front::thrift::IdGenException>().unwrap();
            (raised.code.unwrap(), raised.message.unwrap())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Makes a token by command.
fn token(node: &Node, arguments: &[&str]) -> String {
    let made = node.run(&[&["token", "add", "--json"], arguments].concat());
    let made: Value = serde_json::from_str(&made).unwrap();
    made["secret"].as_str().unwrap().to_owned()
}

fn take(node: &Node, secret: &str, path: &str) -> (u16, Value) {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    let agent = ureq::Agent::new_with_config(config.build());
    let request = agent.post(format!("{}/api/v1{path}", node.url));
    let mut answer =
        request.header("Authorization", format!("Bearer {secret}")).send_empty().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default())
}

/// Looks again and again until `holds`.
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let bound = Instant::now() + WITHIN;
    while !holds() {
        assert!(Instant::now() < bound, "waited in vain: {what}");
    }
}

const REQUIRED: &[&str] = &["--clients-tokens", "required"];

#[test]
fn who_has_a_token_takes_ids_of_its_types() {
    let cluster = Cluster::start();
    let node = cluster.node_with(REQUIRED);
    for name in ["order", "order.eu", "other"] {
        node.run(&["type", "add", name, "--mode", "segment"]);
    }
    let shop = token(&node, &["shop", "--role", "issue", "--type", "order*", "--days", "90"]);

    // Nobody takes anything, but sees whether the node is there.
    let mut nobody = client(&node);
    for (code, message) in [
        failure(nobody.next_id("order".into())),
        failure(nobody.next_ids("order".into(), 2)),
        failure(nobody.next_string_id("order".into(), false)),
        failure(nobody.describe_type("order".into())),
        failure(nobody.decode_id("order".into(), "1".into())),
        failure(nobody.lease_range("order".into(), 10, 1_000)),
    ] {
        assert_eq!(code, "PERMISSION_DENIED");
        assert!(message.contains("API token"), "{message}");
    }
    let answer = nobody.get_id("web".into(), "order".into()).unwrap();
    assert_eq!((answer.res, answer.value), (Some(RES_INNER_ERROR), Some(-1)));
    assert!(answer.ext.unwrap().starts_with("PERMISSION_DENIED: "));
    assert_eq!(nobody.echo("web".into(), "ping".into()).unwrap().value.as_deref(), Some("ping"));
    assert!(nobody.node_status().unwrap().ready.unwrap());

    // An original client shows the token as its caller, and only that call counts.
    let answer = nobody.get_id(shop.clone(), "order".into()).unwrap();
    assert_eq!(answer.res, Some(RES_SUCCESS), "{:?}", answer.ext);
    let answer = nobody.get_str_id(shop.clone(), "other".into(), false).unwrap();
    assert!(answer.ext.unwrap().contains("not for the id type"));
    let answer = nobody.get_id("web".into(), "order".into()).unwrap();
    assert_eq!(answer.res, Some(RES_INNER_ERROR));
    let answer = nobody.add_new_id(shop.clone(), legacy_type("order.us")).unwrap();
    assert!(answer.ext.unwrap().contains("needs the role operate"));
    let answer = nobody.add_new_id("web".into(), legacy_type("order.us")).unwrap();
    assert!(answer.ext.unwrap().contains("API token"));
    let maker = token(&node, &["maker", "--role", "operate"]);
    let answer = nobody.add_new_id(maker, legacy_type("order.us")).unwrap();
    assert_eq!(answer.res, Some(RES_SUCCESS), "{:?}", answer.ext);

    // The connection of others knows who it is.
    let mut caller = client_with(&node, &shop);
    assert!(caller.next_id("order".into()).unwrap() > 0);
    assert_eq!(caller.next_ids("order.eu".into(), 100).unwrap().len(), 1);
    let lease = caller.lease_range("order".into(), 10, 1_000).unwrap();
    assert!(caller.decode_id("order".into(), lease.first.to_string()).unwrap().issued.unwrap());
    let (code, message) = failure(caller.next_id("other".into()));
    assert_eq!(code, "PERMISSION_DENIED");
    assert!(message.contains("shop") && message.contains("other"), "{message}");
    let wrong = format!("idg_{}", "0".repeat(64));
    let (code, message) = failure(caller.authenticate(wrong.clone()));
    assert_eq!(code, "PERMISSION_DENIED");
    assert!(message.contains("not valid") && !message.contains("idg_"), "{message}");
    assert_eq!(failure(caller.next_id("order".into())).0, "PERMISSION_DENIED", "nobody's");
    assert_eq!(failure(caller.authenticate(String::new())).0, "INVALID_ARGUMENT");
    caller.authenticate(shop.clone()).unwrap();
    assert!(caller.next_id("order".into()).unwrap() > 0);

    // So it is over HTTP.
    assert_eq!(take(&node, &shop, "/types/order/ids").0, 200);
    assert_eq!(take(&node, &shop, "/types/other/ids").0, 403);
    assert_eq!(take(&node, &wrong, "/types/order/ids").0, 401);

    // Where no token is needed, one that is shown counts.
    let lax = cluster.node();
    let mut free = client(&lax);
    assert!(free.next_id("other".into()).unwrap() > 0);
    assert_eq!(failure(free.authenticate(wrong)).0, "PERMISSION_DENIED");
    assert!(free.next_id("other".into()).unwrap() > 0, "nobody's again");
    free.authenticate(shop.clone()).unwrap();
    assert_eq!(failure(free.next_id("other".into())).0, "PERMISSION_DENIED");

    assert!(node.metric(r#"idgen_caller_ids_total{caller="shop"}"#) >= 112.0);
    assert!(node.metric(r#"idgen_caller_refusals_total{caller="shop",reason="type"}"#) >= 2.0);
    assert!(node.metric(r#"idgen_caller_refusals_total{caller="(none)",reason="no_token"}"#) > 7.0);
    for node in [&node, &lax] {
        assert!(!node.log().contains(&shop), "{}", node.log());
    }
    let dump = cluster.sql("SELECT * FROM idgen_credential; SELECT * FROM idgen_change");
    assert!(!dump.contains(&shop));
    soon("the refusals are in the audit log", || {
        cluster
            .sql("SELECT subject FROM idgen_change WHERE action = 'refused_call'")
            .contains("shop")
    });
}

/// The settings of a new type, for the original interface.
fn legacy_type(name: &str) -> String {
    serde_json::json!({
        "project_name": "p", "id_name": name, "id_prifx": "", "id_start": 1, "last_range": 0,
        "min_range": 10, "max_range": 100, "applicant": "a", "redis_flag": 1, "state": 1,
        "min_load_interval": 1, "load_percentage": 0.5, "lock_expire": 1,
    })
    .to_string()
}

#[test]
fn a_quota_is_kept_and_fills_again() {
    let cluster = Cluster::start();
    let node = cluster.node();
    node.run(&["type", "add", "order", "--mode", "segment"]);
    let shop = token(&node, &["shop", "--role", "issue", "--quota", "50"]);
    let mut caller = client_with(&node, &shop);
    let (code, message) = failure(caller.next_ids("order".into(), 51));
    assert_eq!(code, "INVALID_ARGUMENT");
    assert!(message.contains("50 ids per second"), "{message}");
    let mut first = None;
    soon("the quota is used up", || {
        let (code, message) = failure(caller.next_ids("order".into(), 50));
        first = (code == "QUOTA_EXCEEDED").then_some(message);
        first.is_some()
    });
    let message = first.unwrap();
    assert!(message.contains("50 ids per second") && message.contains("try again in"), "{message}");
    let (status, problem) = take(&node, &shop, "/types/order/ids?count=50");
    assert_eq!((status, problem["code"].as_str()), (429, Some("QUOTA_EXCEEDED")));
    let answer = caller.get_id(shop.clone(), "order".into()).unwrap();
    if answer.res != Some(RES_SUCCESS) {
        assert!(answer.ext.unwrap().starts_with("QUOTA_EXCEEDED: "));
    }
    soon("it has filled again", || failure(caller.next_ids("order".into(), 50)).0.is_empty());
    // Others have their own.
    assert!(client(&node).next_id("order".into()).unwrap() > 0);
    let listed = node.run(&["token", "list"]);
    assert!(listed.contains("50/s"), "{listed}");
}

#[test]
fn a_token_ends_on_open_connections_of_every_node() {
    let cluster = Cluster::start();
    let (a, b) = (cluster.node_with(REQUIRED), cluster.node_with(REQUIRED));
    a.run(&["type", "add", "order", "--mode", "segment"]);
    let shop = token(&a, &["shop", "--role", "issue"]);
    let (mut at_a, mut at_b) = (client_with(&a, &shop), client_with(&b, &shop));
    soon("the other node knows the type", || failure(at_b.next_id("order".into())).0.is_empty());
    assert!(at_a.next_id("order".into()).unwrap() > 0);
    a.run(&["token", "revoke", "shop"]);
    let (code, message) = failure(at_a.next_id("order".into()));
    assert_eq!(code, "PERMISSION_DENIED", "at once");
    assert!(message.contains("was revoked"), "{message}");
    soon("the other node knows of it", || {
        failure(at_b.next_id("order".into())).0 == "PERMISSION_DENIED"
    });
    assert_eq!(failure(at_b.authenticate(shop)).0, "PERMISSION_DENIED");

    // One that ends by itself.
    let brief = token(&a, &["brief", "--role", "issue", "--days", "1"]);
    let mut caller = client_with(&b, &brief);
    assert!(caller.next_id("order".into()).unwrap() > 0);
    cluster.sql("UPDATE idgen_credential SET expires_ms = 1 WHERE name = 'brief'");
    soon("it has ended", || failure(caller.next_id("order".into())).0 == "PERMISSION_DENIED");
}

#[test]
fn callers_go_on_while_the_store_is_away() {
    let mut cluster = Cluster::start();
    let node = cluster.node_with(REQUIRED);
    node.run(&["type", "add", "order", "--mode", "segment", "--min-range", "1000000"]);
    let shop = token(&node, &["shop", "--role", "issue"]);
    let unused = token(&node, &["unused", "--role", "issue"]);
    let mut caller = client_with(&node, &shop);
    assert!(caller.next_id("order".into()).unwrap() > 0);
    cluster.mariadb.kill();
    let bound = Instant::now() + Duration::from_secs(3);
    while Instant::now() < bound {
        caller.next_id("order".into()).expect("it was let in before");
    }
    client_with(&node, &shop).next_id("order".into()).expect("it is known");
    assert_eq!(failure(client(&node).authenticate(unused.clone())).0, "UNAVAILABLE");
    cluster.mariadb.start_again();
    soon("the store is back", || failure(client(&node).authenticate(unused.clone())).0.is_empty());
    assert_eq!(take(&node, TOKEN, "/types/order/ids").0, 200);
}
