//! Processor time.

use crate::cpu::{Client, Meter, Ticks, parse_stat};

#[test]
fn the_times_in_a_line_of_stat() {
    let line = "4242 (a) name (of 7) S 1 4242 4242 0 -1 4194560 2303 99 3 1 150 27 31 4 20 0 \
                12 0 553433 1234567168 3210 18446744073709551615 1 1 0 0 0 0 0 4096 17663 0 0 0 \
                17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    assert_eq!(parse_stat(line), Some(Ticks { own: 177, children: 35 }));
    assert_eq!(parse_stat("4242 (cut) S 1 2 3 4 5 6 7 8 9 10 11 12"), None);
    assert_eq!(parse_stat("4242 (words) S 1 2 3 4 5 6 7 8 9 10 x 1 1 1 20"), None);
    assert_eq!(parse_stat(""), None);
}

#[test]
fn time_that_is_used_is_seen_and_shared() {
    let own = std::process::id();
    let client = Client::ThisThread;
    let meter = Meter { nodes: vec![own, own], redis: Some(own), mariadb: None, client };
    let before = meter.read();
    let share = || meter.read().since(before).per_request(1_000.0);
    // Five ticks of 10 ms, shared by a thousand.
    while share().client_us.is_some_and(|us| us < 50.0) {
        std::hint::black_box([0u8; 4096]);
    }
    let used = share();
    let (node, redis, client) = (used.node_us, used.redis_us, used.client_us);
    let (node, redis, client) = (node.unwrap(), redis.unwrap(), client.unwrap());
    // They are read one after another: a tick may lie between.
    assert!(redis >= client - 10.0, "a process has all its threads: {used:?}");
    assert!(node > redis + 10.0, "nodes are added up: {used:?}");
    assert_eq!(used.mariadb_us, None);
    assert_eq!(meter.read().since(before).per_request(0.0).client_us, None);
}

#[test]
fn one_node_that_is_gone_leaves_no_sum() {
    // Above every number that a kernel gives.
    let nodes = vec![std::process::id(), u32::MAX];
    let meter = Meter { nodes, redis: None, mariadb: None, client: Client::ThisProcess };
    let used = meter.read().since(meter.read()).per_request(1.0);
    assert_eq!(used.node_us, None);
    assert!(used.client_us.is_some());
}
