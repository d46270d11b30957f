//! TLS for both sides of a node.
//!
//! ```text
//! files        PEM files become what rustls serves with, or a fault that names them
//! certificate  whose a certificate is, and until when
//! refusal      whose certificate was refused
//! reload       changed files are taken into use without a restart
//! ```
//!
//! Promise: a connection is handed on only after a whole handshake; one that is slow, or
//! speaks something else, costs itself a little memory for the time limit and nobody else
//! anything. Connections that are open keep what they agreed upon; each new one gets what
//! was loaded last. The streams are concrete types, so that a side which serves with and
//! without TLS pays for what it uses.

mod certificate;
mod files;
mod metrics;
mod refusal;
mod reload;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use prometheus::Registry;
use rustls::{CertificateError, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::ports::Clock;
use certificate::{Facts, fingerprint};
pub use files::{ClientAuth, TlsError, TlsFiles};
use files::{Contents, Material};
pub use metrics::{Failure, Side};
use metrics::{SideMetrics, TlsMetrics};
pub use reload::keep_current;

/// The most that TLS holds of what was written to a connection and not taken, in bytes.
pub const HELD_BYTES: usize = 16 * 1024;

/// How long a connection that came to nothing goes on reading, so that what the peer
/// still sends does not make its kernel throw away the alert that tells it why.
const LINGER: Duration = Duration::from_millis(500);
/// The most that is read and thrown away meanwhile, in bytes.
const LAST_BYTES: usize = 64 * 1024;

/// The type of a record with which every peer that speaks TLS begins.
const HANDSHAKE: u8 = 0x16;

/// The answer to a client that forgot the s of https.
const HTTP_ANSWER: &str = "HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 43\r\n\
    Connection: close\r\n\
    \r\n\
    This port speaks TLS: use https:// instead\n";

/// Who is at the other end, as its certificate says; the node has verified it.
///
/// There is one for each connection whose peer showed a certificate: `optional` leaves
/// those without one. The Thrift front keeps it with the connection (`caller`), HTTP adds
/// it to every request as an extension of this type. Two certificates of one name are one
/// caller: whoever signs for `tls.client_ca_file` decides on names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerIdentity {
    /// The common name of the subject; where that is missing, longer than 128 characters
    /// or not printable, the first DNS name or URI of the subject's alternative names;
    /// else `sha256:` and the first 16 bytes of the certificate's hash.
    pub name: Arc<str>,
}

impl PeerIdentity {
    fn of(certificate: &[u8]) -> Self {
        let facts = Facts::of(certificate);
        let name = facts.as_ref().and_then(Facts::name);
        PeerIdentity { name: name.map_or_else(|| fingerprint(certificate).into(), Arc::from) }
    }
}

/// How a node speaks TLS.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Where the certificates are.
    pub files: TlsFiles,
    /// Whether 1.3 is the only version, not 1.2 as well.
    pub only_tls13: bool,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How often the files are looked at.
    pub reload_interval: Duration,
    /// Whether clients of the Thrift front show a certificate.
    pub thrift: ClientAuth,
    /// The same of the HTTP side.
    pub http: ClientAuth,
}

/// Whether a node could start with `files` at `now`, in seconds of the epoch: the subject
/// of the certificate, and how many seconds are left of it.
pub fn inspect(files: &TlsFiles, now: i64) -> Result<(String, i64), TlsError> {
    let material = Material::of(&Contents::read(files)?, files, now)?;
    Ok((material.subject, material.expires - now))
}

/// What a node needs for TLS: loaded, and kept current by [`keep_current`].
pub struct Tls {
    config: TlsConfig,
    clock: Arc<dyn Clock>,
    metrics: TlsMetrics,
    thrift: Arc<TlsPort>,
    http: Arc<TlsPort>,
    /// The hash of what is in use.
    in_use: Mutex<[u8; 32]>,
}

impl Tls {
    /// Reads and checks the files; blocks. Adds its metrics to `registry`.
    pub fn load(
        config: TlsConfig,
        clock: Arc<dyn Clock>,
        registry: &Registry,
    ) -> Result<Arc<Tls>, String> {
        let contents = Contents::read(&config.files).map_err(|error| error.to_string())?;
        let now = clock.now_ms() / 1_000;
        let material =
            Material::of(&contents, &config.files, now).map_err(|error| error.to_string())?;
        let metrics = TlsMetrics::register(registry).map_err(|e| format!("metrics: {e}"))?;
        let port = |side, client_auth| -> Result<_, String> {
            let server = material.server_config(side, client_auth, config.only_tls13)?;
            Ok(Arc::new(TlsPort {
                side,
                client_auth,
                limit: config.handshake_timeout,
                current: ArcSwap::from_pointee(server),
                metrics: metrics.side(side),
                refusals: Bounded::default(),
                others: Bounded::default(),
            }))
        };
        let (thrift, http) = (port(Side::Thrift, config.thrift)?, port(Side::Http, config.http)?);
        let in_use = Mutex::new(contents.hash());
        let tls = Tls { config, clock, metrics, thrift, http, in_use };
        tls.tell(&material, "TLS certificate loaded");
        Ok(Arc::new(tls))
    }

    /// What the listener of `side` needs.
    pub fn port(&self, side: Side) -> Arc<TlsPort> {
        Arc::clone(match side {
            Side::Thrift => &self.thrift,
            Side::Http => &self.http,
        })
    }

    /// Uses `material` for every connection from now on.
    fn take(&self, material: &Material) -> Result<(), String> {
        let [thrift, http] = [&self.thrift, &self.http]
            .map(|p| material.server_config(p.side, p.client_auth, self.config.only_tls13));
        // Both, or none.
        let (thrift, http) = (thrift?, http?);
        self.thrift.current.store(Arc::new(thrift));
        self.http.current.store(Arc::new(http));
        self.tell(material, "TLS certificate changed");
        Ok(())
    }

    fn tell(&self, material: &Material, what: &str) {
        self.metrics.expires("server", material.expires);
        if let Some(at) = material.authorities_expire {
            self.metrics.expires("client_ca", at);
        }
        let days = (material.expires - self.clock.now_ms() / 1_000) / 86_400;
        tracing::info!(subject = material.subject, days, "{what}; days until it expires");
    }
}

/// TLS of one listener.
pub struct TlsPort {
    side: Side,
    client_auth: ClientAuth,
    limit: Duration,
    current: ArcSwap<ServerConfig>,
    metrics: SideMetrics,
    refusals: Bounded,
    others: Bounded,
}

impl fmt::Debug for TlsPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsPort")
            .field("side", &self.side)
            .field("client_auth", &self.client_auth)
            .finish_non_exhaustive()
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Secured {
    /// What is said on it.
    pub stream: TlsStream<TcpStream>,
    /// Who is at the other end, where a certificate was shown.
    pub identity: Option<PeerIdentity>,
}

/// A handshake that came to nothing.
struct Failed {
    reason: Failure,
    error: io::Error,
    stream: Option<TcpStream>,
    /// The first byte, where it was none of TLS.
    first: u8,
}

impl Failed {
    fn new(reason: Failure, error: io::Error, stream: Option<TcpStream>) -> Self {
        Failed { reason, error, stream, first: HANDSHAKE }
    }
}

impl TlsPort {
    /// Agrees on TLS with `peer`, within the time limit. `None` where that fails: the peer
    /// was told if it speaks TLS, the failure counted, and the connection is closed.
    pub async fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> Option<Secured> {
        let (result, subject) = refusal::noting(timeout(self.limit, self.attempt(stream))).await;
        let late = || Failed::new(Failure::Timeout, ErrorKind::TimedOut.into(), None);
        match result.unwrap_or_else(|_| Err(late())) {
            Ok(stream) => {
                self.metrics.handshakes.inc();
                let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let identity = certificate.map(|certificate| PeerIdentity::of(certificate));
                let caller = identity.as_ref().map_or("", |identity| &identity.name);
                tracing::debug!(side = self.side.as_str(), %peer, caller, "TLS connection");
                Some(Secured { stream, identity })
            }
            Err(failed) => {
                self.note(&failed, peer, subject);
                if let Some(stream) = failed.stream {
                    let is_http = self.side == Side::Http && failed.first.is_ascii_uppercase();
                    let answer = if is_http { HTTP_ANSWER } else { "" };
                    let _ = timeout(LINGER, part(stream, answer.as_bytes())).await;
                }
                None
            }
        }
    }

    async fn attempt(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, Failed> {
        let mut first = [HANDSHAKE];
        match stream.peek(&mut first).await {
            Ok(0) => {
                let error = ErrorKind::UnexpectedEof.into();
                return Err(Failed::new(Failure::Closed, error, None));
            }
            Err(error) => return Err(Failed::new(Failure::Closed, error, None)),
            Ok(_) if first[0] != HANDSHAKE => {
                let error = io::Error::new(ErrorKind::InvalidData, "the peer speaks no TLS");
                let failed = Failed::new(Failure::NotTls, error, Some(stream));
                return Err(Failed { first: first[0], ..failed });
            }
            Ok(_) => {}
        }
        let acceptor = TlsAcceptor::from(self.current.load_full());
        let accept = acceptor.accept_with(stream, |connection| {
            connection.set_buffer_limit(Some(HELD_BYTES));
        });
        accept
            .into_fallible()
            .await
            .map_err(|(error, stream)| Failed::new(reason_of(&error), error, Some(stream)))
    }

    fn note(&self, failed: &Failed, peer: SocketAddr, subject: Option<String>) {
        let Failed { reason, error, .. } = failed;
        self.metrics.failed(*reason);
        let (side, reason, is_refusal) = (self.side.as_str(), reason.as_str(), reason.is_refusal());
        let bounded = if is_refusal { &self.refusals } else { &self.others };
        let Some(left_out) = bounded.admit() else { return };
        let subject = subject.unwrap_or_default();
        match is_refusal {
            true => tracing::warn!(
                side, %peer, reason, subject, %error, left_out, "TLS client refused"
            ),
            false => tracing::debug!(side, %peer, reason, %error, left_out, "TLS handshake failed"),
        }
    }
}

/// Sends a last word, and waits for the end of what the peer says.
async fn part(mut stream: TcpStream, word: &[u8]) -> io::Result<()> {
    stream.write_all(word).await?;
    stream.shutdown().await?;
    let mut left = LAST_BYTES;
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk).await?;
        left = left.saturating_sub(count);
        if count == 0 || left == 0 {
            return Ok(());
        }
    }
}

/// Which of the reasons an error of a handshake is.
fn reason_of(error: &io::Error) -> Failure {
    use rustls::Error;
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return Failure::Closed;
    };
    match error {
        Error::NoCertificatesPresented => Failure::NoCertificate,
        Error::InvalidCertificate(error) => match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Failure::Expired,
            // An authority of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Failure::UnknownAuthority
            }
            _ => Failure::BadCertificate,
        },
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Failure::Incompatible,
        Error::AlertReceived(_) => Failure::Alert,
        _ => Failure::Protocol,
    }
}

/// Lets so many lines of a kind into the log, and no flood of them.
#[derive(Default)]
struct Bounded(Mutex<Window>);

#[derive(Default)]
struct Window {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Bounded {
    /// Most lines of a window.
    const LINES: u32 = 20;
    /// How long a window is.
    const WINDOW: Duration = Duration::from_secs(10);

    /// Whether a line may be written now, and how many were not since the last one.
    fn admit(&self) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if window.began.is_none_or(|began| now - began >= Self::WINDOW) {
            window.began = Some(now);
            window.lines = 0;
        }
        if window.lines == Self::LINES {
            window.left_out += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http_answer_has_the_length_that_it_tells() {
        let (head, body) = HTTP_ANSWER.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lines_is_cut_and_counted() {
        let bounded = Bounded::default();
        let admitted = (0..100).filter(|_| bounded.admit().is_some()).count();
        assert_eq!(admitted, Bounded::LINES as usize);
        tokio::time::advance(Bounded::WINDOW).await;
        assert_eq!(bounded.admit(), Some(80));
        assert_eq!(bounded.admit(), Some(0));
    }
}
