//! What no client should send: each gets its typed error or a closed
//! connection, and the server goes on.

use std::io::Write;
use std::net::Shutdown;

use super::support::*;

const UNKNOWN_METHOD: i32 = 1;
const INVALID_MESSAGE_TYPE: i32 = 2;
const PROTOCOL_ERROR: i32 = 7;

/// Messages whose header is right and whose arguments are not, with the kind
/// under which they are counted.
fn malformed_bodies() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("negative_size", b"\x0b\0\x01\xff\xff\xff\xff".to_vec()),
        ("negative_size", b"\x0f\0\x01\x0b\x80\0\0\0".to_vec()),
        ("too_long", b"\x0b\0\x01\x7f\xff\xff\xff".to_vec()),
        ("too_long", b"\x0f\0\x01\x0b\x7f\xff\xff\xff".to_vec()),
        ("too_long", b"\x0d\0\x01\x0c\x0c\x7f\xff\xff\xff".to_vec()),
        ("type", b"\x63\0\x01".to_vec()),
        ("too_deep", b"\x0c\0\x01".repeat(1_000)),
    ]
}

#[test]
fn malformed_arguments_in_a_frame_cost_the_call() {
    let server = Server::start();
    let mut stream = server.raw();
    let mut bodies = malformed_bodies();
    // Cut short within the frame, and with something behind the end.
    bodies.push(("truncated", b"\x0a\0\x01\0\0".to_vec()));
    for (seqid, (kind, body)) in (1..).zip(bodies) {
        let before = server.metric("idgen_thrift_malformed_total", kind);
        stream
            .write_all(&framed(&message(1, "nextId", seqid, &body)))
            .unwrap();
        let reply = read_frame(&mut stream).unwrap();
        let said = application_error(&reply, "nextId", seqid, PROTOCOL_ERROR);
        assert!(!said.is_empty());
        let after = server.metric("idgen_thrift_malformed_total", kind);
        assert_eq!(after, before + 1, "{kind}");
        // The frame tells where the next message begins.
        stream.write_all(&next_id("order", 0)).unwrap();
        assert!(
            read_frame(&mut stream)
                .unwrap()
                .starts_with(b"\x80\x01\0\x02")
        );
    }
    let trailing = [message(1, "nextId", 9, &text(1, b"order")), vec![0]].concat();
    stream.write_all(&framed(&trailing)).unwrap();
    application_error(
        &read_frame(&mut stream).unwrap(),
        "nextId",
        9,
        PROTOCOL_ERROR,
    );
}

#[test]
fn malformed_arguments_without_a_frame_cost_the_connection() {
    let server = Server::start();
    for (kind, body) in malformed_bodies() {
        let mut stream = server.raw();
        stream.write_all(&message(1, "nextId", 5, &body)).unwrap();
        let reply = read_to_end(&mut stream);
        application_error(&reply, "nextId", 5, PROTOCOL_ERROR);
        assert!(server.metric("idgen_thrift_malformed_total", kind) >= 1);
        server.assert_goes_on();
    }
}

#[test]
fn a_frame_that_is_too_long() {
    let server = Server::with(|config| config.max_frame_bytes = 2_000);
    // As long as is allowed.
    let mut stream = server.raw();
    let longest = message(1, "echo", 1, &text(1, &[b'x'; 1_976]));
    assert_eq!(longest.len(), 2_000);
    stream.write_all(&framed(&longest)).unwrap();
    assert!(
        read_frame(&mut stream)
            .unwrap()
            .starts_with(b"\x80\x01\0\x02")
    );

    // One more: the header tells whom to answer, before the rest is there.
    let mut stream = server.raw();
    let message = message(1, "echo", 2, &text(1, &[b'x'; 1_977]));
    stream.write_all(&framed(&message)[..100]).unwrap();
    let reply = read_frame(&mut stream).unwrap();
    let said = application_error(&reply, "echo", 2, PROTOCOL_ERROR);
    assert!(said.contains("limit"), "{said}");
    assert!(read_frame(&mut stream).is_none());

    // The same without a frame, where only the last byte shows it.
    let mut stream = server.raw();
    stream.write_all(&message).unwrap();
    application_error(&read_to_end(&mut stream), "echo", 2, PROTOCOL_ERROR);
    // And far too long, which no length that begins with 0 can say.
    let mut stream = server.raw();
    stream.write_all(b"\x7f\xff\xff\xff\x80\x01").unwrap();
    assert!(read_to_end(&mut stream).is_empty());
    // A length below zero, once framed transport is known.
    let mut stream = server.raw();
    stream.write_all(&next_id("order", 1)).unwrap();
    read_frame(&mut stream).unwrap();
    stream.write_all(b"\xff\xff\xff\xff").unwrap();
    assert!(read_frame(&mut stream).is_none());
    server.assert_goes_on();
}

#[test]
fn http_is_told_where_it_is() {
    let server = Server::start();
    for request in [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /x HTTP/1.0\r\n\r\n{}",
    ] {
        let mut stream = server.raw();
        stream.write_all(request.as_bytes()).unwrap();
        let reply = String::from_utf8(read_to_end(&mut stream)).unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{reply}");
        assert!(reply.contains("Thrift port"), "{reply}");
    }
    assert_eq!(server.metric("idgen_thrift_malformed_total", "http"), 2);
    server.assert_goes_on();
}

#[test]
fn tls_and_noise_are_closed() {
    let server = Server::start();
    let hello = b"\x16\x03\x01\0\xf8\x01\0\0\xf4\x03\x03".to_vec();
    let noise = (0..200u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 1);
    for (bytes, kind) in [
        (hello, "tls"),
        (noise.collect(), "unknown_protocol"),
        (b"\0\0\0\x10HELLO".to_vec(), "unknown_protocol"),
        (b"SSH-2.0-x\r\n".to_vec(), "unknown_protocol"),
        (vec![0xff; 100], "unknown_protocol"),
    ] {
        let before = server.metric("idgen_thrift_malformed_total", kind);
        let mut stream = server.raw();
        stream.write_all(&bytes).unwrap();
        assert!(read_to_end(&mut stream).is_empty());
        assert_eq!(
            server.metric("idgen_thrift_malformed_total", kind),
            before + 1
        );
        server.assert_goes_on();
    }
    // A frame with nothing readable in it, and an empty one.
    for frame in [&b"\0\0\0\x05\x80\x01\0\x01\0"[..], b"\0\0\0\0\0\0\0\0"] {
        let mut stream = server.raw();
        stream.write_all(frame).unwrap();
        assert!(read_to_end(&mut stream).is_empty());
    }
    server.assert_goes_on();
}

#[test]
fn random_connections_harm_nobody() {
    let server = Server::start();
    let mut state = 1u64;
    for round in 0..200 {
        let bytes: Vec<u8> = (0..round * 3)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let start: &[u8] = [
            b"",
            &b"\x80\x01\0\x01"[..],
            b"\x82\x21",
            b"\0\0\0\x40\x80\x01\0\x01",
        ][round % 4];
        let mut stream = server.raw();
        // The server may close in the middle of it.
        let _ = stream.write_all(&[start, &bytes].concat());
        let _ = stream.shutdown(Shutdown::Write);
        read_to_end(&mut stream);
    }
    server.assert_goes_on();
    assert_eq!(
        server.metric("idgen_thrift_connections_refused_total", "panic"),
        0
    );
}

#[test]
fn a_client_that_stops_in_the_middle() {
    let server = Server::start();
    let request = next_id("order", 1);
    for cut in 1..request.len() {
        let mut stream = server.raw();
        stream.write_all(&request[..cut]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(read_to_end(&mut stream).is_empty());
    }
    // One that goes away while its call waits.
    let mut stream = server.raw();
    stream.write_all(&next_id("gated", 1)).unwrap();
    drop(stream);
    server.api.gate.add_permits(1);
    server.assert_goes_on();
    eventually("all are gone", || {
        server.metric("idgen_thrift_connections_open", "") == 0
    });
}

#[test]
fn text_that_is_not_utf_8_is_named() {
    let server = Server::start();
    let mut stream = server.raw();
    let bad = b"a\xff\xfe";
    let mut call = |name: &str, body: Vec<u8>| {
        stream
            .write_all(&framed(&message(1, name, 1, &body)))
            .unwrap();
        let reply = read_frame(&mut stream).unwrap();
        String::from_utf8_lossy(&reply).into_owned()
    };
    for (method, body, field) in [
        ("getId", [text(1, b"me"), text(2, bad)].concat(), "idName"),
        (
            "getId",
            [text(1, bad), text(2, b"order")].concat(),
            "caller",
        ),
        (
            "getStrId",
            [text(1, b"me"), text(2, bad)].concat(),
            "idName",
        ),
        (
            "addNewId",
            [text(1, b"me"), text(2, bad)].concat(),
            "newIdInfo",
        ),
        ("echo", [text(1, b"me"), text(2, bad)].concat(), "srcStr"),
        ("nextId", text(1, bad), "idType"),
        ("nextIds", text(1, bad), "idType"),
        ("nextStringId", text(1, bad), "idType"),
        ("describeType", text(1, bad), "idType"),
    ] {
        let reply = call(method, body);
        assert!(reply.contains("INVALID_ARGUMENT"), "{method}: {reply}");
        assert!(
            reply.contains(&format!("{field} is not UTF-8")),
            "{method}: {reply}"
        );
    }
    assert_eq!(
        server.metric("idgen_thrift_errors_total", "INVALID_ARGUMENT"),
        9
    );
}

#[test]
fn missing_and_misfit_arguments() {
    let server = Server::start();
    let mut stream = server.raw();
    let mut call = |name: &str, body: &[u8]| {
        stream
            .write_all(&framed(&message(1, name, 1, body)))
            .unwrap();
        let reply = read_frame(&mut stream).unwrap();
        assert_eq!(reply[3], 2, "a reply, not an exception");
        String::from_utf8_lossy(&reply).into_owned()
    };
    let i32_as_name = b"\x08\0\x01\0\0\0\x05";
    for (method, body, said) in [
        ("getId", text(1, b"me"), "idName is missing"),
        ("getStrId", vec![], "idName is missing"),
        ("addNewId", vec![], "newIdInfo is missing"),
        ("echo", text(2, b"x"), "caller is missing"),
        ("nextId", vec![], "idType is missing"),
        ("nextId", i32_as_name.to_vec(), "idType is missing"),
        ("nextIds", text(1, b"order"), "count is missing"),
        ("describeType", vec![], "idType is missing"),
    ] {
        let reply = call(method, &body);
        assert!(reply.contains(said), "{method}: {reply}");
    }
    // What has a sensible default, or is nothing that this version knows.
    let more = [
        text(9, b"new"),
        b"\x0f\0\x0a\x08\0\0\0\x01\0\0\0\x01".to_vec(),
    ]
    .concat();
    call("getStrId", &[text(2, b"order"), more].concat());
    call("nextStringId", &text(1, b"order"));
    call("nodeStatus", &[]);
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 2);
}

#[test]
fn calls_that_are_none() {
    let server = Server::start();
    let mut stream = server.raw();
    let long = "x".repeat(3_000);
    for (kind, name, error) in [
        (1, "getNothing", UNKNOWN_METHOD),
        (1, "", UNKNOWN_METHOD),
        (1, "IdGenService:getId", UNKNOWN_METHOD),
        (1, long.as_str(), UNKNOWN_METHOD),
        (2, "nextId", INVALID_MESSAGE_TYPE),
        (3, "nextId", INVALID_MESSAGE_TYPE),
        (0, "nextId", INVALID_MESSAGE_TYPE),
        (77, "nextId", INVALID_MESSAGE_TYPE),
    ] {
        let request = message(kind, name, -7, &text(1, b"order"));
        stream.write_all(&framed(&request)).unwrap();
        application_error(&read_frame(&mut stream).unwrap(), name, -7, error);
    }
    assert_eq!(
        server.metric("idgen_thrift_errors_total", "UNKNOWN_METHOD"),
        4
    );
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 0);

    // Without a frame as well: the end of the message is known.
    let mut stream = server.raw();
    stream.write_all(&message(1, "getNothing", 3, &[])).unwrap();
    stream
        .write_all(&message(4, "nextId", 4, &text(1, b"order")))
        .unwrap();
    stream.write_all(&message(4, "getNothing", 5, &[])).unwrap();
    stream
        .write_all(&message(1, "nextId", 6, &text(1, b"order")))
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let replies = read_to_end(&mut stream);
    application_error(&replies, "getNothing", 3, UNKNOWN_METHOD);
    // The one-way calls have no reply.
    assert!(replies.ends_with(b"nextId\0\0\0\x06\x0a\0\0\0\0\0\0\0\0\0\x02\0"));
    assert_eq!(
        replies.windows(6).filter(|part| part == b"nextId").count(),
        1
    );
}

#[test]
fn a_panic_costs_one_connection() {
    let server = Server::start();
    let mut stream = server.raw();
    let mut other = server.client();
    stream.write_all(&next_id("broken", 1)).unwrap();
    assert!(read_to_end(&mut stream).is_empty());
    idgen::front::thrift::generated::TIdGenServiceSyncClient::node_status(&mut other).unwrap();
    eventually("the panic is counted", || {
        server.metric("idgen_thrift_connections_refused_total", "panic") == 1
    });
    assert_eq!(server.metric("idgen_thrift_requests_in_flight", ""), 0);
    server.assert_goes_on();
}
