//! The JSON of logs and of the node's state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ports::{AuditEntry, RangeLogEntry};
use crate::service::api::{NodeStatus, PartStatus};

/// An entry of the range log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RangeLogJson {
    /// The first position.
    pub start: i64,
    /// One above the last.
    pub end: i64,
    /// When, in milliseconds of the Unix epoch by the store's clock.
    pub at_ms: i64,
    /// Who asked.
    pub owner: String,
    /// Number of the Redis instance that it was for, if any.
    pub instance: Option<i64>,
    /// The history that it was for, if any.
    pub history: Option<String>,
    /// The shard whose positions these are, of a sharded type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<u8>,
}

impl From<RangeLogEntry> for RangeLogJson {
    fn from(entry: RangeLogEntry) -> Self {
        RangeLogJson {
            start: entry.range.start(),
            end: entry.range.end(),
            at_ms: entry.at_ms,
            owner: entry.owner,
            instance: entry.instance.map(|id| id.0),
            history: entry.history,
            shard: entry.shard,
        }
    }
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditJson {
    /// Its number.
    pub seq: i64,
    /// When, in milliseconds of the Unix epoch by the store's clock.
    pub at_ms: i64,
    /// Who.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// The settings before; `null` for a creation.
    pub before: Value,
    /// The settings after; `null` for a removal.
    pub after: Value,
}

impl From<AuditEntry> for AuditJson {
    fn from(entry: AuditEntry) -> Self {
        AuditJson {
            seq: entry.seq,
            at_ms: entry.at_ms,
            actor: entry.actor,
            action: entry.action,
            subject: entry.subject,
            before: settings(entry.before),
            after: settings(entry.after),
        }
    }
}

/// The JSON that the store holds as text, without the passwords of URLs: the
/// store should hold none, but an entry made by hand in the database may.
fn settings(text: Option<String>) -> Value {
    let Some(text) = text else {
        return Value::Null;
    };
    let mut value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    redact(&mut value);
    value
}

fn redact(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("://") => {
            *text = crate::domain::instance::redact_url(text);
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(fields) => fields.values_mut().for_each(redact),
        _ => {}
    }
}

/// A part that the node depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartJson {
    /// `store`, or the name of a Redis instance.
    pub name: String,
    /// `mysql`, `embedded`, `redis` or `memory`.
    pub kind: String,
    /// Whether it answered when last asked.
    pub reachable: bool,
    /// Why it did not.
    pub error: Option<String>,
}

impl From<PartStatus> for PartJson {
    fn from(part: PartStatus) -> Self {
        PartJson {
            name: part.name,
            kind: part.kind.to_owned(),
            reachable: part.reachable,
            error: part.error,
        }
    }
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeJson {
    /// The id of the node.
    pub node: String,
    /// The version of the program.
    pub version: String,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Whether it takes requests.
    pub ready: bool,
    /// Whether it is shutting down.
    pub draining: bool,
    /// How many types it knows.
    pub types_loaded: u64,
    /// The store and the instances.
    pub parts: Vec<PartJson>,
}

impl From<NodeStatus> for NodeJson {
    fn from(status: NodeStatus) -> Self {
        NodeJson {
            node: status.node,
            version: status.version.to_owned(),
            uptime_s: status.uptime_s,
            ready: status.ready,
            draining: status.draining,
            types_loaded: status.types_loaded,
            parts: status.parts.into_iter().map(Into::into).collect(),
        }
    }
}

/// Whether a node takes requests, and why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyJson {
    /// Whether it takes requests.
    pub ready: bool,
    /// What is wrong; may hold something while the node is ready, when a part
    /// is lost that requests do not need at once.
    pub reasons: Vec<String>,
    /// The store and the instances.
    pub parts: Vec<PartJson>,
}

impl From<NodeStatus> for ReadyJson {
    fn from(status: NodeStatus) -> Self {
        let mut reasons = Vec::new();
        if status.draining {
            reasons.push("the node is shutting down".to_owned());
        }
        for part in status.parts.iter().filter(|part| !part.reachable) {
            let error = part.error.as_deref().unwrap_or("it does not answer");
            reasons.push(format!("{} ({}): {error}", part.name, part.kind));
        }
        if !status.ready && reasons.is_empty() {
            reasons.push("the node has not finished starting".to_owned());
        }
        ReadyJson {
            ready: status.ready,
            reasons,
            parts: status.parts.into_iter().map(Into::into).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_settings_hide_passwords_wherever_they_are() {
        let text = r#"{"url":"redis://:s3cr3t@h","deep":[{"u":"rediss://a:s3cr3t@h"}],"n":7}"#;
        let shown = settings(Some(text.to_owned()));
        assert!(!shown.to_string().contains("s3cr3t"), "{shown}");
        assert_eq!(shown["n"], 7);
        let broken = settings(Some("redis://:s3cr3t@h {".to_owned()));
        assert!(!broken.to_string().contains("s3cr3t"), "{broken}");
    }
}
