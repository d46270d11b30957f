//! The HTTP port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::node::{Node, TOKEN, exclusive};
use crate::tools::*;

fn open(node: &Node) -> TcpStream {
    connect(node.url.trim_start_matches("http://"))
}

/// Everything until the node closes, or has said nothing for `silence`.
fn read_all(stream: &mut TcpStream, silence: Duration) -> String {
    stream.set_read_timeout(Some(silence)).expect("a socket");
    let mut bytes = Vec::new();
    let mut chunk = [0; 64 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn long_bodies_and_headers() {
    let _turn = exclusive();
    let (mut node, _folder) = node(&[]);
    let start = resident(&node);
    let head = format!(
        "POST /api/v1/types HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\n"
    );
    let endless = [b"ffff\r\n".to_vec(), vec![b' '; 0xffff], b"\r\n".to_vec()].concat();
    for (framing, chunk, copies, status) in [
        ("Content-Length: 10000000000\r\n\r\n", vec![b' '; 1 << 16], 200, "413"),
        ("Transfer-Encoding: chunked\r\n\r\n", endless, 200, "413"),
        ("", b"X-Header: of a request that never ends\r\n".to_vec(), 100_000, "431"),
    ] {
        let mut stream = open(&node);
        stream.write_all(format!("{head}{framing}").as_bytes()).expect("room");
        // The node closes in the middle; what it said before is still there.
        let taken = (0..copies).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        let answer = read_all(&mut stream, PATIENCE);
        let answered = answer.starts_with(&format!("HTTP/1.1 {status}"));
        // A reset throws the answer away; then the node took no more, at least.
        assert!(answered || answer.is_empty() && taken < copies, "{framing}: {taken}: {answer}");
    }
    assert!(resident(&node) < start + (16 << 20));
    // Without the token nobody even gets as far.
    let mut stream = open(&node);
    let request = b"POST /api/v1/types HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n";
    stream.write_all(request).expect("room");
    assert!(read_all(&mut stream, Duration::from_secs(1)).starts_with("HTTP/1.1 401"));
    node.wait_for("memory as before", PATIENCE, |node| resident(node) < start + (16 << 20));
}

#[test]
fn clients_that_never_read_and_too_many_connections() {
    let _turn = exclusive();
    let count = scale(8, 30);
    // One for the figures, and one that the test itself keeps open.
    let limit = (count + 2).to_string();
    let (mut node, _folder) = node(&["--http-max-connections", &limit]);
    let (start, files_before) = (resident(&node), files(&node));
    let before = Good::alone(&node);
    let good = Good::start(&node);
    let request = format!(
        "POST /api/v1/types/order/ids?count=100000 HTTP/1.1\r\nHost: x\r\n\
         Authorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n"
    );
    let mut streams: Vec<_> = (0..count).map(|_| open(&node)).collect();
    for stream in &mut streams {
        stream.write_all(request.repeat(20).as_bytes()).expect("room");
    }
    let held = |node: &Node| resident(node).saturating_sub(start);
    // More than the limit are told so, once the node has come to them.
    let mut more: Vec<_> = (0..16).map(|_| open(&node)).collect();
    let mut told = 0;
    eventually("those beyond the limit are told", || {
        more.retain_mut(|stream| {
            let mut head = [0; 12];
            stream.set_read_timeout(Some(Duration::from_millis(10))).expect("a socket");
            let refused = stream.read(&mut head).is_ok() && &head == b"HTTP/1.1 503";
            told += u32::from(refused);
            !refused
        });
        told >= 14
    });
    // Answers of 0.8 MB each, of which the kernel takes a part.
    eventually("the answers are there", || held(&node) > 2 << 20);
    let each = held(&node) as f64 / 1024.0 / count as f64;
    println!("{count} HTTP clients that never read: {each:.0} KiB each");
    assert!(held(&node) < 160 << 20, "{:.0} MiB", mib(held(&node)));
    compare("HTTP clients that never read", &before, &good.finish());
    if full() {
        // A peer that takes nothing for 30 s is cut.
        eventually("all are cut", || files(&node) <= files_before + 20);
    }
    drop((streams, more));
    eventually("the files are closed", || files(&node) <= files_before + 5);
    node.wait_for("memory as before", PATIENCE, |node| resident(node) < start + (24 << 20));
}

#[test]
fn headers_and_bodies_that_do_not_come() {
    let _turn = exclusive();
    // The limits are 10 s and 30 s; the unit tests look at them with a clock of their own.
    if !full() {
        return;
    }
    let (node, _folder) = node(&["--http-max-connections", "200"]);
    let body = format!(
        "POST /api/v1/types HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    );
    let mut streams: Vec<_> = (0..150).map(|_| open(&node)).collect();
    for (n, stream) in streams.iter_mut().enumerate() {
        let begun = ["", "GET /healthz HTTP/1.1\r\nHost: ", &body][n % 3];
        stream.write_all(begun.as_bytes()).expect("room");
    }
    eventually("all are cut", || {
        streams.retain_mut(|stream| {
            let cut = is_closed(stream) || stream.write_all(b"x").is_err();
            stream.set_nonblocking(false).expect("a socket");
            !cut
        });
        std::thread::sleep(Duration::from_millis(500));
        streams.is_empty()
    });
}
