//! Addresses that take types over from other systems, and that write ours out.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::answer::{IdForm, json};
use super::auth::{Actor, Asker, Who};
use super::extract::{JsonBody, MAX_IMPORT, QueryOf};
use super::import_schema::{ImportJson, NewImport, NewTokenImport, TokenImportJson};
use super::operations::{Operation, get, post};
use super::problem::Problem;
use super::routes::Shared;
use crate::domain::access::Role;
use crate::domain::import::export::{COLUMNS, Exported, VERSION};
use crate::domain::import::read_tokens;
use crate::domain::{Error, ErrorCode, TypeRecord};
use crate::ports::{Page, TypeFilter};
use crate::service::access::no_person;
use crate::service::admin::AdminApi;
use crate::service::import::{self, ImportFrom};

type Answer = Result<Response, Problem>;

/// Imports at a time: each holds a body of megabytes.
const AT_A_TIME: usize = 4;

/// Whether it counts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DryRun {
    /// Whether only to say what it would do; so it is, if nothing is said.
    #[serde(default = "yes")]
    dry_run: bool,
    /// How ids are written in the answer; those of this one always are text.
    #[serde(default)]
    ids: IdForm,
}

fn yes() -> bool {
    true
}

/// How an export is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Form {
    /// An object with a list of types.
    #[default]
    Json,
    /// A line for each type, after one with the names of the columns.
    Csv,
}

/// How the types are written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// How they are written; as JSON, if nothing is said.
    #[serde(default)]
    format: Form,
}

/// The operations that bring types in, and out.
pub(super) fn operations<A: AdminApi>() -> Vec<Operation<Shared<A>>> {
    let few = Arc::new(Semaphore::new(AT_A_TIME));
    let import = post("importTypes", "/imports", Role::Operate, import::<A>)
        .about(
            "Takes types over from another system",
            "From a text or a database. Without `dry_run=false` it only says what it would do.",
        )
        .answers::<ImportJson>(200, "What became of each type, or would.")
        .refuses(&[ErrorCode::Overloaded]);
    let handler = import.handler.layer(DefaultBodyLimit::max(MAX_IMPORT));
    let handler = handler.layer(middleware::from_fn_with_state(few.clone(), few_at_a_time));
    let tokens = post("importTokens", "/imports/tokens", Role::Administer, import_tokens::<A>)
        .about(
            "Takes tokens over from tinyid",
            "Their secrets go on working on the routes of tinyid, for the same types. Without \
             `dry_run=false` it only says what it would do.",
        )
        .answers::<TokenImportJson>(200, "What became of each token, or would.")
        .refuses(&[ErrorCode::Overloaded]);
    let of_tokens = tokens.handler.layer(DefaultBodyLimit::max(MAX_IMPORT));
    let of_tokens = of_tokens.layer(middleware::from_fn_with_state(few, few_at_a_time));
    vec![
        Operation { handler, ..import },
        Operation { handler: of_tokens, ..tokens },
        get("exportTypes", "/export", Role::View, export::<A>)
            .about("All types with their settings", "As a download; ids are text in it.")
            .answers_as(200, "application/json", "The types.")
            .answers_as(200, "text/csv", "The types.")
            .with_header("Content-Disposition", "The name of the file."),
    ]
}

/// Before a body is read: more imports than fit in memory come again later.
async fn few_at_a_time(
    State(imports): State<Arc<Semaphore>>,
    request: Request,
    next: Next,
) -> Response {
    match imports.try_acquire() {
        Ok(_permit) => next.run(request).await,
        Err(_) => {
            let why = "too many imports at once: try again when one is done";
            Problem::from(Error::new(ErrorCode::Overloaded, why)).into_response()
        }
    }
}

async fn import<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<DryRun>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewImport>,
) -> Answer {
    let request = body.into_request(query.dry_run, app.api.now_ms())?;
    let done = import::import(&*app.api, request, &actor).await?;
    Ok(json(StatusCode::OK, &ImportJson::from(done), query.ids))
}

async fn import_tokens<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<DryRun>,
    Asker(who): Asker,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewTokenImport>,
) -> Answer {
    if let Who::Token(..) = who {
        return Err(no_person("an API token makes no tokens").into());
    }
    let table =
        match body.into_source()? {
            ImportFrom::Database(wanted) => app.api.read_foreign(&wanted).await?,
            ImportFrom::Text(text) => tokio::task::spawn_blocking(move || read_tokens(&text))
                .await
                .map_err(|error| Error::new(ErrorCode::Internal, format!("import: {error}")))??,
        };
    let done = app.access.control.import_tokens(&table, query.dry_run, &actor).await?;
    Ok(json(StatusCode::OK, &TokenImportJson::from(done), query.ids))
}

/// All types, page by page, so that no answer is held in memory as a whole. Where the
/// store fails in the middle, the connection breaks: half an answer is none.
async fn export<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Wanted>,
) -> Answer {
    let form = query.format;
    // Before the answer begins, so that a store that is away is a problem as anywhere.
    let first = page(&*app.api, None).await?;
    let head = match form {
        Form::Json => format!("{{\"idgen_export\":{VERSION},\"types\":["),
        Form::Csv => COLUMNS.join(",") + "\r\n",
    };
    let begun = Bytes::from(head + &written(form, &first.items, true));
    let api: Arc<A> = app.api.clone();
    let rest = stream::try_unfold((Some(first), begun), move |(last, ready)| {
        let api = api.clone();
        async move {
            let Some(last) = last else { return Ok::<_, std::io::Error>(None) };
            let after = last.items.last().map(|record| record.name.to_string());
            if !last.more || after.is_none() {
                let end = if form == Form::Json { "\n]}\n" } else { "" };
                let all = Bytes::from([&ready[..], end.as_bytes()].concat());
                return Ok(Some((all, (None, Bytes::new()))));
            }
            let next = page(&*api, after).await.map_err(std::io::Error::other)?;
            let text = Bytes::from(written(form, &next.items, false));
            Ok(Some((ready, (Some(next), text))))
        }
    });
    let (kind, name) = match form {
        Form::Json => ("application/json", "attachment; filename=\"idgen-types.json\""),
        Form::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"idgen-types.csv\""),
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_DISPOSITION, HeaderValue::from_static(name)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(rest)).into_response())
}

async fn page<A: AdminApi>(api: &A, after: Option<String>) -> Result<Page<TypeRecord>, Error> {
    api.list_types(TypeFilter { after, limit: 1_000, ..TypeFilter::default() }).await
}

fn written(form: Form, types: &[TypeRecord], first: bool) -> String {
    let mut text = String::new();
    for (n, record) in types.iter().enumerate() {
        let exported = Exported::from(record);
        match form {
            Form::Csv => text.push_str(&exported.to_csv()),
            Form::Json => {
                text.push_str(if first && n == 0 { "\n" } else { ",\n" });
                // Text and finite numbers alone always serialise.
                text.push_str(&serde_json::to_string(&exported).unwrap_or_default());
            }
        }
    }
    text
}
