//! The load and the floor, over sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::floor;
use crate::lean::{self, Plan, Seen};
use crate::wire::{Call, reply_with};

fn start_floor() -> SocketAddr {
    let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    // It serves for ever; it ends with the process.
    thread::spawn(move || floor::run(listener));
    address
}

fn drive(
    addresses: &[SocketAddr],
    connections: u32,
    depth: u32,
    call: Call,
) -> (std::io::Result<Seen>, u32) {
    let mut marks = 0;
    let plan = Plan {
        addresses,
        connections,
        depth,
        calls: &[call],
        warm_up: Duration::from_millis(20),
        measured: Duration::from_millis(200),
    };
    let seen = lean::drive(&plan, &mut || marks += 1);
    (seen, marks)
}

#[test]
fn the_floor_answers_every_frame_however_it_comes() {
    let mut stream = TcpStream::connect(start_floor()).unwrap();
    stream.set_nodelay(true).unwrap();
    let request = Call::next_id("any").request;
    let reply = reply_with(1_000_000_007);
    let mut got = vec![0; reply.len()];
    for cut in [1, 4, 5, request.len() - 1] {
        stream.write_all(&request[..cut]).unwrap();
        stream.write_all(&request[cut..]).unwrap();
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, reply, "cut at {cut}");
    }
    let mut three = vec![0; 3 * reply.len()];
    stream.write_all(&request.repeat(3)).unwrap();
    stream.read_exact(&mut three).unwrap();
    assert_eq!(three, reply.repeat(3));
    stream.write_all(&[0xff; 8]).unwrap();
    let ended = stream.read(&mut got);
    assert!(matches!(ended, Ok(0) | Err(_)), "no frame is so long: {ended:?}");
}

#[test]
fn the_load_counts_every_call_to_every_address() {
    let addresses = [start_floor(), start_floor()];
    for depth in [1, 32] {
        let (seen, marks) = drive(&addresses, 3, depth, Call::next_id("any"));
        let seen = seen.unwrap();
        assert_eq!(marks, 2);
        assert!(seen.calls > 0);
        assert_eq!((seen.errors, seen.ids), (0, seen.calls));
        let (calls, timed) = (seen.calls, seen.latencies.count());
        // Those in flight when the measured time began have no latency.
        assert!(timed <= calls && calls - timed <= 6 * u64::from(depth), "{timed} of {calls}");
    }
}

#[test]
fn replies_of_another_kind_are_errors() {
    let (seen, _) = drive(&[start_floor()], 1, 1, Call::next_ids("any", 10));
    let seen = seen.unwrap();
    assert_eq!((seen.calls, seen.ids), (0, 0));
    assert!(seen.errors > 0);
}

/// What a server saw of one connection.
#[derive(Debug, PartialEq, Eq)]
struct Served {
    /// How often it had a whole pipeline before it answered.
    full: usize,
    most_in_flight: usize,
    /// The client took every reply before it closed.
    ended_well: bool,
}

const DEPTH: usize = 8;
/// How often the server waits for a whole pipeline.
const FULL: usize = 20;

/// Answers `INCR`, every third call with an error: whole pipelines at once, then
/// whatever comes in a few bytes at a time.
fn serve_pipelines(listener: &TcpListener, request: &[u8]) -> Served {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let mut served = Served { full: 0, most_in_flight: 0, ended_well: false };
    let (mut received, mut answered) = (0, 0);
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Served { ended_well: true, ..served },
            Ok(count) => received += count,
            Err(_) => return served,
        }
        let in_flight = received / request.len() - answered;
        served.most_in_flight = served.most_in_flight.max(in_flight);
        // The first call of a connection comes alone.
        let whole = answered > 0 && served.full < FULL;
        if whole && in_flight < DEPTH {
            continue;
        }
        served.full += usize::from(whole);
        let mut replies = Vec::new();
        for _ in 0..in_flight {
            answered += 1;
            replies.extend(match answered % 3 {
                0 => b"-ERR every third\r\n".to_vec(),
                _ => format!(":{answered}\r\n").into_bytes(),
            });
        }
        let size = if whole { replies.len() } else { 7 };
        for piece in replies.chunks(size.max(1)) {
            if stream.write_all(piece).is_err() {
                return served;
            }
        }
    }
}

#[test]
fn a_pipeline_is_kept_full_and_its_errors_are_counted() {
    let call = Call::incr("key");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let request = call.request.clone();
    let server = thread::spawn(move || serve_pipelines(&listener, &request));
    let (seen, _) = drive(&[address], 1, DEPTH as u32, call);
    let (seen, served) = (seen.unwrap(), server.join().unwrap());
    assert_eq!(served, Served { full: FULL, most_in_flight: DEPTH, ended_well: true });
    assert_eq!(seen.ids, seen.calls);
    // Far more than come after the end.
    assert!(seen.calls > 8 * DEPTH as u64, "{}", seen.calls);
    // Within a call of each other, wherever the measured time begins and ends.
    let thirds = seen.calls.abs_diff(2 * seen.errors);
    assert!(seen.errors > 0 && thirds <= 2, "{} and {}", seen.calls, seen.errors);
}

#[test]
fn a_lost_connection_is_no_result() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; Call::incr("key").request.len()];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b":1\r\n").unwrap();
        stream.read_exact(&mut request).unwrap();
    });
    let (seen, _) = drive(&[address], 1, 1, Call::incr("key"));
    assert_eq!(seen.err().map(|e| e.kind()), Some(ErrorKind::UnexpectedEof));
    server.join().unwrap();
}
