//! Addresses about moving types between Redis instances.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::answer::{IdForm, json};
use super::auth::Actor;
use super::extract::{JsonBody, Name, NoBody, QueryOf};
use super::migration_schema::{DrainTo, InstanceRefJson, MigratedJson, MoveType, PlanJson};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::{InstanceJson, ListJson, TypeJson};
use super::types::Plain;
use crate::domain::InstanceRecord;
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

/// As many as [`AdminApi::migrations`] answers at most.
const MOST: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    to: String,
    #[serde(default)]
    ids: IdForm,
}

pub(super) async fn plan<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Target>,
) -> Answer {
    let plan = app.api.plan_migration(&name, &query.to).await?;
    Ok(json(StatusCode::OK, &PlanJson::from(plan), query.ids))
}

pub(super) async fn migrate<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<MoveType>,
) -> Answer {
    let moved = app.api.migrate(&name, &body.to, body.abandon, &actor).await?;
    Ok(json(StatusCode::OK, &MigratedJson::from(moved), query.ids))
}

pub(super) async fn undo<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.undo_migration(&name, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

pub(super) async fn list<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Plain>,
) -> Answer {
    let moving = app.api.migrations().await?;
    let more = moving.len() >= MOST;
    let list = ListJson::<TypeJson> { items: moving.into_iter().map(Into::into).collect(), more };
    Ok(json(StatusCode::OK, &list, query.ids))
}

pub(super) async fn drain<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<DrainTo>,
) -> Answer {
    let record = app.api.drain_instance(&name, Some(&body.to), &actor).await?;
    Ok(drained(&*app.api, record).await)
}

pub(super) async fn end_drain<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.drain_instance(&name, None, &actor).await?;
    Ok(drained(&*app.api, record).await)
}

/// It has happened, so that the name of the other instance is not worth an error.
async fn drained<A: AdminApi>(api: &A, record: InstanceRecord) -> Response {
    let name = match record.drain_to {
        Some(to) => api.find_instance(&to.to_string()).await.ok().map(|found| found.name),
        None => None,
    };
    let mut answer = InstanceJson::from(record);
    answer.drain_to = answer.drain_to.map(|to| InstanceRefJson { name, ..to });
    json(StatusCode::OK, &answer, IdForm::Number)
}
