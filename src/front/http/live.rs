//! Addresses of the live view: how things are now, and a stream of it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event as SseEvent, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::answer::{IdForm, as_text, json};
use super::extract::{Name, QueryOf};
use super::kind_schema::LocalJson;
use super::operations::{Operation, get};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::DispatcherJson;
use super::stopped;
use crate::domain::access::Role;
use crate::domain::{Error, ErrorCode, TypeName};
use crate::service::admin::AdminApi;
use crate::service::live::api::{
    Event, Events, LiveApi, MAX_WATCHED, Overview, Scope, Series, Span, TypeLive,
};

type Answer = Result<Response, Problem>;

/// Most streams at once.
pub(super) const MAX_STREAMS: usize = 64;
/// How long a stream lasts; its client comes again. Less than the age of a
/// connection, so that one that was made for it is not cut in the middle of an event.
/// It also ends what a session that was closed meanwhile may see.
const STREAM_AGE: Duration = Duration::from_secs(240);
/// How long a client waits before it comes again.
const RETRY: Duration = Duration::from_secs(1);

/// Nothing that would change the answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain {
    /// Taken as everywhere; there are no ids in the answer.
    #[serde(default, rename = "ids")]
    _ids: IdForm,
}

/// How much of the past.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Past {
    /// How far it goes back; an hour, if nothing is said.
    span: Option<Span>,
    /// How ids are written in the answer.
    #[serde(default)]
    ids: IdForm,
}

/// Which types to tell of.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Watched {
    /// Names of types to tell of, separated by commas, at most 200.
    #[serde(default)]
    #[schemars(length(max = MAX_WATCHED * (TypeName::MAX_LEN + 1)))]
    types: String,
    /// How ids are written in the events.
    #[serde(default)]
    ids: IdForm,
}

/// The operations that tell how things are, now and lately.
pub(super) fn operations<A: AdminApi + LiveApi>() -> Vec<Operation<Shared<A>>> {
    vec![
        get("showOverview", "/overview", Role::View, overview::<A>)
            .about("Shows how the cluster is", "Nodes, instances, store, and what needs attention.")
            .answers::<Overview>(200, "How it is, at most 2 s old."),
        get("openStream", "/stream", Role::View, stream::<A>)
            .about(
                "Tells what happens, as it happens",
                "Events `hello`, `overview`, `types` and `changed`; the data of each is JSON.",
            )
            .answers_as(200, "text/event-stream", "The events.")
            .refuses(&[ErrorCode::Overloaded]),
        get("showSeries", "/series", Role::View, series::<A>)
            .about("Shows the rate of late", "Ids per second of all types, as this node knows.")
            .answers::<Series>(200, "The rate."),
        get("showTypeSeries", "/types/{name}/series", Role::View, type_series::<A>)
            .about("Shows the rate and the ranges of a type of late", "By step of the span.")
            .answers::<Series>(200, "Rate and ranges.")
            .refuses(&[ErrorCode::UnknownType]),
    ]
}

/// A type in use, as a stream tells of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct TypeLiveJson {
    name: String,
    version: i64,
    rate: Option<f64>,
    rate_of: Scope,
    runway_s: Option<f64>,
    exhausted_at_ms: Option<i64>,
    dispatcher: Option<DispatcherJson>,
    local: Option<LocalJson>,
    last_load_ms: Option<i64>,
}

impl From<TypeLive> for TypeLiveJson {
    fn from(live: TypeLive) -> Self {
        TypeLiveJson {
            name: live.name.to_string(),
            version: live.version,
            rate: live.rate,
            rate_of: live.rate_of,
            runway_s: live.runway_s,
            exhausted_at_ms: live.exhausted_at_ms,
            dispatcher: live.view.map(Into::into),
            local: live.local.map(Into::into),
            last_load_ms: live.last_load_ms,
        }
    }
}

#[derive(Serialize)]
struct TypesJson {
    at_ms: i64,
    items: Vec<TypeLiveJson>,
}

#[derive(Serialize)]
struct HelloJson {
    node: String,
    version: &'static str,
    at_ms: i64,
}

async fn overview<A: AdminApi + LiveApi>(
    State(app): State<Shared<A>>,
    QueryOf(_): QueryOf<Plain>,
) -> Response {
    let overview = app.api.overview().await;
    // The numbers of instances are no ids.
    json(StatusCode::OK, &*overview, IdForm::Number)
}

async fn series<A: AdminApi + LiveApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Past>,
) -> Response {
    let series = app.api.series(query.span.unwrap_or(Span::Hour));
    json(StatusCode::OK, &series, query.ids)
}

async fn type_series<A: AdminApi + LiveApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    QueryOf(query): QueryOf<Past>,
) -> Answer {
    let series = app.api.type_series(&name, query.span.unwrap_or(Span::Hour)).await?;
    Ok(json(StatusCode::OK, &series, query.ids))
}

async fn stream<A: AdminApi + LiveApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Watched>,
) -> Answer {
    let names = names(&query.types)?;
    let permit = app.streams.clone().try_acquire_owned().map_err(|_| {
        Error::new(
            ErrorCode::Overloaded,
            format!("{MAX_STREAMS} streams are open at this node already: try another node"),
        )
    })?;
    let status = app.api.node_status().await;
    let hello = HelloJson { node: status.node, version: status.version, at_ms: app.api.now_ms() };
    let feed = Feed {
        hello: Some(hello),
        events: app.api.watch(names),
        stop: app.stop.clone(),
        until: Instant::now() + STREAM_AGE,
        form: query.ids,
        _permit: permit,
    };
    let mut answer = Sse::new(feed.stream()).into_response();
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy must not collect events before it passes them on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(answer)
}

/// The names that a stream watches, each once.
fn names(text: &str) -> Result<Vec<TypeName>, Error> {
    let mut names: Vec<TypeName> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let name = TypeName::parse(name)
            .map_err(|error| Error::invalid("types", format!("types: {}", error.message)))?;
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > MAX_WATCHED {
            return Err(Error::invalid(
                "types",
                format!("types names more than {MAX_WATCHED} types: a stream watches at most that"),
            ));
        }
    }
    Ok(names)
}

/// What one client is told. It is asked for an event only when the one before was
/// written, so nothing piles up for a client that does not read.
struct Feed<E> {
    hello: Option<HelloJson>,
    events: E,
    stop: watch::Receiver<bool>,
    until: Instant,
    form: IdForm,
    _permit: OwnedSemaphorePermit,
}

impl<E: Events> Feed<E> {
    fn stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        unfold(self, |mut feed| async move {
            let event = feed.next().await?;
            Some((Ok(event), feed))
        })
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<SseEvent> {
        if let Some(hello) = self.hello.take() {
            return event("hello", &hello, IdForm::Number).map(|event| event.retry(RETRY));
        }
        let next = tokio::select! {
            biased;
            () = stopped(&mut self.stop) => None,
            () = tokio::time::sleep_until(self.until) => None,
            next = self.events.next() => next,
        };
        match next? {
            Event::Overview(overview) => event("overview", &*overview, IdForm::Number),
            Event::Types { at_ms, items } => {
                let items = items.into_iter().map(Into::into).collect();
                event("types", &TypesJson { at_ms, items }, self.form)
            }
            Event::Changed(changed) => event("changed", &changed, IdForm::Number),
        }
    }
}

fn event(name: &str, value: &impl Serialize, form: IdForm) -> Option<SseEvent> {
    // Text and numbers alone always serialise.
    Some(SseEvent::default().event(name).data(as_text(value, form).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_names_by_cases() {
        let of = |text: &str| names(text).map(|names| names.len());
        assert_eq!(of(""), Ok(0));
        assert_eq!(of("a, b,,a,"), Ok(2));
        assert_eq!(of("a,{").unwrap_err().field, Some("types"));
        let many: Vec<_> = (0..=MAX_WATCHED).map(|n| n.to_string()).collect();
        assert_eq!(of(&many[1..].join(",")), Ok(MAX_WATCHED));
        let error = of(&many.join(",")).unwrap_err();
        assert_eq!(error.field, Some("types"));
        assert!(error.message.contains("200"), "{error}");
    }
}
