//! Blocks for bulk loads, beside everything else that hands out ids.

use std::collections::HashSet;

use idgen::domain::{ErrorCode, IdRange, Mode, Sites, TypeOptions, TypeSpec};
use idgen::ports::{Dispatcher, RangeStore, WitnessedEnd};
use idgen::service::admin::AdminApi;
use idgen::service::api::{IdApi, Order};

use crate::support::{Cluster, code, order, small};

#[tokio::test(start_paused = true)]
async fn nobody_else_gets_an_id_of_a_block() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        cluster.create(&TypeSpec { mode, ..small(50, 200) }).await;
        let nodes = [cluster.node("a").await, cluster.node("b").await];
        let mut seen = HashSet::new();
        for round in 0..20 {
            let block = nodes[round % 2].reserve("order", 70, "ann").await.unwrap();
            assert_eq!((block.end - block.start, block.step, block.count), (70, 1, 70));
            assert!((block.start..block.end).all(|id| seen.insert(id)), "{mode}: {block:?}");
            for node in &nodes {
                let ids = node.next_ids("order", Order::of(40)).await.unwrap();
                let mut ids = ids.iter().flat_map(|r| r.start()..r.end());
                assert!(ids.all(|id| seen.insert(id)), "{mode}");
            }
        }
        let newest = &cluster.store.audit(1).await.unwrap()[0];
        assert_eq!((newest.action.as_str(), newest.actor.as_str()), ("reserve", "ann"));
    }
}

#[tokio::test(start_paused = true)]
async fn redis_remembers_a_block_that_the_store_forgot() {
    for mode in [Mode::Strict, Mode::Segment] {
        let cluster = Cluster::new().await;
        cluster.create(&TypeSpec { mode, ..small(50, 200) }).await;
        let node = cluster.node("a").await;
        let block = node.reserve("order", 1_000, "ann").await.unwrap();
        let witnessed = cluster.dispatcher.witnessed_end(&order(), None).await.unwrap();
        assert_eq!(witnessed, WitnessedEnd::Known(block.end));
        // The floor of the next block is that of Redis, at the first try.
        let range = IdRange::new(block.end + 500, block.end + 600).unwrap();
        cluster.dispatcher.witness(&order(), None, range).await.unwrap();
        let next = node.reserve("order", 10, "ann").await.unwrap();
        assert_eq!(next.start, range.end(), "{next:?}");
        let audit = cluster.store.audit(10).await.unwrap();
        assert_eq!(audit.iter().filter(|entry| entry.action == "reserve").count(), 2, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_of_a_site_has_the_ids_of_the_site() {
    let cluster = Cluster::new().await;
    let sites = Sites { count: 4, site: 3 };
    let options = TypeOptions { sites: Some(sites), ..TypeOptions::default() };
    cluster.create(&TypeSpec { mode: Mode::Segment, options, ..small(50, 200) }).await;
    let elsewhere = cluster.node("a").await;
    assert_eq!(code(elsewhere.reserve("order", 5, "ann").await), ErrorCode::Unavailable);
    let node = cluster.node_set("b", |config| config.site = Some(3)).await;
    let block = node.reserve("order", 5, "ann").await.unwrap();
    assert_eq!((block.start, block.step, block.end, block.count), (7, 4, 27, 5));
    let decoded = node.decode("order", "23").await.unwrap();
    assert!(decoded.issued, "{decoded:?}");
}

#[tokio::test(start_paused = true)]
async fn a_preview_is_what_comes() {
    let cluster = Cluster::new().await;
    let spec = TypeSpec { prefix: "o-".to_owned(), first_id: 12, ..small(50, 200) };
    let node = cluster.node("a").await;
    let shown = node.preview(spec.clone(), 1.0).await.unwrap();
    node.create_type(spec, "ann").await.unwrap();
    let texts = node.next_string_ids("order", Order::of(5), true).await.unwrap();
    let expected: Vec<_> = shown.ids.iter().map(|id| id.text.clone()).collect();
    assert_eq!(texts, expected);
    let log = cluster.store.range_log(&order(), 100).await.unwrap();
    assert_eq!(log.last().unwrap().range.len(), shown.growth[0].length);

    let wrong_site = Sites { count: 2, site: 1 };
    let options = TypeOptions { sites: Some(wrong_site), ..TypeOptions::default() };
    let spec = TypeSpec { mode: Mode::Segment, options, ..small(50, 200) };
    let created = node.create_type(spec.clone(), "ann").await.unwrap_err();
    assert_eq!(node.preview(spec, 1.0).await.unwrap_err(), created);
}
