//! Taking over types of other systems.
//!
//! Read, plan (both in the domain), look what is there, and create what is not, one
//! after the other, each as any other creation: audited, announced, checked by the
//! store. A repeated import finds what the one before made; so one that runs into its
//! time limit is gone on with by asking again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::admin::AdminApi;
use super::{Parts, unavailable};
use crate::domain::import::{Item, Kind, MAX_ROWS, Rules, Source, Table, plan, read_text};
use crate::domain::{Error, ErrorCode, TypeName, TypeRecord};
use crate::ports::TypeFilter;
use crate::ports::import_source::ForeignTable;

/// After so long nothing more is created in one request, which may take 30 s.
const CREATING: Duration = Duration::from_secs(15);
/// So many names are looked up one by one; more are found by reading all types.
const FEW: usize = 200;

/// What is to be taken over, and how.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// From where.
    pub source: ImportFrom,
    /// Whose types they are; `None` lets the source tell.
    pub kind: Option<Kind>,
    /// How they are taken over.
    pub rules: Rules,
    /// Only types of these names, if there is one.
    pub only: Vec<String>,
    /// Whether nothing is created.
    pub dry_run: bool,
}

/// Where types are taken over from.
#[derive(Clone, Debug)]
pub enum ImportFrom {
    /// A text: a dump, a table, an export.
    Text(Arc<str>),
    /// A table of a database.
    Database(ForeignTable),
}

/// What became of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Whose types they are.
    pub kind: Kind,
    /// The types, in the order of the source.
    pub items: Vec<ImportedItem>,
}

/// What became of a type.
#[derive(Clone, Debug)]
pub struct ImportedItem {
    /// The type and its plan.
    pub item: Item,
    /// What became of it.
    pub state: ImportState,
    /// The next position of the type that is here now, if there is one.
    pub next_id: Option<i64>,
    /// What is wrong, if something is.
    pub problem: Option<String>,
}

/// What became of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportState {
    /// It would be created.
    New,
    /// A type of this name is there.
    Exists,
    /// It was created.
    Created,
    /// It cannot be taken over, or was refused.
    Failed,
}

impl ImportState {
    /// The name in interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            ImportState::New => "new",
            ImportState::Exists => "exists",
            ImportState::Created => "created",
            ImportState::Failed => "failed",
        }
    }
}

/// Takes over what `request` asks for, through `api`. The error is about the source or
/// the request as a whole; nothing was created then. What is wrong with one type stands
/// with it, and the others are not affected.
pub async fn import<A: AdminApi>(
    api: &A,
    request: ImportRequest,
    actor: &str,
) -> Result<Imported, Error> {
    let ImportRequest { source, kind, rules, only, dry_run } = request;
    rules.validate()?;
    if only.len() > MAX_ROWS {
        let why = format!("only has {} names; the limit is {MAX_ROWS}", only.len());
        return Err(Error::invalid("only", why));
    }
    let table = match &source {
        ImportFrom::Text(_) => None,
        ImportFrom::Database(wanted) => Some(api.read_foreign(wanted).await?),
    };
    // Megabytes of text take their time, beside where calls are served.
    let work = move || -> Result<(Kind, Vec<Item>), Error> {
        let source = match (source, table) {
            (ImportFrom::Text(text), _) => read_text(&text, kind)?,
            (_, table) => Source::of_table(kind, table.unwrap_or_default())?,
        };
        Ok((source.kind(), plan(&source, &rules)?))
    };
    let (kind, mut items) = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(ErrorCode::Internal, format!("import: {error}")))??;
    if !only.is_empty() {
        let there: HashSet<_> = items.iter().map(|item| item.name.as_str()).collect();
        if let Some(missing) = only.iter().find(|name| !there.contains(name.as_str())) {
            let shown: String = missing.chars().take(128).collect();
            return Err(Error::invalid("only", format!("only: the source has no {shown:?}")));
        }
        let only: HashSet<_> = only.into_iter().collect();
        items.retain(|item| only.contains(&item.name));
    }
    let names = items.iter().filter_map(|item| Some(item.plan.as_ref().ok()?.spec.name.clone()));
    let there = api.find_types(names.collect()).await?;
    let until = Instant::now() + CREATING;
    let mut done = Vec::with_capacity(items.len());
    for item in items {
        let existing = there.get(item.name.as_str());
        done.push(take_over(api, item, existing, dry_run, until, actor).await);
    }
    Ok(Imported { kind, items: done })
}

async fn take_over<A: AdminApi>(
    api: &A,
    item: Item,
    existing: Option<&TypeRecord>,
    dry_run: bool,
    until: Instant,
    actor: &str,
) -> ImportedItem {
    let ended = |item, state, next_id, problem| ImportedItem { item, state, next_id, problem };
    let planned = match &item.plan {
        Ok(planned) => planned.clone(),
        Err(why) => {
            let why = why.clone();
            return ended(item, ImportState::Failed, None, Some(why));
        }
    };
    if let Some(record) = existing {
        // An import that stopped between both steps is completed by the next one.
        let problem = match planned.retired && !dry_run && record.version == 1 {
            true => retire(api, record.name.as_str(), actor).await.err(),
            false => None,
        };
        let problem = planned.differs(record).or(problem);
        return ended(item, ImportState::Exists, Some(record.next_id), problem);
    }
    if dry_run {
        if let Err(error) = api.check_new(&planned.spec) {
            return ended(item, ImportState::Failed, None, Some(error.message));
        }
        return ended(item, ImportState::New, None, None);
    }
    if Instant::now() >= until {
        let why = "not done yet: the time of one request is over; import again to go on";
        return ended(item, ImportState::New, None, Some(why.to_owned()));
    }
    match api.create_type(planned.spec.clone(), actor).await {
        Ok(record) => {
            let problem = match planned.retired {
                true => retire(api, record.name.as_str(), actor).await.err(),
                false => None,
            };
            ended(item, ImportState::Created, Some(record.next_id), problem)
        }
        // Somebody was faster, or an earlier call has happened after all.
        Err(error) if error.code == ErrorCode::AlreadyExists => {
            ended(item, ImportState::Exists, None, None)
        }
        Err(error) => ended(item, ImportState::Failed, None, Some(error.message)),
    }
}

async fn retire<A: AdminApi>(api: &A, name: &str, actor: &str) -> Result<(), String> {
    let retired = api.set_retired(name, true, actor).await;
    retired.map(drop).map_err(|error| format!("it is there, but not retired: {}", error.message))
}

impl Parts {
    /// See [`AdminApi::find_types`].
    pub(super) async fn find_types(
        &self,
        mut names: Vec<TypeName>,
    ) -> Result<HashMap<TypeName, TypeRecord>, Error> {
        let mut found = HashMap::new();
        if names.len() <= FEW {
            for name in names {
                if let Some(record) = self.store.find_type(&name).await? {
                    found.insert(name, record);
                }
            }
            return Ok(found);
        }
        names.sort_unstable();
        let mut filter = TypeFilter { limit: 1_000, ..TypeFilter::default() };
        loop {
            let page = self.store.list_types(&filter).await?;
            filter.after = page.items.last().map(|record| record.name.to_string());
            let wanted = page.items.into_iter().filter(|r| names.binary_search(&r.name).is_ok());
            found.extend(wanted.map(|record| (record.name.clone(), record)));
            if !page.more || filter.after.is_none() {
                return Ok(found);
            }
        }
    }

    /// See [`AdminApi::read_foreign`].
    pub(super) async fn read_foreign(&self, wanted: &ForeignTable) -> Result<Table, Error> {
        // Each holds megabytes.
        let _permit = self
            .imports
            .try_acquire()
            .map_err(|_| unavailable("another import reads a database through this node"))?;
        self.import_source.read(wanted).await
    }
}
