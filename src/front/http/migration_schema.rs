//! The JSON of migrations between Redis instances, for the server and for the client
//! commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::{DispatcherJson, TypeJson};
use crate::domain::{Seal, TypeName};
use crate::service::admin::{Migrated, MigrationPlan, Place};

/// Where to move a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"to": "main"}]))]
pub struct MoveType {
    /// Name or number of the Redis instance.
    #[schemars(length(max = TypeName::MAX_LEN))]
    pub to: String,
    /// Whether the old instance, which is out of reach for good, is not asked.
    #[serde(default)]
    pub abandon: bool,
}

/// Where the types of an instance go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"to": "main"}]))]
pub struct DrainTo {
    /// Name or number of the other instance.
    #[schemars(length(max = TypeName::MAX_LEN))]
    pub to: String,
}

/// A Redis instance that is named by something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceRefJson {
    /// Its number.
    pub id: i64,
    /// Its name; `null` if that could not be found out.
    pub name: Option<String>,
}

/// What closes a type on the Redis instance that it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealJson {
    /// Which migration of the type it was.
    pub generation: i64,
    /// Number of the Redis instance that the type goes to.
    pub target: i64,
}

impl From<Seal> for SealJson {
    fn from(seal: Seal) -> Self {
        SealJson { generation: seal.generation, target: seal.target.0 }
    }
}

/// One end of a migration that was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceJson {
    /// Number of the Redis instance. Not called `id`, which is text where ids are.
    pub instance: i64,
    /// Its name.
    pub name: String,
    /// Whether it answers.
    pub reachable: bool,
    /// Its history, if it answers.
    pub history: Option<String>,
    /// What it holds of the type, if it answers.
    pub dispatcher: Option<DispatcherJson>,
}

impl From<Place> for PlaceJson {
    fn from(place: Place) -> Self {
        PlaceJson {
            instance: place.id.0,
            name: place.name,
            reachable: place.view.is_some(),
            history: place.view.as_ref().map(|view| view.history.as_str().to_owned()),
            dispatcher: place.view.map(Into::into),
        }
    }
}

/// What a migration would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanJson {
    /// The type as it is.
    pub record: TypeJson,
    /// Where it is.
    pub from: PlaceJson,
    /// Where it would go.
    pub to: PlaceJson,
    /// Ids that are published and not taken yet.
    pub rest: u64,
    /// Whether these would go on being handed out on the new instance; else they
    /// are burnt, and a new range is allocated.
    pub keeps_rest: bool,
    /// What stands in the way, in words.
    pub problems: Vec<String>,
}

impl From<MigrationPlan> for PlanJson {
    fn from(plan: MigrationPlan) -> Self {
        PlanJson {
            record: plan.record.into(),
            from: plan.from.into(),
            to: plan.to.into(),
            rest: plan.rest,
            keeps_rest: plan.keeps_rest,
            problems: plan.problems,
        }
    }
}

/// A migration that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MigratedJson {
    /// The type, on its new instance.
    pub record: TypeJson,
    /// Ids that went along.
    pub kept: u64,
    /// Ids that were left behind, and are burnt.
    pub burnt: u64,
    /// How long all of it took, in milliseconds.
    pub took_ms: u64,
}

impl From<Migrated> for MigratedJson {
    fn from(moved: Migrated) -> Self {
        MigratedJson {
            record: moved.record.into(),
            kept: moved.kept,
            burnt: moved.burnt,
            took_ms: moved.took.as_millis() as u64,
        }
    }
}
