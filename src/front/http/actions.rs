//! Addresses that prepare or do something larger with id types: blocks and previews.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::action_schema::{PreviewJson, PreviewType, Reserve, ReservedJson};
use super::answer::json;
use super::auth::Actor;
use super::codes::Fault;
use super::extract::{JsonBody, Name, QueryOf};
use super::problem::Problem;
use super::routes::Shared;
use super::types::Plain;
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

pub(super) async fn reserve<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<Reserve>,
) -> Answer {
    let block = app.api.reserve(&name, body.count, &actor).await?;
    Ok(json(StatusCode::CREATED, &ReservedJson::from(block), query.ids))
}

pub(super) async fn preview<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    body: Result<JsonBody<PreviewType>, Problem>,
) -> Answer {
    if name != "preview" {
        return Err(Problem::fault(
            Fault::Method,
            "POST is for /types/preview, and for the addresses below a type",
        ));
    }
    let JsonBody(body) = body?;
    let preview = app.api.preview(body.id_type.into_spec()?, body.rate).await?;
    Ok(json(StatusCode::OK, &PreviewJson::from(preview), query.ids))
}
