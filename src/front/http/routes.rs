//! Which address does what, and what every request passes through.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::handler::Handler;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing;
use opentelemetry_http::HeaderExtractor;
use prometheus::{Encoder, Registry, TextEncoder};
use tokio::sync::{Semaphore, watch};
use tracing::Instrument;

use super::answer::{IdForm, json};
use super::auth::{Access, admit};
use super::codes::Fault;
use super::compat::Compat;
use super::extract::{MAX_BODY, QueryOf};
use super::log_schema::{AuditJson, NodeJson, ReadyJson};
use super::operations::{Operation, get};
use super::page::{Built, Page};
use super::problem::Problem;
use super::schema::ListJson;
use super::types::Newest;
use super::{
    REQUEST_TIMEOUT, access, actions, compat, headers, imports, instances, issue, live, migrations,
    openapi, types,
};
use crate::domain::access::Role;
use crate::domain::{Error, ErrorCode};
use crate::front::spans;
use crate::service::admin::AdminApi;
use crate::service::live::api::LiveApi;

/// What the handlers share.
pub(super) struct Shared<A> {
    pub(super) api: Arc<A>,
    pub(super) access: Access,
    registry: Registry,
    /// The OpenAPI document of the admin API.
    document: Bytes,
    /// One for each stream that may be open.
    pub(super) streams: Arc<Semaphore>,
    /// True once the HTTP side ends: streams end at once then.
    pub(super) stop: watch::Receiver<bool>,
}

impl<A> Clone for Shared<A> {
    fn clone(&self) -> Self {
        Shared {
            api: self.api.clone(),
            access: self.access.clone(),
            registry: self.registry.clone(),
            document: self.document.clone(),
            streams: self.streams.clone(),
            stop: self.stop.clone(),
        }
    }
}

/// Every operation of the admin API.
pub(super) fn operations<A: AdminApi + LiveApi>() -> Vec<Operation<Shared<A>>> {
    let mut all = vec![
        get("listAudit", "/audit", Role::View, audit::<A>)
            .about("Lists the newest changes", "Newest first, with the settings before and after.")
            .answers::<ListJson<AuditJson>>(200, "The changes, newest first."),
        get("showNode", "/node", Role::View, node::<A>)
            .about("Shows the state of the node", "The one that answers.")
            .answers::<NodeJson>(200, "The state of the node."),
        get("getDocument", "/openapi.json", Role::View, description::<A>)
            .open()
            .about("This document", "OpenAPI 3.1.")
            .answers_as(200, "application/json", "The document."),
    ];
    all.extend(access::operations());
    all.extend(types::operations());
    all.extend(issue::operations());
    all.extend(instances::operations());
    all.extend(migrations::operations());
    all.extend(actions::operations());
    all.extend(imports::operations());
    all.extend(live::operations());
    all
}

/// Every address of the HTTP side.
pub(super) fn router<A: AdminApi + LiveApi>(
    api: Arc<A>,
    registry: Registry,
    access: Access,
    compat: Option<Compat>,
    streams: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
) -> Router {
    let foreign = compat.and_then(|foreign| compat::router(api.clone(), access.clone(), foreign));
    let page = Arc::new(Page::of::<Built>());
    let operations = operations::<A>();
    let document = Bytes::from(openapi::document(&operations).to_string());
    let guard = |role, for_callers| {
        middleware::from_fn_with_state((access.clone(), role, for_callers), admit)
    };
    let mut admin = Router::new();
    for operation in operations {
        let handler = match operation.role {
            Some(role) => operation.handler.route_layer(guard(role, operation.for_callers)),
            None => operation.handler,
        };
        admin = admin.route(operation.served_at, handler);
    }
    // Who is not let in cannot even tell an unknown address from a known one.
    let admin = admin
        .fallback(no_route.layer(guard(Role::View, true)))
        .method_not_allowed_fallback(no_method.layer(guard(Role::View, true)))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn(headers::no_store));
    let router = Router::new()
        .route("/healthz", routing::get(|| async { "ok\n" }))
        .route("/readyz", routing::get(ready::<A>))
        .route("/metrics", routing::get(metrics::<A>))
        .nest("/api/v1", admin)
        .layer(headers::compression())
        .fallback(move |request: Request| async move {
            let answer = page.answer(&request);
            match answer {
                Some(answer) => answer,
                None => no_route(request.uri().clone()).await.into_response(),
            }
        })
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn(deadline))
        .layer(middleware::from_fn(traced))
        .layer(middleware::from_fn(headers::secure))
        .with_state(Shared { api, access, registry, document, streams, stop });
    // Beside the layers above, which are for people.
    router.merge(foreign.unwrap_or_default())
}

/// Most rows of an answer.
pub(super) const MAX_ROWS: u32 = 1_000;

/// How many rows an answer may hold: 1 to [`MAX_ROWS`], else 100.
pub(super) fn limit(wanted: Option<u32>) -> Result<u32, Error> {
    let limit = wanted.unwrap_or(100);
    if (1..=MAX_ROWS).contains(&limit) {
        Ok(limit)
    } else {
        Err(Error::invalid(
            "limit",
            format!("limit {limit} is out of range: it must be from 1 to {MAX_ROWS}"),
        ))
    }
}

/// Makes the span of a request, where it is traced.
async fn traced(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
    let span =
        spans::of_request(request.method().as_str(), route, &HeaderExtractor(request.headers()));
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    response
}

/// No request takes longer than its time limit, whatever the service does.
async fn deadline(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let seconds = REQUEST_TIMEOUT.as_secs();
            let error = Error::new(
                ErrorCode::Deadline,
                format!("the request took more than {seconds} s; it may or may not have happened"),
            );
            Problem::from(error).into_response()
        }
    }
}

pub(super) async fn no_route(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::fault(Fault::NoRoute, format!("there is nothing at {path}"))
}

async fn no_method(method: Method) -> Problem {
    let method: String = method.as_str().chars().take(32).collect();
    Problem::fault(
        Fault::Method,
        format!("{method} is not known here; the header Allow lists what is"),
    )
}

async fn ready<A: AdminApi>(State(app): State<Shared<A>>) -> Response {
    let answer = ReadyJson::from(app.api.node_status().await);
    let status = if answer.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json(status, &answer, IdForm::Number)
}

async fn metrics<A: AdminApi>(State(app): State<Shared<A>>) -> Result<Response, Problem> {
    let encoder = TextEncoder::new();
    let mut text = Vec::new();
    encoder
        .encode(&app.registry.gather(), &mut text)
        .map_err(|error| Error::new(ErrorCode::Internal, format!("metrics: {error}")))?;
    let kind = HeaderValue::from_static(prometheus::TEXT_FORMAT);
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}

async fn description<A: AdminApi>(State(app): State<Shared<A>>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], app.document).into_response()
}

async fn audit<A: AdminApi>(
    State(app): State<Shared<A>>,
    QueryOf(query): QueryOf<Newest>,
) -> Result<Response, Problem> {
    let entries = app.api.audit(limit(query.limit)?).await?;
    let items: Vec<AuditJson> = entries.into_iter().map(Into::into).collect();
    let list = ListJson { items, more: false };
    Ok(json(StatusCode::OK, &list, query.ids))
}

async fn node<A: AdminApi>(State(app): State<Shared<A>>) -> Response {
    let answer = NodeJson::from(app.api.node_status().await);
    json(StatusCode::OK, &answer, IdForm::Number)
}
