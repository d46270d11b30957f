//! The JSON of imports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::MAX_IMPORT;
use crate::domain::import::{Gap, Kind, MAX_GAP, MAX_PERCENT, MAX_ROWS, Rules, TOKEN_TABLE};
use crate::domain::instance::InstanceSpec;
use crate::domain::{Error, Mode, TypeName};
use crate::ports::ForeignTable;
use crate::service::access::ImportedToken;
use crate::service::import::{ImportFrom, ImportRequest, ImportState, Imported, ImportedItem};

/// Longest name of a table of MySQL, in characters.
const MAX_TABLE: usize = 64;

/// The names of the formats; `null` is as good as none.
fn formats() -> Vec<Option<&'static str>> {
    let kinds = Kind::ALL.into_iter().map(Kind::as_str);
    std::iter::once("auto").chain(kinds).map(Some).chain([None]).collect()
}

/// What to take over.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewImport {
    /// From where.
    pub source: NewSource,
    /// Whose types they are; `auto`, if not given, lets the source tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = formats()))]
    pub format: Option<String>,
    /// How many ids are left out above the highest one; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<GapJson>,
    /// The mode of the new types, `strict` or `segment`; if not given, what the source
    /// tells, else `strict`. Not for exports and `id_alloc`, whose mode is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["strict", "segment", null]))]
    pub mode: Option<String>,
    /// The Redis instance of the new types, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TypeName::MAX_LEN))]
    pub instance: Option<String>,
    /// Only types of these names, as the source has them; all if it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_ROWS), inner(length(max = TypeName::MAX_LEN)))]
    pub only: Vec<String>,
}

/// From where: a text, or a database.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["text"], "properties": {
        "text": {"type": "string"}, "url": {"type": "null"}, "table": {"type": "null"},
    }},
    {"required": ["url"], "properties": {"url": {"type": "string"}, "text": {"type": "null"}}},
]))]
pub struct NewSource {
    /// A dump, a table as CSV or TSV, or an export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_IMPORT))]
    pub text: Option<String>,
    /// `mysql://user:password@host:port/database`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = InstanceSpec::MAX_URL), pattern("^mysql://.+"))]
    pub url: Option<String>,
    /// The table there, if it has not the name that its system gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TABLE))]
    pub table: Option<String>,
}

/// A number of ids, or a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum GapJson {
    /// So many ids.
    Ids(#[schemars(range(min = 0, max = MAX_GAP))] i64),
    /// So many percent of the step, or of the highest id where there is no step.
    Percent {
        /// How many percent.
        #[schemars(range(min = 0, max = MAX_PERCENT))]
        percent: i64,
    },
}

impl NewImport {
    /// The request; `now_ms` is the time of the node.
    pub(super) fn into_request(self, dry_run: bool, now_ms: i64) -> Result<ImportRequest, Error> {
        let kind = match self.format.as_deref() {
            None | Some("auto") => None,
            Some(name) => Some(Kind::parse(name)?),
        };
        let source = match (self.source.text, self.source.url, self.source.table) {
            (Some(text), None, None) => ImportFrom::Text(text.into()),
            (None, Some(url), table) => {
                not_longer("source.url", &url, InstanceSpec::MAX_URL)?;
                not_longer("source.table", table.as_deref().unwrap_or_default(), MAX_TABLE)?;
                ImportFrom::Database(ForeignTable { url, table, kind })
            }
            _ => {
                return Err(Error::invalid(
                    "source",
                    "source must have exactly one of text and url; table goes with url only",
                ));
            }
        };
        let rules = Rules {
            gap: match self.gap {
                None => Gap::Ids(0),
                Some(GapJson::Ids(ids)) => Gap::Ids(ids),
                Some(GapJson::Percent { percent }) => Gap::Percent(percent),
            },
            mode: self.mode.as_deref().map(Mode::parse).transpose()?,
            instance: self.instance,
            now_ms,
        };
        Ok(ImportRequest { source, kind, rules, only: self.only, dry_run })
    }
}

/// Refuses a text of more than `limit` characters, without repeating it.
fn not_longer(field: &'static str, text: &str, limit: usize) -> Result<(), Error> {
    let length = text.chars().count();
    if length <= limit {
        return Ok(());
    }
    let why = format!("{field} has {length} characters; the limit is {limit}");
    Err(Error::invalid(field, why))
}

/// Which tokens to take over.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenImport {
    /// From where: tinyid's table `tiny_id_token`, alone or among others.
    pub source: NewSource,
}

impl NewTokenImport {
    /// The text, or the table of a database.
    pub(super) fn into_source(self) -> Result<ImportFrom, Error> {
        let import = NewImport { source: self.source, ..NewImport::default() };
        Ok(match import.into_request(true, 0)?.source {
            ImportFrom::Database(wanted) => ImportFrom::Database(ForeignTable {
                table: wanted.table.or_else(|| Some(TOKEN_TABLE.to_owned())),
                ..wanted
            }),
            text => text,
        })
    }
}

/// What became of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenImportJson {
    /// The tokens, without their secrets.
    pub items: Vec<ImportedTokenJson>,
    /// How many were made; in a dry run: would be.
    pub make: u64,
    /// How many were there.
    pub skip: u64,
    /// How many cannot be taken over, or were refused.
    pub fail: u64,
}

/// What became of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedTokenJson {
    /// Its name here: `tinyid-`, and the first digits of the SHA-256 of its secret.
    pub name: String,
    /// The types that it is limited to.
    pub types: Vec<String>,
    /// `new`, `exists`, `made` or `failed`.
    pub state: String,
    /// What is wrong, or to be known.
    pub remark: Option<String>,
}

impl From<Vec<ImportedToken>> for TokenImportJson {
    fn from(done: Vec<ImportedToken>) -> Self {
        let count = |states: &[&str]| {
            done.iter().filter(|token| states.contains(&token.state)).count() as u64
        };
        let (make, skip, fail) = (count(&["new", "made"]), count(&["exists"]), count(&["failed"]));
        let each = |token: ImportedToken| ImportedTokenJson {
            name: token.name,
            types: token.types,
            state: token.state.to_owned(),
            remark: token.remark,
        };
        TokenImportJson { items: done.into_iter().map(each).collect(), make, skip, fail }
    }
}

/// What became of an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportJson {
    /// Whose types they are.
    pub format: String,
    /// The types.
    pub items: Vec<ImportItemJson>,
    /// How many were created; in a dry run: would be.
    pub create: u64,
    /// How many were there.
    pub skip: u64,
    /// How many cannot be taken over, or were refused.
    pub fail: u64,
    /// How many are left because the time of the request was over: import again.
    pub left: u64,
}

/// What became of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportItemJson {
    /// Its name.
    pub name: String,
    /// What the source tells.
    pub source: ImportSourceJson,
    /// The first id here, as decimal text; empty where there is none.
    pub first_id: String,
    /// The shortest range of the new type, in ids.
    pub min_range: Option<i64>,
    /// The description of the new type.
    pub description: String,
    /// The mode of the new type.
    pub mode: Option<String>,
    /// The next position of the type that is here now, as decimal text.
    pub existing_next_id: Option<String>,
    /// `new`, `exists`, `created` or `failed`.
    pub state: String,
    /// What is wrong, if something is; also with a type that exists.
    pub problem: Option<String>,
}

/// What the source tells of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportSourceJson {
    /// The highest id that may have been issued, as decimal text.
    pub highest: String,
    /// The id that would have come next there, as decimal text.
    pub next: String,
    /// How many ids were taken at a time, as decimal text.
    pub step: Option<String>,
    /// What is to be known.
    pub note: Option<String>,
}

impl From<Imported> for ImportJson {
    fn from(done: Imported) -> Self {
        let is_left =
            |item: &ImportedItem| item.state == ImportState::New && item.problem.is_some();
        let count = |states: &[ImportState]| {
            let of = |item: &&ImportedItem| states.contains(&item.state) && !is_left(item);
            done.items.iter().filter(of).count() as u64
        };
        ImportJson {
            format: done.kind.to_string(),
            create: count(&[ImportState::New, ImportState::Created]),
            skip: count(&[ImportState::Exists]),
            fail: count(&[ImportState::Failed]),
            left: done.items.iter().filter(|item| is_left(item)).count() as u64,
            items: done.items.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ImportedItem> for ImportItemJson {
    fn from(done: ImportedItem) -> Self {
        let ImportedItem { item, state, next_id, problem } = done;
        let planned = item.plan.ok();
        // Where only ids with a remainder count, the next one is the first of these.
        let next = match planned.as_ref().and_then(|p| Some((p.least, p.spec.options.sites?))) {
            Some((least, sites)) => {
                least.saturating_mul(i64::from(sites.count)).saturating_add(i64::from(sites.site))
            }
            None => item.highest.saturating_add(1),
        };
        ImportItemJson {
            name: item.name,
            source: ImportSourceJson {
                highest: item.highest.to_string(),
                next: next.to_string(),
                step: item.step.map(|step| step.to_string()),
                note: item.note,
            },
            first_id: planned.as_ref().map_or(String::new(), |p| p.first_id.to_string()),
            min_range: planned.as_ref().map(|p| p.spec.min_range),
            mode: planned.as_ref().map(|p| p.spec.mode.to_string()),
            description: planned.map_or(String::new(), |p| p.spec.description),
            existing_next_id: next_id.map(|id| id.to_string()),
            state: state.as_str().to_owned(),
            problem,
        }
    }
}
