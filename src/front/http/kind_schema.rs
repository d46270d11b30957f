//! The JSON of what goes beyond plain ids: texts, leases, decoded ids, and what a
//! node holds for itself.

use serde::{Deserialize, Serialize};

use crate::service::api::{Decoded, LocalSupply, RangeLease};

/// Ids as text, for the caller alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextsJson {
    /// The type.
    pub name: String,
    /// The ids, in the type's format, in the order in which they were issued.
    pub texts: Vec<String>,
}

/// Ids that the caller may hand out by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseJson {
    /// The type.
    pub name: String,
    /// See [`RangeLease::first`].
    pub first: i64,
    /// See [`RangeLease::count`].
    pub count: i64,
    /// See [`RangeLease::step`].
    pub step: i64,
    /// See [`RangeLease::ttl_ms`].
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodedJson {
    /// See [`Decoded::id_type`].
    pub id_type: String,
    /// See [`Decoded::mode`].
    pub mode: String,
    /// See [`Decoded::id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// See [`Decoded::text`].
    pub text: String,
    /// See [`Decoded::position`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// See [`Decoded::period`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// See [`Decoded::shard`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<u8>,
    /// See [`Decoded::app_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<i64>,
    /// See [`Decoded::worker`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<i64>,
    /// See [`Decoded::sequence`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// See [`Decoded::at_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// See [`Decoded::node`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// See [`Decoded::range_first`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_first: Option<i64>,
    /// See [`Decoded::range_count`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_count: Option<i64>,
    /// See [`Decoded::issued`].
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalJson {
    /// See [`LocalSupply::left`].
    pub left: u64,
    /// See [`LocalSupply::ranges`].
    pub ranges: u64,
    /// See [`LocalSupply::ahead`].
    pub ahead: u64,
    /// See [`LocalSupply::rate`].
    pub rate: Option<f64>,
    /// See [`LocalSupply::runway_s`].
    pub runway_s: Option<f64>,
    /// See [`LocalSupply::worker`].
    pub worker: Option<i64>,
}

impl From<LocalSupply> for LocalJson {
    fn from(local: LocalSupply) -> Self {
        let LocalSupply { left, ranges, ahead, rate, runway_s, worker } = local;
        LocalJson { left, ranges, ahead, rate, runway_s, worker }
    }
}
