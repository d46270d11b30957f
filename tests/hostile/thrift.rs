//! The Thrift port.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use idgen::cli::load::now;

use crate::support::node::{Node, exclusive};
use crate::tools::*;

const REFUSED: &str = "idgen_thrift_connections_refused_total";

/// A stream of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Messages that are right, without frames, in one protocol.
fn messages(compact: bool) -> Vec<Vec<u8>> {
    if compact {
        return vec![
            b"\x82\x21\x01\x06nextId\x18\x05order\x00".to_vec(),
            b"\x82\x21\x01\x07nextIds\x18\x05order\x15\x0a\x00".to_vec(),
            b"\x82\x21\x01\x05getId\x18\x02me\x18\x05order\x00".to_vec(),
            b"\x82\x21\x01\x04echo\x18\x02me\x18\x05hello\x19\x25\x02\x04\x00".to_vec(),
        ];
    }
    let two = |a: &[u8], b: &[u8]| [text(1, a), text(2, b)].concat();
    let lists =
        b"\x0f\0\x06\x08\0\0\0\x01\0\0\0\x05\x0d\0\x07\x0b\x08\0\0\0\x01\0\0\0\x01a\0\0\0\x01";
    [
        call("nextId", 1, &text(1, b"order")),
        call("nextIds", 1, &[text(1, b"order"), b"\x08\0\x02\0\0\0\x0a".to_vec()].concat()),
        call("getId", 1, &two(b"me", b"order")),
        call("echo", 1, &[two(b"me", b"hello"), lists.to_vec()].concat()),
    ]
    .map(|framed| framed[4..].to_vec())
    .to_vec()
}

/// Spoils `message` so that it is hardly ever a message any more: seldom its header,
/// without which nobody can be answered and the connection ends.
fn spoil(message: &mut Vec<u8>, compact: bool, numbers: &mut Numbers) {
    let name = if compact { 3 } else { 7 };
    let header = if compact { 4 } else { 12 } + usize::from(message[name]);
    let from = if numbers.below(500) == 0 { 1 } else { header };
    let place = from + numbers.below(message.len() - from);
    match numbers.below(4) {
        0 => message.truncate(place),
        1 => message.push(numbers.below(256) as u8),
        2 => message[place] ^= 1 << numbers.below(8) | 0x80,
        _ => {
            let noise: Vec<u8> = (0..8).map(|_| numbers.below(256) as u8).collect();
            message.splice(place..place, noise);
        }
    }
}

/// Sends `count` spoilt messages in frames, a hundred at a time, each time with a
/// call behind them that must be answered if the connection still is.
fn spoilt_frames(node: &Node, compact: bool, count: usize, seed: u64) {
    let mut numbers = Numbers(seed);
    let good = messages(compact);
    let last = match compact {
        true => framed(b"\x82\x21\xe7\x07\x04echo\x18\x02me\x18\x04last\x00"),
        false => call("echo", 999, &[text(1, b"me"), text(2, b"last")].concat()),
    };
    let mut stream = connect(&node.thrift);
    let mut sent = 0;
    while sent < count {
        let mut bytes = Vec::new();
        // Else a first message may be taken for another dialect.
        bytes.extend(framed(&good[0]));
        for _ in 0..100 {
            let mut message = good[numbers.below(good.len())].clone();
            spoil(&mut message, compact, &mut numbers);
            bytes.extend(framed(&message));
        }
        sent += 100;
        let cut = numbers.below(20) == 0;
        if cut {
            // The length of a frame is wrong, and nothing behind it can be right.
            let place = bytes.len() - 1 - numbers.below(200);
            bytes.truncate(place);
            bytes.extend(numbers.below(1 << 30).to_be_bytes());
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
        } else {
            bytes.extend(&last);
            let _ = stream.write_all(&bytes);
        }
        let answered = loop {
            match read_frame(&mut stream) {
                Some(reply) if reply.windows(4).any(|part| part == b"last") => break true,
                Some(_) => {}
                None => break false,
            }
        };
        if !answered {
            // A header that cannot be read ends a connection.
            stream = connect(&node.thrift);
        }
    }
}

/// Without frames a spoilt message ends the connection.
fn spoilt_streams(node: &Node, compact: bool, count: usize, seed: u64) {
    let mut numbers = Numbers(seed);
    let good = messages(compact);
    for _ in 0..count {
        let mut bytes = good[numbers.below(good.len())].repeat(3);
        let mut message = good[numbers.below(good.len())].clone();
        spoil(&mut message, compact, &mut numbers);
        bytes.extend(message);
        let mut stream = connect(&node.thrift);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        // Until the node closes; a reset counts as well.
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let slow = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(!slow, "the connection goes on");
    }
}

#[test]
fn malformed_messages_by_the_million() {
    let _turn = exclusive();
    let (mut node, _folder) = node(&["--thrift-message-timeout-ms", "2000"]);
    let before = Good::alone(&node);
    let start = resident(&node);
    let good = Good::start(&node);
    let began = now();
    let (frames, streams) = (scale(40_000, 9_960_000), scale(200, 40_000));
    std::thread::scope(|scope| {
        for (compact, seed) in [(false, 1), (false, 2), (true, 3), (true, 4)] {
            let node = &node;
            scope.spawn(move || spoilt_frames(node, compact, frames / 4, seed));
        }
        for (compact, seed) in [(false, 5), (true, 6)] {
            let node = &node;
            scope.spawn(move || spoilt_streams(node, compact, streams / 2, seed));
        }
    });
    let took = began.elapsed();
    let during = good.finish();
    let peak = resident(&node);
    compare("malformed messages", &before, &during);
    let malformed = node.metric("idgen_thrift_malformed_total");
    println!(
        "malformed messages: {} sent in {took:.1?}, {malformed} of them counted as malformed; \
         resident {:.1} MiB before, {:.1} MiB at the end",
        frames + streams,
        mib(start),
        mib(peak)
    );
    assert!(malformed > 0.5 * (frames + streams) as f64, "{malformed} were malformed");
    assert_eq!(node.metric(&format!("{REFUSED}{{reason=\"panic\"}}")), 0.0, "{}", node.log());
    assert!(!node.log().contains("ERROR"), "{}", node.log());
    let bound = start + (16 << 20);
    node.wait_for("memory as before", PATIENCE, |node| resident(node) < bound);
    eventually("no connection is left", || node.metric("idgen_thrift_connections_open") == 0.0);
}

#[test]
fn a_byte_now_and_then() {
    let _turn = exclusive();
    let (node, _folder) = node(&["--thrift-message-timeout-ms", "1000"]);
    let good = Good::start(&node);
    let count = scale(200, 2_000);
    rlimit::increase_nofile_limit(count as u64 + 500).expect("more files");
    let mut streams: Vec<_> = (0..count).map(|_| connect(&node.thrift)).collect();
    // Long enough for a byte a second to take hours.
    let message = call("echo", 1, &[text(1, b"me"), text(2, &[b'x'; 60_000])].concat());
    for byte in &message {
        streams.retain_mut(|stream| {
            let cut = stream.write_all(&[*byte]).is_err() || is_closed(stream);
            stream.set_nonblocking(false).expect("a socket");
            !cut
        });
        if streams.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(streams.is_empty(), "{} connections go on", streams.len());
    let slow = node.metric(&format!("{REFUSED}{{reason=\"slow_message\"}}"));
    assert_eq!(slow, count as f64);
    good.finish();
}

#[test]
fn idle_connections_cost_little() {
    let _turn = exclusive();
    let (mut node, _folder) = node(&["--thrift-max-connections", "12000"]);
    let count = scale(2_000, 10_000);
    rlimit::increase_nofile_limit(count as u64 + 500).expect("more files");
    drop(Good::alone(&node));
    let (start, open) = (resident(&node), files(&node));
    let mut streams: Vec<_> = (0..count).map(|_| connect(&node.thrift)).collect();
    for stream in &mut streams {
        stream.write_all(&next_id(1)).expect("the node reads");
        assert!(brings_an_id(&read_frame(stream).expect("an answer")));
    }
    assert_eq!(node.metric("idgen_thrift_connections_open"), count as f64);
    // Each gives its buffers back after a second of silence.
    let each = |node: &Node| resident(node).saturating_sub(start) / count as u64;
    node.wait_for("little memory for each", PATIENCE, |node| each(node) < 8 * 1024);
    println!("{count} idle connections: {:.1} KiB each", each(&node) as f64 / 1024.0);
    let good = Good::alone(&node);
    println!("beside them: p99 {:.0} us", good.quantile_us(0.99));
    streams.into_iter().for_each(reset);
    eventually("the files are closed", || files(&node) <= open);
}

#[test]
fn connections_that_come_and_go() {
    let _turn = exclusive();
    let (mut node, _folder) = node(&[]);
    let before = Good::alone(&node);
    let (start, open) = (resident(&node), files(&node));
    let good = Good::start(&node);
    let count = scale(5_000, 100_000);
    let began = now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let node = &node;
            scope.spawn(move || {
                for n in 0..count / 4 {
                    let mut stream = connect(&node.thrift);
                    match n % 4 {
                        0 => {}
                        1 => stream.write_all(&next_id(1)[..20]).expect("room"),
                        2 => stream.write_all(&next_id(1)).expect("room"),
                        _ => {
                            stream.write_all(&next_id(1)).expect("room");
                            read_frame(&mut stream).expect("an answer");
                        }
                    }
                    reset(stream);
                }
            });
        }
    });
    println!("{count} connections came and went in {:.1?}", began.elapsed());
    compare("churn", &before, &good.finish());
    eventually("the files are closed", || files(&node) <= open);
    assert_eq!(node.metric("idgen_thrift_connections_open"), 0.0);
    let bound = start + (16 << 20);
    node.wait_for("memory as before", PATIENCE, |node| resident(node) < bound);
}

/// Writes copies of `request` until there is no more room; how many bytes that took.
fn fill(stream: &mut TcpStream, request: &[u8]) -> usize {
    stream.set_nonblocking(true).expect("a socket");
    let many = request.repeat(64 * 1024 / request.len() + 1);
    let mut sent = 0;
    // The node may still be reading: there is no more room if there was none for a while.
    let mut last = now();
    while last.elapsed() < Duration::from_millis(200) {
        match stream.write(&many[sent % request.len()..]) {
            Ok(count) => {
                sent += count;
                last = now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(_) => break,
        }
    }
    sent
}

#[test]
fn clients_that_never_read() {
    let _turn = exclusive();
    let (mut node, _folder) = node(&["--thrift-message-timeout-ms", "3000"]);
    let before = Good::alone(&node);
    let start = resident(&node);
    let good = Good::start(&node);
    let count = scale(40, 400);
    let body = [text(1, b"me"), text(2, &[b'x'; 32_000])].concat();
    let request = call("echo", 1, &body);
    let mut streams: Vec<_> = (0..count).map(|_| connect(&node.thrift)).collect();
    let sent: Vec<usize> = std::thread::scope(|scope| {
        let fillers: Vec<_> = streams
            .chunks_mut(count / 8)
            .map(|some| {
                scope.spawn(|| some.iter_mut().map(|s| fill(s, &request)).max().unwrap_or(0))
            })
            .collect();
        fillers.into_iter().map(|filler| filler.join().expect("it writes")).collect()
    });
    let most = sent.into_iter().max().unwrap_or(0);
    let full = resident(&node);
    println!(
        "{count} clients that never read: at most {:.0} KiB taken from one, {:.0} KiB of memory each",
        most as f64 / 1024.0,
        full.saturating_sub(start) as f64 / 1024.0 / count as f64
    );
    // What both kernels and the input hold; an unlimited reader would take all.
    assert!(most < 8 << 20, "{most} bytes were taken from a client that does not read");
    assert!(full < start + (64 << 20), "{:.1} MiB, before {:.1}", mib(full), mib(start));
    let reason = format!("{REFUSED}{{reason=\"slow_reply\"}}");
    eventually("all are cut", || node.metric(&reason) == count as f64);
    compare("clients that never read", &before, &good.finish());
    drop(streams);
    node.wait_for("memory as before", PATIENCE, |node| resident(node) < start + (16 << 20));
}

#[test]
fn long_messages_that_do_not_go_on() {
    let _turn = exclusive();
    let (mut node, _folder) =
        node(&["--thrift-message-timeout-ms", "5000", "--thrift-max-frame-bytes", "16777215"]);
    let start = resident(&node);
    // Each holds 4 MB and never the rest: some 60 fit into the 256 MiB that all may hold.
    let message = call("echo", 1, &[text(1, b"me"), text(2, &vec![b'x'; 8 << 20])].concat());
    let (begun, count) = (&message[..4 << 20], 150);
    let mut peak = 0;
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = connect(&node.thrift);
        // The node may close it in the middle.
        let _ = stream.write_all(begun);
        streams.push(stream);
        peak = peak.max(resident(&node));
    }
    println!("{count} messages of 8 MiB, half sent: resident {:.0} MiB", mib(peak));
    assert!(peak < start + (360 << 20), "{:.0} MiB", mib(peak));
    assert!(node.metric(&format!("{REFUSED}{{reason=\"memory\"}}")) > 0.0);
    let mut good = connect(&node.thrift);
    good.write_all(&next_id(1)).expect("the node reads");
    assert!(brings_an_id(&read_frame(&mut good).expect("an answer")));
    eventually("the rest are cut", || streams.iter_mut().all(is_closed));
    node.wait_for("memory as before", PATIENCE, |node| resident(node) < start + (16 << 20));
}
