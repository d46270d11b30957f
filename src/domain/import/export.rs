//! Our own types as a file: written by `GET /api/v1/export`, read by an import.
//!
//! Ids are text, because many programs lose the digits of large numbers. Keys of opaque
//! types are secret and not in it.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Item, Place, Planned, Rules, Table};
use crate::domain::calendar::Zone;
use crate::domain::opaque::{slice_of, slice_start};
use crate::domain::options::period_of;
use crate::domain::{
    AtLimit, Error, LoadPercentage, Mode, State, TypeName, TypeOptions, TypeRecord, TypeSpec,
};

/// The version of the form, the value of `idgen_export`.
pub const VERSION: u32 = 1;

/// A type as it is exported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    /// See [`TypeSpec::name`].
    pub name: String,
    /// See [`TypeSpec::mode`].
    pub mode: String,
    /// `active` or `retired`.
    pub state: String,
    /// See [`TypeSpec::prefix`].
    #[serde(default)]
    pub prefix: String,
    /// See [`TypeSpec::description`].
    #[serde(default)]
    pub description: String,
    /// See [`TypeSpec::first_id`].
    #[serde(serialize_with = "text", deserialize_with = "id")]
    pub first_id: i64,
    /// See [`TypeRecord::next_id`].
    #[serde(serialize_with = "text", deserialize_with = "id")]
    pub next_id: i64,
    /// See [`TypeSpec::max_id`].
    #[serde(serialize_with = "text", deserialize_with = "id")]
    pub max_id: i64,
    /// See [`TypeSpec::min_range`].
    pub min_range: i64,
    /// See [`TypeSpec::max_range`].
    pub max_range: i64,
    /// See [`TypeSpec::load_interval_ms`].
    pub load_interval_ms: i64,
    /// See [`TypeSpec::load_percentage`].
    pub load_percentage: f64,
    /// See [`TypeSpec::lock_ttl_ms`].
    pub lock_ttl_ms: i64,
    /// Number of the Redis instance; not looked at by an import, because another
    /// cluster has other ones.
    pub instance: i64,
    /// See [`TypeSpec::options`].
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// The columns of the CSV form, in their order.
pub const COLUMNS: [&str; 15] = [
    "name",
    "next_id",
    "max_id",
    "mode",
    "state",
    "prefix",
    "description",
    "first_id",
    "min_range",
    "max_range",
    "load_interval_ms",
    "load_percentage",
    "lock_ttl_ms",
    "instance",
    "options",
];

impl From<&TypeRecord> for Exported {
    fn from(record: &TypeRecord) -> Self {
        let options = match serde_json::to_value(&record.options) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Exported {
            name: record.name.to_string(),
            mode: record.mode.to_string(),
            state: record.state.as_str().to_owned(),
            prefix: record.prefix.clone(),
            description: record.description.clone(),
            first_id: record.first_id,
            next_id: record.next_id,
            max_id: record.max_id,
            min_range: record.min_range,
            max_range: record.max_range,
            load_interval_ms: record.load_interval_ms,
            load_percentage: record.load_percentage.as_fraction(),
            lock_ttl_ms: record.lock_ttl_ms,
            instance: record.instance.0,
            options,
        }
    }
}

impl Exported {
    /// A line of the CSV form, with its end.
    pub fn to_csv(&self) -> String {
        let options = Value::Object(self.options.clone()).to_string();
        let cells = [
            self.name.clone(),
            self.next_id.to_string(),
            self.max_id.to_string(),
            self.mode.clone(),
            self.state.clone(),
            self.prefix.clone(),
            self.description.clone(),
            self.first_id.to_string(),
            self.min_range.to_string(),
            self.max_range.to_string(),
            self.load_interval_ms.to_string(),
            self.load_percentage.to_string(),
            self.lock_ttl_ms.to_string(),
            self.instance.to_string(),
            options,
        ];
        let cells: Vec<_> = cells.iter().map(|cell| csv_cell(cell)).collect();
        cells.join(",") + "\r\n"
    }

    /// What becomes of it.
    pub(super) fn item(&self, rules: &Rules) -> Item {
        let (plan, note) = match self.planned(rules) {
            Ok((planned, note)) => (Ok(planned), note),
            Err(why) => (Err(why), None),
        };
        Item {
            name: self.name.chars().take(200).collect(),
            highest: self.next_id.saturating_sub(1).max(0),
            step: None,
            note,
            plan,
        }
    }

    fn planned(&self, rules: &Rules) -> Result<(Planned, Option<String>), String> {
        let said = |error: Error| error.message;
        let mut spec = TypeSpec::new(TypeName::parse(&self.name).map_err(said)?);
        spec.mode = Mode::parse(&self.mode).map_err(said)?;
        let state = State::parse(&self.state)
            .ok_or_else(|| format!("state {:?} is not known: active, retired", self.state))?;
        let options = Value::Object(self.options.clone()).to_string();
        spec.options = TypeOptions::from_json(&options).map_err(said)?;
        spec.prefix.clone_from(&self.prefix);
        spec.description.clone_from(&self.description);
        spec.max_id = self.max_id;
        spec.min_range = self.min_range;
        spec.max_range = self.max_range;
        spec.load_interval_ms = self.load_interval_ms;
        spec.load_percentage = LoadPercentage::from_fraction(self.load_percentage).map_err(said)?;
        spec.lock_ttl_ms = self.lock_ttl_ms;
        spec.instance.clone_from(&rules.instance);
        spec.first_id = self.first_id;
        spec.validate().map_err(said)?;
        let has_issued = self.next_id > self.first_id;
        let gap = rules.gap.ids(None, self.next_id.max(0));
        let next = self.next_id.max(1).saturating_add(if has_issued { gap } else { 0 });
        let mut least = self.next_id.max(1);
        let mut note = None;
        if spec.mode == Mode::Snowflake {
            note = Some(
                "its ids come from the clock: stop the other service first, or two nodes could \
                 have one worker id"
                    .to_owned(),
            );
        } else if let Some(period) = spec.options.calendar {
            let zone = Zone::parse(spec.options.time_zone.as_deref()).map_err(said)?;
            let now = zone.period_at(period, rules.now_ms).number;
            if has_issued && period_of(self.next_id - 1) >= now {
                return Err(format!(
                    "a {} calendar series has given numbers of the present period away: import it \
                     when the period is over and the other service has stopped",
                    period.as_str()
                ));
            }
        } else if spec.options.at_limit == AtLimit::Cycle {
            note = Some("its ids repeat: they begin again at the first one".to_owned());
            least = spec.first_id;
        } else if let Some(opaque) = spec.options.opaque {
            note = Some("it gets another key, from a slice on that was not used".to_owned());
            let highest = spec.options.highest_number(spec.mode, spec.max_id);
            if has_issued {
                least =
                    slice_start(slice_of(self.next_id - 1, highest, opaque) + 1, highest, opaque);
            }
            spec.first_id = next.max(least);
        } else {
            spec.first_id = next;
        }
        if spec.mode != Mode::Snowflake
            && spec.first_id > spec.options.highest_number(spec.mode, spec.max_id)
        {
            return Err(format!("nothing is left up to its highest id {}", self.max_id));
        }
        spec.validate().map_err(said)?;
        let first = spec.first_id;
        let first_id = spec
            .options
            .sites
            .map_or(first, |sites| first * i64::from(sites.count) + i64::from(sites.site));
        let retired = state == State::Retired;
        Ok((Planned { first_id, least, spec, retired }, note))
    }
}

/// The types of the JSON form; the error names line and column.
pub(super) fn from_json(text: &str) -> Result<Vec<Exported>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        idgen_export: u32,
        types: Vec<Exported>,
    }
    let file: File = serde_json::from_str(text).map_err(|error| {
        let place = Place { line: error.line(), column: error.column().max(1) };
        let text = error.to_string();
        // The place stands at the end of it, too.
        place.error(text.split(" at line ").next().unwrap_or(&text))
    })?;
    if file.idgen_export != VERSION {
        return Err(Error::invalid(
            "source.text",
            format!(
                "source.text is an export of version {}: this program knows {VERSION}",
                file.idgen_export
            ),
        ));
    }
    if file.types.len() > super::MAX_ROWS {
        let why = format!("source.text has more than {} types", super::MAX_ROWS);
        return Err(Error::invalid("source.text", why));
    }
    Ok(file.types)
}

/// The types of the CSV form.
pub(super) fn from_table(table: &Table) -> Result<Vec<Exported>, Error> {
    let numbers = [
        "min_range",
        "max_range",
        "load_interval_ms",
        "load_percentage",
        "lock_ttl_ms",
        "instance",
    ];
    let read = |row: &super::Row| {
        let mut fields = Map::new();
        for (column, cell) in table.columns.iter().zip(&row.cells) {
            let text = cell.text.clone().unwrap_or_default();
            let value = match column.as_str() {
                "options" if text.is_empty() => Value::Object(Map::new()),
                "options" => serde_json::from_str(&text)
                    .map_err(|error| cell.place.error(format!("options: {error}")))?,
                column if numbers.contains(&column) => serde_json::from_str(&text)
                    .map_err(|_| cell.place.error(format!("{column} {text:?} is no number")))?,
                _ => Value::String(unprotected(&text).to_owned()),
            };
            fields.insert(column.clone(), value);
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| {
            let place = row.cells.first().map_or(Place { line: 1, column: 1 }, |cell| cell.place);
            place.error(error)
        })
    };
    table.rows.iter().map(read).collect()
}

/// What a spreadsheet takes for the beginning of a formula; and the quote that says that
/// it is none.
const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

/// A cell of CSV. A text that a spreadsheet would run as a formula gets a quote before
/// it, which an import takes away.
fn csv_cell(text: &str) -> String {
    let quote = if text.starts_with(FORMULA) { "'" } else { "" };
    // Quoted also where it could be taken for no text at all.
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    match text.chars().all(plain) && quote.is_empty() && text != "NULL" {
        true => text.to_owned(),
        false => format!("\"{quote}{}\"", text.replace('"', "\"\"")),
    }
}

/// The text of a cell without the quote of [`csv_cell`].
pub(super) fn unprotected(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if rest.starts_with(FORMULA) => rest,
        _ => text,
    }
}

fn text<S: serde::Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&id.to_string())
}

/// An id as a number or as decimal text.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Id {
        Number(i64),
        Text(String),
    }
    let wrong = || serde::de::Error::custom("an id is a number or decimal text below 2^63");
    match Id::deserialize(deserializer).map_err(|_| wrong())? {
        Id::Number(id) => Ok(id),
        Id::Text(text) => text.parse().map_err(|_| wrong()),
    }
}
