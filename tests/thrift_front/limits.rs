//! Limits: connections, silence, slow peers, file descriptors.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use idgen::front::thrift::{ThriftConfig, ThriftServer};

use super::support::*;

const REFUSED: &str = "idgen_thrift_connections_refused_total";

#[test]
fn one_connection_too_many_is_closed_at_once() {
    let server = Server::with(|config| config.max_connections = 3);
    let mut open: Vec<_> = (0..3).map(|_| server.raw()).collect();
    for stream in &mut open {
        stream.write_all(&next_id("order", 1)).unwrap();
        read_frame(stream).unwrap();
    }
    let mut one_more = server.raw();
    assert!(read_to_end(&mut one_more).is_empty());
    assert_eq!(server.metric(REFUSED, "limit"), 1);
    // The others are as before, and a place that is free can be had.
    open[0].write_all(&next_id("order", 2)).unwrap();
    read_frame(&mut open[0]).unwrap();
    drop(open.pop());
    eventually("the place is free", || server.metric("idgen_thrift_connections_open", "") == 2);
    server.assert_goes_on();
}

#[test]
fn silence_ends_a_connection() {
    let server = Server::with(|config| config.idle_timeout = Duration::from_millis(100));
    let mut never_spoke = server.raw();
    let mut spoke = server.raw();
    spoke.write_all(&next_id("order", 1)).unwrap();
    read_frame(&mut spoke).unwrap();
    assert!(read_to_end(&mut never_spoke).is_empty());
    assert!(read_to_end(&mut spoke).is_empty());
    assert_eq!(server.metric(REFUSED, "idle"), 2);
}

#[test]
fn a_call_that_waits_is_not_silence() {
    let server = Server::with(|config| config.idle_timeout = Duration::from_millis(50));
    let mut waits = server.raw();
    waits.write_all(&next_id("gated", 1)).unwrap();
    // Another connection shows that the timeout has passed.
    assert!(read_to_end(&mut server.raw()).is_empty());
    server.api.gate.add_permits(1);
    assert!(read_frame(&mut waits).is_some());
}

#[test]
fn a_message_that_does_not_go_on() {
    let server = Server::with(|config| config.message_timeout = Duration::from_millis(100));
    for begun in [&next_id("order", 1)[..20], b"\0", b"\x80\x01\0", b"GE"] {
        let mut stream = server.raw();
        stream.write_all(begun).unwrap();
        assert!(read_to_end(&mut stream).is_empty());
    }
    // Also after a message that was complete.
    let mut stream = server.raw();
    let request = next_id("order", 1);
    stream.write_all(&[&request[..], &request[..9]].concat()).unwrap();
    assert!(read_frame(&mut stream).is_some());
    assert!(read_frame(&mut stream).is_none());
    assert_eq!(server.metric(REFUSED, "slow_message"), 5);
    server.assert_goes_on();
}

#[test]
fn a_drip_does_not_keep_a_message_alive() {
    let server = Server::with(|config| config.message_timeout = Duration::from_millis(200));
    let mut stream = server.raw();
    let request = framed(&message(1, "echo", 1, &text(1, &[b'x'; 60_000])));
    // A byte every few milliseconds would take minutes.
    let sent = request.iter().take_while(|byte| {
        std::thread::sleep(Duration::from_millis(5));
        stream.write_all(&[**byte]).is_ok()
    });
    assert!(sent.count() < 10_000);
    assert_eq!(server.metric(REFUSED, "slow_message"), 1);
}

#[test]
fn a_peer_that_does_not_read_its_replies() {
    let server = Server::with(|config| config.message_timeout = Duration::from_millis(300));
    *server.api.description.lock().unwrap() = "x".repeat(60_000);
    let mut stream = server.raw();
    let request = framed(&message(1, "describeType", 1, &text(1, b"order")));
    // Far more than the kernel's buffers hold.
    let requests = request.repeat(1_000);
    let _ = stream.write_all(&requests);
    eventually("the connection is given up", || server.metric(REFUSED, "slow_reply") == 1);
    server.assert_goes_on();
}

#[test]
fn messages_that_do_not_go_on_share_the_memory() {
    let server = Server::with(|config| config.buffer_bytes = 100_000);
    let begun = framed(&message(1, "echo", 1, &text(2, &[b'x'; 50_000])));
    let mut streams: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = server.raw();
            let _ = stream.write_all(&begun[..40_000]);
            stream
        })
        .collect();
    eventually("most are closed", || server.metric(REFUSED, "memory") >= 17);
    assert!(server.metric("idgen_thrift_connections_open", "") >= 1);
    // Short messages do not count.
    server.assert_goes_on();
    let rest = &begun[40_000..];
    let answered = streams.iter_mut().filter_map(|stream| {
        let sent = stream.write_all(rest).is_ok();
        if sent { read_frame(stream) } else { None }
    });
    assert!(answered.count() >= 1);
    drop(streams);
    eventually("all are gone", || server.metric("idgen_thrift_connections_open", "") == 0);
    let mut again = server.raw();
    again.write_all(&begun).unwrap();
    assert!(read_frame(&mut again).is_some());
}

#[test]
fn many_long_replies_to_one_pipeline() {
    let server = Server::start();
    *server.api.description.lock().unwrap() = "x".repeat(60_000);
    let mut stream = server.raw();
    let request = framed(&message(1, "describeType", 1, &text(1, b"order")));
    stream.write_all(&request.repeat(200)).unwrap();
    for _ in 0..200 {
        assert!(read_frame(&mut stream).unwrap().len() > 60_000);
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let addr: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    type Break = fn(&mut ThriftConfig);
    let cases: [(&str, Break); 5] = [
        ("max_frame_bytes", |c| c.max_frame_bytes = 1_023),
        ("max_frame_bytes", |c| c.max_frame_bytes = 1 << 24),
        ("max_connections", |c| c.max_connections = 0),
        ("idle_timeout", |c| c.idle_timeout = Duration::ZERO),
        ("message_timeout", |c| c.message_timeout = Duration::ZERO),
    ];
    for (name, change) in cases {
        let mut config = ThriftConfig::new(addr);
        change(&mut config);
        let error = runtime.block_on(ThriftServer::bind(config)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(name), "{error}");
    }
    let server = Server::start();
    let taken = runtime.block_on(ThriftServer::bind(ThriftConfig::new(server.addr)));
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse);
}

/// Runs in a process of its own, because the limit is the process's.
#[test]
fn without_file_descriptors() {
    const INNER: &str = "IDGEN_TEST_WITHOUT_FILE_DESCRIPTORS";
    if std::env::var_os(INNER).is_none() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "limits::without_file_descriptors", "--nocapture"])
            .env(INNER, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let erred = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{erred}");
        assert!(said.contains("1 passed"), "{said}");
        return;
    }
    let server = Server::start();
    let mut early = server.raw();
    early.write_all(&next_id("order", 1)).unwrap();
    read_frame(&mut early).unwrap();

    let (_, hard) = rlimit::getrlimit(rlimit::Resource::NOFILE).unwrap();
    rlimit::setrlimit(rlimit::Resource::NOFILE, 100, hard).unwrap();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    // One for the client's end; none is left for the server's.
    drop(files.pop());
    let began = tokio::time::Instant::now();
    let mut late = server.raw();
    late.write_all(&next_id("order", 2)).unwrap();
    eventually("accepting has failed twice", || server.metric(REFUSED, "accept_error") >= 2);
    // It does not spin: one attempt in a tenth of a second.
    let most = began.elapsed().as_millis() / 100 + 1;
    assert!(u128::from(server.metric(REFUSED, "accept_error")) <= most);
    early.write_all(&next_id("order", 3)).unwrap();
    read_frame(&mut early).unwrap();
    drop(files);
    assert!(read_frame(&mut late).is_some());
}
