//! The master of a Sentinel group.
//!
//! All Sentinels are asked at once, and the newest configuration that they know
//! of wins (its epoch). The server that it names must say itself that it is a
//! master; otherwise the caller tries again, until the fail-over is done.

use std::collections::HashMap;

use redis::aio::MultiplexedConnection;
use redis::{Client, ErrorKind, RedisError, RedisResult, Value};

use super::majority::newest;
use super::server::Dialer;
use crate::domain::redis_url::{Endpoint, Login};

pub(super) struct SentinelGroup {
    pub(super) sentinels: Vec<Client>,
    /// Its name, as the Sentinels know it.
    pub(super) name: String,
    pub(super) login: Login,
}

impl SentinelGroup {
    /// Connects to the master. Each of the two steps may take half of the time
    /// limit, so that a silent Sentinel leaves time for the rest.
    pub(super) async fn connect(
        &self,
        dialer: &Dialer,
    ) -> RedisResult<(Client, MultiplexedConnection)> {
        let half = dialer.timeout / 2;
        let questions = self.sentinels.iter().map(|sentinel| self.ask(sentinel, dialer));
        let master = newest(questions, half).await?;
        let client = dialer.client(&self.login.url(&master))?;
        let connect = async {
            let mut connection = dialer.connect(&client).await?;
            let role: Vec<Value> = redis::cmd("ROLE").query_async(&mut connection).await?;
            match role.first() {
                Some(Value::BulkString(role)) if role == b"master" => Ok(connection),
                _ => Err(RedisError::from((
                    ErrorKind::Io,
                    "the server that the Sentinels name is no master (yet)",
                    master.to_string(),
                ))),
            }
        };
        match tokio::time::timeout(half, connect).await {
            Ok(connection) => Ok((client, connection?)),
            Err(_) => Err(RedisError::from((
                ErrorKind::Io,
                "the server that the Sentinels name does not answer",
                master.to_string(),
            ))),
        }
    }

    /// The epoch of the configuration that the Sentinel knows, and the master in it.
    async fn ask(&self, sentinel: &Client, dialer: &Dialer) -> RedisResult<(u64, Endpoint)> {
        let mut connection = dialer.connect(sentinel).await?;
        // The first command has the epoch. But its address is the old one until
        // all replicas follow the new master, which the second names at once.
        let mut both = redis::pipe();
        both.cmd("SENTINEL").arg("MASTER").arg(&self.name);
        both.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let (about, address): (HashMap<String, String>, Option<(String, u16)>) =
            both.query_async(&mut connection).await?;
        let read = || {
            let (host, port) = address?;
            Some((about.get("config-epoch")?.parse().ok()?, Endpoint { host, port }))
        };
        read().ok_or_else(|| {
            RedisError::from((ErrorKind::UnexpectedReturnType, "SENTINEL MASTER lacks a field"))
        })
    }
}
