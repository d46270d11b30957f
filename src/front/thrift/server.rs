//! Accepting connections, and shutting down in order.
//!
//! One task accepts; each connection is a task of its own that this one joins.
//! At a stop the listener closes first, then every connection answers what it
//! has received and closes; what is not done after the drain time is cut.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use crate::front::tls::TlsPort;
use crate::service::access::AccessControl;
use crate::service::api::IdApi;

use super::buffers::Buffers;
use super::connection::{self, Shared};
use super::long_orders::LongOrders;
use super::metrics::{Refused, ThriftMetrics};

/// How long to wait after the system failed to give a connection. Without
/// file descriptors, say, it fails again at once, and the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much the kernel may hold of a connection, in bytes and in each direction;
/// Linux takes as much again for its own books.
const SOCKET_BYTES: usize = 64 * 1024;

/// The limits of a Thrift port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThriftConfig {
    /// Where to listen without TLS, if at all. Port 0 takes a free one.
    pub addr: Option<SocketAddr>,
    /// Longest message in bytes, 1 KiB to below 16 MiB.
    pub max_frame_bytes: usize,
    /// Most connections at a time, at least 1. One more is closed at once.
    pub max_connections: usize,
    /// How long a connection may be silent between messages.
    pub idle_timeout: Duration,
    /// How long a message that has begun may take to arrive, and a reply to be taken.
    pub message_timeout: Duration,
    /// How much memory, in bytes, the buffers of all connections may hold together
    /// while they wait for their peers; 2 KiB of each do not count. A connection
    /// that needs more then is closed.
    pub buffer_bytes: usize,
    /// How much memory the orders for more than 1 000 ids, or 250 texts, may need
    /// together, in bytes. Further ones wait for their turn, at most for
    /// `message_timeout`; one alone is always carried out.
    pub long_order_bytes: u64,
    /// How long a shutdown waits for connections to finish.
    pub drain: Duration,
}

impl ThriftConfig {
    /// Smallest legal `max_frame_bytes`.
    pub const MIN_FRAME: usize = 1_024;
    /// Largest legal `max_frame_bytes`: a frame's length begins with a zero
    /// byte, by which framed transport is told from everything else.
    pub const MAX_FRAME: usize = (1 << 24) - 1;

    /// The defaults, on `addr`.
    pub fn new(addr: SocketAddr) -> Self {
        ThriftConfig { addr: Some(addr), ..Self::default() }
    }

    /// Checks the limits; the message names the setting.
    pub fn validate(&self) -> Result<(), String> {
        let frames = Self::MIN_FRAME..=Self::MAX_FRAME;
        if !frames.contains(&self.max_frame_bytes) {
            return Err(format!(
                "max_frame_bytes {} is out of range: it must be from {} to {}",
                self.max_frame_bytes,
                Self::MIN_FRAME,
                Self::MAX_FRAME
            ));
        }
        if self.max_connections == 0 {
            return Err("max_connections must be at least 1".to_owned());
        }
        for (name, value) in
            [("idle_timeout", self.idle_timeout), ("message_timeout", self.message_timeout)]
        {
            if value.is_zero() {
                return Err(format!("{name} must be longer than 0"));
            }
        }
        Ok(())
    }
}

impl Default for ThriftConfig {
    /// The default limits, and no address.
    fn default() -> Self {
        ThriftConfig {
            addr: None,
            max_frame_bytes: 64 * 1024,
            max_connections: 10_000,
            idle_timeout: Duration::from_secs(600),
            message_timeout: Duration::from_secs(10),
            buffer_bytes: 256 * 1024 * 1024,
            long_order_bytes: 512 * 1024 * 1024,
            drain: Duration::from_secs(5),
        }
    }
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Connections that were not done after the drain time and were cut.
    pub cut: usize,
}

/// Where to listen with TLS; port 0 takes a free one.
pub type TlsAddr = (SocketAddr, Arc<TlsPort>);

/// Bound ports that are not served yet.
pub struct ThriftServer {
    plain: Option<TcpListener>,
    tls: Option<(TcpListener, Arc<TlsPort>)>,
    addr: SocketAddr,
    config: ThriftConfig,
    access: Option<Arc<AccessControl>>,
}

impl std::fmt::Debug for ThriftServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThriftServer").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl ThriftServer {
    /// Takes the port. Fails if a limit is out of range (`InvalidInput`) or
    /// the port cannot be had. Clients that connect wait until
    /// [`serve`](Self::serve) runs.
    pub async fn bind(config: ThriftConfig) -> io::Result<Self> {
        Self::bind_with_tls(config, None).await
    }

    /// Asks `access` who calls, and what they may take. Without, nobody asks.
    pub fn guarded_by(mut self, access: Arc<AccessControl>) -> Self {
        self.access = Some(access);
        self
    }

    /// The same with a port for TLS, too; one of both must be there.
    pub async fn bind_with_tls(config: ThriftConfig, tls: Option<TlsAddr>) -> io::Result<Self> {
        let invalid = |message: String| io::Error::new(ErrorKind::InvalidInput, message);
        config.validate().map_err(invalid)?;
        let plain = match config.addr {
            Some(addr) => Some(listen(addr).await?),
            None => None,
        };
        let tls = match tls {
            Some((addr, port)) => Some((listen(addr).await?, port)),
            None => None,
        };
        let first = plain.as_ref().or(tls.as_ref().map(|(listener, _)| listener));
        let first = first.ok_or_else(|| invalid("there is no address".to_owned()))?;
        let addr = first.local_addr()?;
        Ok(ThriftServer { plain, tls, addr, config, access: None })
    }

    /// Where it listens, with the port that was taken: without TLS, if it does.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where it listens with TLS, with the port that was taken, if it does.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls.as_ref()?.0.local_addr().ok()
    }

    /// Serves until `shutdown` turns true or its sender is dropped, then
    /// drains: every request that was received completely is answered, unless
    /// that takes longer than the drain time. All its tasks have ended when
    /// this returns.
    pub async fn serve<A: IdApi>(
        self,
        api: Arc<A>,
        metrics: Arc<ThriftMetrics>,
        shutdown: watch::Receiver<bool>,
    ) -> Served {
        let mut stop = shutdown.clone();
        let long_orders = LongOrders::new(self.config.long_order_bytes);
        let buffers = Buffers::new(self.config.buffer_bytes);
        let shared = Arc::new(Shared {
            api,
            access: self.access,
            metrics,
            config: self.config,
            long_orders,
            buffers,
            stop: shutdown,
        });
        let mut connections = JoinSet::new();
        // Until when not to accept, after a failure.
        let mut pause: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Some(ended) = connections.join_next() => note_end(&shared.metrics, ended),
                accepted = accept(&self.plain, &self.tls, pause) => match accepted {
                    Ok((stream, peer, tls)) => {
                        pause = None;
                        if connections.len() >= shared.config.max_connections {
                            shared.metrics.refused(Refused::Limit);
                            continue;
                        }
                        shared.metrics.accepted.inc();
                        let shared = Arc::clone(&shared);
                        match tls {
                            None => {
                                connections.spawn(connection::run(stream, peer.ip(), None, shared))
                            }
                            Some(port) => {
                                connections.spawn(connection::run_tls(stream, peer, port, shared))
                            }
                        };
                    }
                    Err(error) => {
                        shared.metrics.refused(Refused::Accept);
                        if pause.is_none() {
                            tracing::warn!(%error, "cannot accept Thrift connections");
                        }
                        pause = Some(Instant::now() + ACCEPT_PAUSE);
                    }
                },
            }
        }
        drop((self.plain, self.tls));
        drain(connections, &shared.metrics, shared.config.drain).await
    }
}

async fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{addr}: {e}"));
    let listener = TcpListener::bind(addr).await.map_err(named)?;
    // Connections inherit these. Else the kernel would let the buffers of each
    // grow to several MB, where a peer fills them and does not read.
    let socket = SockRef::from(&listener);
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    Ok(listener)
}

/// The next connection, and who is there where TLS is to be agreed upon. Not before
/// `pause` if the last attempt failed.
async fn accept(
    plain: &Option<TcpListener>,
    tls: &Option<(TcpListener, Arc<TlsPort>)>,
    pause: Option<Instant>,
) -> io::Result<(TcpStream, SocketAddr, Option<Arc<TlsPort>>)> {
    if let Some(pause) = pause {
        sleep_until(pause).await;
    }
    let on_plain = async || match plain {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    };
    let on_tls = async || match tls {
        Some((listener, port)) => (listener.accept().await, port),
        None => std::future::pending().await,
    };
    loop {
        // None of both goes first: a flood on one must not close the other.
        let (accepted, port) = tokio::select! {
            accepted = on_plain() => (accepted, None),
            (accepted, port) = on_tls() => (accepted, Some(port)),
        };
        match accepted {
            Ok((stream, peer)) => {
                // Replies are written whole, so waiting for more bytes to send
                // with them (Nagle) only costs time. Not worth a connection.
                let _ = stream.set_nodelay(true);
                return Ok((stream, peer, port.map(Arc::clone)));
            }
            // The peer was gone before its turn came; says nothing of us.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted
                        | ErrorKind::ConnectionReset
                        | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

fn note_end(metrics: &ThriftMetrics, ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        metrics.refused(Refused::Panic);
        tracing::error!(%error, "the task of a Thrift connection broke down");
    }
}

async fn drain(mut connections: JoinSet<()>, metrics: &ThriftMetrics, limit: Duration) -> Served {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            note_end(metrics, ended);
        }
    };
    let cut = match timeout(limit, all).await {
        Ok(()) => 0,
        Err(_) => connections.len(),
    };
    if cut > 0 {
        tracing::warn!(cut, "Thrift connections were not done in time");
        connections.shutdown().await;
    }
    Served { cut }
}
