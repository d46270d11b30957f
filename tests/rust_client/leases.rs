//! Ids that are handed out in the process, from real nodes.

use std::collections::HashSet;
use std::time::Duration;

use idgen::client::{BlockingClient, Client, Code, Config, Error, LeaseConfig};

use super::fake::{Fake, Reply, leases};
use super::support::node::Node;
use super::support::node::data_folder;
use super::{blocking, eventually, node};

fn short() -> LeaseConfig {
    let mut config = LeaseConfig::default();
    (config.min, config.max) = (50, 5_000);
    config
}

#[test]
fn threads_share_one_lease() {
    let (node, _folder) = node();
    let client = blocking(&node.thrift);
    let lease = client.local_lease("event", short()).unwrap();
    let ids: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let lease = &lease;
        let ask = |with_batch: bool| {
            move || {
                let mut batch = lease.batch(20);
                let mut one = || if with_batch { batch.next_id() } else { lease.next_id() };
                (0..5_000).map(|_| one().unwrap()).collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(ask(n % 2 == 0))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = HashSet::new();
    for ids in ids {
        assert!(ids.is_sorted(), "the ids of one node ascend");
        assert!(ids.into_iter().all(|id| seen.insert(id)), "an id came twice");
    }
    // Nobody else gets what was leased.
    for id in blocking(&node.thrift).next_ids("event", 10_000).unwrap() {
        assert!((id.first..id.first + id.count).all(|id| seen.insert(id)));
    }
    lease.close();
    assert_eq!(lease.next_id(), Err(Error::Closed));
    assert_eq!(lease.try_next_id(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_share_one_lease() {
    let (node, _folder) = node();
    let client = Client::new(Config::new([node.thrift.clone()])).unwrap();
    let lease = std::sync::Arc::new(client.local_lease("event", short()).await.unwrap());
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let lease = std::sync::Arc::clone(&lease);
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for _ in 0..2_000 {
                    ids.push(lease.next_id().await.unwrap());
                }
                ids
            })
        })
        .collect();
    let mut seen = HashSet::new();
    for task in tasks {
        assert!(task.await.unwrap().into_iter().all(|id| seen.insert(id)));
    }
}

#[test]
fn a_type_without_leases_is_found_out_at_once() {
    let (node, _folder) = node();
    let error = blocking(&node.thrift).local_lease("order", short()).unwrap_err();
    assert_eq!(error.code(), Some(&Code::InvalidArgument));
}

#[test]
fn the_step_of_sites_is_honoured() {
    let (_folder, data) = data_folder();
    let data = data.to_str().unwrap();
    let node = Node::start(&["--data", data, "--store-site", "2"]);
    node.run(&["type", "add", "event", "--mode", "segment", "--sites", "3", "--site", "2"]);
    let lease = blocking(&node.thrift).local_lease("event", short()).unwrap();
    let ids: Vec<_> = (0..200).map(|_| lease.next_id().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[1] - pair[0] >= 3), "{ids:?}");
    assert!(ids.iter().all(|id| id % 3 == ids[0] % 3), "{ids:?}");
}

#[test]
fn a_lease_goes_on_at_another_node() {
    let first = Fake::start(leases());
    let second =
        Fake::start(|seen| Reply::Lease(1_000_000_000, seen.numbers[&2], 1, seen.numbers[&3]));
    let mut config = Config::new([first.name(), second.name()]);
    config.deadline = Duration::from_secs(60);
    let client = BlockingClient::new(config).unwrap();
    let lease = client.local_lease("event", short()).unwrap();
    // Leases come from one node as long as it is there.
    let at_first = lease.next_id().unwrap() < 1_000_000_000;
    for _ in 0..2_000 {
        assert_eq!(lease.next_id().unwrap() < 1_000_000_000, at_first);
    }
    drop(if at_first { first } else { second });
    eventually("ids of the other", || (lease.next_id().unwrap() < 1_000_000_000) != at_first);
}

#[test]
fn no_lease_without_a_node_and_again_with_one() {
    let (mut node, _folder) = node();
    let client = blocking(&node.thrift);
    let lease = client.local_lease("event", short()).unwrap();
    let mut last = lease.next_id().unwrap();
    node.kill();
    eventually("an error", || match lease.next_id() {
        Ok(id) => {
            last = id;
            false
        }
        Err(error) => {
            assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
            true
        }
    });
    node.start_again();
    eventually("ids again", || match lease.next_id() {
        Ok(id) => id > last,
        Err(error) => {
            assert!(error.is_retriable(), "{error:?}");
            false
        }
    });
}
