//! Nodes and clusters of real processes.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use serde_json::Value;

use super::mariadb::MariaDb;
use super::redis::RedisServer;
use super::sql_server::TestDb;
use super::{TempFolder, free_port, send_signal};

/// The program under test: that of this build, or the one that the variable
/// `CHAOS_PROGRAM` names.
fn program() -> std::ffi::OsString {
    std::env::var_os("CHAOS_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_idgen").into())
}

/// The admin token of every node in the tests.
pub const TOKEN: &str = "a-token-for-tests";

/// Tests of whole clusters take turns: two cores that are busy with several of
/// them cannot keep anybody's time limits.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed while it held the turn has broken nothing for the next.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `idgen` with `arguments`, and nothing of this machine's settings.
pub fn command(arguments: &[&str]) -> Command {
    command_behind(&[], arguments)
}

/// The same behind the program and arguments `before`, which must turn into it
/// (`exec`), so that the process stays the same.
fn command_behind(before: &[String], arguments: &[&str]) -> Command {
    let mut command = match before {
        [] => Command::new(program()),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program());
            command
        }
    };
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("IDGEN_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `idgen` to its end.
pub fn idgen(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program runs")
}

/// Appends to `text` what comes from `stream`, by lines.
fn collect(stream: impl std::io::Read + Send + 'static, text: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut text = text.lock().expect("never poisoned");
            text.push_str(&line);
            text.push('\n');
        }
    });
}

/// A running node, killed on drop.
pub struct Node {
    /// `127.0.0.1:PORT` of Thrift.
    pub thrift: String,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    arguments: Vec<String>,
    around: Surroundings,
    log: Arc<Mutex<String>>,
    said: Arc<Mutex<String>>,
    child: Option<Child>,
}

/// What a node is started in.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// A program and its arguments that turn into the node.
    pub before: Vec<String>,
    /// Further variables of the environment.
    pub variables: Vec<(String, String)>,
}

impl Node {
    /// Starts a node with further arguments, and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Node {
        Self::start_in(Surroundings::default(), arguments)
    }

    /// The same in surroundings of its own.
    pub fn start_in(around: Surroundings, arguments: &[&str]) -> Node {
        let thrift = format!("127.0.0.1:{}", free_port());
        let http = format!("127.0.0.1:{}", free_port());
        let mut all = vec!["serve", "--thrift", &thrift, "--http", &http];
        all.extend(arguments);
        let mut node = Node {
            arguments: all.iter().map(|a| a.to_string()).collect(),
            url: format!("http://{http}"),
            thrift,
            around,
            log: Arc::default(),
            said: Arc::default(),
            child: None,
        };
        node.start_again();
        node
    }

    /// Starts it as before, and waits until it is ready.
    pub fn start_again(&mut self) {
        self.spawn();
        self.wait_for("readiness", Duration::from_secs(30), |node| node.is_ready());
    }

    /// Starts it as before, and waits for nothing.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "the node runs already");
        let arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
        let mut child = command_behind(&self.around.before, &arguments)
            .env("IDGEN_ADMIN_TOKEN", TOKEN)
            .envs(self.around.variables.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        collect(child.stderr.take().expect("piped"), self.log.clone());
        collect(child.stdout.take().expect("piped"), self.said.clone());
        self.child = Some(child);
    }

    /// Waits until `holds`, at most `limit`; panics with the log otherwise.
    pub fn wait_for(&mut self, what: &str, limit: Duration, holds: impl Fn(&Node) -> bool) {
        let bound = Instant::now() + limit;
        while !holds(self) {
            let ended = self.child.as_mut().and_then(|c| c.try_wait().ok().flatten());
            assert!(
                ended.is_none() && Instant::now() < bound,
                "waited for {what} in vain ({ended:?}); the log:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether it says that it is ready.
    pub fn is_ready(&self) -> bool {
        ureq::get(format!("{}/readyz", self.url)).call().is_ok_and(|r| r.status() == 200)
    }

    /// Whether it was started and not killed since.
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("never poisoned").clone()
    }

    /// What it has printed so far: the banner of each start.
    pub fn said(&self) -> String {
        self.said.lock().expect("never poisoned").clone()
    }

    /// Runs a client command against this node; panics if it fails.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(output.status.success(), "idgen {arguments:?}: {error}\n{}", self.log());
        String::from_utf8_lossy(&output.stdout).to_string()
    }

    /// Runs a client command against this node.
    pub fn try_run(&self, arguments: &[&str]) -> Output {
        command(arguments)
            .env("IDGEN_URL", &self.url)
            .env("IDGEN_ADMIN_TOKEN", TOKEN)
            .output()
            .expect("the program runs")
    }

    /// The value of a metric whose line begins with `name`; 0 without one.
    pub fn metric(&self, name: &str) -> f64 {
        let mut answer = ureq::get(format!("{}/metrics", self.url)).call().expect("metrics");
        let text = answer.body_mut().read_to_string().expect("text");
        let lines = text.lines().filter(|l| l.starts_with(name));
        lines.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the node runs").id()
    }

    /// Sends a signal, such as `"STOP"`.
    pub fn signal(&self, signal: &str) {
        send_signal(self.pid(), signal);
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the node can be killed");
            child.wait().expect("the node ends");
        }
    }

    /// Sends SIGTERM and waits for the end.
    pub fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the node runs");
        send_signal(child.id(), "TERM");
        let bound = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < bound, "the node does not stop; the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A private MariaDB, a private Redis, and what nodes need to use them.
pub struct Cluster {
    /// The range store's server.
    pub mariadb: MariaDb,
    /// The dispatcher's server.
    pub redis: RedisServer,
    /// The database, with schema and account.
    pub db: TestDb,
    folder: TempFolder,
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// Starts both servers and makes the schema with `idgen schema apply`.
    pub fn start() -> Cluster {
        Self::with_redis(RedisServer::start())
    }

    /// With a Redis of the test's own making.
    pub fn with_redis(redis: RedisServer) -> Cluster {
        let turn = exclusive();
        let mariadb = MariaDb::start();
        let db = TestDb::empty(&mariadb);
        let applied = idgen(&["schema", "apply", "--mysql", &db.admin.url]);
        let error = String::from_utf8_lossy(&applied.stderr).to_string();
        assert!(applied.status.success(), "schema apply: {error}");
        db.create_account(&mariadb);
        Cluster { mariadb, redis, db, folder: TempFolder::new("cluster"), _turn: turn }
    }

    /// Starts a node of the cluster.
    pub fn node(&self) -> Node {
        self.node_on(&self.redis.url())
    }

    /// Starts a node that registers the Redis at `url`, if it is the first one.
    pub fn node_on(&self, url: &str) -> Node {
        self.start_node(url, &[])
    }

    /// Starts a node with further arguments.
    pub fn node_with(&self, arguments: &[&str]) -> Node {
        self.start_node(&self.redis.url(), arguments)
    }

    fn start_node(&self, redis: &str, arguments: &[&str]) -> Node {
        let data = self.folder.path().to_str().expect("UTF-8");
        let usual = ["--mysql", &self.db.app.url, "--redis", redis, "--data", data];
        Node::start(&[&usual, arguments].concat())
    }

    /// Asks the database as its administrator.
    pub fn sql(&self, sql: &str) -> String {
        self.mariadb.sql(&self.db.name, sql)
    }
}

/// `idgen verify` in the background.
pub struct Verify {
    child: Option<Child>,
    progress: Arc<Mutex<String>>,
}

impl Drop for Verify {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Verify {
    /// Starts it through `nodes`, with further arguments.
    pub fn start(nodes: &[&Node], id_type: &str, seconds: u32, arguments: &[&str]) -> Verify {
        let addresses: Vec<_> = nodes.iter().map(|node| node.thrift.as_str()).collect();
        Self::start_at(&addresses, id_type, seconds, arguments)
    }

    /// The same through the Thrift addresses of nodes.
    pub fn start_at(addresses: &[&str], id_type: &str, seconds: u32, arguments: &[&str]) -> Verify {
        let seconds = seconds.to_string();
        let mut all = vec!["verify", "--type", id_type, "--seconds", &seconds, "--json"];
        for address in addresses {
            all.extend(["--node", address]);
        }
        all.extend(arguments);
        let mut child = command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let errors = BufReader::new(child.stderr.take().expect("piped"));
        let progress = Arc::new(Mutex::new(String::new()));
        let shared = progress.clone();
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let mut progress = shared.lock().expect("never poisoned");
                progress.push_str(&line);
                progress.push('\n');
            }
        });
        Verify { child: Some(child), progress }
    }

    /// What it has told so far.
    pub fn progress(&self) -> String {
        self.progress.lock().expect("never poisoned").clone()
    }

    /// Asks it to end now and to judge what it has seen.
    pub fn interrupt(&self) {
        send_signal(self.child.as_ref().expect("verify runs").id(), "INT");
    }

    /// Whether it ended, before it was asked to.
    pub fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().expect("not finished");
        child.try_wait().expect("a child").is_some()
    }

    /// Waits until it has counted for about a second.
    pub fn wait_until_busy(&self) {
        let bound = Instant::now() + Duration::from_secs(20);
        while self.progress.lock().expect("never poisoned").lines().count() < 2 {
            assert!(Instant::now() < bound, "verify makes no progress");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end and returns the report.
    pub fn finish(mut self) -> Value {
        let child = self.child.take().expect("not finished");
        let output = child.wait_with_output().expect("verify ends");
        let text = String::from_utf8_lossy(&output.stdout).to_string();
        serde_json::from_str(&text).unwrap_or_else(|e| {
            let progress = self.progress.lock().expect("never poisoned");
            panic!("verify ended with {:?}: {e}\n{text}\n{progress}", output.status)
        })
    }

    /// Waits for the end; panics unless it is clean, and saw enough ids to tell (few on a
    /// machine that is busy with other things). Returns the report.
    pub fn finish_clean(self) -> Value {
        let report = self.finish();
        assert_eq!(report["duplicates"], 0, "{report:#}");
        assert_eq!(report["order_violations"], 0, "{report:#}");
        assert_eq!(report["clean"], true, "{report:#}");
        assert!(report["ids"].as_u64().expect("a number") > 100, "{report:#}");
        report
    }
}

/// A folder of a node with the embedded store.
pub fn data_folder() -> (TempFolder, PathBuf) {
    let folder = TempFolder::new("data");
    let path = folder.path().join("data");
    (folder, path)
}
