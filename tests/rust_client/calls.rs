//! Every method, through both clients and both protocols, at a real node.

use std::collections::HashSet;
use std::time::Duration;

use idgen::client::{Client, Code, Config, Error, IdRange, Order, Protocol};

use super::{blocking, node};

fn ids(ranges: &[IdRange]) -> Vec<i64> {
    ranges.iter().flat_map(|range| range.first..range.first + range.count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_method() {
    let (node, _folder) = node();
    let mut last = 0;
    for protocol in [Protocol::Compact, Protocol::Binary] {
        let mut config = Config::new([node.thrift.clone()]);
        config.protocol = protocol;
        let client = Client::new(config).unwrap();
        let id = client.next_id("order").await.unwrap();
        assert!(id > last);
        let many = ids(&client.next_ids("order", 500).await.unwrap());
        assert_eq!(many.len(), 500);
        assert!(many[0] > id && many.is_sorted());
        let text = client.next_string_id("order", true).await.unwrap();
        assert_eq!(text, format!("P-{}", many[499] + 1));
        let texts = client.next_string_ids("order", 3, false).await.unwrap();
        last = texts[2].parse().unwrap();
        assert_eq!(last, many[499] + 4);

        let sharded = client.next_sharded_id("account", "alice").await.unwrap();
        let shard = client.decode("account", &sharded.to_string()).await.unwrap().shard;
        let order = Order::of(2).gate_pass("alice");
        let more = ids(&client.issue("account", &order).await.unwrap());
        for id in more {
            assert_eq!(client.decode("account", &id.to_string()).await.unwrap().shard, shard);
        }

        // A key for each protocol: the second would be given what the first was.
        let order = Order::of(7).request_key(format!("key-{protocol:?}"));
        let given = client.issue("event", &order).await.unwrap();
        assert_eq!(client.issue("event", &order).await.unwrap(), given);
        let other = Order::of(8).request_key(format!("key-{protocol:?}"));
        let refused = client.issue("event", &other).await.unwrap_err();
        assert_eq!(refused.code(), Some(&Code::Conflict));
        let texts = client.issue_strings("event", &Order::of(2), true).await.unwrap();
        assert!(texts.iter().all(|text| text.starts_with("P-")), "{texts:?}");

        let lease = client.lease_range("event", 100, Duration::from_secs(5)).await.unwrap();
        assert!(lease.count <= 100 && lease.step == 1 && lease.ttl_ms == 5_000, "{lease:?}");
        assert_eq!(client.describe("event").await.unwrap().mode.as_deref(), Some("segment"));
        assert_eq!(client.node_status().await.unwrap().ready, Some(true));
    }
}

#[test]
fn every_method_that_blocks() {
    let (node, _folder) = node();
    let client = blocking(&node.thrift);
    let id = client.next_id("order").unwrap();
    assert_eq!(ids(&client.next_ids("order", 2).unwrap()), [id + 1, id + 2]);
    assert_eq!(client.next_string_id("order", true).unwrap(), format!("P-{}", id + 3));
    assert_eq!(client.next_string_ids("order", 1, false).unwrap(), [(id + 4).to_string()]);
    let sharded = client.next_sharded_id("account", "alice").unwrap();
    assert_eq!(client.decode("account", &sharded.to_string()).unwrap().issued, Some(true));
    let order = Order::of(3).request_key("a-key");
    assert_eq!(client.issue("event", &order).unwrap(), client.issue("event", &order).unwrap());
    assert_eq!(client.issue_strings("event", &Order::of(2), true).unwrap().len(), 2);
    assert!(client.lease_range("event", 10, Duration::from_secs(1)).unwrap().count <= 10);
    assert_eq!(client.describe("account").unwrap().mode.as_deref(), Some("sharded"));
    assert_eq!(client.node_status().unwrap().ready, Some(true));
}

#[test]
fn refusals_have_their_code_and_field() {
    let (node, _folder) = node();
    let client = blocking(&node.thrift);
    let refusal = |error: Error| error.refusal().expect("a node refused").clone();
    let unknown = refusal(client.next_id("nothing").unwrap_err());
    assert_eq!(unknown.code, Code::UnknownType);
    assert!(!unknown.retriable && unknown.message.contains("nothing"), "{unknown:?}");
    assert_eq!(unknown.node, node.thrift);
    let invalid = refusal(client.next_ids("order", 0).unwrap_err());
    assert_eq!(invalid.code, Code::InvalidArgument);
    assert_eq!(invalid.field.as_deref(), Some("count"));
    let too_many = refusal(client.next_ids("order", u32::MAX).unwrap_err());
    assert_eq!(too_many.code, Code::InvalidArgument);
    let strict = client.lease_range("order", 10, Duration::from_secs(1)).unwrap_err();
    assert_eq!(refusal(strict).code, Code::InvalidArgument);
}

#[test]
fn threads_share_one_client() {
    let (node, _folder) = node();
    let client = blocking(&node.thrift);
    let ids: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let ask = || (0..200).map(|_| client.next_id("order").unwrap()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = HashSet::new();
    for ids in ids {
        assert!(ids.is_sorted());
        assert!(ids.into_iter().all(|id| seen.insert(id)));
    }
    let open = node.metric("idgen_thrift_connections_accepted_total");
    assert!(open <= 8.0, "{open} connections, by default at most 8 to a node");
}
