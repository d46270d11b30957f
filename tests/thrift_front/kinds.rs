//! The methods for every kind of id: what reaches the service, what comes back,
//! and what is refused, with the names of the IDL.

use std::io::Write;
use std::time::Duration;

use idgen::front::thrift::generated as idl;
use idgen::front::thrift::generated::{RangeLease, TIdGenServiceSyncClient};
use idgen::service::api;

use super::clients::{PAIRS, raised};
use super::support::*;

fn asked(server: &Server) -> Asked {
    server.api.asked.lock().unwrap().clone().unwrap()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn every_argument_reaches_the_service_over_every_pair() {
    let server = Server::start();
    for (at, (framed, compact)) in PAIRS.into_iter().enumerate() {
        let mut client = client(server.addr, framed, compact);
        let key = format!("key-{at}");

        let one = client.next_sharded_id("sharded".into(), "alice".into()).unwrap();
        assert_eq!(asked(&server), (1, None, some("alice")));
        let order = |client: &mut Client| {
            client.issue_ids("sharded".into(), 3, key.clone(), "bob".into()).unwrap()
        };
        let ranges = order(&mut client);
        assert_eq!(asked(&server), (3, some(&key), some("bob")));
        assert_eq!(ranges.len(), 3);
        assert!(ranges[0].first > one, "{ranges:?}");
        assert_eq!(order(&mut client), ranges, "the same key gives the same ids");
        // Empty texts are none.
        let ranges = client.issue_ids("order".into(), 5, "".into(), "".into()).unwrap();
        assert_eq!(asked(&server), (5, None, None));
        assert_eq!(ranges.iter().map(|range| range.count).collect::<Vec<_>>(), [5]);

        let (name, none) = ("order".to_owned(), String::new);
        let texts = client.issue_string_ids(name.clone(), 2, true, none(), none()).unwrap();
        assert_eq!(asked(&server), (2, None, None));
        assert_eq!(texts[0], format!("OD{}", ranges[0].first + 5));
        let texts = client.issue_string_ids(name, 2, false, format!("t{key}"), none()).unwrap();
        assert_eq!(asked(&server), (2, Some(format!("t{key}")), None));
        let next = (ranges[0].first + 7, ranges[0].first + 8);
        assert_eq!(texts, [next.0.to_string(), next.1.to_string()]);
        let name = "sharded".to_owned();
        client.issue_string_ids(name, 1, true, none(), "carol".into()).unwrap();
        assert_eq!(asked(&server), (1, None, some("carol")));

        // The largest numbers that are legal.
        let most = (idl::MAX_LEASE, idl::MAX_LEASE_MS);
        let lease = client.lease_range("segment".into(), most.0, most.1).unwrap();
        let expected = RangeLease { first: lease.first, count: most.0, step: 1, ttl_ms: most.1 };
        assert_eq!(lease, expected);

        let told = client.decode_id("sharded".into(), (77 << 14 | 5 << 8 | 9).to_string()).unwrap();
        assert_eq!((told.id_type, told.mode), (some("sharded"), some("sharded")));
        assert_eq!((told.position, told.shard, told.app_id), (Some(77), Some(5), Some(9)));
        assert_eq!((told.worker, told.sequence, told.period), (None, None, None));
        assert_eq!((told.node, told.issued), (some("node-1"), Some(true)));
        assert_eq!((told.range_first, told.range_count), (Some(1), Some(1_000)));
        assert_eq!(told.at_ms, Some(1_700_000_000_000));
        let told = client.decode_id("order".into(), format!("OD{}", i64::MAX)).unwrap();
        assert_eq!((told.id, told.text), (Some(i64::MAX), Some(format!("OD{}", i64::MAX))));
        assert_eq!(told.issued, Some(false));
    }
    let each = 1 + 3 + 3 + 5 + 2 + 2 + 1 + 10_000_000;
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 4 * each);
    assert_eq!(server.metric("idgen_thrift_requests_total", "issueStringIds"), 12);
    assert_eq!(server.metric("idgen_thrift_request_duration_seconds", "decodeId"), 8);
}

#[test]
fn refusals_name_the_argument_of_the_idl() {
    let server = Server::start();
    let mut client = server.client();
    let none = String::new;
    let sharded = || "sharded".to_owned();
    let order = || "order".to_owned();
    for (error, field, part) in [
        (client.next_sharded_id(order(), "me".into()).unwrap_err(), "gatePass", "sharded"),
        (client.next_sharded_id(sharded(), none()).unwrap_err(), "gatePass", "empty"),
        (client.next_sharded_id("a b".into(), "me".into()).unwrap_err(), "gatePass", ""),
        (client.next_id(sharded()).unwrap_err(), "gatePass", "missing"),
        (client.next_ids(sharded(), 2).unwrap_err(), "gatePass", "missing"),
        (client.next_string_id(sharded(), true).unwrap_err(), "gatePass", "missing"),
        (client.issue_ids(sharded(), 1, none(), none()).unwrap_err(), "gatePass", "missing"),
        (client.issue_ids(order(), 1, "a b".into(), none()).unwrap_err(), "requestKey", "space"),
        (client.issue_ids(none(), 1, none(), none()).unwrap_err(), "idType", "empty"),
        (client.issue_ids("a b".into(), 1, none(), none()).unwrap_err(), "idType", ""),
        (client.issue_ids(order(), 0, none(), none()).unwrap_err(), "count", "100000"),
        (client.issue_ids(order(), 100_001, none(), none()).unwrap_err(), "count", "100000"),
        (
            client.issue_string_ids(order(), 10_001, true, none(), none()).unwrap_err(),
            "count",
            "10000",
        ),
        (client.lease_range(order(), 1, 1_000).unwrap_err(), "idType", "strict"),
        (client.lease_range("segment".into(), 0, 1_000).unwrap_err(), "count", "10000000"),
        (client.lease_range("segment".into(), 10_000_001, 1_000).unwrap_err(), "count", "10000000"),
        (client.lease_range("segment".into(), i64::MIN, 1_000).unwrap_err(), "count", ""),
        (client.lease_range("segment".into(), 1, 999).unwrap_err(), "ttlMs", "from 1000"),
        (client.lease_range("segment".into(), 1, 86_400_001).unwrap_err(), "ttlMs", "86400000"),
        (client.decode_id(order(), none()).unwrap_err(), "id", "empty"),
        (client.decode_id(order(), "XY".into()).unwrap_err(), "id", "XY"),
    ] {
        let error = raised(error);
        assert_eq!(error.code.as_deref(), Some("INVALID_ARGUMENT"), "{error:?}");
        assert_eq!(error.field.as_deref(), Some(field), "{error:?}");
        assert!(error.message.as_ref().unwrap().contains(part), "{error:?}");
    }
    let first = client.issue_ids(order(), 2, "k".into(), none()).unwrap();
    let conflict = raised(client.issue_ids(order(), 3, "k".into(), none()).unwrap_err());
    assert_eq!((conflict.code.as_deref(), conflict.field), (Some("CONFLICT"), None));
    assert_eq!(client.issue_ids(order(), 2, "k".into(), none()).unwrap(), first);
    let unknown = raised(client.decode_id("nothing".into(), "1".into()).unwrap_err());
    assert_eq!(unknown.code.as_deref(), Some("UNKNOWN_TYPE"));

    // The original methods say it in their own way.
    let reply = client.get_id("me".into(), sharded()).unwrap();
    assert_eq!((reply.res, reply.value), (Some(552), Some(-1)));
    assert!(reply.ext.unwrap().contains("gate_pass"));
    let reply = client.get_str_id("me".into(), sharded(), true).unwrap();
    assert_eq!((reply.res, reply.value), (Some(552), None));
}

/// What can be read of a framed, binary reply with an exception.
fn readable(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).into_owned()
}

#[test]
fn arguments_that_are_missing_or_of_another_type() {
    let server = Server::start();
    let mut stream = server.raw();
    let int = |id: u8, value: i32| [&[8, 0, id][..], &value.to_be_bytes()].concat();
    let long = |id: u8, value: i64| [&[10, 0, id][..], &value.to_be_bytes()].concat();
    let order = text(1, b"order");
    let segment = text(1, b"segment");
    for (seqid, (method, body, part)) in (1..).zip([
        ("nextShardedId", order.clone(), "gatePass is missing"),
        ("nextShardedId", [order.clone(), int(2, 1)].concat(), "gatePass is missing"),
        ("nextShardedId", [order.clone(), text(2, b"\xff")].concat(), "gatePass is not UTF-8"),
        ("issueIds", vec![], "idType is missing"),
        ("issueIds", order.clone(), "count is missing"),
        // An i64 is no i32, and the other way round.
        ("issueIds", [order.clone(), long(2, 1)].concat(), "count is missing"),
        ("issueIds", [&order[..], &int(2, 1), &text(3, b"\xff")].concat(), "requestKey is not"),
        ("issueStringIds", [&order[..], &int(2, 1), &text(5, b"\xff")].concat(), "gatePass is not"),
        ("leaseRange", [segment.clone(), int(2, 1)].concat(), "count is missing"),
        ("leaseRange", [segment.clone(), long(2, 1)].concat(), "ttlMs is missing"),
        ("leaseRange", [&segment[..], &long(2, 1), &int(3, 1_000)].concat(), "ttlMs is missing"),
        ("decodeId", order.clone(), "id is missing"),
        ("decodeId", [order.clone(), long(2, 1)].concat(), "id is missing"),
    ]) {
        stream.write_all(&framed(&message(1, method, seqid, &body))).unwrap();
        let said = readable(&read_frame(&mut stream).unwrap());
        assert!(said.contains("INVALID_ARGUMENT") && said.contains(part), "{method}: {said}");
    }
    // What is optional may be left out, and a fourth and fifth argument are read.
    let body = [order.clone(), int(2, 1)].concat();
    stream.write_all(&framed(&message(1, "issueIds", 1, &body))).unwrap();
    read_frame(&mut stream).unwrap();
    assert_eq!(asked(&server), (1, None, None));
    let body = [&text(1, b"sharded")[..], &int(2, 1), &text(4, b"k"), &text(5, b"me")].concat();
    stream.write_all(&framed(&message(1, "issueStringIds", 1, &body))).unwrap();
    read_frame(&mut stream).unwrap();
    assert_eq!(asked(&server), (1, some("k"), some("me")));
}

#[test]
fn many_ids_that_do_not_follow_each_other() {
    let server = Server::start();
    for (framed, compact) in PAIRS {
        let mut client = client(server.addr, framed, compact);
        let ranges = client.next_ids("opaque".into(), 100_000).unwrap();
        assert_eq!(ranges.len(), 100_000);
        let follow = |pair: &[idl::IdRange]| pair[1].first == pair[0].first + (1 << 14);
        assert!(ranges.windows(2).all(follow));
        assert!(ranges.iter().all(|range| range.count == 1));
        let none = String::new;
        let texts = client.issue_string_ids("opaque".into(), 10_000, true, none(), none()).unwrap();
        assert_eq!(texts.len(), 10_000);
    }
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 4 * 110_000);
}

#[test]
fn long_orders_wait_for_their_turn_and_short_ones_do_not() {
    let server = Server::with(|config| config.long_order_bytes = 1);
    // The budget is less than one order needs: one at a time, all the same.
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(client.next_ids("opaque".into(), 20_000).unwrap().len(), 20_000);
                }
            });
        }
        // One that waits in the service holds the budget.
        let mut holds = server.client();
        let held = scope.spawn(move || holds.next_ids("gated".into(), 100_000).unwrap());
        eventually("the order is at the gate", || {
            server.api.arrived.load(std::sync::atomic::Ordering::SeqCst) == 1
        });
        let short = server.client().next_ids("opaque".into(), 1_000);
        server.api.gate.add_permits(1);
        assert_eq!(held.join().unwrap().len(), 1);
        assert_eq!(short.unwrap().len(), 1_000);
    });
}

#[test]
fn a_long_order_without_a_turn_is_told_to_come_again() {
    let server = Server::with(|config| {
        config.long_order_bytes = 1;
        config.message_timeout = Duration::from_millis(100);
    });
    let mut late = server.client();
    let (answers, goes_on) = std::thread::scope(|scope| {
        let mut holds = server.client();
        scope.spawn(move || holds.next_ids("gated".into(), 100_000).unwrap());
        eventually("the order is at the gate", || {
            server.api.arrived.load(std::sync::atomic::Ordering::SeqCst) == 1
        });
        let none = String::new;
        let answers = [
            late.next_ids("order".into(), 100_000).map(drop),
            late.issue_ids("order".into(), 100_000, none(), none()).map(drop),
            late.issue_string_ids("order".into(), 10_000, true, none(), none()).map(drop),
        ];
        let goes_on = late.next_id("order".into());
        // Before anything is asserted, or a failure would wait for ever.
        server.api.gate.add_permits(1);
        (answers, goes_on)
    });
    for answer in answers {
        let error = raised(answer.expect_err("there is no turn"));
        assert_eq!((error.code.as_deref(), error.retriable), (Some("OVERLOADED"), Some(true)));
    }
    assert!(goes_on.unwrap() > 0, "the connection goes on");
    assert_eq!(server.metric("idgen_thrift_errors_total", "OVERLOADED"), 3);
    assert_eq!(server.client().next_ids("order".into(), 100_000).unwrap().len(), 1);
}

#[test]
fn the_numbers_of_the_idl_are_those_of_the_service() {
    assert_eq!(i64::from(idl::MAX_COUNT), api::MAX_COUNT);
    assert_eq!(i64::from(idl::MAX_TEXTS), api::MAX_TEXTS);
    assert_eq!(idl::MAX_LEASE, api::MAX_LEASE);
    assert_eq!((idl::MIN_LEASE_MS, idl::MAX_LEASE_MS), (api::MIN_LEASE_MS, api::MAX_LEASE_MS));
    assert_eq!(idl::REQUEST_KEY_LIFE_MS as u128, api::REQUEST_KEY_LIFE.as_millis());
    assert_eq!(idl::MAX_REQUEST_KEY as usize, api::MAX_REQUEST_KEY);
    assert_eq!(idl::MAX_GATE_PASS as usize, api::MAX_GATE_PASS);
}
