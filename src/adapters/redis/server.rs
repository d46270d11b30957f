//! One connection to one server, made again whenever it breaks.
//!
//! Requests of all types share it and are in flight at once. After a failure no
//! new try is made for a short while, and callers get the last error at once, so
//! that a dead server costs neither a storm of connections nor a queue of
//! waiting callers.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult, TlsCertificates};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use super::sentinel::SentinelGroup;

/// Nothing is tried again for so long after a failure.
pub(super) const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// How to connect to anything.
pub(super) struct Dialer {
    /// Longest time for one connection.
    pub(super) timeout: Duration,
    /// The authorities for TLS in PEM; `None` trusts those of the system.
    pub(super) authorities: Option<Vec<u8>>,
    /// Told whenever a connection was found to be of no more use.
    pub(super) broken: Notify,
}

impl Dialer {
    /// Reads a plain URL; does not connect.
    pub(super) fn client(&self, url: &str) -> RedisResult<Client> {
        match &self.authorities {
            Some(root) if url.starts_with("rediss://") => {
                let root_cert = Some(root.clone());
                Client::build_with_tls(url, TlsCertificates { client_tls: None, root_cert })
            }
            _ => Client::open(url),
        }
    }

    pub(super) async fn connect(&self, client: &Client) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(None);
        client.get_multiplexed_async_connection_with_config(&config).await
    }
}

/// Which server it is.
pub(super) enum Whereabouts {
    /// Always the same.
    Fixed(Client),
    /// The master of a group: another one after a fail-over.
    MasterOf(SentinelGroup),
}

/// See the module.
pub(super) struct Server {
    whereabouts: Whereabouts,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    live: Option<Live>,
    /// Counts connections, so that a late failure drops only its own.
    number: u64,
    last_failure: Option<(Instant, RedisError)>,
}

struct Live {
    connection: MultiplexedConnection,
    /// The server at the other end, for further connections to the same one.
    client: Client,
}

impl Server {
    pub(super) fn new(whereabouts: Whereabouts) -> Self {
        Server { whereabouts, slot: Mutex::default() }
    }

    /// The connection, and its number for [`drop_connection`](Self::drop_connection).
    pub(super) async fn connection(
        &self,
        dialer: &Dialer,
    ) -> RedisResult<(MultiplexedConnection, u64)> {
        let mut slot = self.slot.lock().await;
        let live = self.live(&mut slot, dialer).await?;
        let connection = live.connection.clone();
        Ok((connection, slot.number))
    }

    /// Whatever server the connection goes to.
    pub(super) async fn client(&self, dialer: &Dialer) -> RedisResult<Client> {
        let mut slot = self.slot.lock().await;
        Ok(self.live(&mut slot, dialer).await?.client.clone())
    }

    async fn live<'a>(&self, slot: &'a mut Slot, dialer: &Dialer) -> RedisResult<&'a Live> {
        if slot.live.is_none() {
            if let Some((at, error)) = &slot.last_failure
                && at.elapsed() < PAUSE_AFTER_FAILURE
            {
                return Err(error.clone());
            }
            let made = match &self.whereabouts {
                Whereabouts::Fixed(client) => {
                    dialer.connect(client).await.map(|connection| (client.clone(), connection))
                }
                Whereabouts::MasterOf(group) => group.connect(dialer).await,
            };
            match made {
                Ok((client, connection)) => {
                    slot.number += 1;
                    slot.live = Some(Live { connection, client });
                    slot.last_failure = None;
                }
                Err(error) => slot.last_failure = Some((Instant::now(), error)),
            }
        }
        match (&slot.live, &slot.last_failure) {
            (Some(live), _) => Ok(live),
            (None, Some((_, error))) => Err(error.clone()),
            (None, None) => unreachable!("it was made, or it failed"),
        }
    }

    /// Whether there is a connection, as far as can be told without waiting.
    pub(super) fn is_connected(&self) -> bool {
        self.slot.try_lock().is_ok_and(|slot| slot.live.is_some())
    }

    /// Forgets the connection of that number, unless it is gone already.
    pub(super) async fn drop_connection(&self, number: u64, dialer: &Dialer) {
        let mut slot = self.slot.lock().await;
        if slot.number == number && slot.live.take().is_some() {
            dialer.broken.notify_one();
        }
    }

    /// Forgets the connection. Does not wait: while somebody connects, there is
    /// none to forget.
    pub(super) fn reset(&self) {
        if let Ok(mut slot) = self.slot.try_lock() {
            slot.live = None;
        }
    }
}
