//! Addresses that prepare or do something larger with id types: blocks and previews.

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::action_schema::{PreviewJson, PreviewType, Reserve, ReservedJson};
use super::answer::json;
use super::auth::Actor;
use super::codes::Fault;
use super::extract::{JsonBody, Name, QueryOf};
use super::operations::{Operation, Request, Takes, post};
use super::problem::Problem;
use super::routes::Shared;
use super::types::Plain;
use crate::domain::ErrorCode;
use crate::domain::access::Role;
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

/// The operations that prepare or do something larger.
pub(super) fn operations<A: AdminApi>() -> Vec<Operation<Shared<A>>> {
    use ErrorCode::{Conflict, Exhausted, Retired, UnknownType};
    vec![
        // A type may be called preview, too: its address has other methods.
        post("previewType", "/types/preview", Role::View, preview::<A>)
            .served_at("/types/{name}")
            .about("Shows what a type would be like", "Nothing is made.")
            .answers::<PreviewJson>(200, "Its first ids, and how its ranges would grow."),
        post("reserveBlock", "/types/{name}/reserve", Role::Operate, reserve::<A>)
            .about("Takes a block of ids", "For a bulk load. What is not used is lost.")
            .answers::<ReservedJson>(201, "The block.")
            .refuses(&[UnknownType, Retired, Exhausted, Conflict]),
    ]
}

async fn reserve<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<Reserve>,
) -> Answer {
    let block = app.api.reserve(&name, body.count, &actor).await?;
    Ok(json(StatusCode::CREATED, &ReservedJson::from(block), query.ids))
}

/// The name in the path of a preview, which the document gives as `preview`.
struct PreviewName(String);

impl<S: Send + Sync> FromRequestParts<S> for PreviewName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Name(name) = Name::from_request_parts(parts, state).await?;
        Ok(PreviewName(name))
    }
}

impl Takes for PreviewName {
    fn note(_: &mut Request) {}
}

async fn preview<A: AdminApi>(
    State(app): State<Shared<A>>,
    PreviewName(name): PreviewName,
    QueryOf(query): QueryOf<Plain>,
    body: Result<JsonBody<PreviewType>, Problem>,
) -> Answer {
    if name != "preview" {
        let why = "POST is for /types/preview, and for the addresses below a type";
        let refusal = Problem::fault(Fault::Method, why);
        return Ok(([(ALLOW, "GET, HEAD, PATCH")], refusal).into_response());
    }
    let JsonBody(body) = body?;
    let preview = app.api.preview(body.id_type.into_spec()?, body.rate).await?;
    Ok(json(StatusCode::OK, &PreviewJson::from(preview), query.ids))
}
