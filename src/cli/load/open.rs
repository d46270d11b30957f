//! An open loop: calls are sent at a fixed rate, whether or not answers come.
//!
//! Each connection sends what is due, as a pipeline where several calls are,
//! and reads answers beside. The latency of a call runs from when it was to be
//! sent, not from when the connection had room for it: a node that falls
//! behind cannot slow its own measurement down. One thread serves all
//! connections; all speak framed strict binary.

use std::io;
use std::time::{Duration, Instant};

use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep_until, timeout};

use super::calls::named;
use super::client::Node;
use super::errors::ErrorCounts;
use super::histogram::Latencies;
use super::pool::now;
use crate::front::thrift::generated::{IdGenServiceSyncClient, TIdGenServiceSyncClient};

/// How long answers are waited for after the last call was sent.
const GRACE: Duration = Duration::from_secs(3);

/// What to offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The nodes; connections are spread evenly over them.
    pub nodes: Vec<Node>,
    /// How many connections.
    pub connections: u32,
    /// The type to ask for one id at a time.
    pub id_type: String,
    /// Calls per second, over all connections.
    pub rate: u64,
    /// What is offered before it counts.
    pub warm_up: Duration,
    /// For how long it counts.
    pub measured: Duration,
}

/// What became of the calls that were due within the measured time.
#[derive(Debug, Default)]
pub struct Fate {
    /// Those that brought an id.
    pub accepted: Latencies,
    /// Those that were answered with an error.
    pub refused: Latencies,
    /// The same by code.
    pub errors: ErrorCounts,
    /// Ids that arrived within the measured time, whenever they were due.
    pub arrived: u64,
    /// Calls that were due.
    pub offered: u64,
}

impl Fate {
    fn merge(&mut self, other: &Fate) {
        self.accepted.merge(&other.accepted);
        self.refused.merge(&other.refused);
        self.errors.merge(&other.errors);
        self.arrived += other.arrived;
        self.offered += other.offered;
    }

    /// Calls that were due and have no answer.
    pub fn unanswered(&self) -> u64 {
        self.offered.saturating_sub(self.accepted.count() + self.refused.count())
    }
}

/// Offers `offer` and tells what became of it. Fails if no runtime or not all
/// connections can be had; one that is lost later leaves calls unanswered.
pub fn offer(offer: &Offer) -> io::Result<Fate> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let request = request(&offer.id_type);
    runtime.block_on(async {
        let mut streams = Vec::new();
        for n in 0..offer.connections as usize {
            let stream = TcpStream::connect(offer.nodes[n % offer.nodes.len()].addresses()).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let start = now() + Duration::from_millis(50);
        let tasks: Vec<_> = (0u64..)
            .zip(streams)
            .map(|(n, stream)| {
                let pace = Pace {
                    start,
                    interval: Duration::from_secs(1).as_nanos() as f64 / offer.rate as f64,
                    turn: n,
                    turns: u64::from(offer.connections),
                    measure_from: start + offer.warm_up,
                    end: start + offer.warm_up + offer.measured,
                };
                let (read, write) = stream.into_split();
                let sending = tokio::spawn(send(write, request.clone(), pace));
                (sending, tokio::spawn(receive(read, pace)))
            })
            .collect();
        let mut fate = Fate::default();
        for (sending, receiving) in tasks {
            fate.merge(&receiving.await.map_err(io::Error::other)?);
            // Nobody reads any more: what is not written never will be.
            sending.abort();
        }
        Ok(fate)
    })
}

/// When the calls of one connection are due.
#[derive(Clone, Copy)]
struct Pace {
    start: Instant,
    /// Nanoseconds between the calls of all connections.
    interval: f64,
    turn: u64,
    turns: u64,
    measure_from: Instant,
    end: Instant,
}

impl Pace {
    /// When the call number `n` of this connection is due.
    fn due(&self, n: u64) -> Instant {
        let nanos = (n * self.turns + self.turn) as f64 * self.interval;
        self.start + Duration::from_nanos(nanos as u64)
    }

    /// The number of the first call that is due at `at` or later.
    fn first_after(&self, at: Instant) -> u64 {
        let nanos = at.saturating_duration_since(self.start).as_nanos() as f64;
        let mut n = (nanos / self.interval / self.turns as f64) as u64;
        while self.due(n) < at {
            n += 1;
        }
        while n > 0 && self.due(n - 1) >= at {
            n -= 1;
        }
        n
    }

    fn counts(&self, at: Instant) -> bool {
        self.measure_from <= at && at < self.end
    }
}

/// `nextId` of the type in one frame, strict binary, as the generated client
/// writes its first call.
fn request(id_type: &str) -> Vec<u8> {
    let mut body = Vec::new();
    let input = TBinaryInputProtocol::new(io::empty(), true);
    let output = TBinaryOutputProtocol::new(&mut body, true);
    // Fails, because there is no reply to read.
    let _ = IdGenServiceSyncClient::new(input, output).next_id(id_type.to_owned());
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

async fn send(mut stream: OwnedWriteHalf, request: Vec<u8>, pace: Pace) {
    let mut sent = 0;
    let mut bytes = Vec::new();
    loop {
        let next = pace.due(sent);
        if next >= pace.end {
            return;
        }
        sleep_until(next.into()).await;
        bytes.clear();
        let at = now();
        while pace.due(sent) <= at && pace.due(sent) < pace.end {
            bytes.extend_from_slice(&request);
            sent += 1;
        }
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn receive(mut stream: OwnedReadHalf, pace: Pace) -> Fate {
    let all = pace.first_after(pace.end);
    let offered = all - pace.first_after(pace.measure_from);
    let mut fate = Fate { offered, ..Fate::default() };
    let until = pace.end + GRACE;
    let mut answered = 0;
    let mut buffer: Vec<u8> = Vec::with_capacity(64 * 1024);
    while answered < all {
        let read = timeout(until.saturating_duration_since(now()), stream.read_buf(&mut buffer));
        let Ok(Ok(1..)) = read.await else { break };
        let at = now();
        let mut from = 0;
        while let Some(length) = buffer[from..].first_chunk::<4>() {
            let end = from + 4 + u32::from_be_bytes(*length) as usize;
            let Some(frame) = buffer.get(from + 4..end) else { break };
            let due = pace.due(answered);
            let latency = at.saturating_duration_since(due);
            match verdict(frame) {
                Ok(()) => {
                    fate.arrived += u64::from(pace.counts(at));
                    if pace.counts(due) {
                        fate.accepted.record(latency);
                    }
                }
                Err(code) => {
                    if pace.counts(due) {
                        fate.refused.record(latency);
                        fate.errors.add(&code);
                    }
                }
            }
            answered += 1;
            from = end;
        }
        buffer.drain(..from);
        buffer.reserve(4 * 1024);
    }
    fate
}

/// Whether a reply brings an id; else its code.
fn verdict(frame: &[u8]) -> Result<(), String> {
    // A reply (type 2) whose result (field 0) is an i64: no need to look closer.
    let field = 4 + 4 + "nextId".len() + 4;
    if frame.get(3) == Some(&2) && frame.get(field..field + 3) == Some(&[10, 0, 0]) {
        return Ok(());
    }
    let input = TBinaryInputProtocol::new(frame, true);
    let output = TBinaryOutputProtocol::new(io::sink(), true);
    match IdGenServiceSyncClient::new(input, output).next_id(String::new()) {
        Ok(_) => Ok(()),
        Err(error) => Err(named(error).kind),
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
