//! Addresses about Redis instances.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::answer::{IdForm, json};
use super::auth::Actor;
use super::extract::{JsonBody, Name};
use super::operations::{Operation, delete, get, post};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::{
    CheckJson, InstanceJson, ListJson, NewInstance, TestInstance, checked_instance,
};
use crate::domain::access::Role;
use crate::domain::{Error, ErrorCode};
use crate::service::admin::{AdminApi, InstanceStatus, InstanceTarget};

type Answer = Result<Response, Problem>;

/// The operations about Redis instances.
pub(super) fn operations<A: AdminApi>() -> Vec<Operation<Shared<A>>> {
    use ErrorCode::{AlreadyExists, Conflict, UnknownInstance};
    vec![
        get("listInstances", "/redis-instances", Role::View, list::<A>)
            .about("Lists the Redis instances", "With how they answer now, under `check`.")
            .answers::<ListJson<InstanceJson>>(200, "The instances, by number."),
        post("addInstance", "/redis-instances", Role::Administer, add::<A>)
            .about(
                "Registers a Redis instance",
                "Its connection is tested first, unless `test` is false.",
            )
            .answers::<InstanceJson>(201, "The instance.")
            .refuses(&[AlreadyExists]),
        post("testInstance", "/redis-instances/test", Role::Administer, test::<A>)
            .about("Tries the connection of a Redis instance", "A failure to connect is an answer.")
            .answers::<CheckJson>(200, "Whether it answers, and why not.")
            .refuses(&[UnknownInstance]),
        delete("removeInstance", "/redis-instances/{name}", Role::Administer, remove::<A>)
            .about(
                "Removes a Redis instance",
                "One that no type is assigned to or on its way to, and that no other is drained \
                 to.",
            )
            .answers_nothing(204, "It is removed.")
            .refuses(&[UnknownInstance, Conflict]),
    ]
}

async fn list<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
    let instances = app.api.instances().await?;
    let names: BTreeMap<_, _> =
        instances.iter().map(|i| (i.record.id.0, i.record.name.clone())).collect();
    let item = |instance: InstanceStatus| {
        let mut item = InstanceJson::from(instance.record);
        if let Some(to) = &mut item.drain_to {
            to.name = names.get(&to.id).cloned();
        }
        InstanceJson { check: Some(instance.check.into()), ..item }
    };
    let list = ListJson { items: instances.into_iter().map(item).collect(), more: false };
    Ok(json(StatusCode::OK, &list, IdForm::Number))
}

async fn add<A: AdminApi>(
    State(app): State<Shared<A>>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewInstance>,
) -> Answer {
    let test = body.test;
    let record = app.api.add_instance(body.into_spec()?, test, &actor).await?;
    let answer = InstanceJson::from(record);
    Ok(json(StatusCode::CREATED, &answer, IdForm::Number))
}

async fn test<A: AdminApi>(
    State(app): State<Shared<A>>,
    JsonBody(body): JsonBody<TestInstance>,
) -> Answer {
    let target = match (body.name, body.url) {
        (Some(name), None) => InstanceTarget::Name(name),
        (None, Some(url)) => InstanceTarget::Spec(checked_instance("test".to_owned(), url)?),
        _ => {
            return Err(Error::invalid(
                "name",
                "exactly one of name and url must be given: name for a registered instance, url \
                 for any",
            )
            .into());
        }
    };
    let check = app.api.test_instance(target).await?;
    Ok(json(StatusCode::OK, &CheckJson::from(check), IdForm::Number))
}

async fn remove<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
) -> Answer {
    app.api.remove_instance(&name, &actor).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
