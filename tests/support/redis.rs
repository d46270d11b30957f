//! A private `redis-server` on a free loopback port, in a folder of its own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::{TempFolder, free_port, send_signal};

/// A running (or stopped) server; stopped and removed with its folder on drop.
pub struct RedisServer {
    folder: TempFolder,
    port: u16,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts a server that writes nothing to disk unless asked to.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further arguments, such as `["--requirepass", "x"]`.
    pub fn start_with(arguments: &[&str]) -> Self {
        let mut server = Self::stopped(arguments);
        server.start_again();
        server
    }

    fn stopped(arguments: &[&str]) -> Self {
        RedisServer {
            folder: TempFolder::new("redis"),
            port: free_port(),
            arguments: arguments.iter().map(|a| a.to_string()).collect(),
            child: None,
        }
    }

    /// Starts a server for a cluster: it needs a second port, 10 000 above, which
    /// must not be one that the kernel takes for outgoing connections, either.
    pub fn start_cluster_node(arguments: &[&str]) -> Self {
        let is_free = |port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        let mut server = Self::stopped(arguments);
        while server.port >= 22_768 || !is_free(server.port + 10_000) {
            server.port = free_port();
        }
        server.start_again();
        server
    }

    /// The port of plain connections.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder, where `dump.rdb` lies.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Runs `redis-cli` with `arguments` and returns what it prints.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string(), "--no-auth-warning"])
            .args(arguments)
            .output()
            .expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Sends a signal, such as `"STOP"`, to the server alone.
    pub fn signal(&self, signal: &str) {
        send_signal(self.child.as_ref().expect("the server runs").id(), signal);
    }

    /// Kills the server at once, without a last snapshot.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the server can be killed");
            child.wait().expect("the server ends");
        }
    }

    /// Starts it on the same port and folder, and waits until it answers.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "the server runs already");
        let log = self.folder.path().join("redis.log");
        let child = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .arg("--dir")
            .arg(self.folder.path())
            .arg("--logfile")
            .arg(&log)
            .args(&self.arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed: run `make test-deps`");
        self.child = Some(child);
        let bound = Instant::now() + Duration::from_secs(20);
        loop {
            let answer = self.cli(&["ping"]);
            if answer.contains("PONG") || answer.contains("NOAUTH") {
                return;
            }
            let exited = self.child.as_mut().and_then(|c| c.try_wait().ok().flatten());
            assert!(
                exited.is_none() && Instant::now() < bound,
                "redis-server does not answer; its log:\n{}",
                std::fs::read_to_string(&log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}
