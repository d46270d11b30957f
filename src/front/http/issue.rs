//! Addresses that hand out ids, or tell about one.

use std::ops::RangeInclusive;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{IdForm, json};
use super::auth::Taker;
use super::extract::{Name, NoBody, QueryOf};
use super::kind_schema::{DecodedJson, LeaseJson, TextsJson};
use super::operations::{Operation, Request, Takes, get, post};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::IdsJson;
use crate::domain::access::Role;
use crate::domain::{Error, ErrorCode};
use crate::service::access::callers::Pass;
use crate::service::admin::AdminApi;
use crate::service::api::{
    MAX_COUNT, MAX_GATE_PASS, MAX_ID_TEXT, MAX_LEASE, MAX_LEASE_MS, MAX_REQUEST_KEY, MAX_TEXTS,
    MIN_LEASE_MS, Order,
};
use crate::service::live::api::LiveApi;

type Answer = Result<Response, Problem>;

/// Ids that are written where calls are served. More of them are written beside,
/// because 100 000 take several milliseconds.
const AT_A_STRETCH: i64 = 1_000;

/// In which form ids are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum As {
    /// As numbers.
    #[default]
    Number,
    /// As text, in the type's format.
    Text,
}

/// How many ids, and which.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// How many ids; 1 unless told. With `as=text`, at most 10 000.
    #[schemars(range(min = 1, max = MAX_COUNT))]
    count: Option<i64>,
    /// Chooses the shard of a sharded type, which needs one. At most 1 024 bytes.
    #[schemars(length(max = MAX_GATE_PASS))]
    gate_pass: Option<String>,
    /// The same key gives the same ids again, for 10 minutes.
    #[schemars(length(max = MAX_REQUEST_KEY), pattern("^[!-~]*$"))]
    request_key: Option<String>,
    /// As numbers, or as text in the type's format.
    #[serde(default, rename = "as")]
    form: As,
    /// How ids are written in the answer.
    #[serde(default)]
    ids: IdForm,
}

/// How many ids, and for how long.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Lease {
    /// How many ids at most.
    #[schemars(required, range(min = 1, max = MAX_LEASE))]
    count: Option<i64>,
    /// For how long they may be handed out, in milliseconds from when the request is
    /// sent.
    #[schemars(required, range(min = MIN_LEASE_MS, max = MAX_LEASE_MS))]
    ttl_ms: Option<i64>,
    /// How ids are written in the answer.
    #[serde(default)]
    ids: IdForm,
}

/// Which id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Told {
    /// A number, or a text of the type's format.
    #[schemars(required, length(min = 1, max = MAX_ID_TEXT))]
    id: Option<String>,
    /// How ids are written in the answer.
    #[serde(default)]
    ids: IdForm,
}

/// The operations that hand out ids, or tell about one.
pub(super) fn operations<A: AdminApi + LiveApi>() -> Vec<Operation<Shared<A>>> {
    use ErrorCode::{ClockBackwards, Conflict, Exhausted, QuotaExceeded, Retired, UnknownType};
    vec![
        post("issueIds", "/types/{name}/ids", Role::Issue, ids::<A>)
            .about("Hands out ids", "In the order in which they were issued, to nobody else.")
            .answers::<Issued>(200, "The ids, as numbers or as texts.")
            .refuses(&[UnknownType, Retired, Exhausted, Conflict, ClockBackwards, QuotaExceeded]),
        post("leaseRange", "/types/{name}/lease", Role::Issue, lease::<A>)
            .about(
                "Gives ids to the caller to hand out by itself",
                "Segment types with ids in order only. What is left at the end is lost.",
            )
            .answers::<LeaseJson>(200, "The ids: `first`, `first + step`, and so on.")
            .refuses(&[UnknownType, Retired, Exhausted, Conflict, QuotaExceeded]),
        get("decodeId", "/types/{name}/decode", Role::View, decode::<A>)
            .for_callers()
            .about("Says what an id tells", "When, which node, which range, shard, worker.")
            .answers::<DecodedJson>(200, "What it tells; what it does not is left out.")
            .refuses(&[UnknownType]),
    ]
}

impl Takes for Taker {
    fn note(_: &mut Request) {}
}

/// What [`ids`] answers.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "says in the document what the handler answers")]
enum Issued {
    Ids(IdsJson),
    Texts(TextsJson),
}

async fn ids<A: AdminApi + LiveApi>(
    State(app): State<Shared<A>>,
    taker: Taker,
    Name(name): Name,
    QueryOf(query): QueryOf<Wanted>,
    _: NoBody,
) -> Answer {
    let most = match query.form {
        As::Number => MAX_COUNT,
        As::Text => MAX_TEXTS,
    };
    let order = Order {
        // Checked here too, because the answer is built in memory.
        count: within("count", query.count.or(Some(1)), 1..=most)?,
        gate_pass: query.gate_pass.as_deref().filter(|text| !text.is_empty()),
        request_key: query.request_key.as_deref().filter(|text| !text.is_empty()),
    };
    let pass = passed(&app, taker.pass(&app.access, &name, order.count).await)?;
    match query.form {
        As::Number => {
            let ranges = app.api.next_ids(&name, order).await;
            let ranges = served(&app, pass, ranges, |_| order.count)?;
            let count = order.count;
            let answer = move || {
                let ids = ranges.iter().flat_map(|r| r.start()..r.end()).collect();
                json(StatusCode::OK, &IdsJson { name, ids }, query.ids)
            };
            if count <= AT_A_STRETCH {
                return Ok(answer());
            }
            tokio::task::spawn_blocking(answer)
                .await
                .map_err(|error| Error::new(ErrorCode::Internal, format!("answer: {error}")).into())
        }
        As::Text => {
            let texts = app.api.next_string_ids(&name, order, true).await;
            let texts = served(&app, pass, texts, |_| order.count)?;
            Ok(json(StatusCode::OK, &TextsJson { name, texts }, query.ids))
        }
    }
}

/// Counts a call that was not let pass.
fn passed<'c, A: LiveApi>(
    app: &Shared<A>,
    pass: Result<Pass<'c>, Error>,
) -> Result<Pass<'c>, Error> {
    pass.inspect_err(|error| app.api.served(Err(error)))
}

/// Counts what was served.
fn served<A: LiveApi, T>(
    app: &Shared<A>,
    pass: Pass<'_>,
    result: Result<T, Error>,
    ids: impl Fn(&T) -> i64,
) -> Result<T, Error> {
    let given = result.as_ref().map(|answer| ids(answer).unsigned_abs());
    pass.settle(*given.as_ref().unwrap_or(&0));
    app.api.served(given);
    result
}

async fn lease<A: AdminApi + LiveApi>(
    State(app): State<Shared<A>>,
    taker: Taker,
    Name(name): Name,
    QueryOf(query): QueryOf<Lease>,
    _: NoBody,
) -> Answer {
    let count = within("count", query.count, 1..=MAX_LEASE)?;
    let ttl_ms = within("ttl_ms", query.ttl_ms, MIN_LEASE_MS..=MAX_LEASE_MS)?;
    let pass = passed(&app, taker.pass(&app.access, &name, count).await)?;
    let lease = app.api.lease_range(&name, count, ttl_ms).await;
    let lease = served(&app, pass, lease, |lease| lease.count)?;
    Ok(json(StatusCode::OK, &LeaseJson::of(name, lease), query.ids))
}

async fn decode<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Told>,
) -> Answer {
    let id = query.id.filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Error::invalid("id", "id is missing"))?;
    let decoded = app.api.decode(&name, &id).await?;
    Ok(json(StatusCode::OK, &DecodedJson::from(decoded), query.ids))
}

fn within(
    field: &'static str,
    value: Option<i64>,
    range: RangeInclusive<i64>,
) -> Result<i64, Error> {
    let value = value.ok_or_else(|| Error::invalid(field, format!("{field} is missing")))?;
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = range.into_inner();
    Err(Error::invalid(
        field,
        format!("{field} {value} is out of range: it must be from {low} to {high}"),
    ))
}
