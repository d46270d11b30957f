//! What tests of whole processes share: private servers, folders, ports.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod failover;
pub mod mariadb;
pub mod mysql8;
pub mod namespace;
pub mod node;
pub mod proxy;
pub mod redis;
pub mod redis_groups;
pub mod sql_server;
pub mod thrift_client;
pub mod tls;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use idgen::adapters::system::SystemEntropy;
use idgen::ports::Entropy;

/// A folder that is removed with everything in it on drop.
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// A new, empty folder; `label` makes it recognisable.
    pub fn new(label: &str) -> Self {
        let name = format!("idgen-{label}-{}", &SystemEntropy.token()[..12]);
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        TempFolder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A loopback port that is free, and that this process has not given out yet.
///
/// Below 32 768, where the kernel begins to take ports for outgoing
/// connections: one of those could take a port between this call and the
/// start of the server that it is for.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let step =
            std::process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (step % 22_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Sends a signal, such as `"TERM"`, to one process.
pub fn send_signal(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status()
        .expect("kill runs");
    assert!(status.success(), "kill -{signal} {pid}");
}
