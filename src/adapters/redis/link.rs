//! The way to the master, whichever server that is just now.
//!
//! A request goes to the one server, to the master that the Sentinels name, or to
//! the master of its hash slot. It is never sent again where its outcome is
//! unknown: what broke, or did not answer in time, is the caller's to decide
//! about. But it goes on to another server when the first one says that it did
//! nothing (`MOVED`, `ASK`), and a script that a server does not have (`NOSCRIPT`)
//! is loaded there and run again. A broken or silent connection is dropped by the
//! first call that notices, and the next call looks for the master anew.
//!
//! What servers may answer, and what becomes of it:
//!
//! | answer | it says | then |
//! | --- | --- | --- |
//! | `MOVED` | another master has the slot | sent to that one, up to 3 times; only a cluster's URL |
//! | `ASK` | the slot is on its way to another master | sent to that one, once; the map stays |
//! | `TRYAGAIN` | some keys of the slot are here and some there | unavailable; the next call |
//! | `NOSCRIPT` | the script was never run here | loaded and run again |
//! | `READONLY` | it became a replica | unavailable; looks for the master anew |
//! | `MASTERDOWN` | it is a replica that lost its master | the same |
//! | `NOREPLICAS` | it is a master without its replicas: cut off | the same |
//! | `LOADING` | it reads its data; another may be master soon | the same |
//! | `CLUSTERDOWN` | the cluster has no majority, or not all slots | the same |
//! | `ERR` | anything; before 7.0 also a write refused in a script | the same |
//! | others (`OOM`, `BUSY`, `NOAUTH` …) | this server refuses for now | unavailable |
//!
//! All of these were refused, so that nothing happened; they still count as
//! unknown for the caller, for whom it makes no difference.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionLike, PubSub};
use redis::{
    Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, ServerErrorKind, Value,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::cluster::{Cluster, redirection, slot_of};
use super::sentinel::SentinelGroup;
use super::server::{Dialer, Server, Whereabouts};
use crate::domain::instance::redact_url;
use crate::domain::redis_url::{Endpoint, Login};
use crate::domain::{Error, History, InstanceSpec, RedisUrl};
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

/// So often a request is passed on to another server. Two suffice for a slot
/// that moves twice while one call is on its way.
const MOST_REDIRECTIONS: usize = 3;

pub(super) struct Link {
    target: Target,
    dialer: Dialer,
}

enum Target {
    /// One server, or the one that is the master of a group.
    One(Arc<Server>),
    Cluster(Box<Cluster>),
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
        let malformed = |e: RedisError| invalid(format!("not a usable Redis URL ({:?})", e.kind()));
        let authorities = match &options.ca_file {
            Some(file) if url.starts_with("rediss") => {
                let read = std::fs::read(file);
                Some(read.map_err(|e| invalid(format!("cannot read {}: {e}", file.display())))?)
            }
            _ => None,
        };
        let dialer = Dialer { timeout: options.timeout, authorities, broken: Notify::new() };
        let clients = |login: &Login, endpoints: &[Endpoint]| {
            let made = endpoints.iter().map(|at| dialer.client(&login.url(at)));
            made.collect::<RedisResult<Vec<Client>>>().map_err(malformed)
        };
        let target = match RedisUrl::parse(url)? {
            RedisUrl::Server(url) => {
                let client = dialer.client(&url).map_err(malformed)?;
                Target::One(Arc::new(Server::new(Whereabouts::Fixed(client))))
            }
            RedisUrl::Sentinel { sentinels, sentinel_login, group, login } => {
                // Only to see whether a client can be made of these accounts.
                clients(&login, &sentinels)?;
                let sentinels = clients(&sentinel_login, &sentinels)?;
                let group = SentinelGroup { sentinels, name: group, login };
                Target::One(Arc::new(Server::new(Whereabouts::MasterOf(group))))
            }
            RedisUrl::Cluster { nodes, login } => {
                clients(&login, &nodes)?;
                Target::Cluster(Box::new(Cluster::new(nodes, login)))
            }
        };
        Ok(Link { target, dialer })
    }

    /// Runs `call`, within the time limit. Never runs it twice: whether it
    /// happened is unknown when this fails.
    pub(super) async fn run<T>(
        &self,
        call: impl AsyncFnOnce(&mut Route<'_>) -> Result<T, RedisError>,
    ) -> Result<T, DispatchError> {
        let mut route = Route { link: self, last: None };
        let result = timeout(self.dialer.timeout, call(&mut route)).await;
        let last = route.last;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                if wants_new_connection(&error) {
                    self.look_anew(last).await;
                }
                Err(self.translate(&error))
            }
            Err(_) => {
                self.look_anew(last).await;
                Err(self.late())
            }
        }
    }

    fn late(&self) -> DispatchError {
        let limit = self.dialer.timeout.as_millis();
        DispatchError::Unavailable(format!("no answer within {limit} ms"))
    }

    /// Decided by kind and code, never by text. What the server says of itself
    /// (loading, read-only, out of memory, wrong password) may pass, and so may
    /// be tried again; an answer of the wrong shape may not.
    fn translate(&self, error: &RedisError) -> DispatchError {
        match (error.kind(), &self.target) {
            (ErrorKind::UnexpectedReturnType | ErrorKind::Parse, _) => {
                DispatchError::Broken(error.to_string())
            }
            (ErrorKind::Server(ServerErrorKind::Moved), Target::One(_)) => {
                DispatchError::Unavailable(
                    "the server belongs to a Redis Cluster: use a redis+cluster:// URL".into(),
                )
            }
            _ => DispatchError::Unavailable(error.to_string()),
        }
    }

    /// The server that was used last had better not be used again as it is.
    async fn look_anew(&self, last: Option<(Arc<Server>, u64)>) {
        if let Target::Cluster(cluster) = &self.target {
            cluster.distrust();
        }
        if let Some((server, number)) = last {
            server.drop_connection(number, &self.dialer).await;
        }
    }

    /// The next call looks for the master anew. Does not wait.
    pub(super) fn reset(&self) {
        match &self.target {
            Target::One(server) => server.reset(),
            Target::Cluster(cluster) => cluster.distrust(),
        }
        self.dialer.broken.notify_one();
    }

    /// Returns when a connection was dropped since the last time: whatever else
    /// is connected to that server had better look, too.
    pub(super) async fn broken(&self) {
        self.dialer.broken.notified().await;
    }

    /// A subscription to `channel`, within the time limit.
    pub(super) async fn subscribe(&self, channel: &str) -> RedisResult<PubSub> {
        let work = async {
            let server = match &self.target {
                Target::One(server) => server.clone(),
                Target::Cluster(cluster) => cluster.any(&self.dialer).await?.server,
            };
            let client = server.client(&self.dialer).await?;
            let mut subscription = client.get_async_pubsub().await?;
            subscription.subscribe(channel).await?;
            Ok(subscription)
        };
        match timeout(self.dialer.timeout, work).await {
            Ok(subscription) => subscription,
            Err(_) => Err(RedisError::from((ErrorKind::Io, "no answer in time"))),
        }
    }

    /// Everything that the server says of itself; `None` of a cluster, which has many.
    pub(super) async fn info(&self) -> Result<Option<String>, DispatchError> {
        if let Target::Cluster(_) = &self.target {
            return Ok(None);
        }
        self.run(async |connection| redis::cmd("INFO").query_async(connection).await)
            .await
            .map(Some)
    }

    /// Of a server its history; of a cluster the epoch of its map, as each type
    /// has a history of its own there. Fails where a cluster is down.
    pub(super) async fn history(&self) -> Result<History, DispatchError> {
        if let Target::Cluster(cluster) = &self.target {
            return match timeout(self.dialer.timeout, cluster.epoch(&self.dialer)).await {
                Ok(Ok(epoch)) => Ok(History::new(format!("cluster-epoch-{epoch}"))),
                Ok(Err(error)) => Err(self.translate(&error)),
                Err(_) => Err(self.late()),
            };
        }
        let info: String = self
            .run(async |connection| {
                redis::cmd("INFO").arg("replication").query_async(connection).await
            })
            .await?;
        info.lines()
            .find_map(|line| line.strip_prefix("master_replid:"))
            .map(|replid| History::new(replid.trim()))
            .ok_or_else(|| DispatchError::Broken("INFO replication has no master_replid".into()))
    }
}

/// The way of one call: a connection to whichever server each of its commands
/// belongs to.
pub(super) struct Route<'a> {
    link: &'a Link,
    /// Where the last command went, and by which connection.
    last: Option<(Arc<Server>, u64)>,
}

impl Route<'_> {
    async fn request(&mut self, command: &Cmd) -> RedisResult<Value> {
        let dialer = &self.link.dialer;
        let cluster = match &self.link.target {
            Target::One(server) => return self.send(server.clone(), command, false).await,
            Target::Cluster(cluster) => cluster,
        };
        let Some(slot) = slot_of(command) else {
            let server = match self.last.take() {
                // A script is loaded where it was missing.
                Some((server, _)) => server,
                None => cluster.any(dialer).await?.server,
            };
            return self.send(server, command, false).await;
        };
        let mut node = cluster.owner(slot, dialer).await?;
        let mut asking = false;
        for _ in 0..=MOST_REDIRECTIONS {
            let result = self.send(node.server, command, asking).await;
            let Err(error) = &result else { return result };
            let Some(to) = redirection(error, &node.endpoint) else { return result };
            asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
            if !asking {
                cluster.moved(slot, &to);
            }
            node = cluster.node(to, dialer)?;
        }
        cluster.distrust();
        Err(RedisError::from((ErrorKind::Io, "the servers of the cluster pass it to each other")))
    }

    /// Sends to one server. Errors of the server are errors here.
    async fn send(
        &mut self,
        server: Arc<Server>,
        command: &Cmd,
        asking: bool,
    ) -> RedisResult<Value> {
        self.last = None; // a connection that cannot be made need not be dropped
        let (mut connection, number) = server.connection(&self.link.dialer).await?;
        self.last = Some((server, number));
        let answer = match asking {
            false => connection.send_packed_command(command).await?,
            true => {
                // The permission counts for the next command of the connection,
                // which others use too: so both go as one.
                let mut both = redis::pipe();
                both.cmd("ASKING").add_command(command.clone());
                let mut answers = connection.send_packed_commands(&both, 0, 2).await?;
                answers.pop().unwrap_or(Value::Nil)
            }
        };
        match answer {
            Value::ServerError(error) => Err(error.into()),
            answer => Ok(answer),
        }
    }
}

impl ConnectionLike for Route<'_> {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.request(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        _pipeline: &'a Pipeline,
        _offset: usize,
        _count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        // A pipeline could have keys of several servers. There is none: what
        // belongs together is one script.
        let refused = (ErrorKind::InvalidClientConfig, "a pipeline has no single route");
        Box::pin(std::future::ready(Err(refused.into())))
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Whether the connection had better be made anew, or the master be looked for:
/// see the table of the module.
pub(super) fn wants_new_connection(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, ResponseError};
    match error.kind() {
        ErrorKind::Server(kind) => {
            matches!(kind, ReadOnly | MasterDown | BusyLoading | ClusterDown | ResponseError)
        }
        ErrorKind::Extension => error.code() == Some("NOREPLICAS"),
        _ => error.is_unrecoverable_error() || error.is_io_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(url: &str) -> Link {
        let options = RedisOptions { timeout: Duration::from_secs(1), ca_file: None };
        Link::new(url, &options).unwrap()
    }

    #[test]
    fn answers_by_the_table() {
        let (one, cluster) = (link("redis://h"), link("redis+cluster://h"));
        for (answer, anew) in [
            ("MOVED 1 h:1", false),
            ("READONLY You can't write", true),
            ("MASTERDOWN Link with MASTER is down", true),
            ("NOREPLICAS Not enough good replicas", true),
            ("LOADING Redis is loading", true),
            ("CLUSTERDOWN Hash slot not served", true),
            ("ERR Write against a read only replica", true),
            ("ASK 1 h:1", false),
            ("TRYAGAIN Multiple keys", false),
            ("NOSCRIPT No matching script", false),
            ("OOM command not allowed", false),
            ("BUSY Redis is busy", false),
            ("NOAUTH Authentication required", false),
        ] {
            let text = format!("-{answer}\r\n");
            let value = redis::parse_redis_value(text.as_bytes()).unwrap();
            let error = value.extract_error().unwrap_err();
            assert_eq!(wants_new_connection(&error), anew, "{answer}");
            for link in [&one, &cluster] {
                let told = link.translate(&error);
                assert!(matches!(told, DispatchError::Unavailable(_)), "{answer}: {told:?}");
            }
        }
    }
}
