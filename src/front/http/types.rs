//! Addresses about id types.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use super::answer::{IdForm, json};
use super::auth::Actor;
use super::extract::{JsonBody, Name, NoBody, QueryOf};
use super::log_schema::RangeLogJson;
use super::problem::Problem;
use super::routes::{Shared, limit};
use super::schema::{ListJson, NewType, TypeDetailJson, TypeJson, TypePatch};
use crate::ports::TypeFilter;
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain {
    #[serde(default)]
    pub(super) ids: IdForm,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
    contains: Option<String>,
    after: Option<String>,
    instance: Option<String>,
    limit: Option<u32>,
    #[serde(default)]
    ids: IdForm,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Newest {
    pub(super) limit: Option<u32>,
    #[serde(default)]
    pub(super) ids: IdForm,
}

pub(super) async fn list<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Listing>,
) -> Answer {
    let instance = match query.instance.filter(|text| !text.is_empty()) {
        Some(wanted) => Some(app.api.find_instance(&wanted).await?.id),
        None => None,
    };
    let filter = TypeFilter {
        instance,
        contains: query.contains.filter(|text| !text.is_empty()),
        after: query.after.filter(|text| !text.is_empty()),
        limit: limit(query.limit)?,
    };
    let page = app.api.list_types(filter).await?;
    let list = ListJson::<TypeJson> {
        items: page.items.into_iter().map(Into::into).collect(),
        more: page.more,
    };
    Ok(json(StatusCode::OK, &list, query.ids))
}

pub(super) async fn create<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewType>,
) -> Answer {
    let record = app.api.create_type(body.into_spec()?, &actor).await?;
    let location = format!("/api/v1/types/{}", record.name);
    let mut response = json(StatusCode::CREATED, &TypeJson::from(record), query.ids);
    // A legal name is always a legal header value.
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

pub(super) async fn show<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
) -> Answer {
    let status = app.api.describe(&name).await?;
    Ok(json(StatusCode::OK, &TypeDetailJson::from(status), query.ids))
}

pub(super) async fn alter<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<TypePatch>,
) -> Answer {
    let record = app.api.alter_type(&name, body.into_change()?, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

pub(super) async fn retire<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.set_retired(&name, true, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

pub(super) async fn restore<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.set_retired(&name, false, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

pub(super) async fn rotate_key<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.rotate_key(&name, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

pub(super) async fn ranges<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Newest>,
) -> Answer {
    let entries = app.api.range_log(&name, limit(query.limit)?).await?;
    let items: Vec<RangeLogJson> = entries.into_iter().map(Into::into).collect();
    let list = ListJson { items, more: false };
    Ok(json(StatusCode::OK, &list, query.ids))
}
