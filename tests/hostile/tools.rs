//! Raw bytes, figures of a process, and clients that behave.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use idgen::cli::load::{Latencies, now};
use socket2::SockRef;

use crate::support::TempFolder;
use crate::support::node::{Node, data_folder};

/// No step takes longer, unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the long form runs.
pub fn full() -> bool {
    std::env::var_os("IDGEN_TEST_HOSTILE").is_some_and(|how| how == "full")
}

/// `long` in the long form, else `short`.
pub fn scale(short: usize, long: usize) -> usize {
    if full() { long } else { short }
}

/// A node on the embedded store with a segment type `order`.
pub fn node(arguments: &[&str]) -> (Node, TempFolder) {
    let (folder, path) = data_folder();
    let path = path.to_str().expect("UTF-8").to_owned();
    let node = Node::start(&[&["--data", path.as_str()], arguments].concat());
    node.run(&["type", "add", "order", "--mode", "segment", "--min-range", "100000000"]);
    (node, folder)
}

/// Resident memory of the node, in bytes.
pub fn resident(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

/// Open files of the node.
pub fn files(node: &Node) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", node.pid())).expect("it runs").count()
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

pub fn connect(address: &str) -> TcpStream {
    let address: SocketAddr = address.parse().expect("an address");
    let stream = TcpStream::connect(address).expect("the node accepts");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Closes it with a reset, which leaves no port behind to wait for.
pub fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket");
}

/// Whether the peer has closed the connection; what it sent is thrown away.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let mut chunk = [0; 16 * 1024];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
            Err(_) => return true,
        }
    }
}

/// Waits until `done`, by looking again and again.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let began = now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A strict binary call with its frame; `body` without the final stop.
pub fn call(name: &str, seqid: i32, body: &[u8]) -> Vec<u8> {
    framed(&[&message(name, seqid), body, &[0]].concat())
}

fn message(name: &str, seqid: i32) -> Vec<u8> {
    let mut bytes = b"\x80\x01\0\x01".to_vec();
    bytes.extend((name.len() as i32).to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(seqid.to_be_bytes());
    bytes
}

pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

/// A binary string field.
pub fn text(id: i16, value: &[u8]) -> Vec<u8> {
    [&[11][..], &id.to_be_bytes(), &(value.len() as u32).to_be_bytes(), value].concat()
}

pub fn next_id(seqid: i32) -> Vec<u8> {
    call("nextId", seqid, &text(1, b"order"))
}

/// The next frame, without its length; `None` when the node has closed.
pub fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(frame)
}

/// Whether a frame is the reply to [`next_id`] with an id in it.
pub fn brings_an_id(frame: &[u8]) -> bool {
    frame.get(3) == Some(&2) && frame.get(18..21) == Some(&[10, 0, 0])
}

/// Clients that behave: one call at a time, each with an id as the answer.
pub struct Good {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Latencies>>,
}

impl Good {
    pub fn start(node: &Node) -> Good {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let (stop, mut stream) = (stop.clone(), connect(&node.thrift));
            std::thread::spawn(move || {
                let mut latencies = Latencies::new();
                while !stop.load(Ordering::Relaxed) {
                    let began = now();
                    stream.write_all(&next_id(1)).expect("the node reads");
                    let reply = read_frame(&mut stream).expect("the node answers");
                    assert!(brings_an_id(&reply), "{}", String::from_utf8_lossy(&reply));
                    latencies.record(began.elapsed());
                    // Some load, not all that the machine can do.
                    std::thread::sleep(Duration::from_millis(1));
                }
                latencies
            })
        };
        let clients = (0..4).map(client).collect();
        Good { stop, clients }
    }

    /// The latencies so far; fails if a call had no id.
    pub fn finish(self) -> Latencies {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Latencies::new();
        for client in self.clients {
            all.merge(&client.join().expect("no call of a good client fails"));
        }
        all
    }

    /// The latencies of two quiet seconds.
    pub fn alone(node: &Node) -> Latencies {
        let good = Good::start(node);
        std::thread::sleep(Duration::from_secs(if full() { 5 } else { 1 }));
        good.finish()
    }
}

/// Prints what a quiet and a disturbed client saw.
pub fn compare(what: &str, before: &Latencies, during: &Latencies) {
    let p99 = [before, during].map(|latencies| latencies.quantile_us(0.99));
    println!(
        "{what}: p99 of good clients {:.0} us before, {:.0} us during ({:.2}), {} calls",
        p99[0],
        p99[1],
        p99[1] / p99[0],
        during.count()
    );
}
