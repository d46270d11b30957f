//! What a type can be beyond a plain sequence, and which combinations make sense.
//!
//! The options are stored and shown as one JSON object (the column `options`,
//! the field `options` of the admin API), written as serde makes it here: what
//! is not given is left out. `procedures/routines/idgen_check_options.sql` keeps
//! the same rules for calls by hand.
//!
//! # Positions and ids
//!
//! The range store counts **positions**: 1, 2, 3 …, always upwards, each given
//! away once. Callers see **ids**, which [`super::id_map`] makes of positions:
//! for a plain type they are the same. That is why a type that wraps around,
//! hides its volume or restarts every day keeps every promise of the plain one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::calendar::{Period, Zone};
use super::format::Format;
use super::id_type::within;
use super::snowflake::Layout;
use super::{Error, IdRange, Mode, TypeSpec};

/// What happens at the highest id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtLimit {
    /// Calls fail with `EXHAUSTED`.
    #[default]
    Error,
    /// Ids start again at the first one, and so repeat: the one exception from
    /// "an id is issued at most once".
    Cycle,
}

/// What a strict type does while its Redis instance is out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnRedisLoss {
    /// Calls fail with `UNAVAILABLE`.
    #[default]
    Fail,
    /// Nodes issue from leases of their own: unique, but no longer in one order
    /// across the cluster until Redis is back.
    Segment,
}

/// A keyed permutation of the ids (see [`super::opaque`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Opaque {
    /// Into how many equal slices the ids `1..=max_id` are cut, 1 to 1 024.
    /// Each is permuted by itself, in order, so the key can be changed at each
    /// border without repeating an id.
    #[serde(default = "Opaque::default_slices")]
    #[schemars(range(min = 1, max = Opaque::MAX_SLICES))]
    pub slices: u16,
}

impl Opaque {
    /// Most slices.
    pub const MAX_SLICES: u16 = 1_024;
    /// Fewest ids in a slice: FF1 asks for a domain of at least one million
    /// (NIST SP 800-38G Rev. 1, §5).
    pub const SMALLEST_SLICE: i64 = 1_000_000;

    fn default_slices() -> u16 {
        16
    }
}

impl Default for Opaque {
    fn default() -> Self {
        Opaque { slices: Self::default_slices() }
    }
}

/// The share of the ids that one of several independent range stores issues:
/// `id = position × count + site`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sites {
    /// How many sites there can ever be, 2 to 1 024; the same at every site.
    #[schemars(range(min = 2, max = Sites::MAX_COUNT))]
    pub count: u16,
    /// Which one this range store is, from 0; different at every site.
    #[schemars(range(min = 0, max = Sites::MAX_COUNT - 1))]
    pub site: u16,
}

impl Sites {
    /// Most sites.
    pub const MAX_COUNT: u16 = 1_024;

    /// Checks the limits above; the error names `sites.count` or `sites.site`.
    pub fn validate(&self) -> Result<(), Error> {
        within("sites.count", self.count.into(), 2, Self::MAX_COUNT.into())?;
        within("sites.site", self.site.into(), 0, i64::from(self.count) - 1)
    }
}

/// What a type is beyond a plain sequence, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeOptions {
    /// What happens at `max_id`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at_limit: AtLimit,
    /// What happens without Redis. Strict types only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_redis_loss: OnRedisLoss,
    /// How ids are written as text, such as `{prefix}{date:yyMMdd}{seq:06}`; without
    /// it, prefix and decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeOptions::MAX_FORMAT))]
    pub format: Option<String>,
    /// The number restarts with each period; the format must hold the date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<Period>,
    /// IANA name of the time zone of dates and periods; UTC if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Ids tell nothing about the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
    /// Sharded types only, and needed there: the lowest 8 bits of every id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = TypeOptions::MAX_APP_ID))]
    pub app_id: Option<i64>,
    /// Snowflake types only; Leaf's layout if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snowflake: Option<Layout>,
    /// Segment types only: several range stores share the ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<Sites>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TypeOptions {
    /// Longest format, in characters.
    pub const MAX_FORMAT: usize = 255;
    /// Longest JSON text of all options, in bytes.
    pub const MAX_JSON: usize = 2_048;
    /// Lowest 14 bits of a sharded id: 6 of the shard, 8 of the app.
    pub const SHARD_BITS: u32 = 14;
    /// Lowest 8 bits of a sharded id, of the app.
    pub const APP_BITS: u32 = 8;
    /// Highest app id.
    pub const MAX_APP_ID: i64 = (1 << Self::APP_BITS) - 1;
    /// The positions of a calendar series are `period << 40 | number`: room for
    /// 10^12 numbers a period and 8 million periods.
    pub const PERIOD_BITS: u32 = 40;
    /// The highest number within a period: one below what the bits hold, because
    /// ranges are half-open.
    pub const MAX_PERIOD_NUMBER: i64 = (1 << Self::PERIOD_BITS) - 2;

    /// As JSON, the form of stores and interfaces.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain values are always JSON")
    }

    /// From JSON, [`TypeOptions::MAX_JSON`] bytes at most; the error names the
    /// field `options`.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        if text.len() > Self::MAX_JSON {
            return Err(Error::invalid(
                "options",
                format!("options has {} bytes; the limit is {}", text.len(), Self::MAX_JSON),
            ));
        }
        let wrong = |error| Error::invalid("options", format!("options: {error}"));
        let options: Self = serde_json::from_str(text).map_err(wrong)?;
        // serde takes an array for an object whose fields come in order.
        let value: Value = serde_json::from_str(text).map_err(wrong)?;
        let inner = value.as_object().into_iter().flat_map(|fields| fields.values());
        if !value.is_object() || inner.into_iter().any(Value::is_array) {
            return Err(Error::invalid("options", "options must be a JSON object without arrays"));
        }
        Ok(options)
    }

    /// Checks every rule of a type of `mode` with these options and limits; the
    /// error names the option and the limit. `first_id` and `max_id` are legal
    /// by themselves.
    pub fn validate(&self, mode: Mode, first_id: i64, max_id: i64) -> Result<(), Error> {
        self.check_mode(mode)?;
        self.check_combination()?;
        if let Some(app) = self.app_id {
            within("app_id", app, 0, Self::MAX_APP_ID)?;
        }
        if let Some(layout) = &self.snowflake {
            layout.validate()?;
        }
        if let Some(sites) = self.sites {
            sites.validate()?;
        }
        let format = self.format.as_deref().map(Format::parse).transpose()?;
        Zone::parse(self.time_zone.as_deref())?;
        if self.time_zone.is_some() && !format.as_ref().is_some_and(Format::has_date) {
            return Err(Error::invalid(
                "time_zone",
                "time_zone needs a format with a date, which it is for",
            ));
        }
        if mode == Mode::Snowflake {
            return check_snowflake(format.as_ref(), first_id, max_id);
        }
        self.check_limits(mode, first_id, max_id)?;
        match format {
            Some(format) => format.check(self.calendar, max_id),
            None if self.calendar.is_some() => Err(Error::invalid(
                "format",
                "a calendar series needs a format that holds the date, such as \
                 {date:yyMMdd}{seq:06}: without it its ids would repeat",
            )),
            None => Ok(()),
        }
    }

    fn check_limits(&self, mode: Mode, first_id: i64, max_id: i64) -> Result<(), Error> {
        let highest = self.highest_number(mode, max_id);
        if first_id > highest {
            return Err(Error::invalid(
                "max_id",
                format!("max_id {max_id} leaves no room for first_id {first_id} in this mode"),
            ));
        }
        if let Some(opaque) = self.opaque {
            within("opaque.slices", opaque.slices.into(), 1, Opaque::MAX_SLICES.into())?;
            let least = Opaque::SMALLEST_SLICE * i64::from(opaque.slices);
            if highest < least {
                return Err(Error::invalid(
                    "max_id",
                    format!(
                        "max_id {max_id} is too small for an opaque type of {} slices: each must \
                         hold {} ids; raise max_id or lower opaque.slices",
                        opaque.slices,
                        Opaque::SMALLEST_SLICE
                    ),
                ));
            }
        }
        if self.calendar.is_some() {
            within("max_id", max_id, first_id, Self::MAX_PERIOD_NUMBER)?;
        }
        Ok(())
    }

    fn check_mode(&self, mode: Mode) -> Result<(), Error> {
        let only = |given: bool, field: &'static str, allowed: &[Mode]| {
            if !given || allowed.contains(&mode) {
                return Ok(());
            }
            let names: Vec<&str> = allowed.iter().map(|m| m.as_str()).collect();
            Err(Error::invalid(
                field,
                format!("{field} is for types of mode {} only, not {mode}", names.join(" or ")),
            ))
        };
        let counted = [Mode::Strict, Mode::Segment, Mode::Sharded];
        only(self.on_redis_loss != OnRedisLoss::Fail, "on_redis_loss", &[Mode::Strict])?;
        only(self.at_limit != AtLimit::Error, "at_limit", &counted)?;
        only(self.opaque.is_some(), "opaque", &counted)?;
        only(self.calendar.is_some(), "calendar", &[Mode::Strict, Mode::Segment])?;
        only(self.sites.is_some(), "sites", &[Mode::Segment])?;
        only(self.app_id.is_some(), "app_id", &[Mode::Sharded])?;
        only(self.snowflake.is_some(), "snowflake", &[Mode::Snowflake])?;
        if mode == Mode::Sharded && self.app_id.is_none() {
            return Err(Error::invalid(
                "app_id",
                "app_id is missing: a sharded type needs one, from 0 to 255",
            ));
        }
        Ok(())
    }

    fn check_combination(&self) -> Result<(), Error> {
        let cycles = self.at_limit == AtLimit::Cycle;
        let clash = |given: bool, field: &'static str, other: &str, why: &str| match given {
            true => Err(Error::invalid(field, format!("{field} does not go with {other}: {why}"))),
            false => Ok(()),
        };
        let opaque = self.opaque.is_some();
        clash(opaque && cycles, "opaque", "at_limit cycle", "its ids would repeat in plain order")?;
        if self.calendar.is_some() {
            let why = "its numbers are short and in order";
            clash(opaque, "opaque", "calendar", why)?;
            clash(cycles, "at_limit", "calendar", "its numbers restart with the period")?;
            clash(
                self.sites.is_some(),
                "sites",
                "calendar",
                "two sites would disagree on the day",
            )?;
        }
        Ok(())
    }

    /// The highest number before it is composed into an id (see
    /// [`super::id_map`]), so that no id passes `max_id`. 0 or less: none fits.
    pub fn highest_number(&self, mode: Mode, max_id: i64) -> i64 {
        if mode == Mode::Sharded {
            return (max_id.saturating_add(1) >> Self::SHARD_BITS) - 1;
        }
        match self.sites {
            // Stores ask before they check, so a count of 0 must not end the program.
            Some(sites) => (max_id - i64::from(sites.site)) / i64::from(sites.count.max(1)),
            None => max_id,
        }
    }

    /// The highest position that may be allocated; in each period, for a
    /// calendar series. The range store keeps it as `max_position`.
    pub fn max_position(&self, mode: Mode, max_id: i64) -> i64 {
        match self.at_limit {
            AtLimit::Cycle => TypeSpec::HIGHEST_ID,
            AtLimit::Error => self.highest_number(mode, max_id),
        }
    }

    /// What `max_id` is where none is given: the highest that the other
    /// settings allow.
    pub fn default_max_id(&self) -> i64 {
        let most = match self.calendar {
            Some(_) => Self::MAX_PERIOD_NUMBER,
            None => TypeSpec::HIGHEST_ID,
        };
        let width = self.format.as_deref().and_then(|text| Format::parse(text).ok());
        width.and_then(|format| format.highest_in_width()).map_or(most, |w| w.min(most))
    }

    /// Refuses a change from `self` to `new` that could repeat an id or a text
    /// of a type that has issued ids.
    pub fn check_change(&self, new: &TypeOptions) -> Result<(), Error> {
        let kept: [(&'static str, bool); 8] = [
            ("at_limit", self.at_limit == new.at_limit),
            ("format", self.format == new.format),
            ("calendar", self.calendar == new.calendar),
            ("time_zone", self.time_zone == new.time_zone),
            ("opaque", self.opaque == new.opaque),
            ("app_id", self.app_id == new.app_id),
            ("snowflake", self.snowflake == new.snowflake),
            ("sites", self.sites == new.sites),
        ];
        match kept.into_iter().find(|(_, same)| !same) {
            None => Ok(()),
            Some((field, _)) => Err(Error::invalid(
                field,
                format!(
                    "{field} cannot change once ids were issued, because ids could repeat: \
                     make a new type"
                ),
            )),
        }
    }
}

/// Nothing is counted, so there is nothing to limit, nor a limit that would let
/// a format be short.
fn check_snowflake(format: Option<&Format>, first_id: i64, max_id: i64) -> Result<(), Error> {
    if let Some(highest) = format.and_then(Format::highest_in_width)
        && highest < i64::MAX
    {
        return Err(Error::invalid(
            "format",
            format!(
                "format has room for numbers up to {highest}, but those of a snowflake type need \
                 {{seq:019}}, {{seq36:013}} or {{seq62:011}}"
            ),
        ));
    }
    if (first_id, max_id) != (1, TypeSpec::HIGHEST_ID) {
        return Err(Error::invalid(
            "max_id",
            "first_id and max_id have no meaning for a snowflake type: leave them out",
        ));
    }
    Ok(())
}

/// The period that a position of a calendar series belongs to.
pub fn period_of(position: i64) -> i64 {
    position >> TypeOptions::PERIOD_BITS
}

/// The number within its period of a position of a calendar series.
pub fn number_of(position: i64) -> i64 {
    position & ((1 << TypeOptions::PERIOD_BITS) - 1)
}

/// The position of `number` in `period`.
pub fn position_in(period: i64, number: i64) -> i64 {
    (period << TypeOptions::PERIOD_BITS) | number
}

/// Whether all of `range` lies in one period.
pub fn in_one_period(range: IdRange) -> bool {
    period_of(range.start()) == period_of(range.last())
}

#[cfg(test)]
mod tests;
