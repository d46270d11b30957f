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
    /// How many ids, 1 to [`TypeSpec::LONGEST_RANGE`].
    #[schemars(range(min = 1, max = TypeSpec::LONGEST_RANGE), description = "How many ids.")]
    pub count: i64,
}

/// Ids for the caller alone: `start`, `start + step` and so on, below `end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservedJson {
    /// The type.
    pub name: String,
    /// See [`Reserved::start`].
    pub start: i64,
    /// See [`Reserved::end`].
    pub end: i64,
    /// See [`Reserved::step`].
    pub step: i64,
    /// See [`Reserved::count`].
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
    /// See [`Preview::ids`].
    pub ids: Vec<PreviewIdJson>,
    /// See [`Preview::ascending`].
    pub ascending: bool,
    /// See [`Preview::growth`].
    pub growth: Vec<GrowthJson>,
    /// See [`Preview::lasts_s`].
    pub lasts_s: Option<f64>,
    /// See [`Preview::note`].
    pub note: Option<String>,
}

/// An id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewIdJson {
    /// See [`PreviewId::id`].
    pub id: Option<i64>,
    /// See [`PreviewId::text`].
    pub text: String,
}

/// A range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthJson {
    /// See [`Growth::at_s`].
    pub at_s: f64,
    /// See [`Growth::length`].
    pub length: u64,
    /// See [`Growth::end`].
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
