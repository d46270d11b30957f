//! How each system counts: from the rows of its table to types that begin above
//! everything that it may have issued.

use std::collections::BTreeMap;

use super::{Cell, Item, Kind, Planned, Row, Rules, Table};
use crate::domain::gate_pass::SHARDS;
use crate::domain::{LoadPercentage, Mode, Sites, TypeName, TypeOptions, TypeSpec};

/// The columns that are looked at, by kind; a database is asked for no others.
pub const KNOWN_COLUMNS: &[(Kind, &[&str])] = &[
    (Kind::Leaf, &["biz_tag", "max_id", "step", "description"]),
    (Kind::Tinyid, &["biz_type", "begin_id", "max_id", "step", "delta", "remainder"]),
    (
        Kind::Original,
        &[
            "id_name",
            "id_start",
            "id_prifx",
            "last_range",
            "max_range",
            "min_range",
            "state",
            "min_load_interval",
            "load_percentage",
            "lock_expire",
            "project_name",
            "applicant",
            "other_info",
        ],
    ),
    (Kind::Cosid, &["name", "last_max_id"]),
    (Kind::IdAlloc, &["app_id", "shard_id", "max_id", "step", "max_limit_id"]),
    (Kind::Csv, &["name", "next_id", "step", "description", "mode", "prefix"]),
];

/// The columns without which nothing can be taken over.
pub(super) fn needed(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Leaf => &["biz_tag", "max_id"],
        Kind::Tinyid => &["biz_type", "max_id"],
        Kind::Original => &["id_name", "id_start"],
        Kind::Cosid => &["name", "last_max_id"],
        Kind::IdAlloc => &["app_id", "shard_id", "max_id"],
        Kind::Csv => &["name", "next_id"],
        Kind::Idgen => &["name", "next_id", "first_id", "max_id", "options"],
    }
}

/// The types of a table of `kind`, which has the columns that are needed.
pub(super) fn items(kind: Kind, table: &Table, rules: &Rules) -> Vec<Item> {
    let rows = || table.rows.iter().map(|row| Reader { columns: &table.columns, row });
    let each = |name: &str, read: fn(&Reader<'_>) -> Result<Counted, String>| -> Vec<Item> {
        rows().map(|row| item(row.name(name), read(&row), rules)).collect()
    };
    match kind {
        Kind::Leaf => each("biz_tag", leaf),
        Kind::Original => each("id_name", original),
        Kind::Cosid => each("name", cosid),
        Kind::Csv => match table.columns.iter().find(|c| !csv_columns().contains(&c.as_str())) {
            // What it says of the types would be lost without a word.
            Some(unknown) => {
                let why = format!("column {unknown:?} is not known: {}", csv_columns().join(", "));
                rows().map(|row| item(row.name("name"), Err(why.clone()), rules)).collect()
            }
            None => each("name", csv),
        },
        Kind::Tinyid => tinyid(rows().collect(), rules),
        Kind::IdAlloc => id_alloc(rows().collect(), rules),
        Kind::Idgen => Vec::new(),
    }
}

fn csv_columns() -> &'static [&'static str] {
    KNOWN_COLUMNS.iter().find(|(kind, _)| *kind == Kind::Csv).map_or(&[], |(_, columns)| columns)
}

/// What a row tells of a type.
#[derive(Default)]
struct Counted {
    /// The highest id that may have been issued.
    highest: i64,
    step: Option<i64>,
    note: Option<String>,
    retired: bool,
    mode: Option<Mode>,
    sites: Option<Sites>,
    prefix: String,
    description: String,
    min_range: Option<i64>,
    max_range: Option<i64>,
    load_interval_ms: Option<i64>,
    load_percentage: Option<LoadPercentage>,
    lock_ttl_ms: Option<i64>,
}

/// `[max_id, max_id + step)` is the next range there.
fn leaf(row: &Reader<'_>) -> Result<Counted, String> {
    Ok(Counted {
        highest: (row.id("max_id")? - 1).max(0),
        step: row.optional_id("step")?,
        description: row.text("description").unwrap_or_default().to_owned(),
        ..Counted::default()
    })
}

/// `(id_start, id_start + length]` is the next range there, and `id_start` is raised in
/// the same step.
fn original(row: &Reader<'_>) -> Result<Counted, String> {
    let seconds = |name: &str, low: i64, high: i64| -> Result<Option<i64>, String> {
        Ok(row.optional_id(name)?.map(|seconds| seconds.clamp(low, high) * 1_000))
    };
    let min = row.optional_id("min_range")?.map(|min| min.clamp(1, TypeSpec::LONGEST_RANGE));
    let max = row.optional_id("max_range")?;
    let said = [("project", "project_name"), ("applicant", "applicant"), ("", "other_info")];
    let said = said.into_iter().filter_map(|(what, column)| {
        let text = row.text(column).filter(|text| !text.is_empty())?;
        Some(if what.is_empty() { text.to_owned() } else { format!("{what}: {text}") })
    });
    let percentage = match row.text("load_percentage") {
        None => None,
        Some(text) => {
            let fraction = text.parse().ok().and_then(|f| LoadPercentage::from_fraction(f).ok());
            Some(fraction.ok_or_else(|| row.wrong("load_percentage", "is no share from 0 to 1"))?)
        }
    };
    Ok(Counted {
        highest: row.id("id_start")?,
        step: row.optional_id("last_range")?,
        retired: match row.optional_id("state")? {
            None | Some(1) => false,
            Some(2) => true,
            Some(_) => return Err(row.wrong("state", "is neither 1 (active) nor 2 (deleted)")),
        },
        prefix: row.text("id_prifx").unwrap_or_default().to_owned(),
        description: said.collect::<Vec<_>>().join("; "),
        min_range: min,
        max_range: max.map(|max| max.clamp(min.unwrap_or(1), TypeSpec::LONGEST_RANGE)),
        load_interval_ms: seconds("min_load_interval", 1, 86_400)?,
        load_percentage: percentage,
        lock_ttl_ms: seconds("lock_expire", 1, 600)?,
        ..Counted::default()
    })
}

fn cosid(row: &Reader<'_>) -> Result<Counted, String> {
    Ok(Counted { highest: row.id("last_max_id")?, ..Counted::default() })
}

fn csv(row: &Reader<'_>) -> Result<Counted, String> {
    let next = row.id("next_id")?;
    if next < 1 {
        return Err(row.wrong("next_id", "is out of range: ids begin at 1"));
    }
    let mode = row.text("mode").map(|text| Mode::parse(text).map_err(|error| error.message));
    Ok(Counted {
        highest: next - 1,
        step: row.optional_id("step")?,
        mode: mode.transpose()?,
        prefix: unprotected(row.text("prefix")),
        description: unprotected(row.text("description")),
        ..Counted::default()
    })
}

fn unprotected(text: Option<&str>) -> String {
    super::export::unprotected(text.unwrap_or_default()).to_owned()
}

/// `(max_id, max_id + step]` is the next range there, of which only the ids with
/// `id % delta == remainder` are issued.
///
/// Where one database is given, the type becomes one that several sites share, with the
/// same ids: the others may go on. Where all remainders are given (the tables of all
/// databases, one after the other), it becomes a plain type above the highest of all.
fn tinyid(rows: Vec<Reader<'_>>, rules: &Rules) -> Vec<Item> {
    struct Part<'a> {
        row: Reader<'a>,
        counted: Counted,
        delta: i64,
        remainder: i64,
    }
    let mut items = Vec::new();
    let mut by_name: BTreeMap<String, Vec<Part<'_>>> = BTreeMap::new();
    for row in rows {
        let name = row.name("biz_type");
        let part = (|| {
            let highest = row.id("max_id")?.max(row.optional_id("begin_id")?.unwrap_or(0));
            let delta = row.optional_id("delta")?.unwrap_or(1);
            let remainder = row.optional_id("remainder")?.unwrap_or(0);
            if !(1..=i64::from(Sites::MAX_COUNT)).contains(&delta) {
                return Err(
                    row.wrong("delta", &format!("is out of range: 1 to {}", Sites::MAX_COUNT))
                );
            }
            if !(0..delta).contains(&remainder) {
                return Err(row.wrong("remainder", &format!("is out of range: 0 to {}", delta - 1)));
            }
            let step = row.optional_id("step")?;
            // Its clients lease ranges, which strict types have not, and its order is that
            // of ranges, too.
            let mode = Some(Mode::Segment);
            let counted = Counted { highest, step, mode, ..Counted::default() };
            Ok((counted, delta, remainder))
        })();
        match part {
            Ok((counted, delta, remainder)) => {
                by_name.entry(name).or_default().push(Part { row, counted, delta, remainder });
            }
            Err(why) => items.push(item(name, Err(why), rules)),
        }
    }
    for (name, mut parts) in by_name {
        let delta = parts[0].delta;
        let mut remainders: Vec<_> = parts.iter().map(|part| part.remainder).collect();
        remainders.sort_unstable();
        remainders.dedup();
        let counted = if parts.iter().any(|part| part.delta != delta) {
            Err(parts[1].row.wrong("delta", "differs from that of another row of this name"))
        } else if remainders.len() < parts.len() {
            Err(parts[1].row.wrong("biz_type", "is there more than once with one remainder"))
        } else if remainders.len() as i64 == delta {
            let highest = parts.iter().map(|part| part.counted.highest).max().unwrap_or(0);
            let mut first = parts.swap_remove(0).counted;
            first.highest = highest;
            if delta > 1 {
                first.note = Some(format!("one row of ids in the place of {delta} databases"));
            }
            Ok(first)
        } else if parts.len() > 1 {
            Err(parts[1].row.wrong(
                "remainder",
                &format!(
                    "completes only {} of {delta} databases: all of them, or one",
                    parts.len()
                ),
            ))
        } else if rules.mode == Some(Mode::Strict) {
            Err(parts[0].row.wrong(
                "delta",
                "is above 1: a strict type needs the tables of all databases in one text, a \
                 segment type can share the ids with the others",
            ))
        } else {
            let Part { counted, remainder, .. } = parts.swap_remove(0);
            let sites = Sites { count: delta as u16, site: remainder as u16 };
            Ok(Counted {
                sites: Some(sites),
                note: Some(format!(
                    "shares its ids with {} other databases: only ids with remainder {remainder} \
                     are issued",
                    delta - 1
                )),
                ..counted
            })
        };
        items.push(item(name, counted, rules));
    }
    items
}

/// Sequences of an application, of which each shard has its own; ids are
/// `sequence << 14 | shard << 8 | application`.
fn id_alloc(rows: Vec<Reader<'_>>, rules: &Rules) -> Vec<Item> {
    let mut by_app: BTreeMap<String, Vec<Reader<'_>>> = BTreeMap::new();
    for row in rows {
        by_app.entry(row.name("app_id")).or_default().push(row);
    }
    let read = |rows: &[Reader<'_>]| -> Result<(i64, i64, Option<i64>, i64), String> {
        let app = rows[0].id("app_id")?;
        if app > TypeOptions::MAX_APP_ID {
            let limit = TypeOptions::MAX_APP_ID;
            let why = format!("is above {limit}: its ids overlap with those of other shards");
            return Err(rows[0].wrong("app_id", &why));
        }
        let (mut highest, mut step, mut limit) = (0, None, i64::MAX);
        let mut seen = [false; SHARDS as usize];
        for row in rows {
            let shard = row.id("shard_id")?;
            let Some(seen) = usize::try_from(shard).ok().and_then(|shard| seen.get_mut(shard))
            else {
                return Err(row.wrong("shard_id", "is out of range: 0 to 63"));
            };
            if std::mem::replace(seen, true) {
                return Err(row.wrong("shard_id", "is there twice"));
            }
            highest = highest.max(row.id("max_id")?);
            step = step.max(row.optional_id("step")?);
            limit =
                limit.min(row.optional_id("max_limit_id")?.filter(|l| *l > 0).unwrap_or(i64::MAX));
        }
        Ok((app, highest, step, limit))
    };
    let bits = TypeOptions::SHARD_BITS;
    let highest_number = TypeOptions::default().highest_number(Mode::Sharded, TypeSpec::HIGHEST_ID);
    let each = |(app_text, rows): (String, Vec<Reader<'_>>)| {
        let name = format!("app-{app_text}");
        let (app, highest, step, limit) = match read(&rows) {
            Ok(read) => read,
            Err(why) => return item(name, Err(why), rules),
        };
        let plan = || {
            let gap = rules.gap.ids(step, highest);
            let first = highest.saturating_add(1).saturating_add(gap).max(1);
            if limit < highest_number && first > limit || first > highest_number {
                return Err(format!(
                    "its sequences reach {highest}: nothing is left up to the limit"
                ));
            }
            let mut spec = new_spec(&name, rules)?;
            spec.mode = Mode::Sharded;
            spec.options.app_id = Some(app);
            spec.first_id = first;
            if limit < highest_number {
                spec.max_id = ((limit + 1) << bits) - 1;
            }
            sized(&mut spec, step);
            spec.validate().map_err(|error| error.message)?;
            let first_id = first << bits | app;
            Ok(Planned { first_id, least: highest.saturating_add(1).max(1), spec, retired: false })
        };
        let highest_id = match highest {
            1.. if highest <= highest_number => highest << bits | 63 << 8 | app,
            _ => 0,
        };
        Item {
            plan: plan(),
            highest: highest_id,
            step,
            note: Some(
                "one first number for all 64 shards; a limit that was reached there began anew, \
                 which repeats ids: then raise max_limit_id first"
                    .to_owned(),
            ),
            name,
        }
    };
    by_app.into_iter().map(each).collect()
}

fn new_spec(name: &str, rules: &Rules) -> Result<TypeSpec, String> {
    let name = TypeName::parse(name).map_err(|error| error.message)?;
    Ok(TypeSpec { instance: rules.instance.clone(), ..TypeSpec::new(name) })
}

/// A step says how many ids were wanted at a time.
fn sized(spec: &mut TypeSpec, step: Option<i64>) {
    if let Some(step) = step.filter(|step| *step > 0) {
        spec.min_range = step.min(TypeSpec::LONGEST_RANGE);
        spec.max_range = spec.max_range.max(spec.min_range);
    }
}

fn item(name: String, counted: Result<Counted, String>, rules: &Rules) -> Item {
    let counted = match counted {
        Ok(counted) => counted,
        Err(why) => {
            return Item { name, highest: 0, step: None, note: None, plan: Err(why) };
        }
    };
    let (highest, step) = (counted.highest, counted.step);
    let note = counted.note.clone();
    Item { plan: planned(&name, counted, rules), name, highest, step, note }
}

fn planned(name: &str, counted: Counted, rules: &Rules) -> Result<Planned, String> {
    let mut spec = new_spec(name, rules)?;
    let (highest, sites) = (counted.highest, counted.sites);
    let count = sites.map_or(1, |sites| i64::from(sites.count));
    let site = sites.map_or(0, |sites| i64::from(sites.site));
    spec.mode = rules.mode.or(counted.mode).unwrap_or(Mode::Strict);
    spec.options.sites = sites;
    spec.prefix = counted.prefix;
    spec.description = counted.description;
    sized(&mut spec, counted.step.map(|step| if step > 0 { (step / count).max(1) } else { step }));
    spec.min_range = counted.min_range.unwrap_or(spec.min_range);
    spec.max_range = counted.max_range.unwrap_or(spec.max_range).max(spec.min_range);
    spec.load_interval_ms = counted.load_interval_ms.unwrap_or(spec.load_interval_ms);
    spec.load_percentage = counted.load_percentage.unwrap_or(spec.load_percentage);
    spec.lock_ttl_ms = counted.lock_ttl_ms.unwrap_or(spec.lock_ttl_ms);
    // The first position whose id is at least the given one.
    let position = |id: i128| {
        let (count, site) = (i128::from(count), i128::from(site));
        let position = (id - site + count - 1).div_euclid(count).max(1);
        i64::try_from(position).unwrap_or(i64::MAX)
    };
    let next = i128::from(highest) + 1;
    let gap = rules.gap.ids(counted.step, highest);
    let (least, first) = (position(next), position(next + i128::from(gap)));
    if first > spec.options.highest_number(spec.mode, spec.max_id) {
        return Err(format!(
            "the first id would be above the highest one, {}: {highest} was issued",
            TypeSpec::HIGHEST_ID
        ));
    }
    spec.first_id = first;
    spec.validate().map_err(|error| error.message)?;
    Ok(Planned { first_id: first * count + site, least, spec, retired: counted.retired })
}

/// A row by the names of its columns.
struct Reader<'a> {
    columns: &'a [String],
    row: &'a Row,
}

impl Reader<'_> {
    fn cell(&self, column: &str) -> Option<&Cell> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.row.cells.get(place)
    }

    fn text(&self, column: &str) -> Option<&str> {
        self.cell(column)?.text.as_deref()
    }

    /// The name of the type, cut to what an answer may hold.
    fn name(&self, column: &str) -> String {
        self.text(column).unwrap_or_default().chars().take(200).collect()
    }

    /// An id or a number of ids: a whole number from 0 to 2^63 - 1.
    fn id(&self, column: &str) -> Result<i64, String> {
        self.optional_id(column)?.ok_or_else(|| self.wrong(column, "is missing"))
    }

    fn optional_id(&self, column: &str) -> Result<Option<i64>, String> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.wrong(column, "is no whole number"));
        }
        let number = text.parse::<i64>().ok().filter(|number| *number >= 0);
        number.map(Some).ok_or_else(|| {
            self.wrong(column, &format!("is out of range: it must be from 0 to {}", i64::MAX))
        })
    }

    /// What is wrong with a cell, and where it stands.
    fn wrong(&self, column: &str, why: &str) -> String {
        let Some(cell) = self.cell(column).or_else(|| self.row.cells.first()) else {
            return format!("{column} {why}");
        };
        match &cell.text {
            Some(text) => {
                let shown: String = text.chars().take(40).collect();
                format!("{}: {column} {shown:?} {why}", cell.place)
            }
            None => format!("{}: {column} {why}", cell.place),
        }
    }
}
