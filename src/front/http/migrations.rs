//! Addresses about moving types between Redis instances.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{IdForm, json};
use super::auth::Actor;
use super::extract::{JsonBody, Name, NoBody, QueryOf};
use super::migration_schema::{DrainTo, InstanceRefJson, MigratedJson, MoveType, PlanJson};
use super::operations::{Operation, delete, get, post};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::{InstanceJson, ListJson, TypeJson};
use super::types::Plain;
use crate::domain::access::Role;
use crate::domain::{ErrorCode, InstanceRecord, TypeName};
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

/// As many as [`AdminApi::migrations`] answers at most.
const MOST: usize = 1_000;

/// Where a type would go.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Target {
    /// Name or number of the Redis instance.
    #[schemars(length(max = TypeName::MAX_LEN))]
    to: String,
    /// How ids are written in the answer.
    #[serde(default)]
    ids: IdForm,
}

/// The operations that move types between Redis instances.
pub(super) fn operations<A: AdminApi>() -> Vec<Operation<Shared<A>>> {
    use ErrorCode::{Conflict, Retired, UnknownInstance, UnknownType};
    vec![
        get("planMigration", "/types/{name}/migration", Role::View, plan::<A>)
            .about(
                "Tells what moving a type would do",
                "Changes nothing. `problems` says what stands in the way.",
            )
            .answers::<PlanJson>(200, "What would happen.")
            .refuses(&[UnknownType, UnknownInstance]),
        post("migrateType", "/types/{name}/migration", Role::Operate, migrate::<A>)
            .about(
                "Moves a type to another Redis instance",
                "While it is in use: callers wait for a moment, and order holds. With `abandon` \
                 the old instance is not asked.",
            )
            .answers::<MigratedJson>(200, "What became of the ids that were published.")
            .refuses(&[UnknownType, UnknownInstance, Conflict, Retired]),
        delete("undoMigration", "/types/{name}/migration", Role::Operate, undo::<A>)
            .about(
                "Undoes the migration that is under way",
                "If none is, moves the type back to where it came from.",
            )
            .answers::<TypeJson>(200, "The type as it is now.")
            .refuses(&[UnknownType, UnknownInstance, Conflict, Retired]),
        get("listMigrations", "/migrations", Role::View, list::<A>)
            .about("Lists the types that are on their way", "At most 1 000.")
            .answers::<ListJson<TypeJson>>(200, "The types, by name."),
        post("drainInstance", "/redis-instances/{name}/drain", Role::Operate, drain::<A>)
            .about(
                "Moves all types of a Redis instance to another",
                "Answers at once; `types` of the instance tells how many are left.",
            )
            .answers::<InstanceJson>(200, "The instance as it is now.")
            .refuses(&[UnknownInstance, Conflict]),
        delete("endDrain", "/redis-instances/{name}/drain", Role::Operate, end_drain::<A>)
            .about("Ends a drain", "What was moved stays where it is.")
            .answers::<InstanceJson>(200, "The instance as it is now.")
            .refuses(&[UnknownInstance, Conflict]),
    ]
}

async fn plan<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Target>,
) -> Answer {
    let plan = app.api.plan_migration(&name, &query.to).await?;
    Ok(json(StatusCode::OK, &PlanJson::from(plan), query.ids))
}

async fn migrate<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<MoveType>,
) -> Answer {
    let moved = app.api.migrate(&name, &body.to, body.abandon, &actor).await?;
    Ok(json(StatusCode::OK, &MigratedJson::from(moved), query.ids))
}

async fn undo<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.undo_migration(&name, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

async fn list<A: AdminApi>(State(app): State<Shared<A>>, QueryOf(query): QueryOf<Plain>) -> Answer {
    let moving = app.api.migrations().await?;
    let more = moving.len() >= MOST;
    let list = ListJson::<TypeJson> { items: moving.into_iter().map(Into::into).collect(), more };
    Ok(json(StatusCode::OK, &list, query.ids))
}

async fn drain<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<DrainTo>,
) -> Answer {
    let record = app.api.drain_instance(&name, Some(&body.to), &actor).await?;
    Ok(drained(&*app.api, record).await)
}

async fn end_drain<A: AdminApi>(
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
