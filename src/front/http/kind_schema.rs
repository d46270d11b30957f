//! The JSON of what goes beyond plain ids: texts, leases, decoded ids, and what a
//! node holds for itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Mode;
use crate::service::api::{Decoded, LocalSupply, RangeLease};

/// Ids as text, for the caller alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextsJson {
    /// The type.
    pub name: String,
    /// The ids, in the type's format, in the order in which they were issued.
    pub texts: Vec<String>,
}

/// Ids that the caller may hand out by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseJson {
    /// The type.
    pub name: String,
    /// The first id.
    pub first: i64,
    /// How many ids; at least 1, perhaps fewer than asked for.
    pub count: i64,
    /// From one id to the next; 1, or the number of sites.
    pub step: i64,
    /// For how long they may be handed out, in milliseconds from when the call was
    /// sent. What is left then is lost.
    pub ttl_ms: i64,
}

impl LeaseJson {
    /// `lease` of the type `name`.
    pub(super) fn of(name: String, lease: RangeLease) -> Self {
        let RangeLease { first, count, step, ttl_ms } = lease;
        LeaseJson { name, first, count, step, ttl_ms }
    }
}

/// What an id tells. What it does not tell is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecodedJson {
    /// The type.
    pub id_type: String,
    /// Its mode.
    #[schemars(with = "Mode")]
    pub mode: String,
    /// The number, where the id is one; a calendar series has texts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// The text, as the type's format writes it.
    pub text: String,
    /// Its place in the sequence; none for a snowflake id. With a period, the number
    /// within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// The first day of the period, as `2026-11-21`, of a calendar series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<u8>,
    /// The app id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<i64>,
    /// The worker id of a snowflake id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<i64>,
    /// The sequence within its unit of time of a snowflake id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// When: the time in a snowflake id, else when its range was allocated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// Which node issued it, or got its range, as far as the store knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The first position of its range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_first: Option<i64>,
    /// The length of its range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_count: Option<i64>,
    /// Whether it can have been issued; false for an id that lies ahead.
    pub issued: bool,
}

impl From<Decoded> for DecodedJson {
    fn from(decoded: Decoded) -> Self {
        let Decoded {
            id_type,
            mode,
            id,
            text,
            position,
            period,
            shard,
            app_id,
            worker,
            sequence,
            at_ms,
            node,
            range_first,
            range_count,
            issued,
        } = decoded;
        DecodedJson {
            id_type,
            mode: mode.to_owned(),
            id,
            text,
            position,
            period,
            shard,
            app_id,
            worker,
            sequence,
            at_ms,
            node,
            range_first,
            range_count,
            issued,
        }
    }
}

/// What the node that answers holds of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocalJson {
    /// Ids at hand.
    pub left: u64,
    /// Ranges at hand, the one in use included.
    pub ranges: u64,
    /// How many ranges the node keeps ahead now.
    pub ahead: u64,
    /// Ids per second, as last measured here.
    pub rate: Option<f64>,
    /// How long they last at this rate, in seconds.
    pub runway_s: Option<f64>,
    /// The worker id in use, of a snowflake type.
    pub worker: Option<i64>,
}

impl From<LocalSupply> for LocalJson {
    fn from(local: LocalSupply) -> Self {
        let LocalSupply { left, ranges, ahead, rate, runway_s, worker } = local;
        LocalJson { left, ranges, ahead, rate, runway_s, worker }
    }
}
