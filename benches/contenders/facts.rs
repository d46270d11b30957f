//! What the figures were measured on, as far as it can be found out.

use std::fs;
use std::process::Command;

use serde::Serialize;

/// What the figures were measured on.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub cpu: String,
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
    pub load_average_before: String,
    pub idgen: &'static str,
    pub rustc: String,
    pub redis: String,
    pub mariadb: String,
}

/// Looks around.
pub fn collect() -> Facts {
    Facts {
        cpu: field("/proc/cpuinfo", "model name"),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        memory_mb: field("/proc/meminfo", "MemTotal")
            .split_whitespace()
            .next()
            .and_then(|kb| kb.parse::<u64>().ok())
            .map_or(0, |kb| kb / 1024),
        kernel: line("/proc/sys/kernel/osrelease"),
        load_average_before: line("/proc/loadavg"),
        idgen: env!("CARGO_PKG_VERSION"),
        rustc: version("rustc"),
        redis: version("redis-server"),
        mariadb: version("mariadbd"),
    }
}

fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find(|l| l.starts_with(name)).and_then(|l| l.split_once(':'));
    value.map_or("unknown".to_owned(), |(_, v)| v.trim().to_owned())
}

fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    match text {
        Ok(text) => text.lines().next().unwrap_or_default().trim().to_owned(),
        Err(_) => format!("no {program}"),
    }
}
