//! The JSON of blocks and previews.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::NewType;
use crate::domain::TypeSpec;
use crate::domain::preview::{Growth, Preview, PreviewId};
use crate::service::admin::Reserved;

/// A block that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// How many ids.
    #[schemars(range(min = 1, max = TypeSpec::LONGEST_RANGE))]
    pub count: i64,
}

/// Ids for the caller alone: `start`, `start + step` and so on, below `end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservedJson {
    /// The type.
    pub name: String,
    /// The first id.
    pub start: i64,
    /// Above the last id.
    pub end: i64,
    /// From one id to the next: 1, or the number of sites that share the type.
    pub step: i64,
    /// How many ids.
    pub count: i64,
}

impl From<Reserved> for ReservedJson {
    fn from(block: Reserved) -> Self {
        let Reserved { name, start, end, step, count } = block;
        ReservedJson { name: name.to_string(), start, end, step, count }
    }
}

/// A type to show before it is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewType {
    /// The type, as it would be created.
    #[serde(rename = "type")]
    pub id_type: NewType,
    /// Ids a second.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000_000_000_i64))]
    pub rate: f64,
}

/// What the type would be like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewJson {
    /// The first ids as callers see them, 5 at most; fewer where there are fewer.
    pub ids: Vec<PreviewIdJson>,
    /// Whether ids come in ascending order, within the promise of the mode.
    pub ascending: bool,
    /// The first ranges, 12 at most, of the type or of one shard of it; none without a
    /// rate after the first, and none of a snowflake type.
    pub growth: Vec<GrowthJson>,
    /// For how long the ids last at this rate, in seconds: of a calendar series those
    /// of a period where they end before it, of a snowflake type its epoch. `null`
    /// where they do not end.
    pub lasts_s: Option<f64>,
    /// What is to be known about the above.
    pub note: Option<String>,
}

/// An id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewIdJson {
    /// The number; `null` for a calendar series, which has texts only.
    pub id: Option<i64>,
    /// The text.
    pub text: String,
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthJson {
    /// When it is allocated, in seconds from the first id.
    pub at_s: f64,
    /// Its length, in positions.
    pub length: u64,
    /// One above its last position; within the period, for a calendar series.
    pub end: i64,
}

impl From<Preview> for PreviewJson {
    fn from(preview: Preview) -> Self {
        let Preview { ids, ascending, growth, lasts_s, note } = preview;
        let id = |PreviewId { id, text }| PreviewIdJson { id, text };
        let range = |Growth { at_s, length, end }| GrowthJson { at_s, length, end };
        PreviewJson {
            ids: ids.into_iter().map(id).collect(),
            ascending,
            growth: growth.into_iter().map(range).collect(),
            lasts_s,
            note,
        }
    }
}
