//! The HTTP side: health, metrics and the admin API.
//!
//! One HTTP/1.1 server on one port, and one more with TLS, with nothing that can wait or grow without
//! bound: connections, headers, bodies, requests and the life of a connection
//! each have a limit. `/healthz`, `/readyz`, `/metrics` and the files of the admin
//! page are open; under `/api/v1` each operation needs a role (`operations`), but for a
//! few that everybody needs before. No answer holds a secret but once, when it is
//! made: URLs of Redis instances are always redacted.

mod access;
pub mod access_schema;
pub mod action_schema;
mod actions;
mod answer;
mod auth;
mod codes;
pub mod compat;
mod extract;
mod headers;
pub mod import_schema;
mod imports;
mod instances;
mod issue;
pub mod kind_schema;
mod live;
pub mod log_schema;
pub mod migration_schema;
mod migrations;
mod openapi;
mod operations;
mod page;
mod patience;
mod problem;
mod routes;
pub mod schema;
mod types;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use prometheus::Registry;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::front::tls::{PeerIdentity, Secured, TlsPort};
use crate::service::admin::AdminApi;
use crate::service::live::api::LiveApi;
use auth::Peer;
pub use auth::{Access, AdminToken};
pub use compat::{Compat, CompatConfig, CompatMetrics};
use patience::Patience;

/// How long one request may take in the service. Above the 5 s that a call of
/// the store may take, because an admin request needs more than one.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the headers of a request may take, and how long a connection may
/// be idle. Probes and scrapers come again by then or connect anew.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may live before it is closed after its request. So a
/// client that reads its answer slower and slower cannot keep one for ever.
const CONNECTION_AGE: Duration = Duration::from_secs(300);
/// The same for connections of applications, whose pools are full of them: one that is
/// closed while its next request is under way is a failed call there.
const COMPAT_AGE: Duration = Duration::from_secs(3_600);
/// How long a client may take nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much the kernel may hold of a connection, in bytes and in each direction;
/// Linux takes as much again for its own books. Otherwise it would let the buffers
/// of each grow to several MB.
const SOCKET_BYTES: usize = 64 * 1024;
/// Most headers of a request, and most bytes of them.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// How the HTTP side is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where it listens without TLS, if at all; port 0 takes a free one.
    pub addr: Option<SocketAddr>,
    /// Most connections at once, at least 1. A further one is answered 503.
    pub max_connections: usize,
    /// How long the end waits for requests in flight.
    pub drain: Duration,
}

/// How the HTTP side listens with TLS.
#[derive(Clone, Debug)]
pub struct HttpTls {
    /// Where; port 0 takes a free one.
    pub addr: SocketAddr,
    /// With what.
    pub port: Arc<TlsPort>,
    /// Whether browsers may send the cookie that they get there over TLS only.
    pub secure_cookies: bool,
}

/// What the connections of a listener have in common.
#[derive(Clone)]
struct Served {
    router: axum::Router,
    /// How long a connection may live.
    age: Duration,
    stop: watch::Receiver<bool>,
}

/// The HTTP side, listening but not yet answering.
#[derive(Debug)]
pub struct BoundHttp {
    plain: Option<TcpListener>,
    tls: Option<(TcpListener, HttpTls)>,
    config: HttpConfig,
}

/// Listens on `config.addr`. The error names the address.
pub async fn bind(config: HttpConfig) -> io::Result<BoundHttp> {
    bind_with_tls(config, None).await
}

/// The same with a port for TLS, too.
pub async fn bind_with_tls(config: HttpConfig, tls: Option<HttpTls>) -> io::Result<BoundHttp> {
    let plain = match config.addr {
        Some(addr) => Some(listen(addr).await?),
        None => None,
    };
    let tls = match tls {
        Some(tls) => Some((listen(tls.addr).await?, tls)),
        None => None,
    };
    Ok(BoundHttp { plain, tls, config })
}

async fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr).await.map_err(|error| {
        let text = format!("cannot listen for HTTP on {addr}: {error}");
        io::Error::new(error.kind(), text)
    })?;
    // Connections inherit these.
    let socket = SockRef::from(&listener);
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    Ok(listener)
}

impl BoundHttp {
    /// Where it listens, with the real port: without TLS, if it does.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match (&self.plain, &self.tls) {
            (Some(listener), _) | (None, Some((listener, _))) => listener.local_addr(),
            (None, None) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Where it listens with TLS, with the real port, if it does.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls.as_ref()?.0.local_addr().ok()
    }

    /// Answers until `shutdown` becomes true or its sender is gone. Then it
    /// stops accepting, lets requests in flight finish within the drain time,
    /// closes what is left, and returns; every connection has ended by then.
    ///
    /// With `compat`, the routes of other systems are served here, too.
    pub async fn serve<A: AdminApi + LiveApi>(
        self,
        api: Arc<A>,
        registry: Registry,
        access: Access,
        compat: Option<Compat>,
        shutdown: watch::Receiver<bool>,
    ) {
        let streams = Arc::new(Semaphore::new(live::MAX_STREAMS));
        let stop = shutdown.clone();
        let router = move |access| {
            let (api, registry, compat) = (api.clone(), registry.clone(), compat.clone());
            routes::router(api, registry, access, compat, streams.clone(), stop.clone())
        };
        self.run(router, access, CONNECTION_AGE, shutdown).await;
    }

    /// The same with the routes of other systems, and health, alone.
    pub async fn serve_compat<A: AdminApi + LiveApi>(
        self,
        api: Arc<A>,
        access: Access,
        compat: Compat,
        shutdown: watch::Receiver<bool>,
    ) {
        let router = move |access| compat::alone(api.clone(), access, compat.clone());
        self.run(router, access, COMPAT_AGE, shutdown).await;
    }

    async fn run(
        self,
        router: impl Fn(Access) -> axum::Router,
        access: Access,
        age: Duration,
        shutdown: watch::Receiver<bool>,
    ) {
        let mut stop = shutdown.clone();
        let served = |access| Served { router: router(access), age, stop: shutdown.clone() };
        // The same with TLS, but for the cookie.
        let tls = self.tls.as_ref().map(|(_, tls)| {
            let access = Access { secure_cookies: tls.secure_cookies, ..access.clone() };
            (served(access), tls.port.clone())
        });
        let plain = served(access);
        let permits = Arc::new(Semaphore::new(self.config.max_connections));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (accepted, is_tls) = accept(&self.plain, &self.tls) => match accepted {
                    Ok((stream, peer)) => match permits.clone().try_acquire_owned() {
                        Ok(permit) => {
                            match tls.as_ref().filter(|_| is_tls) {
                                Some((served, port)) => {
                                    let (served, port) = (served.clone(), port.clone());
                                    connections.spawn(secured(stream, peer, port, served, permit))
                                }
                                None => {
                                    let peer = (Peer(peer.ip()), None);
                                    connections.spawn(connection(stream, peer, plain.clone(), permit))
                                }
                            };
                        }
                        // With TLS there is nothing to say before the handshake.
                        Err(_) if is_tls => {}
                        Err(_) => refuse(&stream),
                    },
                    Err(error) => {
                        tracing::warn!(%error, "HTTP: cannot accept a connection");
                        // Out of file descriptors, most likely: trying again at
                        // once would only burn the processor.
                        sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
        drop((self.plain, self.tls));
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(self.config.drain, all).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// Returns when `shutdown` is true or its sender is gone.
async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// The next connection, and whether it is one with TLS. None of both goes first.
async fn accept(
    plain: &Option<TcpListener>,
    tls: &Option<(TcpListener, HttpTls)>,
) -> (io::Result<(TcpStream, SocketAddr)>, bool) {
    let on = async |listener: Option<&TcpListener>| match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    };
    tokio::select! {
        accepted = on(plain.as_ref()) => (accepted, false),
        accepted = on(tls.as_ref().map(|(listener, _)| listener)) => (accepted, true),
    }
}

/// One connection with TLS from its handshake to its end.
async fn secured(
    stream: TcpStream,
    peer: SocketAddr,
    port: Arc<TlsPort>,
    mut served: Served,
    permit: OwnedSemaphorePermit,
) {
    let secured = tokio::select! {
        biased;
        secured = port.handshake(stream, peer) => secured,
        () = stopped(&mut served.stop) => None,
    };
    if let Some(Secured { stream, identity }) = secured {
        connection(stream, (Peer(peer.ip()), identity), served, permit).await;
    }
}

/// One connection from its first byte to its end. What is known of the peer goes with
/// every request.
async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    (peer, identity): (Peer, Option<PeerIdentity>),
    Served { router, age, mut stop }: Served,
    _permit: OwnedSemaphorePermit,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        if let Some(identity) = &identity {
            request.extensions_mut().insert(identity.clone());
        }
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(Patience::new(stream, WRITE_TIMEOUT), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(%error, "HTTP: connection ended");
            }
            return;
        }
        () = stopped(&mut stop) => {}
        () = sleep(age) => {}
    }
    connection.as_mut().graceful_shutdown();
    // A request that is in flight may use its whole time.
    let _ = timeout(REQUEST_TIMEOUT + HEADER_TIMEOUT, connection).await;
}

/// Tells a connection too many to come again. Best effort: nothing waits for it.
fn refuse(stream: &TcpStream) {
    let answer = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n\
        Retry-After: 1\r\nConnection: close\r\nContent-Length: 27\r\n\r\n\
        too many HTTP connections.\n";
    let _ = stream.try_write(answer);
}

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod action_tests;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod fake_live;
#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod kind_tests;
#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod tests;
