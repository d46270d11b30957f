//! One connection to one Redis server, made again whenever it breaks.
//!
//! Requests of all types share the connection and are in flight at once. A
//! broken or silent connection is dropped by the first call that notices; the
//! next call makes a new one. After a failure no new try is made for a short
//! while, and callers get the last error at once, so that a dead server costs
//! neither a storm of connections nor a queue of waiting callers.

use std::path::PathBuf;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, ServerErrorKind};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout};

use crate::domain::instance::redact_url;
use crate::domain::{Error, InstanceSpec};
use crate::ports::DispatchError;

/// How to talk to Redis servers.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Longest time for one call, connecting included.
    pub timeout: Duration,
    /// PEM file of the authorities that may sign a server's certificate;
    /// `None` trusts those of the operating system.
    pub ca_file: Option<PathBuf>,
}

/// No new connection is tried for so long after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

pub(super) struct Link {
    client: Client,
    timeout: Duration,
    slot: Mutex<Slot>,
    broken: Notify,
}

#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure drops only its own.
    number: u64,
    last_failure: Option<(Instant, DispatchError)>,
}

impl Link {
    pub(super) fn new(url: &str, options: &RedisOptions) -> Result<Self, Error> {
        let invalid = |why: String| {
            Error::invalid("url", format!("url {} of a Redis instance: {why}", redact_url(url)))
        };
        if url.len() > InstanceSpec::MAX_URL {
            return Err(invalid("too long".into()));
        }
        // The library's own text is not shown: it may quote the URL.
        let malformed =
            |e: RedisError| invalid(format!("not a usable Redis URL ({})", describe_kind(&e)));
        let client = match (&options.ca_file, url.starts_with("rediss://")) {
            (Some(file), true) => {
                let root_cert = std::fs::read(file)
                    .map_err(|e| invalid(format!("cannot read {}: {e}", file.display())))?;
                let certificates =
                    redis::TlsCertificates { client_tls: None, root_cert: Some(root_cert) };
                Client::build_with_tls(url, certificates).map_err(malformed)?
            }
            _ => Client::open(url).map_err(malformed)?,
        };
        Ok(Link { client, timeout: options.timeout, slot: Mutex::default(), broken: Notify::new() })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Runs `call` on the connection, within the time limit. Never runs it
    /// twice: whether it happened is unknown when this fails.
    pub(super) async fn run<T>(
        &self,
        call: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, DispatchError> {
        let mut number = 0;
        let work = async {
            let (mut connection, current) = self.connection().await?;
            number = current;
            call(&mut connection).await.map_err(|e| (is_fatal(&e), translate(&e)).into_error())
        };
        match timeout(self.timeout, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Failure { fatal, error })) => {
                if fatal && number > 0 {
                    self.drop_connection(number).await;
                }
                Err(error)
            }
            Err(_) => {
                if number > 0 {
                    self.drop_connection(number).await;
                }
                Err(DispatchError::Unavailable(format!(
                    "no answer within {} ms",
                    self.timeout.as_millis()
                )))
            }
        }
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), Failure> {
        let mut slot = self.slot.lock().await;
        if let Some(connection) = &slot.connection {
            return Ok((connection.clone(), slot.number));
        }
        if let Some((at, error)) = &slot.last_failure
            && at.elapsed() < PAUSE_AFTER_FAILURE
        {
            return Err(Failure { fatal: false, error: error.clone() });
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(None);
        match self.client.get_multiplexed_async_connection_with_config(&config).await {
            Ok(connection) => {
                slot.number += 1;
                slot.connection = Some(connection.clone());
                slot.last_failure = None;
                Ok((connection, slot.number))
            }
            Err(error) => {
                let error = translate(&error);
                slot.last_failure = Some((Instant::now(), error.clone()));
                Err(Failure { fatal: false, error })
            }
        }
    }

    /// Forgets the connection. Does not wait: while somebody connects, there is
    /// none to forget.
    pub(super) fn reset(&self) {
        if let Ok(mut slot) = self.slot.try_lock() {
            slot.connection = None;
        }
        self.broken.notify_one();
    }

    /// Returns when a connection was dropped since the last time: whatever else
    /// is connected to that server had better look, too.
    pub(super) async fn broken(&self) {
        self.broken.notified().await;
    }

    async fn drop_connection(&self, number: u64) {
        let mut slot = self.slot.lock().await;
        if slot.number == number {
            slot.connection = None;
            self.broken.notify_one();
        }
    }
}

struct Failure {
    /// Whether the connection is of no more use.
    fatal: bool,
    error: DispatchError,
}

trait IntoFailure {
    fn into_error(self) -> Failure;
}

impl IntoFailure for (bool, DispatchError) {
    fn into_error(self) -> Failure {
        Failure { fatal: self.0, error: self.1 }
    }
}

/// Whether the connection had better be made anew: it broke, or the server at
/// its end no longer is the one that takes writes. Before 7.0, a refused write
/// inside a script comes as a plain error.
fn is_fatal(error: &RedisError) -> bool {
    use ServerErrorKind::{ReadOnly, ResponseError};
    error.is_unrecoverable_error()
        || matches!(error.kind(), ErrorKind::Server(ReadOnly | ResponseError))
}

/// Decided by kind and code, never by text. What the server says of itself
/// (loading, read-only, out of memory, wrong password) may pass, and so may be
/// tried again; an answer of the wrong shape may not.
fn translate(error: &RedisError) -> DispatchError {
    match error.kind() {
        ErrorKind::UnexpectedReturnType | ErrorKind::Parse => {
            DispatchError::Broken(error.to_string())
        }
        _ => DispatchError::Unavailable(error.to_string()),
    }
}

fn describe_kind(error: &RedisError) -> String {
    format!("{:?}", error.kind())
}
