//! Nodes that are dead, hang, come back, or talk nonsense.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idgen::client::{BlockingClient, Code, Config, Error};

use super::fake::{Fake, Reply, framed};
use super::{blocking, eventually, node};

/// An address where nobody listens, for as long as the value lives.
fn nobody() -> (String, TcpListener) {
    // Bound by the listener, whose queue nobody empties; closed for who connects by
    // another address of the machine.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (format!("127.0.0.2:{port}"), listener)
}

fn client(nodes: &[&str], change: impl FnOnce(&mut Config)) -> BlockingClient {
    let mut config = Config::new(nodes.iter().copied());
    change(&mut config);
    BlockingClient::new(config).unwrap()
}

fn answers(id: i64) -> Fake {
    Fake::start(move |_| Reply::Id(id))
}

#[test]
fn a_dead_node_is_left_within_the_call() {
    let (dead, _listener) = nobody();
    let good = answers(7);
    let client = client(&[&dead, &good.name()], |_| {});
    for _ in 0..10 {
        assert_eq!(client.next_id("order").unwrap(), 7);
    }
}

#[test]
fn a_node_that_hangs_is_left_within_the_call() {
    let hangs = Fake::start(|_| Reply::Hang);
    let good = answers(7);
    let client = client(&[&hangs.name(), &good.name()], |c| c.deadline = Duration::from_secs(1));
    for _ in 0..10 {
        assert_eq!(client.next_id("order").unwrap(), 7);
    }
    let asked = hangs.seen().len();
    assert!((1..10).contains(&asked), "asked {asked} times: it is passed over for a while");
}

#[test]
fn a_call_that_nobody_answers_ends_by_its_deadline() {
    let hangs = Fake::start(|_| Reply::Hang);
    let client = client(&[&hangs.name()], |c| c.deadline = Duration::from_millis(100));
    match client.next_id("order") {
        Err(Error::Deadline { last: Some(last) }) => {
            assert!(matches!(*last, Error::Unreachable { .. }), "{last:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn half_an_answer_ends_by_the_deadline_too() {
    let half = Fake::start(|seen| {
        let mut bytes = framed(seen, true, &Reply::Id(7));
        bytes.truncate(bytes.len() / 2);
        Reply::Bytes(bytes)
    });
    let client = client(&[&half.name()], |c| c.deadline = Duration::from_millis(100));
    assert!(matches!(client.next_id("order"), Err(Error::Deadline { .. })));
}

#[test]
fn all_nodes_dead_is_told_at_once() {
    let (dead, _listener) = nobody();
    let client = client(&[&dead], |c| c.deadline = Duration::from_secs(3_600));
    match client.next_id("order") {
        Err(error @ Error::Unreachable { .. }) => assert!(error.is_retriable()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_that_comes_back_is_used_again() {
    let first = answers(1);
    let addr = first.name();
    let other = answers(2);
    let client = client(&[&addr, &other.name()], |_| {});
    assert!((0..4).any(|_| client.next_id("order").unwrap() == 1));
    drop(first);
    for _ in 0..4 {
        assert_eq!(client.next_id("order").unwrap(), 2);
    }
    let _back = Fake::start_at(&addr, |_| Reply::Id(3));
    // Until its pause is over.
    eventually("an id of it", || client.next_id("order").unwrap() == 3);
}

#[test]
fn connections_that_were_closed_meanwhile_cost_no_call() {
    let fake = answers(7);
    let client = client(&[&fake.name()], |_| {});
    for round in 0..20 {
        assert_eq!(client.next_id("order"), Ok(7), "round {round}");
        fake.cut();
    }
    // The peer ends the connection right after its answer, without being asked.
    let fake = Fake::start(|_| Reply::IdAndClose(8));
    let client = blocking(&fake.name());
    for round in 0..20 {
        assert_eq!(client.next_id("order"), Ok(8), "round {round}");
    }
}

#[test]
fn a_real_node_that_was_restarted_costs_no_call() {
    let (mut node, _folder) = node();
    let client = blocking(&node.thrift);
    let before = client.next_id("order").unwrap();
    node.stop();
    assert!(matches!(client.next_id("order"), Err(Error::Unreachable { .. })));
    node.start_again();
    assert!(client.next_id("order").unwrap() > before);
    let before = client.next_id("order").unwrap();
    node.kill();
    node.start_again();
    assert!(client.next_id("order").unwrap() > before);
}

#[test]
fn a_refusal_that_may_pass_goes_to_the_next_node() {
    for (code, retriable) in
        [("OVERLOADED", true), ("UNAVAILABLE", true), ("NEW", true), ("CLOCK_BACKWARDS", false)]
    {
        let busy = Fake::start(move |_| Reply::Raise(code, retriable));
        let good = answers(7);
        let client = client(&[&busy.name(), &good.name()], |_| {});
        for _ in 0..4 {
            assert_eq!(client.next_id("order"), Ok(7), "{code}");
        }
        assert!(!busy.seen().is_empty() && busy.seen().len() <= 4);
    }
}

#[test]
fn a_refusal_that_stays_is_told_at_once() {
    let retired = Fake::start(|_| Reply::Raise("RETIRED", false));
    let other = Fake::start(|_| Reply::Raise("RETIRED", false));
    let client = client(&[&retired.name(), &other.name()], |_| {});
    let error = client.next_id("order").unwrap_err();
    assert_eq!(error.code(), Some(&Code::Retired));
    assert_eq!(error.refusal().unwrap().field.as_deref(), Some("a_field"));
    assert_eq!(retired.seen().len() + other.seen().len(), 1, "no other node was asked");
}

#[test]
fn what_a_node_says_is_told_rather_than_that_another_is_dead() {
    let (dead, _listener) = nobody();
    let busy = Fake::start(|_| Reply::Raise("OVERLOADED", true));
    let client = client(&[&dead, &busy.name()], |_| {});
    for _ in 0..4 {
        let error = client.next_id("order").unwrap_err();
        assert_eq!(error.code(), Some(&Code::Overloaded));
        assert!(error.is_retriable());
    }
}

#[test]
fn nonsense_is_an_error_and_its_connection_is_given_up() {
    let garbage: [fn() -> Reply; 9] = [
        || Reply::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
        || Reply::Bytes([&[0, 0, 0, 8][..], &[0xff; 8]].concat()),
        || Reply::Bytes(vec![0, 0, 0, 0]),
        || Reply::Bytes(vec![0xff; 64]),
        || Reply::BytesAndClose(vec![0, 0, 1, 0, 0x82]),
        || Reply::Close,
        || Reply::WrongSeqid,
        || Reply::WrongName,
        || Reply::Void,
    ];
    for (at, reply) in garbage.into_iter().enumerate() {
        let fake = Fake::start(move |seen| match seen.connection {
            0 => reply(),
            _ => Reply::Id(7),
        });
        let alone = client(&[&fake.name()], |_| {});
        match alone.next_id("order") {
            Err(Error::BadAnswer { .. } | Error::Unreachable { .. }) => {}
            other => panic!("case {at}: {other:?}"),
        }
        assert_eq!(alone.next_id("order"), Ok(7), "case {at}: on another connection");
        let bad = Fake::start(move |_| reply());
        let both = client(&[&bad.name(), &fake.name()], |_| {});
        for _ in 0..4 {
            assert_eq!(both.next_id("order"), Ok(7), "case {at}: from the other node");
        }
    }
}

#[test]
fn answers_that_do_not_fit_the_call_are_refused() {
    let fake = Fake::start(|seen| match seen.call {
        0 => Reply::Id(-1),
        1 => Reply::Ranges(vec![(1, 9)]),
        2 => Reply::Ranges(vec![(1, 11), (30, -1)]),
        3 => Reply::Ranges(vec![(i64::MAX - 1, 10)]),
        4 => Reply::Lease(1, 11, 1, 1_000),
        _ => Reply::Ranges(vec![(1, 10)]),
    });
    let client = client(&[&fake.name()], |_| {});
    let bad = |error: Option<Error>| assert!(matches!(error, Some(Error::BadAnswer { .. })));
    bad(client.next_id("order").err());
    for _ in 0..3 {
        bad(client.next_ids("order", 10).err());
    }
    bad(client.lease_range("event", 10, Duration::from_secs(1)).err());
    assert_eq!(client.next_ids("order", 10).unwrap()[0].count, 10);
}

#[test]
fn answers_that_claim_to_be_long_take_no_memory() {
    // A list of 2^31 - 1 ranges, of which none follows, in both protocols.
    let compact: &[u8] = &[0x82, 0x41, 1, 7, b'n', b'e', b'x', b't', b'I', b'd', b's', 0x09, 0];
    let claim = [compact, &[0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]].concat();
    let frame = [&(claim.len() as u32).to_be_bytes()[..], &claim].concat();
    let fake = Fake::start(move |_| Reply::Bytes(frame.clone()));
    let client = client(&[&fake.name()], |_| {});
    match client.next_ids("order", 10) {
        Err(Error::BadAnswer { message, .. }) => {
            assert!(message.contains("size"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let long = Fake::start(|_| Reply::Bytes(vec![0x7f, 0xff, 0xff, 0xff, 0]));
    match blocking(&long.name()).next_id("order") {
        Err(Error::BadAnswer { message, .. }) => assert!(message.contains("at most"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_method_that_the_node_does_not_know() {
    let old = Fake::start(|_| Reply::UnknownMethod);
    match client(&[&old.name()], |_| {}).next_id("order") {
        Err(error @ Error::Application { kind: 1, .. }) => assert!(!error.is_retriable()),
        other => panic!("{other:?}"),
    }
    let new = answers(7);
    let both = client(&[&old.name(), &new.name()], |_| {});
    for _ in 0..4 {
        assert_eq!(both.next_id("order"), Ok(7), "a newer node may know it");
    }
}

#[test]
fn a_token_is_the_first_word_on_every_connection() {
    let fake = Fake::start(|seen| match (seen.call, seen.method.as_str()) {
        (0, "authenticate") if seen.texts[&1] == "the-token" => Reply::Void,
        (0, "authenticate") => Reply::Raise("PERMISSION_DENIED", false),
        (1, "nextId") => Reply::Id(7),
        _ => Reply::IdAndClose(8),
    });
    let with = |token: &str| client(&[&fake.name()], |c| c.token = Some(token.to_owned()));
    let good = with("the-token");
    assert_eq!(good.next_id("order"), Ok(7));
    assert_eq!(good.next_id("order"), Ok(8));
    assert_eq!(good.next_id("order"), Ok(7), "on another connection");
    let error = with("another").next_id("order").unwrap_err();
    assert_eq!(error.code(), Some(&Code::PermissionDenied));
    let methods: Vec<_> = fake.seen().into_iter().map(|seen| seen.method).collect();
    let expected = ["authenticate", "nextId", "nextId", "authenticate", "nextId", "authenticate"];
    assert_eq!(methods, expected);
}

#[test]
fn calls_beyond_the_connections_wait_their_turn() {
    let busy = Arc::new(AtomicBool::new(false));
    let fake = Fake::start({
        let busy = Arc::clone(&busy);
        move |_| {
            assert!(!busy.swap(true, Ordering::SeqCst), "two calls at a time");
            std::thread::yield_now();
            busy.store(false, Ordering::SeqCst);
            Reply::Id(7)
        }
    });
    let client = client(&[&fake.name()], |c| {
        (c.max_connections, c.deadline) = (1, Duration::from_secs(60));
    });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(client.next_id("order"), Ok(7))));
        }
    });
    assert!(fake.seen().iter().all(|seen| seen.connection == 0));
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_connection_with_it() {
    let fake = Fake::start(|seen| match seen.texts[&1].as_str() {
        "slow" => Reply::Hang,
        _ => Reply::Id(7),
    });
    let client = idgen::client::Client::new(Config::new([fake.name()])).unwrap();
    assert_eq!(client.next_id("order").await, Ok(7));
    let slow = client.next_id("slow");
    assert!(tokio::time::timeout(Duration::from_millis(50), slow).await.is_err());
    assert_eq!(client.next_id("order").await, Ok(7));
}
