//! What ids look like: opaque, cycling, striped, in periods, as texts; leases
//! for clients; request keys; decoding.

use std::collections::HashSet;
use std::time::Duration;

use idgen::domain::{
    AtLimit, ErrorCode, Mode, Opaque, OpaqueKey, Period, Sites, TypeOptions, TypeSpec,
};
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};

use crate::support::{Cluster, code, small};

/// 2026-11-21T23:59:00Z
const LATE: i64 = 1_795_305_540_000;
const MINUTE: i64 = 60_000;

fn spec(mode: Mode, options: TypeOptions) -> TypeSpec {
    let key = options.opaque.map(|_| OpaqueKey::new([7; 32]));
    TypeSpec { mode, options, key, ..small(100, 1_000) }
}

fn opaque(slices: u16) -> TypeOptions {
    TypeOptions { opaque: Some(Opaque { slices }), ..TypeOptions::default() }
}

fn daily() -> TypeOptions {
    TypeOptions {
        calendar: Some(Period::Daily),
        format: Some("{prefix}{date:yyMMdd}{seq:04}".to_owned()),
        ..TypeOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn opaque_ids_are_unique_and_decode() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        let max_id = 1_000_000_000_000;
        cluster.create(&TypeSpec { max_id, ..spec(mode, opaque(16)) }).await;
        let nodes = [cluster.node("a").await, cluster.node("b").await];
        let mut seen = HashSet::new();
        let mut ascending = 0;
        let mut last = 0;
        for n in 0..600 {
            let id = nodes[n % 2].next_id("order").await.unwrap();
            assert!((1..=max_id).contains(&id));
            assert!(seen.insert(id), "{id} was issued twice");
            ascending += usize::from(id > last);
            last = id;
        }
        assert!((200..400).contains(&ascending), "as random ids would: {ascending}");
        let decoded = nodes[0].decode("order", &last.to_string()).await.unwrap();
        assert!(decoded.issued && decoded.position.unwrap() < 5_000, "{decoded:?}");
        assert_eq!(decoded.node.as_deref().map(|n| ["a", "b"].contains(&n)), Some(true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_repeats_nothing_on_any_node() {
    for mode in [Mode::Strict, Mode::Segment] {
        new_keys(mode).await;
    }
}

async fn new_keys(mode: Mode) {
    let cluster = Cluster::new().await;
    let max_id = 16_000_000;
    cluster.create(&TypeSpec { max_id, ..spec(mode, opaque(16)) }).await;
    let nodes = [cluster.node("a").await, cluster.node("b").await];
    let mut seen = HashSet::new();
    for round in 0..5 {
        for n in 0..500 {
            let id = nodes[n % 2].next_id("order").await.unwrap();
            assert!(seen.insert(id), "{id} was issued twice in round {round}");
        }
        let rotated = nodes[round % 2].rotate_key("order", "test").await.unwrap();
        // It counts within a second on every node, whatever they have at hand.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for node in &nodes {
            let id = node.next_id("order").await.unwrap();
            assert!(seen.insert(id));
            let decoded = node.decode("order", &id.to_string()).await.unwrap();
            assert!(decoded.position.unwrap() >= rotated.next_id, "{decoded:?}");
        }
    }
    // What is beyond the last slice does not exist.
    for _ in 0..20 {
        if let Err(error) = nodes[0].rotate_key("order", "test").await {
            assert_eq!(error.code, ErrorCode::Exhausted);
            return;
        }
    }
    panic!("sixteen slices took more than twenty keys");
}

#[tokio::test(start_paused = true)]
async fn a_cycle_begins_again_at_the_first_id() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        let options = TypeOptions { at_limit: AtLimit::Cycle, ..TypeOptions::default() };
        let limits = TypeSpec { first_id: 10, max_id: 259, ..spec(mode, options) };
        cluster.create(&limits).await;
        let node = cluster.node("a").await;
        for n in 0..1_000 {
            assert_eq!(node.next_id("order").await.unwrap(), 10 + n % 250, "{mode}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_sites_never_meet() {
    let mut seen = HashSet::new();
    for site in [0, 3] {
        // Each has a store of its own.
        let cluster = Cluster::new().await;
        let options =
            TypeOptions { sites: Some(Sites { count: 4, site }), ..TypeOptions::default() };
        cluster.create(&spec(Mode::Segment, options)).await;
        let node = cluster.node_set("a", |c| c.site = Some(site)).await;
        for _ in 0..500 {
            let id = node.next_id("order").await.unwrap();
            assert_eq!(id % 4, i64::from(site));
            assert!(seen.insert(id), "{id} was issued at both sites");
        }
        let lease = node.lease_range("order", 10, 60_000).await.unwrap();
        assert_eq!((lease.step, lease.first % 4), (4, i64::from(site)));
        for n in 0..lease.count {
            assert!(seen.insert(lease.first + n * lease.step));
        }
        // A copy of one site's store must not be used at another.
        for wrong in [None, Some(site ^ 1)] {
            let stranger = cluster.node_set("b", |c| c.site = wrong).await;
            assert_eq!(code(stranger.next_id("order").await), ErrorCode::Unavailable);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_restart_with_the_day_of_the_store() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        cluster
            .create(&TypeSpec { prefix: "A".into(), max_id: 9_999, ..spec(mode, daily()) })
            .await;
        cluster.store.set_clock(Some(LATE));
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        assert_eq!(code(a.next_id("order").await), ErrorCode::InvalidArgument, "texts only");
        let mut seen = HashSet::new();
        for n in 0..30 {
            let node = if n % 2 == 0 { &a } else { &b };
            for text in node.next_string_ids("order", Order::of(3), true).await.unwrap() {
                assert!(text.starts_with("A261121"), "{text}");
                assert!(seen.insert(text));
            }
        }
        cluster.store.set_clock(Some(LATE + 2 * MINUTE));
        tokio::time::sleep(Duration::from_secs(60)).await;
        for n in 0..30 {
            let node = if n % 2 == 0 { &a } else { &b };
            for text in node.next_string_ids("order", Order::of(3), true).await.unwrap() {
                assert!(text.starts_with("A261122"), "{mode}: {text}");
                assert!(seen.insert(text));
            }
        }
        assert!(seen.contains("A2611210001") && seen.contains("A2611220001"), "{mode}");
        // A clock that is set back does not bring yesterday back.
        cluster.store.set_clock(Some(LATE));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let c = cluster.node("c").await;
        for node in [&a, &b, &c] {
            for text in node.next_string_ids("order", Order::of(150), true).await.unwrap() {
                assert!(text.starts_with("A261122"), "{mode}: {text}");
                assert!(seen.insert(text));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn texts_follow_the_format_and_decode() {
    let cluster = Cluster::new().await;
    let options = TypeOptions {
        format: Some("{prefix}-{seq36:06}{check:mod37-36}".to_owned()),
        ..TypeOptions::default()
    };
    let most = 36_i64.pow(6) - 1;
    let spec = TypeSpec { prefix: "INV".into(), max_id: most, ..spec(Mode::Segment, options) };
    cluster.create(&spec).await;
    let node = cluster.node("a").await;
    let texts = node.next_string_ids("order", Order::of(50), true).await.unwrap();
    assert_eq!(texts.iter().collect::<HashSet<_>>().len(), 50);
    assert!(texts[35].starts_with("INV-000010"), "{}", texts[35]);
    let decoded = node.decode("order", &texts[35]).await.unwrap();
    assert_eq!((decoded.id, decoded.position), (Some(36), Some(36)));
    assert_eq!(decoded.text, texts[35]);
    assert_eq!(decoded.range_first, Some(1));
    let mut wrong = texts[35].clone();
    wrong.replace_range(8..9, "7");
    assert_eq!(node.decode("order", &wrong).await.unwrap_err().field, Some("id"));
    let ahead = node.decode("order", "900000").await.unwrap();
    assert!(!ahead.issued);
}

#[tokio::test(start_paused = true)]
async fn a_lease_belongs_to_its_client() {
    let cluster = Cluster::new().await;
    cluster.create(&spec(Mode::Segment, TypeOptions::default())).await;
    let node = cluster.node("a").await;
    let mut seen = HashSet::new();
    for count in [1, 60, 100, 1_000, 1_000] {
        let lease = node.lease_range("order", count, 60_000).await.unwrap();
        assert!((1..=count).contains(&lease.count) && lease.step == 1 && lease.ttl_ms == 60_000);
        for id in lease.first..lease.first + lease.count {
            assert!(seen.insert(id), "{id} was leased twice");
        }
        assert!(seen.insert(node.next_id("order").await.unwrap()));
    }
    for (count, ttl_ms, field) in [
        (0, 60_000, "count"),
        (1_001, 60_000, "count"),
        (1, 999, "ttl_ms"),
        (1, 86_400_001, "ttl_ms"),
    ] {
        let error = node.lease_range("order", count, ttl_ms).await.unwrap_err();
        assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some(field)));
    }
    let strict = Cluster::new().await;
    strict.create(&small(100, 100)).await;
    let node = strict.node("a").await;
    assert_eq!(code(node.lease_range("order", 1, 60_000).await), ErrorCode::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn a_request_key_gives_the_same_ids_again_on_any_node() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        cluster.create(&spec(mode, TypeOptions::default())).await;
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        let keyed = |count| Order { request_key: Some("k1"), ..Order::of(count) };
        let first = a.next_ids("order", keyed(250)).await.unwrap();
        assert_eq!(b.next_ids("order", keyed(250)).await.unwrap(), first);
        assert_ne!(a.next_ids("order", Order::of(250)).await.unwrap(), first);
        let error = b.next_ids("order", keyed(249)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        // Two at once: one of them is the answer of both.
        let both = Order { request_key: Some("k2"), ..Order::of(3) };
        let (x, y) = tokio::join!(a.next_ids("order", both), b.next_ids("order", both));
        assert_eq!(x.unwrap(), y.unwrap());
        // Without Redis nobody knows whether the key was used.
        cluster.network.set_latency(Duration::from_secs(9));
        assert_eq!(code(a.next_ids("order", keyed(250)).await), ErrorCode::Unavailable);
        cluster.network.set_latency(Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(601)).await;
        assert_ne!(a.next_ids("order", keyed(250)).await.unwrap(), first, "ten minutes are over");
    }
}
