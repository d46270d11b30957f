//! The JSON of the admin API, for the server and for the client commands.
//!
//! What is sent to the server refuses unknown fields; what it answers may
//! grow, so clients must ignore fields that they do not know. Ids are numbers
//! of 64 bits; with `?ids=string` an answer has them as decimal text, for
//! languages whose numbers are doubles, and a request may always send them so.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::kind_schema::LocalJson;
use super::migration_schema::{InstanceRefJson, SealJson};
use crate::domain::instance::redact_url;
use crate::domain::{
    Error, IdRange, InstanceRecord, InstanceSpec, LoadPercentage, Mode, State, TypeChange,
    TypeName, TypeOptions, TypeRecord, TypeSpec,
};
use crate::ports::View;
use crate::service::api::TypeStatus;

/// Problem details (RFC 9457), with the code of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemJson {
    /// `urn:idgen:error:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem, the same for every occurrence.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time, and what to do.
    pub detail: String,
    /// The stable code, such as `UNKNOWN_TYPE`.
    pub code: String,
    /// The argument at fault, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Whether the same request may succeed later.
    pub retriable: bool,
}

/// A new type. What is left out has its default, see [`TypeSpec::new`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "A new type. What is left out has its default.")]
#[schemars(extend("examples" = [
    {"name": "order", "prefix": "o-", "description": "Shop orders"},
    {"name": "account", "mode": "sharded", "options": {"app_id": 7}},
]))]
pub struct NewType {
    /// Its name, for ever: letters, digits and `_ . : -`.
    #[schemars(pattern(TypeName::PATTERN))]
    pub name: String,
    /// How its ids are handed out; `strict` unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Mode>")]
    pub mode: Option<String>,
    /// Put before the number in ids as text; no control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeSpec::MAX_PREFIX), pattern("^[^\\x00-\\x1f\\x7f-\\x9f]*$"))]
    pub prefix: Option<String>,
    /// For people; at most 65 535 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeSpec::MAX_DESCRIPTION))]
    pub description: Option<String>,
    /// The first id that is handed out; 1 unless told.
    #[serde(default, deserialize_with = "id", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "id_schema")]
    pub first_id: Option<i64>,
    /// The highest id that may ever be handed out.
    #[serde(default, deserialize_with = "id", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "id_schema")]
    pub max_id: Option<i64>,
    /// Shortest range, in ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TypeSpec::LONGEST_RANGE))]
    pub min_range: Option<i64>,
    /// Longest range, in ids; not below `min_range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TypeSpec::LONGEST_RANGE))]
    pub max_range: Option<i64>,
    /// How long one range is meant to last, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TypeSpec::MAX_LOAD_INTERVAL_MS))]
    pub load_interval_ms: Option<i64>,
    /// The share of a range after whose use the next is due; a fraction from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub load_percentage: Option<f64>,
    /// How long a refill holds its lock without a sign of life, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = TypeSpec::MIN_LOCK_TTL_MS, max = TypeSpec::MAX_LOCK_TTL_MS))]
    pub lock_ttl_ms: Option<i64>,
    /// Name or number of the Redis instance; the first that takes types unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeName::MAX_LEN))]
    pub instance: Option<String>,
    /// What it is beyond a plain sequence.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub options: Option<TypeOptions>,
}

impl NewType {
    /// The checked specification.
    pub fn into_spec(self) -> Result<TypeSpec, Error> {
        let mut spec = TypeSpec::new(TypeName::parse(&self.name)?);
        if let Some(mode) = &self.mode {
            spec.mode = Mode::parse(mode)?;
        }
        if let Some(fraction) = self.load_percentage {
            spec.load_percentage = LoadPercentage::from_fraction(fraction)?;
        }
        spec.prefix = self.prefix.unwrap_or(spec.prefix);
        spec.description = self.description.unwrap_or(spec.description);
        spec.first_id = self.first_id.unwrap_or(spec.first_id);
        spec.options = self.options.unwrap_or_default();
        spec.max_id = match (self.max_id, spec.mode) {
            (Some(max_id), _) => max_id,
            // Nothing is counted there, so no width limits it.
            (None, Mode::Snowflake) => spec.max_id,
            (None, _) => spec.options.default_max_id(),
        };
        spec.min_range = self.min_range.unwrap_or(spec.min_range);
        spec.max_range = self.max_range.unwrap_or(spec.max_range);
        spec.load_interval_ms = self.load_interval_ms.unwrap_or(spec.load_interval_ms);
        spec.lock_ttl_ms = self.lock_ttl_ms.unwrap_or(spec.lock_ttl_ms);
        spec.instance = self.instance;
        spec.validate()?;
        Ok(spec)
    }
}

/// A change of a type. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"version": 1, "max_range": 5_000_000}]))]
pub struct TypePatch {
    /// The version that the caller has seen; another one is a `CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// How its ids are handed out; `strict` unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Mode>")]
    pub mode: Option<String>,
    /// What it is beyond a plain sequence; replaces them all.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "Option::is_none")]
    pub options: Option<TypeOptions>,
    /// Put before the number in ids as text; no control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeSpec::MAX_PREFIX), pattern("^[^\\x00-\\x1f\\x7f-\\x9f]*$"))]
    pub prefix: Option<String>,
    /// For people; at most 65 535 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeSpec::MAX_DESCRIPTION))]
    pub description: Option<String>,
    /// The highest id that may ever be handed out.
    #[serde(default, deserialize_with = "id", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "id_schema")]
    pub max_id: Option<i64>,
    /// Shortest range, in ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TypeSpec::LONGEST_RANGE))]
    pub min_range: Option<i64>,
    /// Longest range, in ids; not below `min_range`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TypeSpec::LONGEST_RANGE))]
    pub max_range: Option<i64>,
    /// How long one range is meant to last, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TypeSpec::MAX_LOAD_INTERVAL_MS))]
    pub load_interval_ms: Option<i64>,
    /// The share of a range after whose use the next is due; a fraction from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub load_percentage: Option<f64>,
    /// How long a refill holds its lock without a sign of life, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = TypeSpec::MIN_LOCK_TTL_MS, max = TypeSpec::MAX_LOCK_TTL_MS))]
    pub lock_ttl_ms: Option<i64>,
}

impl TypePatch {
    /// The change that it asks for.
    pub fn into_change(self) -> Result<TypeChange, Error> {
        let load_percentage = self.load_percentage.map(LoadPercentage::from_fraction);
        Ok(TypeChange {
            expected_version: self.version,
            mode: self.mode.as_deref().map(Mode::parse).transpose()?,
            options: self.options,
            prefix: self.prefix,
            description: self.description,
            max_id: self.max_id,
            min_range: self.min_range,
            max_range: self.max_range,
            load_interval_ms: self.load_interval_ms,
            load_percentage: load_percentage.transpose()?,
            lock_ttl_ms: self.lock_ttl_ms,
        })
    }
}

/// A type. Times are milliseconds of the Unix epoch by the store's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeJson {
    /// Its name.
    pub name: String,
    /// How its ids are handed out.
    #[schemars(with = "Mode")]
    pub mode: String,
    /// `active` or `retired`.
    #[schemars(with = "State")]
    pub state: String,
    /// Put before the number in ids as text; no control characters.
    pub prefix: String,
    /// For people; at most 65 535 bytes.
    pub description: String,
    /// The first id that is handed out; 1 unless told.
    pub first_id: i64,
    /// The first position that no range holds yet; of a sharded type, the highest of
    /// its shards.
    pub next_id: i64,
    /// The highest id that may ever be handed out.
    pub max_id: i64,
    /// The highest position that may be allocated; in each period, for a calendar
    /// series.
    #[serde(default)]
    pub max_position: i64,
    /// What it is beyond a plain sequence; those that are not given are left out. Not as
    /// [`TypeOptions`], because a newer node may have more.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Shortest range, in ids.
    pub min_range: i64,
    /// Longest range, in ids; not below `min_range`.
    pub max_range: i64,
    /// How long one range is meant to last, in milliseconds.
    pub load_interval_ms: i64,
    /// The share of a range after whose use the next is due; a fraction from 0 to 1.
    pub load_percentage: f64,
    /// How long a refill holds its lock without a sign of life, in
    /// milliseconds.
    pub lock_ttl_ms: i64,
    /// Length of the last range, in ids; `null` before the first load.
    pub last_range: Option<i64>,
    /// When the last range was allocated; `null` before the first load.
    pub last_load_ms: Option<i64>,
    /// Number of the Redis instance.
    pub instance: i64,
    /// The line of writes of the Redis instance that its ranges were published
    /// under; `null` before the first load.
    pub history: Option<String>,
    /// How many migrations of the type were begun.
    #[serde(default)]
    pub generation: i64,
    /// Number of the Redis instance that it is being moved to.
    #[serde(default)]
    pub moving_to: Option<i64>,
    /// Number of the Redis instance that it was on before.
    #[serde(default)]
    pub moved_from: Option<i64>,
    /// When it came from there.
    #[serde(default)]
    pub moved_ms: Option<i64>,
    /// Counts the changes of its settings, from 1.
    pub version: i64,
    /// When it was made.
    pub created_ms: i64,
    /// When its settings were changed last.
    pub updated_ms: i64,
}

impl From<TypeRecord> for TypeJson {
    fn from(record: TypeRecord) -> Self {
        let placement = record.placement;
        TypeJson {
            name: record.name.as_str().to_owned(),
            mode: record.mode.as_str().to_owned(),
            state: record.state.as_str().to_owned(),
            prefix: record.prefix,
            description: record.description,
            first_id: record.first_id,
            next_id: record.next_id,
            max_id: record.max_id,
            max_position: record.max_position,
            options: as_object(&record.options),
            min_range: record.min_range,
            max_range: record.max_range,
            load_interval_ms: record.load_interval_ms,
            load_percentage: record.load_percentage.as_fraction(),
            lock_ttl_ms: record.lock_ttl_ms,
            last_range: record.last_range,
            last_load_ms: record.last_load_ms,
            instance: record.instance.0,
            history: record.history.map(|h| h.as_str().to_owned()),
            generation: placement.generation,
            moving_to: placement.moving_to.map(|to| to.0),
            moved_from: placement.moved_from.map(|from| from.0),
            moved_ms: placement.moved_from.map(|_| placement.moved_ms),
            version: record.version,
            created_ms: record.created_ms,
            updated_ms: record.updated_ms,
        }
    }
}

fn as_object(options: &TypeOptions) -> Map<String, Value> {
    match serde_json::to_value(options) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Ids `start` to `end - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RangeJson {
    /// The first id.
    pub start: i64,
    /// One above the last.
    pub end: i64,
}

impl From<IdRange> for RangeJson {
    fn from(range: IdRange) -> Self {
        RangeJson { start: range.start(), end: range.end() }
    }
}

/// What the dispatcher of a type holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DispatcherJson {
    /// Whether the published ranges may be used; if not, a refill comes first.
    pub live: bool,
    /// The next id to hand out.
    pub cursor: i64,
    /// The range now being handed out.
    pub current: Option<RangeJson>,
    /// Reaching it makes the next range due.
    pub update_id: i64,
    /// The range in reserve.
    pub second: Option<RangeJson>,
    /// How many ids are left, in both ranges.
    pub left: u64,
    /// Ids taken since the last publication.
    pub used: u64,
    /// Milliseconds since the last publication.
    pub age_ms: u64,
    /// The history of the instance.
    pub history: String,
    /// What closes the type there: it is being moved away, or was.
    #[serde(default)]
    pub sealed: Option<SealJson>,
}

impl From<View> for DispatcherJson {
    fn from(view: View) -> Self {
        DispatcherJson {
            live: view.is_live(),
            cursor: view.cursor,
            current: view.current.map(Into::into),
            update_id: view.update_id,
            second: view.second.map(Into::into),
            left: view.left(),
            used: view.used,
            age_ms: view.age_ms,
            history: view.history.as_str().to_owned(),
            sealed: view.sealed.map(Into::into),
        }
    }
}

/// A type and what its dispatcher holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeDetailJson {
    /// The type.
    #[serde(flatten)]
    pub record: TypeJson,
    /// `null` when the dispatcher is out of reach, and for a type that needs none.
    pub dispatcher: Option<DispatcherJson>,
    /// What the node that answers holds; `null` for what it never issued itself.
    #[serde(default)]
    pub local: Option<LocalJson>,
    /// When its highest id, or the end of its epoch, will be reached at the rate that
    /// this node knows; `null` when there is no rate or no end.
    #[serde(default)]
    pub exhausted_at_ms: Option<i64>,
}

impl From<TypeStatus> for TypeDetailJson {
    fn from(status: TypeStatus) -> Self {
        TypeDetailJson {
            record: status.record.into(),
            dispatcher: status.view.map(Into::into),
            local: status.local.map(Into::into),
            exhausted_at_ms: status.exhausted_at_ms,
        }
    }
}

/// A list. `more` says whether there are rows after the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ListOf{T}")]
pub struct ListJson<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Whether a further request with `after` set to the last name finds more.
    pub more: bool,
}

/// Ids for the caller alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdsJson {
    /// The type.
    pub name: String,
    /// The ids, in the order in which they were issued.
    pub ids: Vec<i64>,
}

/// A new Redis instance.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [
    {"name": "main", "url": "redis://idgen:PASSWORD@cache.example:6379"},
]))]
pub struct NewInstance {
    /// Its name: letters, digits and `_ . : -`.
    #[schemars(pattern(TypeName::PATTERN))]
    pub name: String,
    /// Its URL, with user and password where needed: one server
    /// (`redis://HOST:PORT`), `redis+sentinel://…/GROUP` or `redis+cluster://…`; `rediss`
    /// for TLS.
    #[schemars(length(max = InstanceSpec::MAX_URL), pattern(REDIS_URL))]
    pub url: String,
    /// Whether its connection is tested first.
    #[serde(default = "yes")]
    pub test: bool,
}

impl NewInstance {
    /// The checked specification.
    pub fn into_spec(self) -> Result<InstanceSpec, Error> {
        checked_instance(self.name, self.url)
    }
}

/// Which instance to test: exactly one of the fields.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["name"], "properties": {"name": {"type": "string"}, "url": {"type": "null"}}},
    {"required": ["url"], "properties": {"url": {"type": "string"}, "name": {"type": "null"}}},
]))]
#[schemars(extend("examples" = [{"name": "main"}]))]
pub struct TestInstance {
    /// A registered one.
    #[schemars(length(max = TypeName::MAX_LEN))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Any, by its URL.
    #[schemars(length(max = InstanceSpec::MAX_URL), pattern(REDIS_URL))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A specification that follows the rules for what comes from outside.
pub(super) fn checked_instance(name: String, url: String) -> Result<InstanceSpec, Error> {
    let spec = InstanceSpec { name, url };
    spec.validate()?;
    // The dispatcher in the process's own memory is the embedded store's: a
    // type on it would get its ids from one node alone.
    if spec.url.starts_with("memory:") {
        return Err(Error::invalid(
            "url",
            "url memory:// is the embedded store's own: a Redis instance has a redis:// URL",
        ));
    }
    Ok(spec)
}

/// What a test of a connection found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckJson {
    /// Whether it answered.
    pub reachable: bool,
    /// Its history, if it answered.
    pub history: Option<String>,
    /// How long the answer took, in microseconds; 0 if there was none.
    pub round_trip_us: u64,
    /// Why it did not answer.
    pub error: Option<String>,
}

impl From<crate::service::admin::InstanceCheck> for CheckJson {
    fn from(check: crate::service::admin::InstanceCheck) -> Self {
        CheckJson {
            reachable: check.error.is_none(),
            history: check.history.map(|h| h.as_str().to_owned()),
            round_trip_us: check.round_trip_us,
            error: check.error,
        }
    }
}

/// A Redis instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceJson {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its URL, without the password.
    pub url: String,
    /// How many types are assigned to it; while it is being drained: are left on it.
    pub types: u64,
    /// Where its types go, while it is being drained.
    #[serde(default)]
    pub drain_to: Option<InstanceRefJson>,
    /// How it answers now; left out of the answer to a registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckJson>,
}

impl From<InstanceRecord> for InstanceJson {
    fn from(record: InstanceRecord) -> Self {
        InstanceJson {
            id: record.id.0,
            name: record.name,
            url: redact_url(&record.url),
            types: record.types,
            drain_to: record.drain_to.map(|to| InstanceRefJson { id: to.0, name: None }),
            check: None,
        }
    }
}

/// Options as an object: the parser would take their values as a list, too.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TypeOptions>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Option<TypeOptions>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let fields = serde::de::value::MapAccessDeserializer::new(map);
            TypeOptions::deserialize(fields).map(Some)
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Visitor)
}

fn yes() -> bool {
    true
}

/// How the URL of a Redis instance begins; what follows has rules of its own.
const REDIS_URL: &str = "^rediss?(\\+sentinel|\\+cluster)?://.+";

/// An id in a request.
fn id_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": ["integer", "string", "null"],
        "format": "int64",
        "minimum": 1,
        "maximum": TypeSpec::HIGHEST_ID,
        "pattern": "^[1-9][0-9]{0,18}$",
    })
}

/// An id as a number or as decimal text.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    struct Visitor;
    impl serde::de::Visitor<'_> for Visitor {
        type Value = Option<i64>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an id below 2^63, as a number or as decimal text")
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok(Some(value))
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
            let wrong = || E::invalid_value(serde::de::Unexpected::Unsigned(value), &self);
            i64::try_from(value).map(Some).map_err(|_| wrong())
        }

        fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
            let wrong = || E::invalid_value(serde::de::Unexpected::Str(value), &self);
            value.parse().map(Some).map_err(|_| wrong())
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Visitor)
}
