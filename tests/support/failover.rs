//! Redis replicas and sentinels.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::redis::RedisServer;
use super::{TempFolder, free_port};

/// Starts a replica of the server on `port` (of a proxy, perhaps), and waits
/// until it has the data.
pub fn replica_of(port: u16, arguments: &[&str]) -> RedisServer {
    let port = port.to_string();
    let replica = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
    let server = RedisServer::start_with(&[&replica, arguments].concat());
    in_step(&server);
    server
}

/// Makes `server` a replica of the one on `port`, and waits until it has the data.
pub fn follow(server: &RedisServer, port: u16) {
    assert_eq!(server.cli(&["replicaof", "127.0.0.1", &port.to_string()]), "OK");
    in_step(server);
}

/// Makes a replica a master.
pub fn promote(server: &RedisServer) {
    assert_eq!(server.cli(&["replicaof", "no", "one"]), "OK");
}

/// Waits until a replica is connected and has the data.
pub fn in_step(server: &RedisServer) {
    let bound = Instant::now() + Duration::from_secs(30);
    while !server.cli(&["info", "replication"]).contains("master_link_status:up") {
        assert!(Instant::now() < bound, "a replica does not get the data");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A sentinel; killed with its folder on drop.
pub struct Sentinel {
    folder: TempFolder,
    port: u16,
    child: Child,
}

impl Sentinel {
    /// Starts one that watches the group `group`, whose master listens on
    /// `master`. Two sentinels must agree that the master is down, after half a
    /// second.
    pub fn start(group: &str, master: u16) -> Sentinel {
        let folder = TempFolder::new("sentinel");
        let port = free_port();
        let file = folder.path().join("sentinel.conf");
        let settings = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {group} 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds {group} 500\nsentinel failover-timeout {group} 3000\n",
            folder.path().display()
        );
        std::fs::write(&file, settings).expect("a file");
        let child = Command::new("redis-server")
            .arg(&file)
            .arg("--sentinel")
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed: run `make test-deps`");
        let sentinel = Sentinel { folder, port, child };
        sentinel.wait_for(&["ping"], |answer| answer == "PONG");
        sentinel
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of the master that it knows.
    pub fn master(&self, group: &str) -> u16 {
        let answer = self.cli(&["sentinel", "get-master-addr-by-name", group]);
        answer.lines().last().and_then(|port| port.parse().ok()).expect("a port")
    }

    /// Waits until it knows `replicas` replicas and `sentinels` others.
    pub fn knows(&self, group: &str, replicas: u32, sentinels: u32) {
        let fields = [("num-slaves", replicas), ("num-other-sentinels", sentinels)];
        self.wait_for(&["sentinel", "master", group], |answer| {
            let lines: Vec<_> = answer.lines().collect();
            fields.iter().all(|(name, count)| {
                lines.windows(2).any(|pair| pair[0] == *name && pair[1] == count.to_string())
            })
        });
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string()])
            .args(arguments)
            .output()
            .expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn wait_for(&self, question: &[&str], holds: impl Fn(&str) -> bool) {
        let bound = Instant::now() + Duration::from_secs(30);
        loop {
            let answer = self.cli(question);
            if holds(&answer) {
                return;
            }
            let folder = self.folder.path().display();
            assert!(Instant::now() < bound, "sentinel in {folder}: {question:?}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
