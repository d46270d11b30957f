//! Id types: their settings, the rules that the settings must keep, and the
//! record of a type as the range store holds it.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::number_of;
use super::sizing::SizingRule;
use super::{
    AtLimit, Error, ErrorCode, History, InstanceId, OpaqueKey, Placement, SliceKey, TypeName,
    TypeOptions,
};

/// How the ids of a type are handed out (design.md §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Redis hands out, through any node: unique, and in one order across the cluster.
    Strict,
    /// Each node hands out from ranges of its own: unique, ascending on a node.
    Segment,
    /// As segment, with 64 sub-sequences that a hash of the caller's gate pass
    /// chooses from: unique, ascending per shard on a node.
    Sharded,
    /// Each node makes ids from the clock and a leased worker id: unique, by time.
    Snowflake,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 4] = [Mode::Strict, Mode::Segment, Mode::Sharded, Mode::Snowflake];

    /// The name in stores and interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Strict => "strict",
            Mode::Segment => "segment",
            Mode::Sharded => "sharded",
            Mode::Snowflake => "snowflake",
        }
    }

    /// The mode called `text`; the error names the field `mode`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            let names = Mode::ALL.map(Mode::as_str).join(", ");
            Error::invalid("mode", format!("mode {text:?} is not known; this version has: {names}"))
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a type hands out ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Hands out ids.
    Active,
    /// Kept, with its name and its next id, but hands out nothing.
    Retired,
}

impl State {
    /// The name in stores and interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Retired => "retired",
        }
    }

    /// The state called `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "active" => Some(State::Active),
            "retired" => Some(State::Retired),
            _ => None,
        }
    }
}

/// The share of a range after whose use the next range is due, in steps of
/// 1/10 000 so that every store computes the same update id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadPercentage(u16);

impl LoadPercentage {
    /// Basis points of a whole.
    pub const WHOLE: u16 = 10_000;
    /// 0.1: the next range is loaded early, so that a whole one is always in reserve.
    pub const DEFAULT: LoadPercentage = LoadPercentage(1_000);

    /// From a fraction in `0..=1`, rounded to 1/10 000.
    pub fn from_fraction(fraction: f64) -> Result<Self, Error> {
        if (0.0..=1.0).contains(&fraction) {
            Ok(LoadPercentage((fraction * f64::from(Self::WHOLE)).round() as u16))
        } else {
            Err(Error::invalid(
                "load_percentage",
                format!("load_percentage {fraction} is out of range: it must be from 0 to 1"),
            ))
        }
    }

    /// In 1/10 000.
    pub fn basis_points(self) -> u16 {
        self.0
    }

    /// As a fraction in `0..=1`.
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }
}

/// Everything that a new type is made from. [`TypeSpec::new`] gives the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeSpec {
    /// Its name, for ever.
    pub name: TypeName,
    /// How its ids are handed out.
    pub mode: Mode,
    /// Put before the number in string ids. At most [`TypeSpec::MAX_PREFIX`] characters.
    pub prefix: String,
    /// For people. At most [`TypeSpec::MAX_DESCRIPTION`] bytes.
    pub description: String,
    /// The first id that is handed out; at least 1.
    pub first_id: i64,
    /// The highest id that may ever be handed out; at least `first_id`.
    pub max_id: i64,
    /// Shortest range, in ids.
    pub min_range: i64,
    /// Longest range, in ids.
    pub max_range: i64,
    /// How long one range is meant to last, in milliseconds.
    pub load_interval_ms: i64,
    /// The share of a range after whose use the next is due.
    pub load_percentage: LoadPercentage,
    /// How long a refill holds its lock without a sign of life, in milliseconds.
    pub lock_ttl_ms: i64,
    /// Name or number of the Redis instance; `None` lets the store choose the
    /// one with the lowest number.
    pub instance: Option<String>,
    /// What it is beyond a plain sequence.
    pub options: TypeOptions,
    /// The first key of an opaque type; the service draws one where the caller
    /// gives none. Must be there when the type is stored.
    pub key: Option<OpaqueKey>,
}

impl TypeSpec {
    /// Longest prefix, in characters.
    pub const MAX_PREFIX: usize = 64;
    /// Longest description, in bytes: what a MySQL `TEXT` column holds.
    pub const MAX_DESCRIPTION: usize = 65_535;
    /// Highest possible id: one below `i64::MAX`, because ranges are half-open.
    pub const HIGHEST_ID: i64 = i64::MAX - 1;
    /// Longest range that a type may ask for. Redis scripts compute lengths in
    /// doubles, which are exact up to 2^53; this leaves room for sums.
    pub const LONGEST_RANGE: i64 = 1_000_000_000_000;

    /// Longest time that one range may be meant to last, in milliseconds: a day.
    pub const MAX_LOAD_INTERVAL_MS: i64 = 86_400_000;
    /// Shortest life of a refill's lock, in milliseconds.
    pub const MIN_LOCK_TTL_MS: i64 = 1_000;
    /// Longest life of a refill's lock, in milliseconds.
    pub const MAX_LOCK_TTL_MS: i64 = 600_000;

    /// A strict type called `name` with every default.
    pub fn new(name: TypeName) -> Self {
        TypeSpec {
            name,
            mode: Mode::Strict,
            prefix: String::new(),
            description: String::new(),
            first_id: 1,
            max_id: Self::HIGHEST_ID,
            min_range: 1_000,
            max_range: 100_000_000,
            load_interval_ms: 600_000,
            load_percentage: LoadPercentage::DEFAULT,
            lock_ttl_ms: 10_000,
            instance: None,
            options: TypeOptions::default(),
            key: None,
        }
    }

    /// Checks every rule; the error names the field and the limit.
    pub fn validate(&self) -> Result<(), Error> {
        check_texts(&self.prefix, &self.description)?;
        within("first_id", self.first_id, 1, Self::HIGHEST_ID)?;
        within("max_id", self.max_id, self.first_id, Self::HIGHEST_ID)?;
        self.options.validate(self.mode, self.first_id, self.max_id)?;
        if self.key.is_some() && self.options.opaque.is_none() {
            return Err(Error::invalid("key", "key is for opaque types only"));
        }
        check_sizes(self.min_range, self.max_range, self.load_interval_ms, self.lock_ttl_ms)
    }

    /// The highest position that may be allocated; in each period, for a
    /// calendar series.
    pub fn max_position(&self) -> i64 {
        self.options.max_position(self.mode, self.max_id)
    }
}

/// A change of a type's settings: every `Some` replaces what was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeChange {
    /// The version that the caller has seen; another one is a conflict. `None`
    /// changes whatever is there.
    pub expected_version: Option<i64>,
    /// See [`TypeSpec::mode`]. Refused once ids were issued.
    pub mode: Option<Mode>,
    /// See [`TypeSpec::options`]; replaces them all. Refused once ids were issued,
    /// but for `on_redis_loss`. Whether a type is opaque never changes.
    pub options: Option<TypeOptions>,
    /// See [`TypeSpec::prefix`].
    pub prefix: Option<String>,
    /// See [`TypeSpec::description`].
    pub description: Option<String>,
    /// See [`TypeSpec::max_id`].
    pub max_id: Option<i64>,
    /// See [`TypeSpec::min_range`].
    pub min_range: Option<i64>,
    /// See [`TypeSpec::max_range`].
    pub max_range: Option<i64>,
    /// See [`TypeSpec::load_interval_ms`].
    pub load_interval_ms: Option<i64>,
    /// See [`TypeSpec::load_percentage`].
    pub load_percentage: Option<LoadPercentage>,
    /// See [`TypeSpec::lock_ttl_ms`].
    pub lock_ttl_ms: Option<i64>,
}

impl TypeChange {
    /// `record` with this change, one version on, changed at `now_ms` by the
    /// store's clock. Refused: `CONFLICT` where the record is not at the expected
    /// version, else the rule that the result would break.
    pub fn apply_to(&self, record: &TypeRecord, now_ms: i64) -> Result<TypeRecord, Error> {
        if self.expected_version.is_some_and(|version| version != record.version) {
            return Err(Error::new(
                ErrorCode::Conflict,
                format!(
                    "id type {} was changed by somebody else: it is at version {}",
                    record.name, record.version
                ),
            ));
        }
        let mut changed = record.clone();
        let new = self.clone();
        changed.mode = new.mode.unwrap_or(changed.mode);
        changed.options = new.options.unwrap_or(changed.options);
        changed.prefix = new.prefix.unwrap_or(changed.prefix);
        changed.description = new.description.unwrap_or(changed.description);
        changed.max_id = new.max_id.unwrap_or(changed.max_id);
        changed.min_range = new.min_range.unwrap_or(changed.min_range);
        changed.max_range = new.max_range.unwrap_or(changed.max_range);
        changed.load_interval_ms = new.load_interval_ms.unwrap_or(changed.load_interval_ms);
        changed.load_percentage = new.load_percentage.unwrap_or(changed.load_percentage);
        changed.lock_ttl_ms = new.lock_ttl_ms.unwrap_or(changed.lock_ttl_ms);
        if record.has_issued() {
            // Before the rules of the new mode, which would ask for more changes.
            record.check_mode_kept(changed.mode)?;
        }
        check_texts(&changed.prefix, &changed.description)?;
        within("max_id", changed.max_id, changed.first_id, TypeSpec::HIGHEST_ID)?;
        changed.options.validate(changed.mode, changed.first_id, changed.max_id)?;
        if record.has_issued() {
            record.check_kept(&changed)?;
        } else if record.options.opaque.is_some() != changed.options.opaque.is_some() {
            return Err(Error::invalid(
                "options",
                "opaque cannot be added or removed later, because of its key: make a new type",
            ));
        }
        changed.max_position = changed.options.max_position(changed.mode, changed.max_id);
        check_sizes(
            changed.min_range,
            changed.max_range,
            changed.load_interval_ms,
            changed.lock_ttl_ms,
        )?;
        changed.version += 1;
        changed.updated_ms = now_ms;
        Ok(changed)
    }
}

/// A type as the range store holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeRecord {
    /// Its name.
    pub name: TypeName,
    /// How its ids are handed out.
    pub mode: Mode,
    /// Whether it hands out ids.
    pub state: State,
    /// See [`TypeSpec::prefix`].
    pub prefix: String,
    /// See [`TypeSpec::description`].
    pub description: String,
    /// See [`TypeSpec::options`].
    pub options: TypeOptions,
    /// The keys of an opaque type, by their first slices; else empty. Secret.
    pub keys: Arc<[SliceKey]>,
    /// See [`TypeSpec::first_id`].
    pub first_id: i64,
    /// The first position that no range holds yet. Of a sharded type, the
    /// highest of its shards.
    pub next_id: i64,
    /// See [`TypeSpec::max_id`].
    pub max_id: i64,
    /// See [`TypeSpec::max_position`].
    pub max_position: i64,
    /// See [`TypeSpec::min_range`].
    pub min_range: i64,
    /// See [`TypeSpec::max_range`].
    pub max_range: i64,
    /// See [`TypeSpec::load_interval_ms`].
    pub load_interval_ms: i64,
    /// See [`TypeSpec::load_percentage`].
    pub load_percentage: LoadPercentage,
    /// See [`TypeSpec::lock_ttl_ms`].
    pub lock_ttl_ms: i64,
    /// Length of the last range, in ids; `None` before the first load.
    pub last_range: Option<i64>,
    /// When the last range was allocated, in milliseconds of the Unix epoch by
    /// the store's clock.
    pub last_load_ms: Option<i64>,
    /// The Redis instance that the type is assigned to.
    pub instance: InstanceId,
    /// The history under which the newest range was allocated for Redis.
    pub history: Option<History>,
    /// Where it is on its way between instances.
    pub placement: Placement,
    /// Counts every change of the settings or the state; starts at 1.
    pub version: i64,
    /// When it was created, in milliseconds of the Unix epoch by the store's clock.
    pub created_ms: i64,
    /// When its settings last changed, likewise.
    pub updated_ms: i64,
}

impl TypeRecord {
    /// A new type as `spec` describes it, assigned to `instance`, made at
    /// `now_ms` by the store's clock.
    pub fn created(spec: &TypeSpec, instance: InstanceId, now_ms: i64) -> Self {
        TypeRecord {
            name: spec.name.clone(),
            mode: spec.mode,
            state: State::Active,
            prefix: spec.prefix.clone(),
            description: spec.description.clone(),
            options: spec.options.clone(),
            keys: spec.key.iter().map(|key| SliceKey { from_slice: 0, key: key.clone() }).collect(),
            first_id: spec.first_id,
            next_id: spec.first_id,
            max_id: spec.max_id,
            max_position: spec.max_position(),
            min_range: spec.min_range,
            max_range: spec.max_range,
            load_interval_ms: spec.load_interval_ms,
            load_percentage: spec.load_percentage,
            lock_ttl_ms: spec.lock_ttl_ms,
            last_range: None,
            last_load_ms: None,
            instance,
            history: None,
            placement: Placement::default(),
            version: 1,
            created_ms: now_ms,
            updated_ms: now_ms,
        }
    }

    /// What decides about the length of its ranges.
    pub fn sizing(&self) -> SizingRule {
        SizingRule {
            min_range: self.min_range as u64,
            max_range: self.max_range as u64,
            load_interval_ms: self.load_interval_ms as u64,
        }
    }

    /// How many positions may still be allocated; in the period of the newest
    /// range, for a calendar series. Meaningless for a snowflake type.
    pub fn left(&self) -> u64 {
        self.left_from(self.next_id)
    }

    /// The same, if `next` were the first position that no range holds.
    pub fn left_from(&self, next: i64) -> u64 {
        self.max_position.saturating_add(1).saturating_sub(self.number_at(next)).max(0) as u64
    }

    /// What `max_position` limits: the number within its period of a position of
    /// a calendar series, else the position itself.
    fn number_at(&self, position: i64) -> i64 {
        match self.options.calendar {
            Some(_) => number_of(position),
            None => position,
        }
    }

    /// Whether somebody may have got an id. Nobody counts those of a snowflake
    /// type, so it always may have.
    pub fn has_issued(&self) -> bool {
        self.mode == Mode::Snowflake || self.last_load_ms.is_some() || self.next_id > self.first_id
    }

    fn check_mode_kept(&self, mode: Mode) -> Result<(), Error> {
        if self.mode == mode {
            return Ok(());
        }
        Err(Error::invalid(
            "mode",
            format!(
                "mode of id type {} cannot change from {} to {mode}: it has issued ids; make a \
                 new type",
                self.name, self.mode
            ),
        ))
    }

    /// Refuses what would let a type that has issued ids repeat one.
    fn check_kept(&self, changed: &TypeRecord) -> Result<(), Error> {
        self.options.check_change(&changed.options)?;
        if self.max_id != changed.max_id {
            // The ids of these are computed with the limit.
            let fixed = self.options.opaque.is_some() || self.options.at_limit == AtLimit::Cycle;
            if fixed {
                return Err(Error::invalid(
                    "max_id",
                    "max_id of a type that is opaque or cycles cannot change once ids were \
                     issued, because ids could repeat: make a new type",
                ));
            }
            // A limit below what is allocated already could not be kept.
            let position = changed.options.max_position(changed.mode, changed.max_id);
            let next = self.number_at(self.next_id);
            if position < next - 1 {
                return Err(Error::invalid(
                    "max_id",
                    format!(
                        "max_id {} is too low: positions up to {} are allocated",
                        changed.max_id,
                        next - 1
                    ),
                ));
            }
        }
        if self.prefix != changed.prefix {
            // "A1" and 1 make the same text as "A" and 11.
            let safe = |prefix: &str| !prefix.ends_with(|c: char| c.is_ascii_digit());
            if self.options.format.is_some() || !safe(&self.prefix) || !safe(&changed.prefix) {
                return Err(Error::invalid(
                    "prefix",
                    "prefix of a type with a format, or one that ends in a digit, cannot change \
                     once ids were issued, because texts could repeat: make a new type",
                ));
            }
        }
        Ok(())
    }
}

fn check_texts(prefix: &str, description: &str) -> Result<(), Error> {
    check_prefix(prefix)?;
    check_description(description)
}

fn check_sizes(
    min_range: i64,
    max_range: i64,
    load_interval_ms: i64,
    lock_ttl_ms: i64,
) -> Result<(), Error> {
    within("min_range", min_range, 1, TypeSpec::LONGEST_RANGE)?;
    within("max_range", max_range, min_range, TypeSpec::LONGEST_RANGE)?;
    within("load_interval_ms", load_interval_ms, 1, TypeSpec::MAX_LOAD_INTERVAL_MS)?;
    within("lock_ttl_ms", lock_ttl_ms, TypeSpec::MIN_LOCK_TTL_MS, TypeSpec::MAX_LOCK_TTL_MS)
}

fn check_prefix(prefix: &str) -> Result<(), Error> {
    let length = prefix.chars().count();
    if length > TypeSpec::MAX_PREFIX {
        return Err(Error::invalid(
            "prefix",
            format!("prefix has {length} characters; the limit is {}", TypeSpec::MAX_PREFIX),
        ));
    }
    if prefix.chars().any(char::is_control) {
        return Err(Error::invalid("prefix", "prefix must not hold control characters"));
    }
    Ok(())
}

fn check_description(description: &str) -> Result<(), Error> {
    if description.len() > TypeSpec::MAX_DESCRIPTION {
        return Err(Error::invalid(
            "description",
            format!(
                "description has {} bytes; the limit is {}",
                description.len(),
                TypeSpec::MAX_DESCRIPTION
            ),
        ));
    }
    Ok(())
}

pub(super) fn within(field: &'static str, value: i64, low: i64, high: i64) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(Error::invalid(
            field,
            format!("{field} {value} is out of range: it must be from {low} to {high}"),
        ))
    }
}

#[cfg(test)]
mod tests;
