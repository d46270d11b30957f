//! What works: the official client over every pair of transport and protocol,
//! the bytes of the original system, drips and pipelines.

use std::io::{Read, Write};
use std::process::Command;

use idgen::front::thrift::IdGenException;
use idgen::front::thrift::generated::{IdRange, TIdGenServiceSyncClient};

use super::support::*;

pub const PAIRS: [(bool, bool); 4] = [(true, false), (true, true), (false, false), (false, true)];

pub fn raised(error: thrift::Error) -> IdGenException {
    match error {
        thrift::Error::User(error) => *error.downcast().expect("an IdGenException"),
        other => panic!("not an IdGenException: {other:?}"),
    }
}

fn new_type(name: &str) -> String {
    format!(
        r#"{{"project_name":"shop","id_name":"{name}","id_prifx":"OD","id_start":1000,
        "last_range":0,"max_range":100000,"min_range":1000,"applicant":"ann","redis_flag":1,
        "state":1,"min_load_interval":600,"load_percentage":0.1,"lock_expire":10,
        "other_info":""}}"#
    )
}

#[test]
fn the_official_client_over_every_pair() {
    let server = Server::start();
    for (framed, compact) in PAIRS {
        let mut client = client(server.addr, framed, compact);

        let first = client.next_id("order".into()).unwrap();
        let reply = client.get_id("me".into(), "order".into()).unwrap();
        assert_eq!((reply.res, reply.ext), (Some(200), None));
        assert_eq!(reply.value, Some(first + 1));
        let reply = client.get_str_id("me".into(), "order".into(), true).unwrap();
        assert_eq!(reply.value, Some(format!("OD{}", first + 2)));
        let reply = client.get_str_id("".into(), "order".into(), false).unwrap();
        assert_eq!(reply.value, Some((first + 3).to_string()));
        let reply = client.echo("me".into(), "grüß".into()).unwrap();
        assert_eq!((reply.res, reply.value.as_deref()), (Some(200), Some("grüß")));
        let ranges = client.next_ids("order".into(), 100_000).unwrap();
        assert_eq!(ranges, [IdRange { first: first + 4, count: 100_000 }]);
        let text = client.next_string_id("order".into(), true).unwrap();
        assert_eq!(text, format!("OD{}", first + 100_004));

        let info = client.describe_type("order".into()).unwrap();
        assert_eq!(info.name.as_deref(), Some("order"));
        assert_eq!((info.mode.as_deref(), info.state.as_deref()), (Some("strict"), Some("active")));
        assert_eq!(info.load_percentage.map(|p| p.0), Some(0.1));
        assert_eq!((info.next_id, info.last_range), (Some(3_001), Some(2_000)));
        assert_eq!((info.last_load_ms, info.version), (None, Some(4)));
        let live = info.live.unwrap();
        assert_eq!((live.live, live.cursor, live.left), (Some(true), Some(11), Some(2_990)));
        assert_eq!(live.second.unwrap().count, 2_000);
        assert_eq!(info.options.as_deref(), Some(r#"{"at_limit":"cycle"}"#));
        assert_eq!(info.max_position, Some(1_000_000));
        assert_eq!(info.exhausted_at_ms, Some(1_800_000_000_000));
        let local = info.local.unwrap();
        assert_eq!((local.left, local.ranges, local.ahead), (Some(500), Some(2), Some(1)));
        assert_eq!(
            (local.rate.map(|r| r.0), local.runway_s.map(|r| r.0)),
            (Some(2.5), Some(200.0))
        );
        assert_eq!(local.worker, None);

        let node = client.node_status().unwrap();
        assert_eq!((node.node.as_deref(), node.ready), (Some("node-1"), Some(true)));
        let part = &node.parts.unwrap()[0];
        assert_eq!(part.error.as_deref(), Some("gone"));

        let name = format!("new-{framed}-{compact}");
        let reply = client.add_new_id("ann".into(), new_type(&name)).unwrap();
        assert_eq!((reply.res, reply.value, reply.ext), (Some(200), Some(true), None));
        let (spec, actor) = server.api.created.lock().unwrap().last().cloned().unwrap();
        assert_eq!((spec.name.as_str(), spec.first_id), (name.as_str(), 1_001));
        assert_eq!(actor, "thrift:ann");
        let again = client.add_new_id("ann".into(), new_type(&name)).unwrap();
        assert_eq!((again.res, again.value), (Some(553), Some(false)));
        assert!(again.ext.unwrap().starts_with("ALREADY_EXISTS: "));
    }
    // Every id of the last pair is larger than those of the one before, and
    // every id was counted.
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 4 * 100_005);
    assert_eq!(server.metric("idgen_thrift_requests_total", "getStrId"), 8);
    assert_eq!(server.metric("idgen_thrift_request_duration_seconds", "getStrId"), 8);
    assert_eq!(server.stop().cut, 0);
}

#[test]
fn failures_of_the_original_methods() {
    let server = Server::start();
    let mut client = server.client();
    for (name, res, code) in [
        ("", 552, "INVALID_ARGUMENT: idName"),
        ("a b", 552, "INVALID_ARGUMENT: name"),
        ("unknown", 553, "UNKNOWN_TYPE: "),
        ("gone", 553, "RETIRED: "),
        ("empty", 551, "EXHAUSTED: "),
        ("down", 553, "UNAVAILABLE: "),
    ] {
        let reply = client.get_id("me".into(), name.into()).unwrap();
        assert_eq!((reply.res, reply.value), (Some(res), Some(-1)), "{name}");
        assert!(reply.ext.unwrap().starts_with(code), "{name}");
        let reply = client.get_str_id("me".into(), name.into(), true).unwrap();
        assert_eq!((reply.res, reply.value), (Some(res), None), "{name}");
        assert!(reply.ext.unwrap().starts_with(code), "{name}");
    }
    let reply = client.echo("".into(), "x".into()).unwrap();
    assert_eq!((reply.res, reply.value), (Some(552), None));
    assert!(reply.ext.unwrap().contains("caller"));

    let unknown = new_type("other").replace("\"redis_flag\":1", "\"redis_flag\":\"nowhere\"");
    for (json, res, part) in [
        ("".to_owned(), 552, "newIdInfo is empty"),
        ("{".to_owned(), 552, "newIdInfo"),
        (new_type("a b"), 552, "id_name"),
        (new_type("x").replace("1000,", "0,"), 552, "id_start"),
        (unknown, 553, "UNKNOWN_INSTANCE"),
    ] {
        let reply = client.add_new_id("me".into(), json).unwrap();
        assert_eq!((reply.res, reply.value), (Some(res), Some(false)));
        let ext = reply.ext.unwrap();
        assert!(ext.contains(part), "{ext}");
    }
    assert_eq!(server.metric("idgen_thrift_errors_total", "EXHAUSTED"), 2);
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 0);
}

#[test]
fn failures_of_the_typed_methods() {
    let server = Server::start();
    let mut client = server.client();
    for (name, code, retriable, field) in [
        ("", "INVALID_ARGUMENT", false, Some("idType")),
        ("a b", "INVALID_ARGUMENT", false, Some("idType")),
        ("unknown", "UNKNOWN_TYPE", false, None),
        ("gone", "RETIRED", false, None),
        ("empty", "EXHAUSTED", false, None),
        ("down", "UNAVAILABLE", true, None),
    ] {
        let errors = [
            client.next_id(name.into()).unwrap_err(),
            client.next_ids(name.into(), 5).unwrap_err(),
            client.next_string_id(name.into(), false).unwrap_err(),
        ];
        for error in errors.map(raised) {
            assert_eq!(error.code.as_deref(), Some(code));
            assert_eq!(error.retriable, Some(retriable));
            assert_eq!(error.field.as_deref(), field);
            assert!(!error.message.unwrap().is_empty());
        }
    }
    for count in [0, -1, 100_001, i32::MIN, i32::MAX] {
        let error = raised(client.next_ids("order".into(), count).unwrap_err());
        assert_eq!(error.field.as_deref(), Some("count"));
        let message = error.message.unwrap();
        assert!(message.contains("count") && message.contains("100000"), "{message}");
    }
    let error = raised(client.describe_type("nothing".into()).unwrap_err());
    assert_eq!(error.code.as_deref(), Some("UNKNOWN_TYPE"));
    assert_eq!(server.metric("idgen_thrift_ids_total", ""), 0);
}

/// The request and the reply of the original system, as observed.
#[test]
fn the_original_bytes() {
    let server = Server::start();
    let mut stream = server.raw();
    let request = b"\0\0\0\x26\x80\x01\0\x01\0\0\0\x05getId\0\0\0\x01\
        \x0b\0\x01\0\0\0\x03hex\x0b\0\x02\0\0\0\x03def\0";
    stream.write_all(request).unwrap();
    // There `def` is a type that exists; here the reply tells that it is not.
    let reply = read_frame(&mut stream).unwrap();
    let failed = b"\x80\x01\0\x02\0\0\0\x05getId\0\0\0\x01\x0c\0\0\
        \x08\0\x01\0\0\x02\x29\x0a\0\x02\xff\xff\xff\xff\xff\xff\xff\xff\x0b\0\x03";
    assert!(reply.starts_with(failed), "{reply:02x?}");

    let request = [
        &b"\0\0\0\x28\x80\x01\0\x01\0\0\0\x05getId\0\0\0\x01"[..],
        b"\x0b\0\x01\0\0\0\x03hex\x0b\0\x02\0\0\0\x05order\0",
    ];
    stream.write_all(&request.concat()).unwrap();
    let mut reply = [0; 0x28 + 4];
    stream.read_exact(&mut reply).unwrap();
    let expected = b"\0\0\0\x28\x80\x01\0\x02\0\0\0\x05getId\0\0\0\x01\x0c\0\0\
        \x08\0\x01\0\0\0\xc8\x0a\0\x02\0\0\0\0\0\0\0\x01\0\0";
    assert_eq!(&reply, expected);
}

#[test]
fn binary_without_a_version_in_a_frame() {
    let server = Server::start();
    let mut stream = server.raw();
    let body = [&b"\0\0\0\x06nextId\x01\0\0\0\x2a"[..], &text(1, b"order"), b"\0"].concat();
    stream.write_all(&framed(&body)).unwrap();
    let reply = read_frame(&mut stream).unwrap();
    let expected = b"\0\0\0\x06nextId\x02\0\0\0\x2a\x0a\0\0\0\0\0\0\0\0\0\x01\0";
    assert_eq!(reply, expected);
}

#[test]
fn a_drip_of_single_bytes() {
    let server = Server::start();
    let compact = b"\x82\x21\x07\x06nextId\x18\x05order\0";
    let binary = message(1, "nextId", 7, &text(1, b"order"));
    for request in [next_id("order", 7), binary, compact.to_vec()] {
        let mut stream = server.raw();
        for byte in &request {
            stream.write_all(&[*byte]).unwrap();
        }
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        let name = first.windows(4).any(|part| part == b"next");
        assert!(name || request[0] == 0, "{first:02x?}");
    }
    assert_eq!(server.metric("idgen_thrift_requests_total", "nextId"), 3);
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let server = Server::start();
    let mut stream = server.raw();
    let requests: Vec<u8> = (0..100).flat_map(|seqid| next_id("order", seqid)).collect();
    stream.write_all(&requests).unwrap();
    for seqid in 0..100u32 {
        let reply = read_frame(&mut stream).unwrap();
        let expected = [
            &b"\x80\x01\0\x02\0\0\0\x06nextId"[..],
            &seqid.to_be_bytes(),
            b"\x0a\0\0",
            &i64::from(seqid + 1).to_be_bytes(),
            b"\0",
        ];
        assert_eq!(reply, expected.concat());
    }
}

#[test]
fn a_slow_call_does_not_hold_back_the_replies_before_it() {
    let server = Server::start();
    let mut stream = server.raw();
    let requests = [next_id("order", 1), next_id("gated", 2), next_id("order", 3)];
    stream.write_all(&requests.concat()).unwrap();
    // The gate is closed, and yet the first reply comes.
    assert!(read_frame(&mut stream).unwrap().ends_with(&[1, 0]));
    server.api.gate.add_permits(1);
    // The call behind it had its id meanwhile, and its reply waits for its turn.
    assert!(read_frame(&mut stream).unwrap().ends_with(&[3, 0]));
    assert!(read_frame(&mut stream).unwrap().ends_with(&[2, 0]));
}

#[test]
fn many_clients_get_different_ids() {
    let server = Server::start();
    let mut ids: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|at| {
                let (framed, compact) = PAIRS[at % 4];
                let mut client = client(server.addr, framed, compact);
                scope.spawn(move || {
                    let call = |_| client.next_id("order".into()).unwrap();
                    (0..200).map(call).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    ids.sort_unstable();
    assert_eq!(ids, (1..=3_200).collect::<Vec<_>>());
    assert_eq!(server.metric("idgen_thrift_connections_accepted_total", ""), 16);
    eventually("every connection is closed", || {
        server.metric("idgen_thrift_connections_open", "") == 0
    });
}

#[test]
fn the_python_client_over_every_pair() {
    let server = Server::start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python/run.sh");
    let output = Command::new(script)
        .arg("every_method.py")
        .arg(server.addr.ip().to_string())
        .arg(server.addr.port().to_string())
        .args(["order", "segment", "sharded"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let erred = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{erred}");
    for pair in ["framed binary", "framed compact", "buffered binary", "buffered compact"] {
        assert!(said.contains(&format!("{pair}: ok")), "{said}");
    }
}
