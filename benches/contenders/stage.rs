//! Everything that runs. Each server is started when it is first needed, and
//! is there until the end; so a turn disturbs no other by starting something.

use std::net::SocketAddr;
use std::process::Command;

use serde::Serialize;

use crate::line_up::{IDLE, LEASED, SEGMENT, STRICT, Server, TYPE};
use crate::node::{IdNode, NodeSetup, apply_schema};
use crate::process::{Folder, Outcome, Process};
use crate::{floor, null_server, servers};

/// What is measured of a node that has nothing to do.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    pub name: &'static str,
    /// From the start of the process, over its data of before, to the first id.
    pub first_id_ms: f64,
    /// Resident memory after the first id, before any load.
    pub resident_mb: Option<f64>,
    /// The same after all rounds.
    pub resident_after_load_mb: Option<f64>,
    /// From SIGTERM to the end of the process.
    pub stop_ms: Option<f64>,
}

/// Where a server is, and whose processor time it takes.
#[derive(Clone, Debug)]
pub struct Place {
    pub addresses: Vec<SocketAddr>,
    /// The type that it serves, or the key.
    pub id_type: &'static str,
    /// Of the nodes, or of the yardstick.
    pub pids: Vec<u32>,
    pub redis: Option<u32>,
    pub mariadb: Option<u32>,
}

type Started<T> = Option<Outcome<T>>;

/// What was started, in the order in which it is stopped.
pub struct Stage<'f> {
    strict: Vec<IdNode>,
    embedded: Started<IdNode>,
    leasing: Started<IdNode>,
    floor: Started<(Process, SocketAddr)>,
    null: Started<(Process, SocketAddr)>,
    redis: Started<(Process, SocketAddr)>,
    mariadb: Started<(Process, String)>,
    idle: Vec<Idle>,
    folder: &'f Folder,
}

impl<'f> Stage<'f> {
    pub fn new(folder: &'f Folder) -> Stage<'f> {
        Stage {
            strict: Vec::new(),
            embedded: None,
            leasing: None,
            floor: None,
            null: None,
            redis: None,
            mariadb: None,
            idle: Vec::new(),
            folder,
        }
    }

    /// The server, started if it is not there.
    pub fn place(&mut self, server: Server) -> Outcome<Place> {
        let folder = self.folder;
        match server {
            Server::Floor => {
                let start = || start_self(floor::ARGUMENT, folder);
                yardstick(self.floor.get_or_insert_with(start))
            }
            Server::Null => {
                let start = || start_self(null_server::ARGUMENT, folder);
                yardstick(self.null.get_or_insert_with(start))
            }
            Server::Redis => {
                let (address, pid) = self.redis()?;
                let id_type = TYPE;
                let (redis, mariadb) = (Some(pid), None);
                Ok(Place { addresses: vec![address], id_type, pids: Vec::new(), redis, mariadb })
            }
            Server::Leasing(id_type) => {
                let (address, pid) = self.leasing().map(at)?;
                self.beside_servers(vec![address], vec![pid], id_type)
            }
            Server::Strict(count) => {
                let (addresses, pids) = self.strict(count)?.iter().map(at).unzip();
                self.beside_servers(addresses, pids, TYPE)
            }
            Server::Embedded => {
                if self.embedded.is_none() {
                    let setup = NodeSetup { name: "embedded".into(), mysql: None, redis: None };
                    self.embedded = Some(self.restarted("embedded", &setup, &[]));
                }
                let node = self.embedded.as_ref().expect("just made").as_ref();
                let (address, pid) = node.map(at).map_err(String::clone)?;
                let (addresses, pids) = (vec![address], vec![pid]);
                Ok(Place { addresses, id_type: TYPE, pids, redis: None, mariadb: None })
            }
        }
    }

    /// The node of the leased types, if it was started.
    pub fn leasing_node(&self) -> Option<&IdNode> {
        self.leasing.as_ref()?.as_ref().ok()
    }

    /// So many nodes that serve one strict type.
    pub fn strict(&mut self, count: usize) -> Outcome<&[IdNode]> {
        while self.strict.len() < count {
            let setup = self.setup(&format!("{STRICT}-{}", self.strict.len() + 1))?;
            let node = match self.strict.is_empty() {
                true => self.restarted(STRICT, &setup, &[])?,
                false => {
                    let (mut node, begun) = IdNode::start(&setup, self.folder)?;
                    node.first_id(TYPE, begun)?;
                    node
                }
            };
            self.strict.push(node);
        }
        Ok(&self.strict[..count])
    }

    /// Where a node of this name keeps what: on the servers of this run.
    pub fn setup(&mut self, name: &str) -> Outcome<NodeSetup> {
        let (redis, _) = self.redis()?;
        let (mysql, _) = self.mariadb()?;
        Ok(NodeSetup { name: name.to_owned(), mysql: Some(mysql), redis: Some(redis) })
    }

    fn beside_servers(
        &mut self,
        addresses: Vec<SocketAddr>,
        pids: Vec<u32>,
        id_type: &'static str,
    ) -> Outcome<Place> {
        let (redis, mariadb) = (Some(self.redis()?.1), Some(self.mariadb()?.1));
        Ok(Place { addresses, id_type, pids, redis, mariadb })
    }

    fn redis(&mut self) -> Outcome<(SocketAddr, u32)> {
        let folder = self.folder;
        let started = self.redis.get_or_insert_with(|| servers::redis(folder));
        started.as_ref().map(|(p, address)| (*address, p.pid())).map_err(String::clone)
    }

    /// The URL of the account, and the process.
    fn mariadb(&mut self) -> Outcome<(String, u32)> {
        let folder = self.folder;
        let started = self.mariadb.get_or_insert_with(|| {
            let (process, url) = servers::mariadb(folder)?;
            apply_schema(&url)?;
            Ok((process, url))
        });
        started.as_ref().map(|(p, url)| (url.clone(), p.pid())).map_err(String::clone)
    }

    fn leasing(&mut self) -> Outcome<&IdNode> {
        if self.leasing.is_none() {
            self.leasing = Some(self.start_leasing());
        }
        self.leasing.as_ref().expect("just made").as_ref().map_err(String::clone)
    }

    fn start_leasing(&mut self) -> Outcome<IdNode> {
        let setup = self.setup(SEGMENT)?;
        // The silent connections, and some that are not.
        let most = (IDLE + 1_000).to_string();
        let arguments = ["--thrift-max-connections", &most];
        let (mut node, _) = IdNode::start_with(&setup, &arguments, self.folder)?;
        node.ready()?;
        for (name, flags) in LEASED {
            node.add_type(name, flags)?;
        }
        Ok(node)
    }

    /// Starts a node twice: once to add the type, and once more, as an operator
    /// restarts it, to see how soon it hands out the first id.
    fn restarted(
        &mut self,
        name: &'static str,
        setup: &NodeSetup,
        flags: &[&str],
    ) -> Outcome<IdNode> {
        let (mut node, _) = IdNode::start(setup, self.folder)?;
        node.ready()?;
        node.add_type(TYPE, flags)?;
        node.process.stop()?;
        let (mut node, begun) = IdNode::start(setup, self.folder)?;
        let first_id = node.first_id(TYPE, begun)?;
        self.idle.push(Idle {
            name,
            first_id_ms: first_id.as_secs_f64() * 1_000.0,
            resident_mb: megabytes(&node.process),
            resident_after_load_mb: None,
            stop_ms: None,
        });
        Ok(node)
    }

    /// Stops everything, and tells what was seen of nodes without load.
    pub fn close(mut self) -> Vec<Idle> {
        for idle in &mut self.idle {
            let node = match idle.name {
                STRICT => self.strict.first_mut(),
                _ => self.embedded.as_mut().and_then(|started| started.as_mut().ok()),
            };
            if let Some(node) = node {
                idle.resident_after_load_mb = megabytes(&node.process);
                idle.stop_ms = node.process.stop().ok().map(|d| d.as_secs_f64() * 1_000.0);
            }
        }
        std::mem::take(&mut self.idle)
    }
}

fn at(node: &IdNode) -> (SocketAddr, u32) {
    (node.thrift, node.process.pid())
}

fn yardstick(started: &Outcome<(Process, SocketAddr)>) -> Outcome<Place> {
    let (process, address) = started.as_ref().map_err(String::clone)?;
    let (addresses, pids) = (vec![*address], vec![process.pid()]);
    Ok(Place { addresses, id_type: TYPE, pids, redis: None, mariadb: None })
}

/// Starts this program as a server that prints its address first.
fn start_self(argument: &str, folder: &Folder) -> Outcome<(Process, SocketAddr)> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut process = Process::start(argument, Command::new(program).arg(argument), folder)?;
    let log = folder.path(&format!("{argument}.log"));
    let mut address = None;
    process.wait_until(|| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        address = text.lines().next().and_then(|line| line.parse().ok());
        address.is_some()
    })?;
    address.map(|address| (process, address)).ok_or_else(|| "no address".to_owned())
}

fn megabytes(process: &Process) -> Option<f64> {
    process.resident_bytes().map(|bytes| bytes as f64 / 1_048_576.0)
}
