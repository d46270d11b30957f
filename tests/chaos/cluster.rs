//! A cluster for one scenario: fresh types, a fresh Redis, a database of its own
//! on a MariaDB that most scenarios share.

use std::net::{Ipv4Addr, SocketAddr};

use idgen::adapters::mysql::sql::ACCOUNT;

use crate::load::{Kind, Load, tail};
use crate::support::mariadb::{self, MariaDb};
use crate::support::namespace::Namespace;
use crate::support::node::{Node, Surroundings, idgen};
use crate::support::proxy::Proxy;
use crate::support::redis::RedisServer;
use crate::support::sql_server::{SqlServer, TestDb};
use crate::support::{TempFolder, free_port};

/// What a cluster is made of.
#[derive(Default)]
pub struct Setup<'a> {
    /// How many nodes; 0 stands for three.
    pub nodes: usize,
    /// A MariaDB of its own, instead of the shared one.
    pub mariadb: Option<MariaDb>,
    /// Arguments of Redis.
    pub redis: &'a [&'a str],
    /// The URL under which nodes know Redis, instead of its own.
    pub redis_url: Option<String>,
    /// Arguments of every node.
    pub node: &'a [&'a str],
    /// A proxy on each way of each node: to Redis, to MariaDB, from clients.
    pub links: bool,
    /// A clock of its own for each node, that can be moved.
    pub clocks: bool,
}

/// The ways of one node.
pub struct Links {
    pub redis: Proxy,
    pub mysql: Proxy,
    pub clients: Proxy,
}

/// A running cluster. Nodes go first, then what they need.
pub struct Chaos {
    pub nodes: Vec<Node>,
    pub redis: RedisServer,
    pub links: Vec<Links>,
    pub db: TestDb,
    own: Option<MariaDb>,
    scenario: &'static str,
    namespaces: Vec<Namespace>,
    folder: TempFolder,
}

/// The name of Redis where each node has a way of its own to it: a file of
/// hosts for each node gives it the address of the node's proxy.
const REDIS_NAME: &str = "idgen-redis-test";

impl Chaos {
    /// Starts what `setup` asks for, and waits until all nodes are ready.
    pub fn start(scenario: &'static str, mut setup: Setup<'_>) -> Chaos {
        let own = setup.mariadb.take();
        let redis = RedisServer::start_with(setup.redis);
        let server: &SqlServer = own.as_deref().unwrap_or_else(|| mariadb::shared());
        let db = TestDb::empty(server);
        let applied = idgen(&["schema", "apply", "--mysql", &db.admin.url]);
        let error = String::from_utf8_lossy(&applied.stderr).to_string();
        assert!(applied.status.success(), "schema apply: {error}");
        let mut chaos = Chaos {
            nodes: Vec::new(),
            redis,
            links: Vec::new(),
            db,
            own,
            scenario,
            namespaces: Vec::new(),
            folder: TempFolder::new("chaos"),
        };
        let count = if setup.nodes == 0 { 3 } else { setup.nodes };
        // One port on as many loopback addresses as there are nodes.
        let redis_port = free_port();
        for index in 0..count {
            chaos.add_node(index, redis_port, &setup);
        }
        chaos
    }

    fn add_node(&mut self, index: usize, redis_port: u16, setup: &Setup<'_>) {
        let account = format!("{}_n{index}", self.db.name);
        let script = ACCOUNT.replace("idgen_app", &account).replace("change-me", TestDb::PASSWORD);
        self.sql(&script);
        let mut mysql = self.server().url(&account, TestDb::PASSWORD, &self.db.name);
        let mut redis = setup.redis_url.clone().unwrap_or_else(|| self.redis.url());
        let mut around = Surroundings::default();
        let mut ways = None;
        if setup.links {
            let ip = Ipv4Addr::new(127, 0, 1, 1 + index as u8);
            let to_redis = Proxy::at(SocketAddr::from((ip, redis_port)), self.redis.port());
            let to_mysql = Proxy::to(self.server().port());
            let (old, new) = (self.server().port(), to_mysql.port());
            mysql = mysql.replace(&format!(":{old}/"), &format!(":{new}/"));
            redis = format!("redis://{REDIS_NAME}:{redis_port}");
            let hosts = self.folder.path().join(format!("hosts{index}"));
            std::fs::write(&hosts, format!("127.0.0.1 localhost\n{ip} {REDIS_NAME}\n"))
                .expect("a file");
            let namespace = Namespace::with(
                r#"mount --bind "$1" /etc/hosts"#,
                &[hosts.to_str().expect("UTF-8")],
            );
            around.before = namespace.enter();
            self.namespaces.push(namespace);
            ways = Some((to_redis, to_mysql));
        }
        if setup.clocks {
            around.variables = clock_variables(&self.clock_file(index));
            self.set_clock(index, 0);
        }
        let data = self.folder.path().to_str().expect("UTF-8").to_owned();
        let arguments = ["--mysql", &mysql, "--redis", &redis, "--data", &data];
        let node = Node::start_in(around, &[&arguments, setup.node].concat());
        if let Some((redis, mysql)) = ways {
            let port = node.thrift.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            let clients = Proxy::to(port.expect("a port"));
            self.links.push(Links { redis, mysql, clients });
        }
        self.nodes.push(node);
    }

    /// The server of the database.
    pub fn server(&self) -> &SqlServer {
        self.own.as_deref().unwrap_or_else(|| mariadb::shared())
    }

    /// The same, to be killed: only a cluster with one of its own has it.
    pub fn mariadb(&mut self) -> &mut SqlServer {
        self.own.as_mut().expect("a MariaDB of its own")
    }

    /// Asks the database as its administrator.
    pub fn sql(&self, sql: &str) -> String {
        self.server().sql(&self.db.name, sql)
    }

    /// Sets the clock of a node `seconds` off, from now on.
    pub fn set_clock(&self, node: usize, seconds: i64) {
        let file = self.clock_file(node);
        let next = file.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}\n")).expect("a file");
        std::fs::rename(next, file).expect("a file");
    }

    fn clock_file(&self, node: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("clock{node}"))
    }

    /// A load of `kinds` on all nodes, through their proxies where they have any.
    pub fn load(&self, kinds: &[Kind]) -> Load {
        let direct = self.nodes.iter().map(|node| node.thrift.clone());
        let addresses: Vec<_> = match self.links.is_empty() {
            true => direct.collect(),
            false => self.links.iter().map(|links| links.clients.address()).collect(),
        };
        Load::start(self.scenario, &self.nodes, &addresses, kinds)
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.nodes.iter().for_each(|node| eprintln!("--- a node\n{}", tail(&node.log())));
        }
    }
}

/// The variables that make libfaketime read a process's clock from a file.
pub fn clock_variables(file: &std::path::Path) -> Vec<(String, String)> {
    let folders = std::fs::read_dir("/usr/lib").expect("a folder").filter_map(Result::ok);
    let library = folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists())
        .expect("faketime is installed: run `make test-deps`");
    let library = library.to_str().expect("UTF-8");
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        variable("LD_PRELOAD", library),
        variable("FAKETIME_TIMESTAMP_FILE", file.to_str().expect("UTF-8")),
        variable("FAKETIME_NO_CACHE", "1"),
        variable("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        variable("DONT_FAKE_MONOTONIC", "1"),
    ]
}
