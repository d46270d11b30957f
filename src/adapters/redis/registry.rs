//! The registry of nodes, and what a server says of itself.
//!
//! Two hashes with one field per node, in one slot of a cluster: summaries, each
//! behind the time of this server, and details. The names cannot be those of a type,
//! which begins with a letter or a digit, and match what accounts may use.

use std::time::Duration;

use async_trait::async_trait;
use redis::Script;

use super::dispatcher::RedisDispatcher;
use crate::ports::node_registry::{KEEP_ENTRY, MAX_DETAILS, MAX_ENTRIES, MAX_SUMMARY};
use crate::ports::{DispatchError, NodeEntry, NodeRegistry, ServerFacts};

/// The hash of the summaries.
pub const NODES_KEY: &str = "idgen:{-nodes}";
/// The hash of the details.
const DETAILS_KEY: &str = "idgen:{-nodes}:details";

pub(super) struct Scripts {
    report: Script,
    reports: Script,
    leave: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Scripts {
            report: Script::new(include_str!("report.lua")),
            reports: Script::new(include_str!("reports.lua")),
            leave: Script::new(include_str!("leave.lua")),
        }
    }
}

#[async_trait]
impl NodeRegistry for RedisDispatcher {
    async fn report(&self, node: &str, summary: &str, details: &str) -> Result<(), DispatchError> {
        for (what, text, most) in
            [("summary", summary, MAX_SUMMARY), ("details", details, MAX_DETAILS)]
        {
            if text.len() > most {
                let length = text.len();
                return Err(DispatchError::Broken(format!(
                    "{length} bytes of {what} of a node: the limit is {most}"
                )));
            }
        }
        let life = KEEP_ENTRY.as_millis() as u64;
        self.link
            .run(async |connection| {
                let mut call = self.registry.report.prepare_invoke();
                call.key(NODES_KEY).key(DETAILS_KEY);
                call.arg(node).arg(summary).arg(details).arg(life).invoke_async(connection).await
            })
            .await
            .map(|_: i64| ())
    }

    async fn reports(&self, with_details: bool) -> Result<Vec<NodeEntry>, DispatchError> {
        let keep = KEEP_ENTRY.as_millis() as u64;
        let answer: Vec<Option<String>> = self
            .link
            .run(async |connection| {
                let mut call = self.registry.reports.prepare_invoke();
                call.key(NODES_KEY).key(DETAILS_KEY);
                call.arg(u8::from(with_details)).arg(keep).arg(MAX_ENTRIES);
                call.invoke_async(connection).await
            })
            .await?;
        let entry = |fields: &[Option<String>]| {
            let [Some(node), Some(age), Some(summary), details] = fields else { return None };
            Some(NodeEntry {
                node: node.clone(),
                age: Duration::from_millis(age.parse().ok()?),
                summary: summary.clone(),
                details: details.clone(),
            })
        };
        let entries = answer.chunks(4).map(entry).collect::<Option<_>>();
        entries.ok_or_else(|| DispatchError::Broken("reports.lua answered oddly".to_owned()))
    }

    async fn leave(&self, node: &str) -> Result<(), DispatchError> {
        self.link
            .run(async |connection| {
                let mut call = self.registry.leave.prepare_invoke();
                call.key(NODES_KEY).key(DETAILS_KEY).arg(node).invoke_async(connection).await
            })
            .await
            .map(|_: i64| ())
    }
}

/// What `INFO` tells.
pub(super) fn read_info(info: &str) -> ServerFacts {
    let field = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.trim_end().split_once(':'));
        // Bounded, because it is shown and kept.
        lines.find(|(field, _)| *field == name).map(|(_, v)| v.chars().take(64).collect::<String>())
    };
    ServerFacts {
        memory_bytes: field("used_memory").and_then(|bytes| bytes.parse().ok()),
        role: field("role"),
        // Valkey says that it is Redis 7.2.4, and what it is itself beside it.
        version: field("valkey_version").or_else(|| field("redis_version")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::slot_of;
    use super::*;

    #[test]
    fn info_by_cases() {
        let info = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nused_memory:1024\r\n\
                    used_memory_rss:9\r\n# Replication\r\nrole:master\r\n";
        let facts = read_info(info);
        assert_eq!(facts.memory_bytes, Some(1_024));
        assert_eq!(facts.role.as_deref(), Some("master"));
        assert_eq!(facts.version.as_deref(), Some("7.0.15"));
        let valkey = format!("valkey_version:8.1.0\r\n{info}");
        assert_eq!(read_info(&valkey).version.as_deref(), Some("8.1.0"));
        assert_eq!(read_info("what?\r\nused_memory:many"), ServerFacts::default());
    }

    #[test]
    fn both_hashes_are_in_one_slot_and_of_no_type() {
        let slot = |key: &str| slot_of(redis::cmd("HSET").arg(key));
        assert!(slot(NODES_KEY).is_some());
        assert_eq!(slot(NODES_KEY), slot(DETAILS_KEY));
        assert!(crate::domain::TypeName::parse("-nodes").is_err());
    }
}
