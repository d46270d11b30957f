//! Types of other systems, read from their tables, and what becomes of them here.
//!
//! [`read_text`] makes tables of text (CSV, TSV, a dump of MySQL or our own export),
//! [`plan`] makes of their rows the types that would be created: each begins above the
//! highest id that the other system may have issued. No I/O, and nothing is guessed: a
//! text that ends in the middle, a row that does not fit, a number out of range are
//! errors that name their place; a type that cannot be taken over says why, and the
//! others are not affected.

mod delimited;
mod dump;
pub mod export;
mod kinds;
mod tokens;

use std::fmt;

use super::id_type::within;
use super::{Error, Mode, TypeRecord, TypeSpec};
pub use kinds::KNOWN_COLUMNS;
pub use tokens::{ForeignSecret, ForeignToken, TOKEN_TABLE, plan_tokens, read_tokens};

/// Most rows of a table.
pub const MAX_ROWS: usize = 100_000;
/// Most columns of a table.
pub const MAX_COLUMNS: usize = 256;
/// Largest gap, in ids.
pub const MAX_GAP: i64 = 1_000_000_000_000_000;
/// Largest gap in percent.
pub const MAX_PERCENT: i64 = 1_000;

/// Whose types are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Leaf's segments: `leaf_alloc` (biz_tag, max_id, step, description).
    Leaf,
    /// tinyid: `tiny_id_info` (biz_type, begin_id, max_id, step, delta, remainder).
    Tinyid,
    /// The original IdGen: `id_info` (id_name, id_prifx, id_start, …).
    Original,
    /// CosId: `cosid` (name, last_max_id).
    Cosid,
    /// Ids by application and shard: `id_alloc` (app_id, shard_id, max_id, step, max_limit_id).
    IdAlloc,
    /// A list: name, next_id, and perhaps step, description, mode, prefix.
    Csv,
    /// What this service exported, as JSON or CSV.
    Idgen,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 7] = [
        Kind::Leaf,
        Kind::Tinyid,
        Kind::Original,
        Kind::Cosid,
        Kind::IdAlloc,
        Kind::Csv,
        Kind::Idgen,
    ];

    /// The name in interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Leaf => "leaf",
            Kind::Tinyid => "tinyid",
            Kind::Original => "original",
            Kind::Cosid => "cosid",
            Kind::IdAlloc => "id_alloc",
            Kind::Csv => "csv",
            Kind::Idgen => "idgen",
        }
    }

    /// The kind called `text`; the error names `format`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let names = Kind::ALL.map(Kind::as_str).join(", ");
            let shown: String = text.chars().take(64).collect();
            Error::invalid("format", format!("format {shown:?} is not known: auto, {names}"))
        })
    }

    /// Its table in a database, if it has one.
    pub fn table(self) -> Option<&'static str> {
        match self {
            Kind::Leaf => Some("leaf_alloc"),
            Kind::Tinyid => Some("tiny_id_info"),
            Kind::Original => Some("id_info"),
            Kind::Cosid => Some("cosid"),
            Kind::IdAlloc => Some("id_alloc"),
            Kind::Csv | Kind::Idgen => None,
        }
    }

    /// The kind whose columns these are.
    pub fn of_columns(columns: &[String]) -> Option<Self> {
        let has = |name: &str| columns.iter().any(|column| column == name);
        let all = |names: &[&str]| names.iter().all(|name| has(name));
        Kind::ALL.into_iter().rev().find(|kind| all(kinds::needed(*kind)))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A table with text in its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns, in lower case.
    pub columns: Vec<String>,
    /// The rows; each has as many cells as there are columns.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The cells.
    pub cells: Vec<Cell>,
}

/// A cell and where it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What it holds; `None` for NULL.
    pub text: Option<String>,
    /// Its place.
    pub place: Place,
}

/// A place in a text, or a row of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1; the row, where there is no column.
    pub line: usize,
    /// The column in characters, from 1; 0 in a database.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "row {}", self.line),
            column => write!(f, "line {}, column {column}", self.line),
        }
    }
}

impl Place {
    /// An error about the text as a whole, at this place.
    fn error(self, why: impl fmt::Display) -> Error {
        Error::invalid("source.text", format!("source.text, {self}: {why}"))
    }
}

/// What was read: rows of a table, or an export.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A table of one of the kinds.
    Table(Kind, Table),
    /// Types that this service exported.
    Export(Vec<export::Exported>),
}

impl Source {
    /// Whose types they are.
    pub fn kind(&self) -> Kind {
        match self {
            Source::Table(kind, _) => *kind,
            Source::Export(_) => Kind::Idgen,
        }
    }

    /// The table of a database, of the kind that is wanted or that its columns tell.
    pub fn of_table(kind: Option<Kind>, table: Table) -> Result<Self, Error> {
        let kind = kind.or_else(|| Kind::of_columns(&table.columns)).ok_or_else(|| {
            let shown: Vec<_> = table.columns.iter().take(20).map(String::as_str).collect();
            Error::invalid(
                "format",
                format!("format cannot be told from the columns {}: name it", shown.join(", ")),
            )
        })?;
        let missing =
            kinds::needed(kind).iter().find(|name| !table.columns.iter().any(|c| c == *name));
        if let Some(missing) = missing {
            return Err(Error::invalid(
                "source",
                format!("source has no column {missing}, which format {kind} needs"),
            ));
        }
        match kind {
            Kind::Idgen => export::from_table(&table).map(Source::Export),
            _ => Ok(Source::Table(kind, table)),
        }
    }
}

/// What `text` holds: the JSON of an export, a dump of MySQL, or lines with a header.
/// The error names `source.text` with line and column, or `format`.
pub fn read_text(text: &str, kind: Option<Kind>) -> Result<Source, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Error::invalid("source.text", "source.text is empty"));
    }
    if text.trim_start().starts_with('{') {
        if kind.is_some_and(|kind| kind != Kind::Idgen) {
            return Err(Error::invalid("format", "format of a JSON text is idgen: our own export"));
        }
        return export::from_json(text).map(Source::Export);
    }
    let table = match delimited::looks_delimited(text) {
        true => delimited::read(text)?,
        false => dump::read(text, kind)?,
    };
    Source::of_table(kind, table)
}

/// How far above the highest id of the other system a type begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// So many ids are left out; 0 to [`MAX_GAP`].
    Ids(i64),
    /// So many percent of the source's step, or of its highest id where it tells no
    /// step; 0 to [`MAX_PERCENT`].
    Percent(i64),
}

impl Gap {
    /// Checks the limits; the error names `gap` or `gap.percent`.
    pub fn validate(self) -> Result<(), Error> {
        match self {
            Gap::Ids(ids) => within("gap", ids, 0, MAX_GAP),
            Gap::Percent(percent) => within("gap.percent", percent, 0, MAX_PERCENT),
        }
    }

    fn ids(self, step: Option<i64>, highest: i64) -> i64 {
        match self {
            Gap::Ids(ids) => ids,
            Gap::Percent(percent) => {
                let whole = step.filter(|step| *step > 0).unwrap_or(highest);
                let ids = (i128::from(whole) * i128::from(percent) + 99) / 100;
                i64::try_from(ids).unwrap_or(i64::MAX)
            }
        }
    }
}

/// How types are taken over.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How far above the highest id.
    pub gap: Gap,
    /// The mode of the new types; `None` for what the source tells, else strict.
    /// Not for exports and `id_alloc`, whose mode is known.
    pub mode: Option<Mode>,
    /// The Redis instance of the new types, by name or number.
    pub instance: Option<String>,
    /// Now, in milliseconds of the Unix epoch.
    pub now_ms: i64,
}

impl Rules {
    /// Checks the limits; the error names the field.
    pub fn validate(&self) -> Result<(), Error> {
        self.gap.validate()?;
        match self.mode {
            None | Some(Mode::Strict | Mode::Segment) => Ok(()),
            Some(mode) => Err(Error::invalid(
                "mode",
                format!("mode {mode} is not for imported types: strict or segment"),
            )),
        }
    }
}

/// A type of the other system, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its name, as it stood there.
    pub name: String,
    /// The highest id that may have been issued there; 0 if none.
    pub highest: i64,
    /// How many ids were taken at a time there.
    pub step: Option<i64>,
    /// What is to be known about it.
    pub note: Option<String>,
    /// What it becomes, or why it cannot be taken over.
    pub plan: Result<Planned, String>,
}

/// A type that would be created.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Its settings.
    pub spec: TypeSpec,
    /// The first id that it will hand out, as callers see it; of a kind whose ids are
    /// no numbers in a row, its first position.
    pub first_id: i64,
    /// The least position at which it repeats nothing.
    pub least: i64,
    /// Whether it is retired there.
    pub retired: bool,
}

impl Planned {
    /// Why `existing`, a type of this name that is there already, is not what this one
    /// would be; `None` if nothing is wrong with it.
    pub fn differs(&self, existing: &TypeRecord) -> Option<String> {
        let (new, old) = (&self.spec.options, &existing.options);
        if self.spec.mode != existing.mode && (new.sites.is_some() || new.app_id.is_some())
            || new.sites != old.sites
            || new.app_id != old.app_id
            || new.calendar != old.calendar
            || new.opaque != old.opaque
        {
            return Some(format!(
                "a type of this name exists, but of another kind ({}): compare its options",
                existing.mode
            ));
        }
        let counts = existing.mode != Mode::Snowflake && new.calendar.is_none();
        (counts && existing.next_id < self.least).then(|| {
            format!(
                "a type of this name exists, and its next position {} is below {}: it could issue \
                 ids again that the source has issued",
                existing.next_id, self.least
            )
        })
    }
}

/// What becomes of the types of `source`, in the order in which they stand there. The
/// error is about the `rules`.
pub fn plan(source: &Source, rules: &Rules) -> Result<Vec<Item>, Error> {
    rules.validate()?;
    let mut items = match source {
        Source::Table(kind, table) => kinds::items(*kind, table, rules),
        Source::Export(types) => types.iter().map(|exported| exported.item(rules)).collect(),
    };
    refuse_doubled(&mut items);
    Ok(items)
}

/// A name that comes twice is none at all: which of both counts?
fn refuse_doubled(items: &mut Vec<Item>) {
    let mut count = std::collections::HashMap::new();
    for item in items.iter() {
        *count.entry(item.name.clone()).or_insert(0) += 1;
    }
    let mut told = std::collections::HashSet::new();
    items.retain(|item| count[&item.name] == 1 || told.insert(item.name.clone()));
    for item in items.iter_mut().filter(|item| count[&item.name] > 1) {
        item.plan =
            Err(format!("the name is there {} times: which one counts?", count[&item.name]));
    }
}

#[cfg(test)]
mod tests;
