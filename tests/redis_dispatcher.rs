//! The Redis adapter against real servers.

mod support;

use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::redis::{NODES_KEY, RedisDispatcher, RedisOptions};
use idgen::domain::{IdRange, TypeName};
use idgen::ports::conformance;
use idgen::ports::node_registry::MAX_SUMMARY;
use idgen::ports::{
    DispatchError, Dispatcher, LockOutcome, Publication, PublishOutcome, TakeOutcome, Witness,
};
use support::TempFolder;
use support::redis::RedisServer;

fn options() -> RedisOptions {
    RedisOptions { timeout: Duration::from_secs(2), ca_file: None }
}

fn connect(url: &str) -> Arc<RedisDispatcher> {
    Arc::new(RedisDispatcher::new(url, &options()).expect("a good URL"))
}

fn name() -> TypeName {
    TypeName::parse("order").unwrap()
}

async fn publish(dispatcher: &dyn Dispatcher, start: i64, end: i64) {
    let history = eventually(dispatcher).await;
    let ttl = Duration::from_secs(10);
    assert_eq!(dispatcher.lock(&name(), "t", ttl, None).await.unwrap(), LockOutcome::Acquired);
    let range = IdRange::new(start, end).unwrap();
    let publication = Publication {
        range,
        update_id: start,
        history: &history,
        token: "t",
        generation: 0,
        replaces: false,
    };
    let outcome = dispatcher.publish(&name(), publication).await.unwrap();
    assert_eq!(outcome, PublishOutcome::Published);
    dispatcher.unlock(&name(), "t").await.unwrap();
}

/// Asks until the server answers; bounded.
async fn eventually(dispatcher: &dyn Dispatcher) -> idgen::domain::History {
    let answered = async {
        loop {
            match dispatcher.history().await {
                Ok(history) => return history,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), answered).await.expect("the server answers")
}

async fn is_stale(dispatcher: &dyn Dispatcher) -> bool {
    eventually(dispatcher).await;
    matches!(dispatcher.take(&name(), 1).await.unwrap(), TakeOutcome::Stale { .. })
}

#[tokio::test]
async fn conforms() {
    let server = RedisServer::start();
    conformance::dispatcher(connect(&server.url())).await;
}

#[tokio::test]
async fn conforms_after_a_restart_from_an_old_snapshot() {
    let mut server = RedisServer::start();
    let dispatcher = connect(&server.url());
    let asked = dispatcher.clone();
    conformance::dispatcher_after_rollback(dispatcher, async || {
        assert_eq!(server.cli(&["save"]), "OK");
        server.kill();
        server.start_again();
        assert!(server.cli(&["exists", "idgen:{conform-rollback}"]) == "1", "the data came back");
        eventually(&*asked).await;
    })
    .await;
}

#[tokio::test]
async fn conforms_after_a_restart_from_an_append_only_file() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let dispatcher = connect(&server.url());
    let asked = dispatcher.clone();
    conformance::dispatcher_after_rollback(dispatcher, async || {
        server.kill();
        server.start_again();
        assert!(server.cli(&["exists", "idgen:{conform-rollback}"]) == "1", "the data came back");
        eventually(&*asked).await;
    })
    .await;
}

#[tokio::test]
async fn a_promoted_replica_does_not_resume() {
    let main = RedisServer::start();
    let replica = RedisServer::start();
    let dispatcher = connect(&main.url());
    publish(&*dispatcher, 1, 1_001).await;
    let port = main.port().to_string();
    replica.cli(&["replicaof", "127.0.0.1", &port]);
    let until = async |what: &str, holds: &dyn Fn() -> bool| {
        let wait = async {
            while !holds() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect(what);
    };
    until("the link is up", &|| {
        replica.cli(&["info", "replication"]).contains("master_link_status:up")
    })
    .await;
    // A server draws a new replid when its first replica attaches. Nothing was
    // lost, but nobody can tell; the range is dropped as after any change.
    assert!(is_stale(&*dispatcher).await);
    publish(&*dispatcher, 1_001, 2_001).await;
    let follower = connect(&replica.url());
    until("the replica follows", &|| replica.cli(&["hget", "idgen:{order}", "end"]) == "2001")
        .await;
    let refused = follower.take(&name(), 1).await.unwrap_err();
    assert!(matches!(refused, DispatchError::Unavailable(_)), "a replica refuses: {refused}");
    replica.cli(&["replicaof", "no", "one"]);
    assert!(is_stale(&*follower).await);
    assert!(!is_stale(&*dispatcher).await);
}

#[tokio::test]
async fn everything_flushed_is_stale_and_scripts_come_back() {
    let server = RedisServer::start();
    let dispatcher = connect(&server.url());
    publish(&*dispatcher, 1, 1_001).await;
    assert!(!is_stale(&*dispatcher).await);
    assert_eq!(server.cli(&["script", "flush"]), "OK");
    assert!(!is_stale(&*dispatcher).await, "a missing script is loaded again unnoticed");
    server.cli(&["flushall"]);
    assert!(is_stale(&*dispatcher).await);
    publish(&*dispatcher, 1_001, 2_001).await;
    assert!(!is_stale(&*dispatcher).await);
}

#[tokio::test]
async fn keys_are_as_documented() {
    let server = RedisServer::start();
    let dispatcher = connect(&server.url());
    let life = Duration::from_secs(600);
    dispatcher.remember(&name(), "key-1", "text", life).await.unwrap();
    let first = i64::MAX - 1_000;
    for k in 0..18 {
        let range = IdRange::new(first + 10 * k, first + 10 * k + 10).unwrap();
        let answer = dispatcher.witness(&name(), Some(9), range).await.unwrap();
        assert_eq!(answer, Witness::Noted);
    }
    publish(&*dispatcher, 1, 1_001).await;

    let key = "idgen:{order}:leases";
    assert_eq!(server.cli(&["ttl", key]), "-1", "a witness is kept for ever");
    let field = |name: &str| server.cli(&["hget", key, name]);
    assert_eq!(field("end:9"), (first + 180).to_string());
    assert_eq!(field("below:9"), (first + 20).to_string());
    let ranges = field("ranges:9");
    assert_eq!(ranges.split(' ').count(), 16);
    assert!(ranges.starts_with(&format!("{}-{} ", first + 20, first + 30)), "{ranges}");
    let request = "idgen:{order}:request:key-1";
    assert_eq!(server.cli(&["get", request]), "text");
    let left: u64 = server.cli(&["pttl", request]).parse().unwrap();
    assert!((1..=600_000).contains(&left), "{left} ms");

    let slot = |key: &str| server.cli(&["cluster", "keyslot", key]);
    let keys = server.cli(&["keys", "*"]);
    assert_eq!(keys.lines().count(), 3, "{keys}");
    for key in keys.lines().chain(["idgen:{order}:request:{x}"]) {
        assert_eq!(slot(key), slot("idgen:{order}"), "{key}");
    }
}

#[tokio::test]
async fn a_silent_server_costs_one_time_limit_and_is_found_again() {
    let server = RedisServer::start();
    let short = RedisOptions { timeout: Duration::from_millis(200), ca_file: None };
    let dispatcher = RedisDispatcher::new(&server.url(), &short).unwrap();
    publish(&dispatcher, 1, 1_001).await;
    server.signal("STOP");
    let error = dispatcher.take(&name(), 1).await.unwrap_err();
    assert!(error.to_string().contains("200 ms"), "{error}");
    server.signal("CONT");
    eventually(&dispatcher).await;
    assert!(!is_stale(&dispatcher).await);
}

#[tokio::test]
async fn passwords_and_users() {
    let server = RedisServer::start_with(&["--requirepass", "pa:ss word"]);
    let address = format!("127.0.0.1:{}", server.port());
    let dispatcher = connect(&format!("redis://:pa%3Ass%20word@{address}"));
    publish(&*dispatcher, 1, 1_001).await;
    for url in [format!("redis://:wrong-secret@{address}"), format!("redis://{address}")] {
        let error = connect(&url).take(&name(), 1).await.unwrap_err();
        assert!(matches!(error, DispatchError::Unavailable(_)), "{error:?}");
        assert!(!error.to_string().contains("wrong-secret"), "{error}");
    }
}

#[tokio::test]
async fn wrong_urls_say_so_without_the_secret() {
    for url in
        ["redis://:secret@", "redis://:secret@host:port", "redis://:secret@h:1/x", "nonsense"]
    {
        let error = RedisDispatcher::new(url, &options()).err().expect(url);
        assert_eq!(error.field, Some("url"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let nobody = connect(&format!("redis://127.0.0.1:{}", support::free_port()));
    let error = nobody.take(&name(), 1).await.unwrap_err();
    assert!(matches!(error, DispatchError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = TempFolder::new("tls");
    let certificates = support::tls::Certificates::create(folder.path());
    let tls_port = support::free_port().to_string();
    let arguments = [
        "--tls-port",
        &tls_port,
        "--tls-cert-file",
        certificates.server_cert.to_str().unwrap(),
        "--tls-key-file",
        certificates.server_key.to_str().unwrap(),
        "--tls-ca-cert-file",
        certificates.ca_cert.to_str().unwrap(),
        "--tls-auth-clients",
        "no",
    ];
    let _server = RedisServer::start_with(&arguments);
    let url = format!("rediss://127.0.0.1:{tls_port}");
    let trusting = RedisOptions { ca_file: Some(certificates.ca_cert.clone()), ..options() };
    let dispatcher = RedisDispatcher::new(&url, &trusting).unwrap();
    publish(&dispatcher, 1, 1_001).await;
    let stranger = RedisDispatcher::new(&url, &options()).unwrap();
    let error = stranger.take(&name(), 1).await.unwrap_err();
    assert!(matches!(error, DispatchError::Unavailable(_)), "an unknown authority: {error:?}");
}

/// Nodes report themselves; the server tells the age by its own clock.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_of_nodes() {
    let redis = RedisServer::start();
    let dispatcher = connect(&redis.url());
    eventually(&*dispatcher).await;
    let registry = dispatcher.registry().expect("Redis is shared by nodes");
    assert_eq!(registry.reports(true).await.unwrap(), []);
    registry.report("a:1", "{\"n\":1}", "more").await.unwrap();
    registry.report("b:2", "of b\nin two lines", "").await.unwrap();
    registry.report("a:1", "{\"n\":2}", "even more").await.unwrap();
    let mut read = registry.reports(true).await.unwrap();
    read.sort_by(|a, b| a.node.cmp(&b.node));
    let texts: Vec<_> = read.iter().map(|e| (e.summary.as_str(), e.details.as_deref())).collect();
    assert_eq!(texts, [("{\"n\":2}", Some("even more")), ("of b\nin two lines", Some(""))]);
    assert!(read.iter().all(|entry| entry.age < Duration::from_secs(5)), "{read:?}");
    assert!(registry.reports(false).await.unwrap().iter().all(|entry| entry.details.is_none()));

    // One that was not heard of for a minute, one for more than an hour, and nonsense.
    let now: u64 = redis.cli(&["time"]).lines().next().unwrap().parse().unwrap();
    for (node, seconds) in [("old", 60), ("gone", 3_601)] {
        let stamped = format!("{}000 text", now - seconds);
        redis.cli(&["hset", NODES_KEY, node, &stamped]);
    }
    redis.cli(&["hset", NODES_KEY, "odd", "what?"]);
    let read = registry.reports(true).await.unwrap();
    let old = read.iter().find(|entry| entry.node == "old").unwrap();
    assert!((60..65).contains(&old.age.as_secs()), "{old:?}");
    assert_eq!(read.len(), 3, "{read:?}");
    assert_eq!(redis.cli(&["hlen", NODES_KEY]), "3", "what is too old is removed");
    assert!(redis.cli(&["pttl", NODES_KEY]).parse::<i64>().unwrap() > 3_000_000);

    registry.leave("a:1").await.unwrap();
    registry.leave("nobody").await.unwrap();
    let left = registry.reports(true).await.unwrap();
    assert!(left.iter().all(|entry| entry.node != "a:1"), "{left:?}");
    let long = "x".repeat(MAX_SUMMARY + 1);
    let refused = registry.report("a:1", &long, "").await;
    assert!(matches!(refused, Err(DispatchError::Broken(_))), "{refused:?}");

    let facts = dispatcher.server_facts().await.unwrap();
    assert_eq!(facts.role.as_deref(), Some("master"));
    assert!(facts.memory_bytes.is_some_and(|bytes| bytes > 1_000) && facts.version.is_some());
}
