//! One connection: bytes in, calls in order, bytes out.
//!
//! ```text
//! loop:  answer every complete message in the input, one after another
//!        write all replies at once
//!        stop?  read what the kernel still holds, answer it, close
//!        wait for bytes, the deadline, or the stop
//! ```
//!
//! Replies that are ready are written before a call that has to wait, so a
//! slow call never holds back the answers before it; otherwise a pipeline of
//! calls costs one write. There is one timer per connection. It is moved only
//! when it fires or must fire earlier, so that a busy connection never touches it.
//!
//! Calls are carried out one after another, but those behind one that waits may
//! begin meanwhile: see `ahead`.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use thrift::ApplicationErrorKind;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout, timeout_at};
use tokio_rustls::server::TlsStream;

use crate::domain::Error;
use crate::front::tls::{self, PeerIdentity, TlsPort};
use crate::service::access::AccessControl;
use crate::service::api::IdApi;

use super::ahead::{self, Begun, State};
use super::buffers::{Buffers, Hold};
use super::calling::CallerOf;
use super::calls;
use super::long_orders::LongOrders;
use super::messages::{Cursor, Input, Next};
use super::method::Method;
use super::metrics::{Held, Refused, ThriftMetrics};
use super::reply::{self, Answer, ReplyTo};
use super::request::{ONEWAY, Request};
use super::server::ThriftConfig;
use super::wire::{Dialect, Foreign, Header};

/// Replies are written at the latest when they have this many bytes, so that
/// a pipeline of calls with long answers cannot fill the memory.
const FLUSH_BYTES: usize = 64 * 1024;

/// Buffers larger than this are given back once the connection is quiet, so
/// that an idle connection costs a few KiB at most.
const KEEP_BYTES: usize = 2 * 1024;

/// How long a connection is silent before it counts as quiet. Long enough that
/// a busy one keeps its buffers.
const QUIET: Duration = Duration::from_secs(1);

/// How long a connection that the node closes goes on reading, so that what
/// the peer still sends does not make its kernel throw the last reply away.
const LINGER: Duration = Duration::from_millis(500);

/// The most that is read and thrown away while lingering, and the most that
/// is read from the kernel at a stop, in bytes.
const LAST_BYTES: usize = 1024 * 1024;

/// The answer to a browser or an HTTP client.
const HTTP_ANSWER: &str = "HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 67\r\n\
    Connection: close\r\n\
    \r\n\
    This is the Thrift port of IdGen. HTTP is served on another port.\r\n";

/// What all connections of a server share.
pub(super) struct Shared<A> {
    pub(super) api: Arc<A>,
    /// Who may call, where somebody asks.
    pub(super) access: Option<Arc<AccessControl>>,
    pub(super) metrics: Arc<ThriftMetrics>,
    pub(super) config: ThriftConfig,
    pub(super) long_orders: LongOrders,
    pub(super) buffers: Buffers,
    pub(super) stop: watch::Receiver<bool>,
}

impl<A> Shared<A> {
    /// Whether the node shuts down: told so, or left alone by its owner.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow() || self.stop.has_changed().is_err()
    }
}

/// Why a connection ends.
enum End {
    /// The peer closed it, or it broke.
    Peer,
    /// The node closes it; the peer may still read what was written.
    Close,
    /// The node gives up on it.
    Refused(Refused),
}

impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> Self {
        End::Peer
    }
}

/// What a connection is made of.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// How much it may hold of what was written and the peer does not take, in bytes, in
    /// the memory of this process.
    const HELD_BYTES: usize;

    /// Reads what has arrived. Asks the kernel itself, as the runtime may not have noticed
    /// it yet; `WouldBlock` where there is nothing.
    fn read_now(&mut self, chunk: &mut [u8]) -> io::Result<usize>;
}

impl Stream for TcpStream {
    const HELD_BYTES: usize = 0;

    fn read_now(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        (&*SockRef::from(&*self)).read(chunk)
    }
}

impl Stream for TlsStream<TcpStream> {
    const HELD_BYTES: usize = tls::HELD_BYTES;

    fn read_now(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let (tcp, tls) = self.get_mut();
        let socket = SockRef::from(&*tcp);
        loop {
            match tls.reader().read(chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if tls.read_tls(&mut &*socket)? == 0 {
                return Ok(0);
            }
            let read = tls.process_new_packets();
            read.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }
}

/// Agrees on TLS, then serves the connection to its end. At a stop, a peer that is not
/// done with the handshake soon is left.
pub(super) async fn run_tls<A: IdApi>(
    stream: TcpStream,
    peer: SocketAddr,
    port: Arc<TlsPort>,
    shared: Arc<Shared<A>>,
) {
    let mut stop = shared.stop.clone();
    let stopped = async {
        let _ = stop.wait_for(|stop| *stop).await;
        sleep(LINGER).await;
    };
    let secured = tokio::select! {
        biased;
        secured = port.handshake(stream, peer) => secured,
        () = stopped => None,
    };
    if let Some(secured) = secured {
        run(secured.stream, peer.ip(), secured.identity, shared).await;
    }
}

/// Serves `stream` from `peer` to its end. `identity` is what its certificate says.
pub(super) async fn run<A: IdApi, S: Stream>(
    stream: S,
    peer: IpAddr,
    identity: Option<PeerIdentity>,
    shared: Arc<Shared<A>>,
) {
    let _open = Held::new(&shared.metrics.open);
    let now = Instant::now();
    let mut connection = Connection {
        stream,
        caller: CallerOf::new(shared.access.as_ref(), peer, identity),
        output: Vec::new(),
        shared: &shared,
        hold: Hold::of(&shared.buffers),
        input_bytes: 0,
        begun_bytes: 0,
        now,
        replied: None,
    };
    match connection.serve().await {
        Ok(()) | Err(End::Close) => connection.close().await,
        Err(End::Refused(reason)) => shared.metrics.refused(reason),
        Err(End::Peer) => {}
    }
}

struct Connection<'a, A, S> {
    stream: S,
    /// Who calls.
    caller: CallerOf<'a>,
    /// Replies that are not written yet.
    output: Vec<u8>,
    shared: &'a Shared<A>,
    /// What its buffers count for.
    hold: Hold<'a>,
    /// The memory of the input while its messages are answered.
    input_bytes: usize,
    /// The memory of calls that began behind the one that waits.
    begun_bytes: usize,
    /// The time when last looked at: asking for it is a part of the cost of a call.
    now: Instant,
    /// When the last replies were written.
    replied: Option<Instant>,
}

impl<'a, A: IdApi, S: Stream> Connection<'a, A, S> {
    /// Until the node stops (`Ok`), or the connection ends otherwise.
    async fn serve(&mut self) -> Result<(), End> {
        let config = &self.shared.config;
        let mut input = Input::new(config.max_frame_bytes);
        let mut stop = self.shared.stop.clone();
        let mut stop = pin!(async move {
            // An error means that the owner is gone, which is a stop as well.
            let _ = stop.wait_for(|stop| *stop).await;
        });
        let mut active = self.now;
        let mut timer = pin!(sleep_until(active + config.idle_timeout));
        loop {
            let deadline = match input.is_empty() {
                true => active + config.idle_timeout,
                false => active + config.message_timeout,
            };
            let spare = input.capacity().max(self.output.capacity());
            let wake = match input.is_empty() && spare > KEEP_BYTES {
                true => deadline.min(active + QUIET),
                false => deadline,
            };
            move_earlier(timer.as_mut(), wake);
            let was_empty = input.is_empty();
            let space = input.space();
            self.input_bytes = space.capacity();
            if !self.hold.set(self.held()) {
                return Err(End::Refused(Refused::Memory));
            }
            tokio::select! {
                biased;
                read = self.stream.read_buf(space) => {
                    if read? == 0 {
                        return Err(End::Peer);
                    }
                    self.now = Instant::now();
                    if self.answer(&mut input).await? || was_empty {
                        // The clock of a message runs from its first byte, not
                        // from its last: a drip does not keep it alive.
                        active = self.now;
                    }
                }
                () = timer.as_mut() => {
                    let now = Instant::now();
                    if now < deadline {
                        if now < wake {
                            timer.as_mut().reset(wake);
                        } else {
                            input.shrink();
                            self.output = Vec::new();
                            self.input_bytes = 0;
                            self.hold.set(0);
                            timer.as_mut().reset(deadline);
                        }
                        continue;
                    }
                    return Err(End::Refused(match was_empty {
                        true => Refused::Idle,
                        false => Refused::SlowMessage,
                    }));
                }
                () = stop.as_mut() => {}
            }
            if self.shared.is_stopping() {
                self.read_the_rest(&mut input)?;
                self.answer(&mut input).await?;
                return Ok(());
            }
        }
    }

    /// Answers every complete message in `input` and writes the replies; tells
    /// whether there was one.
    async fn answer(&mut self, input: &mut Input) -> Result<bool, End> {
        let mut any = false;
        let (bytes, cursor) = input.parts();
        let result = loop {
            match cursor.next(bytes) {
                Next::More => break Ok(any),
                Next::Request { request, dialect } => {
                    any = true;
                    cursor.done();
                    if let Err(end) = self.call(request, dialect, bytes, cursor).await {
                        break Err(end);
                    }
                }
                Next::Malformed { kind, to, in_sync } => {
                    self.shared.metrics.malformed(kind);
                    let told = to.is_some();
                    if let Some((header, name, dialect)) = to {
                        let kind_of_error = ApplicationErrorKind::ProtocolError;
                        let answer = Answer::Refused(kind_of_error, kind.to_string());
                        self.refuse(dialect, header, name, answer)?;
                    }
                    if !(in_sync && told) {
                        break Err(End::Close);
                    }
                    any = true;
                    cursor.done();
                }
                Next::Foreign(kind) => {
                    self.shared.metrics.foreign(kind);
                    if kind == Foreign::Http {
                        self.output.extend_from_slice(HTTP_ANSWER.as_bytes());
                    }
                    break Err(End::Close);
                }
            }
            if self.output.len() >= FLUSH_BYTES {
                self.flush().await?;
            }
        };
        self.flush().await?;
        result
    }

    /// Calls the method of `request` and appends its reply to the output; if it has
    /// to wait, also those of calls that are behind it in `bytes` at `cursor`.
    async fn call(
        &mut self,
        request: Request<'_>,
        dialect: Dialect,
        bytes: &[u8],
        cursor: &mut Cursor,
    ) -> Result<(), End> {
        let shared = self.shared;
        let method = match request.method() {
            Ok(method) => method,
            Err(answer) => {
                return self.refuse(dialect, request.header, request.name(), answer);
            }
        };
        let began = self.now;
        shared.metrics.request(method);
        if method == Method::Authenticate {
            self.flush().await?;
            // Boxed: rare and large, it would make every connection larger.
            let result = Box::pin(self.caller.authenticate(request)).await;
            return self.authenticated(result, request, dialect, began);
        }
        let who = match self.caller.known(method, &request, began) {
            Some(who) => who,
            None => {
                self.flush().await?;
                Box::pin(self.caller.find(method, &request, began)).await
            }
        };
        let share = match shared.long_orders.share(method, &request) {
            0 => Some(None),
            share => self.share(share).await?.map(Some),
        };
        let mut behind = VecDeque::new();
        let answer = match &share {
            Some(_) => {
                let _in_flight = Held::new(&shared.metrics.in_flight);
                let draining = || shared.is_stopping();
                let (api, metrics) = (&*shared.api, &shared.metrics);
                let call = calls::call(method, request, &who, api, metrics, draining);
                let mut call = pin!(call);
                match poll_once(call.as_mut()).await {
                    Some(answer) => answer,
                    None => {
                        behind = self.begin_behind(bytes, cursor).await;
                        self.wait_for(call, &mut behind).await?
                    }
                }
            }
            None => calls::too_many_long_orders(method, &shared.metrics),
        };
        self.now = Instant::now();
        shared.metrics.answered(method, self.now - began);
        if !request.is_oneway() {
            self.append(dialect, request.header, method.name(), answer)?;
        }
        if matches!(share, Some(Some(_))) && self.output.len() >= FLUSH_BYTES {
            // The share counts until the bytes are gone.
            self.flush().await?;
            self.output = Vec::new();
        }
        drop(share);
        self.finish(behind).await
    }

    /// Appends the reply of authenticate, which began at `began`.
    fn authenticated(
        &mut self,
        result: Result<(), Error>,
        request: Request<'_>,
        dialect: Dialect,
        began: Instant,
    ) -> Result<(), End> {
        self.now = Instant::now();
        let answer = calls::authenticated(result, &self.shared.metrics);
        self.shared.metrics.answered(Method::Authenticate, self.now - began);
        match request.is_oneway() {
            true => Ok(()),
            false => self.append(dialect, request.header, Method::Authenticate.name(), answer),
        }
    }

    /// Begins the calls at `cursor` that may begin before their turn, as far as they
    /// are there and the memory allows.
    async fn begin_behind<'b>(
        &mut self,
        bytes: &'b [u8],
        cursor: &mut Cursor,
    ) -> VecDeque<Begun<'b>>
    where
        'a: 'b,
    {
        let shared = self.shared;
        let mut behind = VecDeque::new();
        while behind.len() < ahead::MOST {
            let Next::Request { request, dialect } = cursor.next(bytes) else { break };
            let Some(method) = request.method().ok().filter(|m| ahead::may_begin(*m)) else {
                break;
            };
            let Some(who) = self.caller.known(method, &request, self.now) else { break };
            if !self.hold.set(self.held() + ahead::CALL_BYTES) {
                break;
            }
            self.begun_bytes += ahead::CALL_BYTES;
            cursor.done();
            shared.metrics.request(method);
            let mut call = Box::pin(async move {
                let _in_flight = Held::new(&shared.metrics.in_flight);
                let draining = || shared.is_stopping();
                calls::call(method, request, &who, &*shared.api, &shared.metrics, draining).await
            });
            let state = match poll_once(call.as_mut()).await {
                Some(answer) => State::Ready(answer),
                None => State::Waiting(call),
            };
            let (header, is_oneway, began) = (request.header, request.is_oneway(), self.now);
            behind.push_back(Begun { method, header, dialect, is_oneway, began, state });
        }
        behind
    }

    /// Appends the replies of calls that have begun, in their order.
    async fn finish(&mut self, mut behind: VecDeque<Begun<'_>>) -> Result<(), End> {
        while let Some(begun) = behind.pop_front() {
            let answer = match begun.state {
                State::Ready(answer) => answer,
                State::Waiting(mut call) => match poll_once(call.as_mut()).await {
                    Some(answer) => answer,
                    None => self.wait_for(call.as_mut(), &mut behind).await?,
                },
            };
            self.now = Instant::now();
            self.begun_bytes -= ahead::CALL_BYTES;
            self.shared.metrics.answered(begun.method, self.now - begun.began);
            if !begun.is_oneway {
                self.append(begun.dialect, begun.header, begun.method.name(), answer)?;
            }
            if self.output.len() >= FLUSH_BYTES {
                self.flush_beside(|context| ahead::poll(&mut behind, context)).await?;
            }
        }
        Ok(())
    }

    /// The answer of `call`, which is not ready. Writes the replies before it first.
    /// Goes on with the calls behind it all the while: they may hold what others
    /// wait for.
    async fn wait_for<F: Future<Output = Answer> + ?Sized>(
        &mut self,
        mut call: Pin<&mut F>,
        behind: &mut VecDeque<Begun<'_>>,
    ) -> Result<Answer, End> {
        let mut answer = None;
        self.flush_beside(|context| {
            if answer.is_none()
                && let Poll::Ready(ready) = call.as_mut().poll(context)
            {
                answer = Some(ready);
            }
            ahead::poll(behind, context);
        })
        .await?;
        if !self.hold.set(self.held()) {
            return Err(End::Refused(Refused::Memory));
        }
        if let Some(answer) = answer {
            return Ok(answer);
        }
        let answer = poll_fn(|context| {
            let polled = call.as_mut().poll(context);
            if polled.is_pending() {
                ahead::poll(behind, context);
            }
            polled
        });
        Ok(answer.await)
    }

    /// What the buffers and the calls that have begun hold, in bytes.
    fn held(&self) -> usize {
        self.input_bytes + self.output.capacity() + self.begun_bytes
    }

    /// The share of a long order; `None` if there is none in time.
    async fn share(&mut self, share: u32) -> Result<Option<SemaphorePermit<'a>>, End> {
        let shared = self.shared;
        if let Some(permit) = shared.long_orders.take(share) {
            return Ok(Some(permit));
        }
        self.flush().await?;
        Ok(shared.long_orders.wait(share, shared.config.message_timeout).await)
    }

    /// Tells the peer why its message is not answered, unless nobody listens.
    fn refuse(
        &mut self,
        dialect: Dialect,
        header: Header,
        name: &[u8],
        answer: Answer,
    ) -> Result<(), End> {
        if let Answer::Refused(kind, _) = &answer {
            self.shared.metrics.application_error(*kind);
        }
        if header.kind == ONEWAY {
            return Ok(());
        }
        // A name that is not text cannot be sent back as it came.
        let name = String::from_utf8_lossy(name);
        self.append(dialect, header, &name, answer)
    }

    fn append(
        &mut self,
        dialect: Dialect,
        header: Header,
        name: &str,
        answer: Answer,
    ) -> Result<(), End> {
        let to = ReplyTo { dialect, strict: header.strict, name, seqid: header.seqid };
        reply::append(&mut self.output, &to, answer).map_err(|error| {
            let caller = self.caller.name();
            tracing::error!(%error, method = name, caller, "a reply could not be written");
            End::Close
        })
    }

    /// Writes the output; a peer that does not take it in time loses the
    /// connection.
    async fn flush(&mut self) -> Result<(), End> {
        self.flush_beside(|_| ()).await
    }

    /// The same; does `meanwhile` whenever it has to wait.
    async fn flush_beside(
        &mut self,
        mut meanwhile: impl FnMut(&mut Context<'_>),
    ) -> Result<(), End> {
        if self.output.is_empty() {
            return Ok(());
        }
        let mut write = pin!(async {
            self.stream.write_all(&self.output).await?;
            // TLS may still hold some of it.
            self.stream.flush().await
        });
        // Nearly always the kernel takes it at once, and no timer is made.
        let result = match poll_once(write.as_mut()).await {
            Some(result) => result,
            None => {
                let held = self.input_bytes + self.begun_bytes + self.output.capacity();
                if !self.hold.set(held + S::HELD_BYTES) {
                    return Err(End::Refused(Refused::Memory));
                }
                let mut write = pin!(timeout(self.shared.config.message_timeout, write));
                let written = poll_fn(|context| {
                    let polled = write.as_mut().poll(context);
                    if polled.is_pending() {
                        meanwhile(context);
                    }
                    polled
                });
                written.await.map_err(|_| End::Refused(Refused::SlowReply))?
            }
        };
        result?;
        self.output.clear();
        self.now = Instant::now();
        self.replied = Some(self.now);
        Ok(())
    }

    /// At a stop, takes over what the kernel has received already.
    fn read_the_rest(&mut self, input: &mut Input) -> Result<(), End> {
        let mut chunk = vec![0; 16 * 1024];
        let mut total = 0;
        while total < LAST_BYTES {
            match self.stream.read_now(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    total += count;
                    input.space().extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Err(End::Peer),
            }
        }
        Ok(())
    }

    /// Closes the writing side, and waits a little for the peer to do the same.
    async fn close(&mut self) {
        // TLS has something to say at the end, which the peer may not take.
        if !matches!(timeout(LINGER, self.stream.shutdown()).await, Ok(Ok(()))) {
            return;
        }
        // Nothing was written lately: nothing can get lost.
        let Some(until) = self.replied.map(|at| at + LINGER) else {
            return;
        };
        let mut left = LAST_BYTES;
        let mut chunk = vec![0; 4 * 1024];
        while let Ok(Ok(count)) = timeout_at(until, self.stream.read(&mut chunk)).await {
            left = left.saturating_sub(count);
            if count == 0 || left == 0 {
                return;
            }
        }
    }
}

/// Makes `timer` fire at `deadline` if it would fire later.
fn move_earlier(timer: Pin<&mut Sleep>, deadline: Instant) {
    if timer.deadline() > deadline {
        timer.reset(deadline);
    }
}

/// What `future` is ready with now, if it is.
async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_answer_has_the_length_that_it_tells() {
        let (head, body) = HTTP_ANSWER.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    }
}
