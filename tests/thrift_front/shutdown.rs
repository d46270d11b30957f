//! Shutdown: what was received completely is answered, nothing is cut.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::support::*;

const REQUESTS: &str = "idgen_thrift_requests_total";

/// Sends bursts of `burst` calls until the server is gone; gives the number of
/// replies. A reply that is cut fails the test.
fn call_until_closed(mut stream: TcpStream, burst: usize, seen: &AtomicUsize) -> usize {
    let request = next_id("order", 1).repeat(burst);
    let mut replies = 0;
    loop {
        let sent = stream.write_all(&request).is_ok();
        let mut left = burst;
        while left > 0 || !sent {
            if read_frame(&mut stream).is_none() {
                return replies;
            }
            replies += 1;
            left -= 1;
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn under_load_every_accepted_request_is_answered() {
    // More than once, since the moment of the stop matters.
    for round in 0..8 {
        let server = Server::start();
        let seen = AtomicUsize::new(0);
        let (replies, served, registry) = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..16)
                .map(|at| {
                    let (stream, seen) = (server.raw(), &seen);
                    let burst = [1, 1, 7, 40][at % 4];
                    scope.spawn(move || call_until_closed(stream, burst, seen))
                })
                .collect();
            eventually("there is load", || {
                seen.load(Ordering::Relaxed) > 2_000 + 100 * round
            });
            server.stop.send_replace(true);
            let (served, registry) = server.join();
            let replies: usize = clients.into_iter().map(|c| c.join().unwrap()).sum();
            (replies, served, registry)
        });
        assert_eq!(served.cut, 0);
        assert_eq!(replies as u64, metric(&registry, REQUESTS, "nextId"));
        assert_eq!(
            replies as u64,
            metric(&registry, "idgen_thrift_ids_total", "")
        );
        assert_eq!(metric(&registry, "idgen_thrift_connections_open", ""), 0);
    }
}

#[test]
fn calls_that_wait_and_requests_behind_them_are_answered() {
    let server = Server::start();
    let mut streams: Vec<_> = (0..10).map(|_| server.raw()).collect();
    for stream in &mut streams {
        stream.write_all(&next_id("gated", 1)).unwrap();
    }
    eventually("all wait", || {
        server.api.arrived.load(Ordering::SeqCst) == 10
    });
    // These stay in the kernel, because their connections are busy.
    for stream in &mut streams {
        let behind = [
            next_id("order", 2),
            next_id("order", 3),
            next_id("order", 4),
        ];
        stream.write_all(&behind.concat()).unwrap();
        // And one that is not complete.
        stream.write_all(&next_id("order", 5)[..10]).unwrap();
    }
    server.stop.send_replace(true);
    server.api.gate.add_permits(10);
    for stream in &mut streams {
        for _ in 0..4 {
            assert!(read_frame(stream).is_some());
        }
        assert!(read_frame(stream).is_none());
    }
    assert_eq!(server.join().0.cut, 0);
}

#[test]
fn a_request_that_the_runtime_has_not_noticed_is_answered() {
    // The stop and the request come together; whichever is seen first, the
    // request was received before the stop and must be answered.
    for _ in 0..200 {
        let server = Server::start();
        let mut stream = server.raw();
        stream.write_all(&next_id("order", 1)).unwrap();
        assert!(read_frame(&mut stream).is_some());
        stream.write_all(&next_id("order", 2)).unwrap();
        server.stop.send_replace(true);
        assert!(read_frame(&mut stream).is_some());
        assert!(read_frame(&mut stream).is_none());
        drop(stream);
        assert_eq!(server.join().0.cut, 0);
    }
}

#[test]
fn idle_connections_do_not_hold_a_shutdown_up() {
    let server = Server::start();
    let mut streams: Vec<_> = (0..20).map(|_| server.raw()).collect();
    let last = streams.last_mut().unwrap();
    last.write_all(&next_id("order", 1)[..15]).unwrap();
    eventually("all are open", || {
        server.metric("idgen_thrift_connections_open", "") == 20
    });
    assert_eq!(server.stop().cut, 0);
    for stream in &mut streams {
        assert!(read_to_end(stream).is_empty());
    }
}

#[test]
fn a_call_that_never_ends_is_cut_after_the_drain_time() {
    let server = Server::with(|config| config.drain = Duration::from_millis(100));
    let mut stream = server.raw();
    stream.write_all(&next_id("gated", 1)).unwrap();
    eventually("it waits", || {
        server.api.arrived.load(Ordering::SeqCst) == 1
    });
    assert_eq!(server.stop().cut, 1);
    assert!(read_frame(&mut stream).is_none());
}

#[test]
fn while_draining_unavailable_means_this_node() {
    let server = Server::start();
    let mut stream = server.raw();
    stream.write_all(&next_id("gated", 1)).unwrap();
    eventually("it waits", || {
        server.api.arrived.load(Ordering::SeqCst) == 1
    });
    let body = [text(1, b"me"), text(2, b"down")].concat();
    stream
        .write_all(&framed(&message(1, "getId", 2, &body)))
        .unwrap();
    server.stop.send_replace(true);
    server.api.gate.add_permits(1);
    assert!(read_frame(&mut stream).is_some());
    let reply = read_frame(&mut stream).unwrap();
    // Field 1, i32, 550.
    let expected = [0x08, 0, 1, 0, 0, 0x02, 0x26];
    assert!(
        reply.windows(7).any(|part| part == expected),
        "{reply:02x?}"
    );
}

#[test]
fn an_owner_that_is_gone_is_a_stop() {
    let mut server = Server::start();
    let mut stream = server.raw();
    stream.write_all(&next_id("order", 1)).unwrap();
    assert!(read_frame(&mut stream).is_some());
    server.stop = tokio::sync::watch::channel(false).0;
    assert!(read_frame(&mut stream).is_none());
    drop(stream);
    assert_eq!(server.join().0.cut, 0);
}
