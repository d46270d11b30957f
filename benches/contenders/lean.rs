//! The load: one thread, any number of connections, as little work as can be.
//!
//! ```text
//! wait for events; for each: read once
//!                            look at every whole reply, and note the time
//!                            write as many requests as replies came, at once
//! ```
//!
//! So each connection has `depth` calls in flight all the time. A blocking client
//! with a thread per connection costs the machine a wake-up and a switch of
//! threads per call, more than the service does itself; this one costs the same
//! whatever it talks to, so that ratios tell of servers. A reply is received
//! when its bytes were read, and the next request of its place is sent then.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use idgen::cli::load::{Latencies, now};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::inbox::{Buffer, Found, Rest};
use crate::wire::{Call, Taken};

/// Far more than the replies to a pipeline have.
const BUFFER_BYTES: usize = 64 * 1024;
/// What a connection may have in flight: less than any kernel takes at once, so
/// that no write is ever cut short.
const PIPELINE_BYTES: usize = 8 * 1024;
/// How long the last replies may take.
const GRACE: Duration = Duration::from_secs(1);

/// How long the first reply of a connection may take.
const FIRST_REPLY: Duration = Duration::from_secs(5);

/// What to do.
pub struct Plan<'a> {
    pub addresses: &'a [SocketAddr],
    /// Connections to each address.
    pub connections: u32,
    /// Calls in flight on each connection.
    pub depth: u32,
    /// The calls that the connections make, each always the same.
    pub calls: &'a [Call],
    /// What is done before it counts.
    pub warm_up: Duration,
    /// For how long it counts.
    pub measured: Duration,
}

/// What came of it.
pub struct Seen {
    /// Calls that brought ids within the measured time, whenever they began: where
    /// calls take long, those that it cuts at either end are many.
    pub calls: u64,
    /// Ids that they brought.
    pub ids: u64,
    /// Replies without ids.
    pub errors: u64,
    /// Of calls that began and brought ids within the measured time.
    pub latencies: Latencies,
}

struct Connection<'a> {
    stream: TcpStream,
    call: &'a Call,
    /// As many requests as may be in flight.
    requests: Vec<u8>,
    /// When those in flight were sent.
    sent: VecDeque<Instant>,
    rest: Rest,
}

/// The measured time.
#[derive(Clone, Copy)]
struct Window {
    begin: Instant,
    end: Instant,
}

/// Measures. `mark` is called at the beginning and at the end of the measured time.
///
/// # Errors
/// Where a connection cannot be made or is lost, or brings what is no reply.
pub fn drive(plan: &Plan<'_>, mark: &mut dyn FnMut()) -> io::Result<Seen> {
    let mut poll = Poll::new()?;
    let mut connections = connect(plan, &poll)?;
    let mut events = Events::with_capacity(1_024);
    let mut buffer = Buffer::new(BUFFER_BYTES);
    let mut seen = Seen { calls: 0, ids: 0, errors: 0, latencies: Latencies::new() };
    // Before the measured time nothing counts; its end is not known yet.
    let warm = now() + plan.warm_up;
    let mut window = None;
    for connection in &mut connections {
        connection.send(plan.depth as usize, now())?;
    }
    loop {
        let until = window.map_or(warm, |window: Window| window.end);
        wait(&mut poll, &mut events, until)?;
        for event in &events {
            connections[event.token().0].receive(&mut buffer, window, true, &mut seen)?;
        }
        if now() < until {
            continue;
        }
        mark();
        if window.is_some() {
            break;
        }
        let begin = now();
        window = Some(Window { begin, end: begin + plan.measured });
    }
    // Nothing is left half done on the other side.
    let late = now() + GRACE;
    while connections.iter().any(|c| !c.sent.is_empty()) && now() < late {
        wait(&mut poll, &mut events, late)?;
        for event in &events {
            connections[event.token().0].receive(&mut buffer, window, false, &mut seen)?;
        }
    }
    Ok(seen)
}

/// Waits for events, but not beyond `until`.
fn wait(poll: &mut Poll, events: &mut Events, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(now());
    match poll.poll(events, Some(left)) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

fn connect<'a>(plan: &Plan<'a>, poll: &Poll) -> io::Result<Vec<Connection<'a>>> {
    let count = plan.addresses.len() * plan.connections as usize;
    let mut connections = Vec::with_capacity(count);
    for n in 0..count {
        let call = &plan.calls[n % plan.calls.len()];
        let requests = call.request.repeat(plan.depth as usize);
        if requests.is_empty() || requests.len() > PIPELINE_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidInput, "no or too many calls in flight"));
        }
        let stream = open(plan.addresses[n % plan.addresses.len()], call)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(n), Interest::READABLE)?;
        let sent = VecDeque::with_capacity(plan.depth as usize);
        connections.push(Connection { stream, call, requests, sent, rest: Rest::default() });
    }
    Ok(connections)
}

/// A connection that has made one call. So those that are made one after another
/// come no faster than the other side accepts them: a kernel whose queue is full
/// lets them wait for seconds.
pub fn open(address: SocketAddr, call: &Call) -> io::Result<std::net::TcpStream> {
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(FIRST_REPLY))?;
    stream.write_all(&call.request)?;
    let mut reply = [0; 1_024];
    let mut filled = 0;
    loop {
        filled += match stream.read(&mut reply[filled..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => count,
        };
        match call.take(&reply[..filled]) {
            Taken::More => (),
            Taken::Ids { .. } | Taken::Failure { .. } => return Ok(stream),
            Taken::Nonsense => return Err(ErrorKind::InvalidData.into()),
        }
    }
}

impl Connection<'_> {
    fn send(&mut self, count: usize, at: Instant) -> io::Result<()> {
        let bytes = &self.requests[..count * self.call.request.len()];
        if self.stream.write(bytes)? != bytes.len() {
            return Err(ErrorKind::WriteZero.into());
        }
        self.sent.extend(std::iter::repeat_n(at, count));
        Ok(())
    }

    /// Takes what is there, and sends as many requests, if it is to go `on`.
    fn receive(
        &mut self,
        buffer: &mut Buffer,
        window: Option<Window>,
        on: bool,
        seen: &mut Seen,
    ) -> io::Result<()> {
        loop {
            let (filled, all) = match buffer.fill(&mut self.stream, &self.rest)? {
                Found::Bytes { filled, all } => (filled, all),
                Found::Nothing => return Ok(()),
                Found::End => return Err(ErrorKind::UnexpectedEof.into()),
            };
            let at = now();
            let mut bytes = buffer.bytes(filled);
            let mut replies = 0;
            loop {
                let (length, ids) = match self.call.take(bytes) {
                    Taken::More => break,
                    Taken::Ids { length, ids } => (length, Some(ids)),
                    Taken::Failure { length } => (length, None),
                    Taken::Nonsense => return Err(ErrorKind::InvalidData.into()),
                };
                bytes = &bytes[length..];
                let Some(sent) = self.sent.pop_front() else {
                    return Err(io::Error::new(ErrorKind::InvalidData, "a reply to no call"));
                };
                replies += 1;
                if let Some(window) = window.filter(|window| at <= window.end) {
                    // A call that began before was held up by the mark.
                    let latency = (sent >= window.begin).then(|| at - sent);
                    seen.note(ids, latency);
                }
            }
            self.rest.keep(bytes, buffer)?;
            if on && replies > 0 {
                self.send(replies, at)?;
            }
            if all {
                return Ok(());
            }
        }
    }
}

impl Seen {
    fn note(&mut self, ids: Option<u64>, latency: Option<Duration>) {
        let Some(ids) = ids else {
            self.errors += 1;
            return;
        };
        self.calls += 1;
        self.ids += ids;
        if let Some(latency) = latency {
            self.latencies.record(latency);
        }
    }
}
