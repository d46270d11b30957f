//! Addresses about id types.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{IdForm, json};
use super::auth::Actor;
use super::extract::{JsonBody, Name, NoBody, QueryOf};
use super::log_schema::RangeLogJson;
use super::operations::{Operation, get, patch, post};
use super::problem::Problem;
use super::routes::{MAX_ROWS, Shared, limit};
use super::schema::{ListJson, NewType, TypeDetailJson, TypeJson, TypePatch};
use crate::domain::access::Role;
use crate::domain::{Error, ErrorCode, TypeName};
use crate::ports::TypeFilter;
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

/// How ids are answered, and nothing else.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain {
    /// How ids are written in the answer.
    #[serde(default)]
    pub(super) ids: IdForm,
}

/// Which types, and how many.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
    /// Only types whose names hold this text.
    #[schemars(length(max = TypeName::MAX_LEN))]
    contains: Option<String>,
    /// Only types whose names come after this one.
    #[schemars(length(max = TypeName::MAX_LEN))]
    after: Option<String>,
    /// Only types of the Redis instance of this name or number.
    #[schemars(length(max = TypeName::MAX_LEN))]
    instance: Option<String>,
    /// Most rows of the answer; 100 unless told.
    #[schemars(range(min = 1, max = MAX_ROWS))]
    limit: Option<u32>,
    /// How ids are written in the answer.
    #[serde(default)]
    ids: IdForm,
}

/// How many of the newest entries.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Newest {
    /// Most rows of the answer; 100 unless told.
    #[schemars(range(min = 1, max = MAX_ROWS))]
    pub(super) limit: Option<u32>,
    /// How ids are written in the answer.
    #[serde(default)]
    pub(super) ids: IdForm,
}

/// The operations about id types.
pub(super) fn operations<A: AdminApi>() -> Vec<Operation<Shared<A>>> {
    use ErrorCode::{AlreadyExists, Conflict, Exhausted, UnknownInstance, UnknownType};
    vec![
        get("listTypes", "/types", Role::View, list::<A>)
            .about(
                "Lists id types",
                "By name. `more` says whether there are further ones: ask again with `after` set \
                 to the last name.",
            )
            .answers::<ListJson<TypeJson>>(200, "The types, by name.")
            .refuses(&[UnknownInstance]),
        post("createType", "/types", Role::Operate, create::<A>)
            .about("Creates an id type", "What is left out has its default.")
            .answers::<TypeJson>(201, "The type as it is now.")
            .with_header("Location", "The address of the type.")
            .refuses(&[AlreadyExists, UnknownInstance]),
        get("showType", "/types/{name}", Role::View, show::<A>)
            .about(
                "Shows an id type",
                "With what its dispatcher holds now, and what this node holds for itself.",
            )
            .answers::<TypeDetailJson>(200, "The type and its state.")
            .refuses(&[UnknownType]),
        patch("alterType", "/types/{name}", Role::Operate, alter::<A>)
            .about(
                "Changes settings of an id type",
                "What is left out stays. With `version`, only if nobody else changed it since.",
            )
            .answers::<TypeJson>(200, "The type as it is now.")
            .refuses(&[UnknownType, Conflict]),
        post("retireType", "/types/{name}/retire", Role::Operate, retire::<A>)
            .about("Stops handing out ids of a type", "Changes nothing if it is retired already.")
            .answers::<TypeJson>(200, "The type as it is now.")
            .refuses(&[UnknownType, Conflict]),
        post("restoreType", "/types/{name}/restore", Role::Operate, restore::<A>)
            .about("Goes on handing out ids of a type", "Changes nothing if it is active.")
            .answers::<TypeJson>(200, "The type as it is now.")
            .refuses(&[UnknownType, Conflict]),
        post("rotateKey", "/types/{name}/rotate-key", Role::Operate, rotate_key::<A>)
            .about(
                "Gives an opaque type a new key",
                "From its next slice on; what is left of the present slice is lost.",
            )
            .answers::<TypeJson>(200, "The type as it is now.")
            .refuses(&[UnknownType, Conflict, Exhausted]),
        get("listRanges", "/types/{name}/ranges", Role::View, ranges::<A>)
            .about("Lists the newest ranges of a type", "Newest first.")
            .answers::<ListJson<RangeLogJson>>(200, "The ranges, newest first.")
            .refuses(&[UnknownType]),
    ]
}

async fn list<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Listing>,
) -> Answer {
    let instance = match query.instance.filter(|text| !text.is_empty()) {
        Some(wanted) => Some(app.api.find_instance(&wanted).await?.id),
        None => None,
    };
    let filter = TypeFilter {
        instance,
        contains: part_of_name("contains", query.contains)?,
        after: part_of_name("after", query.after)?,
        limit: limit(query.limit)?,
    };
    let page = app.api.list_types(filter).await?;
    let list = ListJson::<TypeJson> {
        items: page.items.into_iter().map(Into::into).collect(),
        more: page.more,
    };
    Ok(json(StatusCode::OK, &list, query.ids))
}

/// A text that is compared with names of types; none where it is empty.
fn part_of_name(field: &'static str, text: Option<String>) -> Result<Option<String>, Error> {
    let length = text.as_ref().map_or(0, |text| text.chars().count());
    if length > TypeName::MAX_LEN {
        return Err(Error::invalid(
            field,
            format!("{field} has {length} characters; the limit is {}", TypeName::MAX_LEN),
        ));
    }
    Ok(text.filter(|text| !text.is_empty()))
}

async fn create<A: AdminApi>(
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

async fn show<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
) -> Answer {
    let status = app.api.describe(&name).await?;
    Ok(json(StatusCode::OK, &TypeDetailJson::from(status), query.ids))
}

async fn alter<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<TypePatch>,
) -> Answer {
    let record = app.api.alter_type(&name, body.into_change()?, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

async fn retire<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.set_retired(&name, true, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

async fn restore<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.set_retired(&name, false, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

async fn rotate_key<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Plain>,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    let record = app.api.rotate_key(&name, &actor).await?;
    Ok(json(StatusCode::OK, &TypeJson::from(record), query.ids))
}

async fn ranges<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Newest>,
) -> Answer {
    let entries = app.api.range_log(&name, limit(query.limit)?).await?;
    let items: Vec<RangeLogJson> = entries.into_iter().map(Into::into).collect();
    let list = ListJson { items, more: false };
    Ok(json(StatusCode::OK, &list, query.ids))
}
