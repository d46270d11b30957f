//! Processor time of the servers and of the client, apart.

use std::fs;

use serde::Serialize;

/// In which the kernel tells times to programs (`USER_HZ`), whatever its own
/// clock is: 100 on every machine that this runs on.
const TICKS_PER_S: f64 = 100.0;

/// Ticks of a process or thread, and of its children that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    pub own: u64,
    pub children: u64,
}

/// The line of `/proc/PID/stat`: user and system time are fields 14 and 15,
/// those of children 16 and 17. The name before them may hold blanks and brackets.
pub fn parse_stat(line: &str) -> Option<Ticks> {
    let (_, after_name) = line.rsplit_once(')')?;
    // The first field after the name is the third of all.
    let mut times = after_name.split_ascii_whitespace().skip(14 - 3).map(str::parse);
    let mut next = || times.next()?.ok();
    Some(Ticks {
        own: u64::checked_add(next()?, next()?)?,
        children: u64::checked_add(next()?, next()?)?,
    })
}

/// Whose time is the client's.
#[derive(Clone, Copy, Debug)]
pub enum Client {
    ThisThread,
    ThisProcess,
    /// Programs that this one runs, and waits for.
    Children,
}

/// Whose time a turn takes.
#[derive(Clone, Debug)]
pub struct Meter {
    /// What is measured: nodes, or a yardstick in their place.
    pub nodes: Vec<u32>,
    pub redis: Option<u32>,
    pub mariadb: Option<u32>,
    pub client: Client,
}

/// Seconds so far, or within a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    node: Option<f64>,
    redis: Option<f64>,
    mariadb: Option<f64>,
    client: Option<f64>,
}

/// Processor time per request, in microseconds; `None` where a turn has no such
/// process, or it could not be read.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PerRequest {
    /// Of all nodes together.
    pub node_us: Option<f64>,
    pub redis_us: Option<f64>,
    pub mariadb_us: Option<f64>,
    pub client_us: Option<f64>,
}

impl Meter {
    pub fn read(&self) -> Usage {
        let of = |pid: &u32| own(&format!("/proc/{pid}/stat"));
        let nodes: Option<Vec<f64>> = self.nodes.iter().map(of).collect();
        Usage {
            node: nodes.filter(|nodes| !nodes.is_empty()).map(|nodes| nodes.iter().sum()),
            redis: self.redis.as_ref().and_then(of),
            mariadb: self.mariadb.as_ref().and_then(of),
            client: match self.client {
                Client::ThisThread => own("/proc/thread-self/stat"),
                Client::ThisProcess => own("/proc/self/stat"),
                Client::Children => seconds("/proc/self/stat", |ticks| ticks.children),
            },
        }
    }
}

impl Usage {
    /// What was used since `before`.
    pub fn since(self, before: Usage) -> Usage {
        let used = |now: Option<f64>, before: Option<f64>| Some(now? - before?);
        Usage {
            node: used(self.node, before.node),
            redis: used(self.redis, before.redis),
            mariadb: used(self.mariadb, before.mariadb),
            client: used(self.client, before.client),
        }
    }

    /// The share of one of so many requests.
    pub fn per_request(self, requests: f64) -> PerRequest {
        let share = |used: Option<f64>| used.filter(|_| requests > 0.0).map(|s| s * 1e6 / requests);
        PerRequest {
            node_us: share(self.node),
            redis_us: share(self.redis),
            mariadb_us: share(self.mariadb),
            client_us: share(self.client),
        }
    }
}

fn own(path: &str) -> Option<f64> {
    seconds(path, |ticks| ticks.own)
}

fn seconds(path: &str, of: fn(Ticks) -> u64) -> Option<f64> {
    let line = fs::read_to_string(path).ok()?;
    Some(of(parse_stat(&line)?) as f64 / TICKS_PER_S)
}
