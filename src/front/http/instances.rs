//! Addresses about Redis instances.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::answer::{IdForm, json};
use super::auth::Actor;
use super::extract::{JsonBody, Name};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::{
    CheckJson, InstanceJson, ListJson, NewInstance, TestInstance, checked_instance,
};
use crate::domain::Error;
use crate::service::admin::{AdminApi, InstanceStatus, InstanceTarget};

type Answer = Result<Response, Problem>;

pub(super) async fn list<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
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

pub(super) async fn add<A: AdminApi>(
    State(app): State<Shared<A>>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewInstance>,
) -> Answer {
    let test = body.test;
    let record = app.api.add_instance(body.into_spec()?, test, &actor).await?;
    let answer = InstanceJson::from(record);
    Ok(json(StatusCode::CREATED, &answer, IdForm::Number))
}

pub(super) async fn test<A: AdminApi>(
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

pub(super) async fn remove<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
) -> Answer {
    app.api.remove_instance(&name, &actor).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
