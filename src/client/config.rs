//! What a client is told.

use std::fmt;
use std::time::Duration;

use super::Error;

/// How values are written. Nodes find out by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The compact protocol: up to a third shorter where many ids come at once.
    #[default]
    Compact,
    /// The strict binary protocol.
    Binary,
}

/// What a client is told. Begin with [`Config::new`], and change the fields.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// The nodes, each `HOST:PORT`; at least one.
    pub nodes: Vec<String>,
    /// How long a call may take in all, whatever number of nodes it asks.
    pub deadline: Duration,
    /// How long making one connection may take.
    pub connect_timeout: Duration,
    /// How many connections to one node there are at most. Calls beyond wait their turn.
    pub max_connections: usize,
    /// How long an unused connection is kept. Nodes close theirs after 10 minutes.
    pub idle_timeout: Duration,
    /// The longest answer that is taken, in bytes.
    pub max_reply_bytes: usize,
    /// How values are written.
    pub protocol: Protocol,
    /// Sent first on every connection, to nodes that want to know who calls.
    pub token: Option<String>,
}

impl Config {
    /// The nodes, and the default of everything else: 2 s for a call, 500 ms for a
    /// connection, 8 connections per node, each kept for 60 s, answers of 4 MiB.
    pub fn new<N: Into<String>>(nodes: impl IntoIterator<Item = N>) -> Config {
        Config {
            nodes: nodes.into_iter().map(Into::into).collect(),
            deadline: Duration::from_secs(2),
            connect_timeout: Duration::from_millis(500),
            max_connections: 8,
            idle_timeout: Duration::from_secs(60),
            // 100 000 ids that do not follow each other are 2.3 MB.
            max_reply_bytes: 4 << 20,
            protocol: Protocol::default(),
            token: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Config(text));
        if self.nodes.is_empty() {
            return wrong("nodes is empty: at least one HOST:PORT is needed".to_owned());
        }
        for node in &self.nodes {
            let port = node.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
            if !matches!(port, Some((host, Ok(1..))) if !host.is_empty()) {
                return wrong(format!("node {node:?} must be HOST:PORT"));
            }
        }
        if self.deadline.is_zero() || self.connect_timeout.is_zero() {
            return wrong("deadline and connect_timeout must be longer than 0".to_owned());
        }
        if self.max_connections == 0 || self.max_reply_bytes == 0 {
            return wrong("max_connections and max_reply_bytes must be at least 1".to_owned());
        }
        Ok(())
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("nodes", &self.nodes)
            .field("deadline", &self.deadline)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_connections", &self.max_connections)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_reply_bytes", &self.max_reply_bytes)
            .field("protocol", &self.protocol)
            // Not what it is: logs have readers.
            .field("token", &self.token.as_ref().map(|_| "…"))
            .finish()
    }
}

/// An order for several ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub(super) count: u32,
    pub(super) request_key: String,
    pub(super) gate_pass: String,
}

impl Order {
    /// `count` ids.
    pub fn of(count: u32) -> Order {
        Order { count, request_key: String::new(), gate_pass: String::new() }
    }

    /// The same order with the same key gives the same ids again, through any node,
    /// for 10 minutes. Take a UUID.
    pub fn request_key(self, key: impl Into<String>) -> Order {
        Order { request_key: key.into(), ..self }
    }

    /// Chooses the shard, of a sharded type.
    pub fn gate_pass(self, pass: impl Into<String>) -> Order {
        Order { gate_pass: pass.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused() {
        let good = || Config::new(["node-1:5900", "[::1]:5900"]);
        assert_eq!(good().validate(), Ok(()));
        let cases: [fn(&mut Config); 8] = [
            |c| c.nodes.clear(),
            |c| c.nodes.push("node".to_owned()),
            |c| c.nodes.push(":5900".to_owned()),
            |c| c.nodes.push("node:0".to_owned()),
            |c| c.deadline = Duration::ZERO,
            |c| c.connect_timeout = Duration::ZERO,
            |c| c.max_connections = 0,
            |c| c.max_reply_bytes = 0,
        ];
        for (at, case) in cases.into_iter().enumerate() {
            let mut config = good();
            case(&mut config);
            assert!(matches!(config.validate(), Err(Error::Config(_))), "case {at}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let mut config = Config::new(["a:1"]);
        config.token = Some("secret".to_owned());
        assert!(!format!("{config:?}").contains("secret"));
    }
}
