//! Many calls at a time over one connection.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use super::support::*;

/// The sequence numbers and first bytes of the next `count` replies.
fn replies(stream: &mut TcpStream, count: usize) -> Vec<(u8, Vec<u8>)> {
    let next = |_| read_frame(stream).expect("a reply");
    let frames: Vec<_> = (0..count).map(next).collect();
    frames.into_iter().map(|frame| (frame[17], frame)).collect()
}

fn numbers(replies: &[(u8, Vec<u8>)]) -> Vec<u8> {
    replies.iter().map(|reply| reply.0).collect()
}

#[test]
fn calls_behind_one_that_waits_begin_and_are_answered_in_order() {
    let server = Server::start();
    let mut stream = server.raw();
    let arrived = || server.api.arrived.load(Ordering::SeqCst);
    // As many as the first read takes.
    let calls: Vec<u8> = (1..=10).flat_map(|seqid| next_id("gated", seqid)).collect();
    stream.write_all(&calls).unwrap();
    // All have begun, and none is answered.
    eventually("all calls wait", || arrived() == 10);
    assert_eq!(server.metric("idgen_thrift_requests_in_flight", ""), 10);
    server.api.gate.add_permits(10);
    let replies = replies(&mut stream, 10);
    assert_eq!(numbers(&replies), (1..=10).collect::<Vec<u8>>());
    let ids: Vec<&[u8]> = replies.iter().map(|(_, frame)| &frame[21..29]).collect();
    assert!(ids.is_sorted(), "the order of the calls is that of the ids");
    assert_eq!(server.metric("idgen_thrift_requests_in_flight", ""), 0);
    assert_eq!(server.metric("idgen_thrift_requests_total", "nextId"), 10);
    assert_eq!(server.metric("idgen_thrift_request_duration_seconds", "nextId"), 10);
}

#[test]
fn what_may_not_begin_early_keeps_its_turn() {
    let server = Server::start();
    let arrived = || server.api.arrived.load(Ordering::SeqCst);
    let broken = framed(&message(1, "nextId", 4, b"\x0b\0\x01\xff\xff\xff\xff"));
    let calls = [
        next_id("gated", 1),
        next_id("down", 2),
        framed(&message(4, "nextId", 3, &text(1, b"order"))),
        broken,
        next_id("gated", 5),
        framed(&message(1, "nosuch", 6, &[])),
        framed(&message(1, "nodeStatus", 7, &[])),
        next_id("order", 8),
    ];
    let mut stream = server.raw();
    stream.write_all(&calls.concat()).unwrap();
    eventually("the first waits", || arrived() == 1);
    // The malformed one has not been looked at for good, nor what is behind it.
    eventually("two are done early", || {
        server.metric("idgen_thrift_requests_total", "nextId") == 3
    });
    assert_eq!(server.metric("idgen_thrift_malformed_total", "negative_size"), 0);
    server.api.gate.add_permits(1);
    eventually("the next waits", || arrived() == 2);
    assert_eq!(server.metric("idgen_thrift_requests_total", "nodeStatus"), 0);
    server.api.gate.add_permits(1);
    let replies = replies(&mut stream, 7);
    let frames: Vec<String> =
        replies.iter().map(|reply| String::from_utf8_lossy(&reply.1).into_owned()).collect();
    assert!(frames[1].contains("UNAVAILABLE"), "{frames:?}");
    for (at, seqid) in [(0, 1), (1, 2), (2, 4), (3, 5), (4, 6)] {
        assert_eq!(replies[at].0, seqid, "{frames:?}");
    }
    assert!(frames[4].contains("no method") && frames[5].contains("node-1"), "{frames:?}");
    assert_eq!(numbers(&replies[6..]), [8]);
    assert_eq!(server.metric("idgen_thrift_malformed_total", "negative_size"), 1);

    // Without frames, the malformed one ends the connection, after its turn.
    let mut stream = server.raw();
    let call = message(1, "nextId", 1, &text(1, b"gated"));
    let broken = message(1, "nextId", 2, b"\x63\0\x01");
    stream.write_all(&[call.clone(), call, broken].concat()).unwrap();
    eventually("both wait", || arrived() == 4);
    server.api.gate.add_permits(2);
    let said = read_to_end(&mut stream);
    let starts: Vec<usize> =
        (0..said.len()).filter(|at| said[*at..].starts_with(b"\x80\x01\0")).collect();
    assert_eq!(starts.len(), 3, "{said:?}");
    application_error(&said[starts[2]..], "nextId", 2, 7);
}

#[test]
fn a_client_that_goes_away_takes_its_calls_along() {
    let server = Server::start();
    let mut stream = server.raw();
    let calls: Vec<u8> = (1..=10).flat_map(|seqid| next_id("gated", seqid)).collect();
    stream.write_all(&calls).unwrap();
    eventually("all wait", || server.api.arrived.load(Ordering::SeqCst) == 10);
    drop(stream);
    server.api.gate.add_permits(10);
    eventually("nothing is left", || server.metric("idgen_thrift_requests_in_flight", "") == 0);
    eventually("the connection ends", || server.metric("idgen_thrift_connections_open", "") == 0);
    server.assert_goes_on();
}

#[test]
fn more_than_the_memory_allows_wait_for_their_turn() {
    // Each counts for 2 KiB, as many as are free for the input of the connection.
    let server = Server::with(|config| config.buffer_bytes = 10 * 1024);
    let mut stream = server.raw();
    let arrived = || server.api.arrived.load(Ordering::SeqCst);
    let calls: Vec<u8> = (1..=10).flat_map(|seqid| next_id("gated", seqid)).collect();
    stream.write_all(&calls).unwrap();
    eventually("the first and five more wait", || arrived() == 6);
    server.assert_goes_on();
    assert_eq!(arrived(), 6);
    server.api.gate.add_permits(10);
    assert_eq!(numbers(&replies(&mut stream, 10)), (1..=10).collect::<Vec<u8>>());
    assert_eq!(arrived(), 10);
}

#[test]
fn calls_behind_one_that_waits_go_on_by_themselves() {
    let server = Server::start();
    let mut stream = server.raw();
    // The first waits at the gate for good, the second for a while and then at it.
    let calls = [next_id("gated", 1), next_id("later", 2), next_id("order", 3)];
    stream.write_all(&calls.concat()).unwrap();
    let arrived = || server.api.arrived.load(Ordering::SeqCst);
    eventually("the second has come to the gate", || arrived() == 2);
    server.api.gate.add_permits(2);
    assert_eq!(numbers(&replies(&mut stream, 3)), [1, 2, 3]);
}
