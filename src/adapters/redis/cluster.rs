//! The map of a Redis Cluster: which master has which hash slot.
//!
//! All known servers are asked for it at once, and the newest one counts (its
//! epoch). It is asked for anew before the next request whenever a server failed,
//! and corrected by each `MOVED`. Following these here, instead of with the
//! library's client, keeps the rule that no request is sent twice whose outcome
//! is unknown; that client repeats what was in flight when a connection broke.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redis::{Arg, Cmd, ErrorKind, RedisError, RedisResult, Value};
use tokio::time::Instant;

use super::KEY_PREFIX;
use super::link::wants_new_connection;
use super::majority::newest;
use super::server::{Dialer, PAUSE_AFTER_FAILURE, Server, Whereabouts};
use crate::domain::redis_url::{Endpoint, Login};

/// How many slots every cluster has.
const SLOTS: usize = 16_384;

/// A server, and how others find it.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) endpoint: Endpoint,
    pub(super) server: Arc<Server>,
}

pub(super) struct Cluster {
    seeds: Vec<Endpoint>,
    login: Login,
    known: Mutex<Known>,
    /// Whether the map must be asked for before the next request.
    outdated: AtomicBool,
    /// When the map was asked for last, and how that ended.
    asking: tokio::sync::Mutex<Option<(Instant, RedisResult<()>)>>,
}

#[derive(Default)]
struct Known {
    /// Connections outlive changes of the map.
    servers: HashMap<Endpoint, Arc<Server>>,
    masters: Vec<Endpoint>,
    /// For each slot its master, in `masters`; empty before the first answer.
    owners: Vec<Option<u16>>,
    epoch: u64,
    /// Whether the cluster takes requests, as far as it knows.
    is_ok: bool,
}

/// A map as one server sees it.
struct Map {
    epoch: u64,
    /// Whether that server takes requests.
    is_ok: bool,
    /// From, to (inclusive), master.
    ranges: Vec<(u16, u16, Endpoint)>,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<Endpoint>, login: Login) -> Self {
        Cluster {
            seeds,
            login,
            known: Mutex::default(),
            outdated: AtomicBool::new(true),
            asking: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // Each change is complete or was not begun.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map is asked for again before the next request.
    pub(super) fn distrust(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    /// The master of `slot`.
    pub(super) async fn owner(&self, slot: u16, dialer: &Dialer) -> RedisResult<Node> {
        self.refresh(dialer).await?;
        let endpoint = {
            let known = self.known();
            let owner = known.owners.get(usize::from(slot)).copied().flatten();
            owner.map(|index| known.masters[usize::from(index)].clone())
        };
        match endpoint {
            Some(endpoint) => self.node(endpoint, dialer),
            None => {
                self.distrust();
                Err(RedisError::from((
                    ErrorKind::Io,
                    "no master has the hash slot",
                    slot.to_string(),
                )))
            }
        }
    }

    /// Any master, with a connection if there is one.
    pub(super) async fn any(&self, dialer: &Dialer) -> RedisResult<Node> {
        self.refresh(dialer).await?;
        let mut masters = self.known().masters.clone();
        masters.sort_by_cached_key(|master| {
            !self.known().servers.get(master).is_some_and(|server| server.is_connected())
        });
        let mut why = RedisError::from((ErrorKind::Io, "the cluster has no masters"));
        for master in masters {
            let node = self.node(master, dialer)?;
            match node.server.connection(dialer).await {
                Ok(_) => return Ok(node),
                Err(error) => why = error,
            }
        }
        self.distrust();
        Err(why)
    }

    /// The master of `slot` has changed.
    pub(super) fn moved(&self, slot: u16, to: &Endpoint) {
        let mut known = self.known();
        let index = known.masters.iter().position(|master| master == to).unwrap_or_else(|| {
            known.masters.push(to.clone());
            known.masters.len() - 1
        });
        if let Some(owner) = known.owners.get_mut(usize::from(slot)) {
            *owner = u16::try_from(index).ok();
        }
    }

    /// The server at `endpoint`.
    pub(super) fn node(&self, endpoint: Endpoint, dialer: &Dialer) -> RedisResult<Node> {
        let mut known = self.known();
        let server = match known.servers.get(&endpoint) {
            Some(server) => server.clone(),
            None => {
                let client = dialer.client(&self.login.url(&endpoint))?;
                let server = Arc::new(Server::new(Whereabouts::Fixed(client)));
                known.servers.insert(endpoint.clone(), server.clone());
                server
            }
        };
        Ok(Node { endpoint, server })
    }

    /// The epoch of the map, asked for now; an error where the cluster says of
    /// itself that it is down.
    pub(super) async fn epoch(&self, dialer: &Dialer) -> RedisResult<u64> {
        self.distrust();
        self.refresh(dialer).await?;
        let known = self.known();
        match known.is_ok {
            true => Ok(known.epoch),
            false => Err(RedisError::from((ErrorKind::Io, "cluster_state is fail"))),
        }
    }

    /// Asks for the map, where that is due.
    async fn refresh(&self, dialer: &Dialer) -> RedisResult<()> {
        if !self.outdated.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut last = self.asking.lock().await;
        if !self.outdated.load(Ordering::Relaxed) {
            return Ok(()); // somebody else has asked meanwhile
        }
        if let Some((at, result)) = &*last
            && at.elapsed() < PAUSE_AFTER_FAILURE
        {
            return result.clone();
        }
        let witnesses: BTreeSet<_> =
            self.seeds.iter().chain(&self.known().masters).cloned().collect();
        let questions = witnesses.into_iter().map(|endpoint| self.ask(endpoint, dialer));
        let result = newest(questions, dialer.timeout / 2).await.map(|map| self.adopt(map));
        if result.is_ok() {
            self.outdated.store(false, Ordering::Relaxed);
        }
        *last = Some((Instant::now(), result.clone()));
        result
    }

    /// A cut-off part of the cluster finds itself down after a while, whatever
    /// its epoch; so who is in order counts first.
    async fn ask(&self, endpoint: Endpoint, dialer: &Dialer) -> RedisResult<((bool, u64), Map)> {
        let node = self.node(endpoint, dialer)?;
        let (mut connection, number) = node.server.connection(dialer).await?;
        let mut both = redis::pipe();
        both.cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS");
        match both.query_async(&mut connection).await {
            Ok((info, slots)) => {
                let map = Map::read(info, slots, &node.endpoint)?;
                Ok(((map.is_ok, map.epoch), map))
            }
            Err(error) => {
                if wants_new_connection(&error) {
                    node.server.drop_connection(number, dialer).await;
                }
                Err(error)
            }
        }
    }

    fn adopt(&self, map: Map) {
        let mut owners = vec![None; SLOTS];
        let mut masters: Vec<Endpoint> = Vec::new();
        for (from, to, master) in map.ranges {
            let index = masters.iter().position(|m| *m == master).unwrap_or_else(|| {
                masters.push(master);
                masters.len() - 1
            });
            let last = usize::from(to).min(SLOTS - 1);
            if let Some(range) = owners.get_mut(usize::from(from)..=last) {
                range.fill(u16::try_from(index).ok());
            }
        }
        let mut known = self.known();
        known.servers.retain(|at, _| masters.contains(at) || self.seeds.contains(at));
        *known = Known {
            servers: std::mem::take(&mut known.servers),
            masters,
            owners,
            epoch: map.epoch,
            is_ok: map.is_ok,
        };
    }
}

impl Map {
    fn read(info: String, slots: Vec<Vec<Value>>, asked: &Endpoint) -> RedisResult<Map> {
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.trim_end().split_once(':'));
            lines.find(|(field, _)| *field == name).map(|(_, value)| value)
        };
        let odd = || RedisError::from((ErrorKind::UnexpectedReturnType, "odd map of a cluster"));
        let epoch = field("cluster_current_epoch").and_then(|text| text.parse().ok());
        let ranges = slots.into_iter().map(|range| match &range[..] {
            // Behind the master stand its replicas.
            [Value::Int(from), Value::Int(to), Value::Array(master), ..] => {
                let [host, Value::Int(port), ..] = &master[..] else { return Err(odd()) };
                let host = match host {
                    Value::BulkString(host) => str::from_utf8(host).map_err(|_| odd())?,
                    _ => "",
                };
                let slot = |number: &i64| u16::try_from(*number).map_err(|_| odd());
                let port = u16::try_from(*port).map_err(|_| odd())?;
                Ok((slot(from)?, slot(to)?, beside(asked, host, port)))
            }
            _ => Err(odd()),
        });
        Ok(Map {
            epoch: epoch.ok_or_else(odd)?,
            is_ok: field("cluster_state") == Some("ok"),
            ranges: ranges.collect::<RedisResult<_>>()?,
        })
    }
}

/// The endpoint that a server at `asked` means: a server that does not know its
/// own name leaves it out, or writes a question mark.
fn beside(asked: &Endpoint, host: &str, port: u16) -> Endpoint {
    let host = if matches!(host, "" | "?") { &asked.host } else { host };
    Endpoint { host: host.to_owned(), port }
}

/// Where a `MOVED` or `ASK` from the server at `asked` points.
pub(super) fn redirection(error: &RedisError, asked: &Endpoint) -> Option<Endpoint> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(beside(asked, host, port.parse().ok()?))
}

/// The slot that decides where a command goes; `None` for one without keys.
///
/// All keys begin with `idgen:{NAME}`, and all those of a command have the same
/// name. So the first argument of that form is a key, whatever the command.
pub(super) fn slot_of(command: &Cmd) -> Option<u16> {
    command.args_iter().find_map(|argument| match argument {
        Arg::Simple(text) => {
            let name = text.strip_prefix(KEY_PREFIX)?;
            let end = name.iter().position(|byte| *byte == b'}')?;
            Some(crc16(&name[..end]) % SLOTS as u16)
        }
        _ => None,
    })
}

/// CRC-16/XMODEM, as the specification of Redis Cluster has it.
fn crc16(text: &[u8]) -> u16 {
    text.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::{leases_key, lock_key, request_key, type_key};
    use super::*;
    use crate::domain::TypeName;

    #[test]
    fn all_keys_of_a_type_have_the_slot_of_its_name() {
        // The check value of the specification.
        assert_eq!(crc16(b"123456789"), 0x31C3);
        let name = TypeName::parse("123456789").unwrap();
        let keys = [type_key(&name), lock_key(&name), leases_key(&name), request_key(&name, "{x}")];
        for key in keys {
            let mut command = redis::cmd("EVALSHA");
            command.arg("0123").arg(1).arg(key).arg("idgen:{other}");
            assert_eq!(slot_of(&command), Some(0x31C3));
        }
        let message = format!("range {name} 1 2 3");
        assert_eq!(slot_of(redis::cmd("PUBLISH").arg("idgen:events").arg(message)), None);
        assert_eq!(slot_of(redis::cmd("SCRIPT").arg("LOAD").arg("return 'idgen:{x}'")), None);
    }

    #[test]
    fn a_map_as_servers_write_it() {
        let asked = Endpoint { host: "h".into(), port: 7_000 };
        let info = "cluster_state:ok\r\ncluster_current_epoch:6\r\n".to_owned();
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let slots = vec![
            vec![Value::Int(0), Value::Int(9), node(text("a"), 1), node(text("b"), 1)],
            vec![Value::Int(10), Value::Int(10), node(Value::Nil, 2)],
            vec![Value::Int(11), Value::Int(16_383), node(text("?"), 3)],
        ];
        let map = Map::read(info.clone(), slots, &asked).unwrap();
        assert_eq!((map.epoch, map.is_ok), (6, true));
        let at = |host: &str, port| Endpoint { host: host.into(), port };
        let expected = [(0, 9, at("a", 1)), (10, 10, at("h", 2)), (11, 16_383, at("h", 3))];
        assert_eq!(map.ranges, expected);
        let cluster = Cluster::new(vec![asked.clone()], no_login());
        cluster.adopt(map);
        cluster.moved(12, &at("new", 4));
        let known = cluster.known();
        let owner = |slot: usize| &known.masters[usize::from(known.owners[slot].unwrap())];
        assert_eq!(
            [owner(9).port, owner(11).port, owner(12).port, owner(16_383).port],
            [1, 3, 4, 3]
        );
        for odd in [vec![Value::Int(0)], vec![Value::Int(-1), Value::Int(2), node(text("a"), 1)]] {
            assert!(Map::read(info.clone(), vec![odd], &asked).is_err());
        }
        assert!(Map::read("cluster_state:ok".into(), vec![], &asked).is_err());
    }

    #[test]
    fn redirections() {
        let asked = Endpoint { host: "h".into(), port: 7_000 };
        for (answer, to) in [
            ("12 10.0.0.1:7001", "10.0.0.1:7001"),
            ("12 fd00::1:7001", "[fd00::1]:7001"),
            ("12 :7001", "h:7001"),
            ("12 ?:7001", "h:7001"),
        ] {
            let error = RedisError::from((
                ErrorKind::Server(redis::ServerErrorKind::Moved),
                "An error was signalled by the server",
                answer.to_owned(),
            ));
            assert_eq!(redirection(&error, &asked).unwrap().to_string(), to, "{answer}");
        }
    }

    fn no_login() -> Login {
        match crate::domain::RedisUrl::parse("redis+cluster://h").unwrap() {
            crate::domain::RedisUrl::Cluster { login, .. } => login,
            _ => unreachable!(),
        }
    }
}
