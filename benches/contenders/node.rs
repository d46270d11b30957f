//! The program under test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idgen::cli::load::{Client, Method, Node, Request, WireArgs, now};

use crate::process::{Folder, Outcome, Process, command, free_address};

/// Where a node keeps what, and what it talks to.
#[derive(Clone)]
pub struct NodeSetup {
    pub name: String,
    pub mysql: Option<String>,
    pub redis: Option<SocketAddr>,
}

/// A node: `idgen serve`, with the admin token of this run.
pub struct IdNode {
    pub process: Process,
    pub thrift: SocketAddr,
    http: SocketAddr,
}

/// Not a secret: it guards a node on the loopback for the minutes of a run.
const TOKEN: &str = "token-of-this-benchmark";

/// The program under test, built with the same profile as this benchmark.
fn idgen() -> Command {
    Command::new(Path::new(env!("CARGO_BIN_EXE_idgen")))
}

impl IdNode {
    /// Starts a node; see [`ready`](Self::ready). Returns when it was started.
    pub fn start(setup: &NodeSetup, folder: &Folder) -> Outcome<(IdNode, Instant)> {
        Self::start_with(setup, &[], folder)
    }

    /// The same, with further arguments.
    pub fn start_with(
        setup: &NodeSetup,
        arguments: &[&str],
        folder: &Folder,
    ) -> Outcome<(IdNode, Instant)> {
        let address = || free_address().map_err(|e| e.to_string());
        let (thrift, http) = (address()?, address()?);
        let data = folder.path(&setup.name);
        let mut command = idgen();
        command
            .arg("serve")
            .args(["--thrift", &thrift.to_string()])
            .args(["--http", &http.to_string()])
            .arg("--data")
            .arg(&data)
            .args(arguments)
            .env("IDGEN_ADMIN_TOKEN", TOKEN);
        if let Some(url) = &setup.mysql {
            command.args(["--mysql", url]);
        }
        if let Some(redis) = setup.redis {
            command.args(["--redis", &format!("redis://{redis}")]);
        }
        let begun = now();
        let process = Process::start(&setup.name, &mut command, folder)?;
        let node = IdNode { process, thrift, http };
        Ok((node, begun))
    }

    /// Waits until `/readyz` says so.
    pub fn ready(&mut self) -> Outcome<()> {
        let url = format!("http://{}/readyz", self.http);
        self.process.wait_until(|| ureq::get(&url).call().is_ok_and(|r| r.status() == 200))
    }

    /// The sum of a metric's values, 0 where it has none.
    pub fn metric(&self, name: &str) -> Outcome<f64> {
        let url = format!("http://{}/metrics", self.http);
        let answer = ureq::get(&url).call().map_err(|e| e.to_string())?;
        let text = answer.into_body().read_to_string().map_err(|e| e.to_string())?;
        let values = text.lines().filter(|line| line.starts_with(name));
        Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Waits for the first id of a type, and tells when since `begun` it came.
    pub fn first_id(&mut self, id_type: &str, begun: Instant) -> Outcome<Duration> {
        let address = Node::resolve(&self.thrift.to_string()).map_err(|e| e.to_string())?;
        let request = Request::new(id_type, Method::NextId, 1);
        let mut client = Client::new(Arc::new(address), 0, WireArgs::default(), request);
        self.process.wait_until(|| {
            let answer = client.connect(Duration::from_secs(1)).and_then(|()| client.call());
            answer.is_ok()
        })?;
        Ok(now() - begun)
    }

    /// Adds a type, as an operator does.
    pub fn add_type(&self, name: &str, flags: &[&str]) -> Outcome<()> {
        let url = format!("http://{}", self.http);
        command(
            idgen()
                .args(["type", "add", name])
                .args(flags)
                .env("IDGEN_URL", url)
                .env("IDGEN_ADMIN_TOKEN", TOKEN),
        )
    }
}

/// Puts the schema into an empty database.
pub fn apply_schema(mysql: &str) -> Outcome<()> {
    command(idgen().args(["schema", "apply", "--mysql", mysql]))
}
