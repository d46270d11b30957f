//! Private Sentinel groups and Redis Clusters on loopback.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::redis::RedisServer;
use super::{TempFolder, free_port};

/// The name of every group of the tests.
pub const GROUP: &str = "main";

/// Waits until `holds`; at most 20 s.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let bound = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < bound, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `redis-cli` on `port`, and returns what it prints.
pub fn cli(port: u16, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-p", &port.to_string(), "--no-auth-warning"])
        .args(arguments)
        .output()
        .expect("redis-cli runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

struct Sentinel {
    port: u16,
    child: Child,
}

impl Sentinel {
    /// Watches the master at `port`, with further `lines` of configuration.
    fn start(path: PathBuf, port: u16, lines: &str) -> Sentinel {
        let own = free_port();
        let text = format!(
            "port {own}\nbind 127.0.0.1\nsentinel monitor {GROUP} 127.0.0.1 {port} 2\n{lines}"
        );
        std::fs::write(&path, text).expect("a configuration");
        let child = Command::new("redis-server")
            .arg(&path)
            .args(["--sentinel", "--daemonize", "no", "--logfile"])
            .arg(path.with_extension("log"))
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed: run `make test-deps`");
        Sentinel { port: own, child }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.child.kill().expect("the Sentinel can be killed");
        self.child.wait().expect("the Sentinel ends");
    }
}

/// One master, two replicas, three Sentinels with a quorum of two.
pub struct SentinelGroup {
    /// In the order of their start: the first one begins as master.
    pub servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
    account: String,
    _folder: TempFolder,
}

impl SentinelGroup {
    /// Starts it, and waits until every server and Sentinel knows the others.
    pub fn start() -> Self {
        Self::start_with(&[], &[], "")
    }

    /// With further arguments of the servers and lines of the Sentinels'
    /// configuration; `account` stands before the `@` of the URL.
    pub fn start_with(server: &[&str], sentinel: &[&str], account: &str) -> Self {
        let master = RedisServer::start_with(server);
        let port = master.port().to_string();
        let mut arguments = vec!["--replicaof", "127.0.0.1", &port];
        arguments.extend(server);
        let replicas = [RedisServer::start_with(&arguments), RedisServer::start_with(&arguments)];
        let password = arguments.windows(2).find(|pair| pair[0] == "--requirepass");
        let password = password.map(|pair| pair[1].to_owned());
        let mut servers = vec![master];
        servers.extend(replicas);
        // A Sentinel looks for replicas every ten seconds only: the first look
        // must find them.
        until("replicas in step", || {
            let mut all = vec!["info", "replication"];
            if let Some(password) = &password {
                all.splice(0..0, ["-a", password]);
            }
            servers[0].cli(&all).matches("state=online").count() == 2
        });

        let folder = TempFolder::new("sentinel");
        let mut lines = format!(
            "sentinel down-after-milliseconds {GROUP} 400\nsentinel failover-timeout {GROUP} 2000\n"
        );
        lines.extend(sentinel.iter().map(|line| format!("{line}\n")));
        let sentinels = (0..3).map(|number| {
            let path = folder.path().join(format!("{number}.conf"));
            Sentinel::start(path, servers[0].port(), &lines)
        });
        let sentinels = sentinels.collect();
        let group =
            SentinelGroup { servers, sentinels, account: account.to_owned(), _folder: folder };
        until("the group", || (0..3).all(|number| group.is_complete(number)));
        group
    }

    /// Whether a Sentinel sees a sound group and both of its peers.
    fn is_complete(&self, number: usize) -> bool {
        let about = self.sentinel(number, &["sentinel", "master", GROUP]);
        let lines: Vec<_> = about.lines().collect();
        let has = |field, value| lines.windows(2).any(|pair| pair == [field, value]);
        let replicas = self.sentinel(number, &["sentinel", "replicas", GROUP]);
        has("num-slaves", "2")
            && has("num-other-sentinels", "2")
            && has("flags", "master")
            && replicas.matches("\nmaster-link-status\nok").count() == 2
            && !replicas.contains("_down")
    }

    /// Asks a Sentinel.
    pub fn sentinel(&self, number: usize, arguments: &[&str]) -> String {
        let password = self.account.rsplit_once('@').map(|(_, sentinel)| sentinel);
        let mut all = Vec::new();
        if let Some((_, password)) = password.and_then(|account| account.split_once(':')) {
            all.extend(["-a", password]);
        }
        all.extend(arguments);
        cli(self.sentinels[number].port, &all)
    }

    /// Kills a Sentinel.
    pub fn kill_sentinel(&mut self, number: usize) {
        self.sentinels[number].child.kill().expect("the Sentinel can be killed");
    }

    /// `redis+sentinel://…`.
    pub fn url(&self) -> String {
        let all: Vec<_> = self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port)).collect();
        let at = if self.account.is_empty() { "" } else { "@" };
        format!("redis+sentinel://{}{at}{}/{GROUP}", self.account, all.join(","))
    }

    /// The server that the first Sentinel says is the master, by its place.
    pub fn master(&self) -> usize {
        let address = self.sentinel(0, &["sentinel", "get-master-addr-by-name", GROUP]);
        let port = address.lines().nth(1).unwrap_or_default().to_owned();
        let place = self.servers.iter().position(|s| s.port().to_string() == port);
        place.unwrap_or_else(|| panic!("no server has the port of {address:?}"))
    }
}

/// Three masters with a replica each.
pub struct RedisCluster {
    /// The first three begin as masters.
    pub servers: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts it, and waits until every server finds it in order.
    pub fn start() -> Self {
        let arguments = [
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "500",
            "--cluster-replica-validity-factor",
            "0",
        ];
        let servers: Vec<_> = (0..6).map(|_| RedisServer::start_cluster_node(&arguments)).collect();
        let endpoints: Vec<_> = servers.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        let mut arguments = vec!["--cluster", "create"];
        arguments.extend(endpoints.iter().map(String::as_str));
        arguments.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        let made = cli(servers[0].port(), &arguments);
        assert!(made.contains("All 16384 slots covered"), "{made}");
        let cluster = RedisCluster { servers };
        until("the cluster", || cluster.is_sound());
        cluster
    }

    /// Whether all its servers see all slots served, and three replicas in step.
    fn is_sound(&self) -> bool {
        let is_ok = |s: &RedisServer| s.cli(&["cluster", "info"]).contains("cluster_state:ok");
        let in_step =
            |s: &&RedisServer| s.cli(&["info", "replication"]).contains("master_link_status:up");
        self.servers.iter().all(is_ok) && self.servers.iter().filter(in_step).count() == 3
    }

    /// `redis+cluster://…` with two of its servers.
    pub fn url(&self) -> String {
        let [a, b] = [self.servers[0].port(), self.servers[1].port()];
        format!("redis+cluster://127.0.0.1:{a},127.0.0.1:{b}")
    }

    /// The master that has the slot of `key`, by its place, as the server `asked`
    /// sees it.
    pub fn owner(&self, asked: usize, key: &str) -> Option<usize> {
        let slot: u32 = self.servers[asked].cli(&["cluster", "keyslot", key]).parse().ok()?;
        let nodes = self.servers[asked].cli(&["cluster", "nodes"]);
        let has_it = |line: &&str| {
            line.split(' ').skip(8).any(|range| {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                matches!((from.parse::<u32>(), to.parse::<u32>()), (Ok(from), Ok(to))
                    if (from..=to).contains(&slot))
            })
        };
        let line = nodes.lines().find(has_it)?;
        let port = line.split(['@', ' ']).nth(1)?.rsplit(':').next()?.to_owned();
        self.servers.iter().position(|server| server.port().to_string() == port)
    }

    /// The id of a server in the cluster.
    pub fn id(&self, place: usize) -> String {
        self.servers[place].cli(&["cluster", "myid"])
    }
}

/// A Sentinel without peers that has heard of `epoch` and the master at `port`.
pub fn lone_sentinel(epoch: u32, port: u16) -> LoneSentinel {
    let folder = TempFolder::new("sentinel");
    let lines = format!(
        "sentinel down-after-milliseconds {GROUP} 60000\nsentinel config-epoch {GROUP} {epoch}\n"
    );
    let sentinel = Sentinel::start(folder.path().join("lone.conf"), port, &lines);
    until("a Sentinel", || cli(sentinel.port, &["ping"]) == "PONG");
    LoneSentinel { sentinel, _folder: folder }
}

/// See [`lone_sentinel`].
pub struct LoneSentinel {
    sentinel: Sentinel,
    _folder: TempFolder,
}

impl LoneSentinel {
    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.sentinel.port
    }
}
