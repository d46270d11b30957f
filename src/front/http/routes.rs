//! Which address does what, and what every request passes through.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{delete, get, patch, post};
use prometheus::{Encoder, Registry, TextEncoder};

use super::answer::{IdForm, json};
use super::auth::{Access, admit};
use super::codes::Fault;
use super::extract::{MAX_BODY, QueryOf};
use super::log_schema::{AuditJson, NodeJson, ReadyJson};
use super::problem::Problem;
use super::schema::ListJson;
use super::types::Newest;
use super::{REQUEST_TIMEOUT, access, instances, issue, migrations, types};
use crate::domain::{Error, ErrorCode};
use crate::service::admin::AdminApi;

/// What the handlers share.
pub(super) struct Shared<A> {
    pub(super) api: Arc<A>,
    pub(super) access: Access,
    registry: Registry,
}

impl<A> Clone for Shared<A> {
    fn clone(&self) -> Self {
        Shared {
            api: self.api.clone(),
            access: self.access.clone(),
            registry: self.registry.clone(),
        }
    }
}

/// Every address of the HTTP side.
pub(super) fn router<A: AdminApi>(api: Arc<A>, registry: Registry, access: Access) -> Router {
    let admin = Router::new()
        .route("/types", get(types::list::<A>).post(types::create::<A>))
        .route("/types/{name}", get(types::show::<A>).patch(types::alter::<A>))
        .route("/types/{name}/retire", post(types::retire::<A>))
        .route("/types/{name}/restore", post(types::restore::<A>))
        .route("/types/{name}/rotate-key", post(types::rotate_key::<A>))
        .route("/types/{name}/ids", post(issue::ids::<A>))
        .route("/types/{name}/lease", post(issue::lease::<A>))
        .route("/types/{name}/decode", get(issue::decode::<A>))
        .route("/types/{name}/ranges", get(types::ranges::<A>))
        .route(
            "/types/{name}/migration",
            get(migrations::plan::<A>).post(migrations::migrate::<A>).delete(migrations::undo::<A>),
        )
        .route("/migrations", get(migrations::list::<A>))
        .route("/redis-instances", get(instances::list::<A>).post(instances::add::<A>))
        .route("/redis-instances/test", post(instances::test::<A>))
        .route("/redis-instances/{name}", delete(instances::remove::<A>))
        .route(
            "/redis-instances/{name}/drain",
            post(migrations::drain::<A>).delete(migrations::end_drain::<A>),
        )
        .route("/access", get(access::about::<A>))
        .route("/setup", post(access::set_up::<A>))
        .route(
            "/session",
            get(access::session).post(access::log_in::<A>).delete(access::log_out::<A>),
        )
        .route("/session/password", post(access::change_password::<A>))
        .route("/accounts", get(access::accounts::<A>).post(access::add_account::<A>))
        .route(
            "/accounts/{name}",
            patch(access::change_account::<A>).delete(access::remove_account::<A>),
        )
        .route("/sessions", get(access::sessions::<A>))
        .route("/sessions/{name}", delete(access::end_session::<A>))
        .route("/tokens", get(access::tokens::<A>).post(access::add_token::<A>))
        .route("/tokens/{name}", delete(access::revoke_token::<A>))
        .route("/audit", get(audit::<A>))
        .route("/node", get(node::<A>))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        // Last, so that it stands before all of the above: who is not let in cannot
        // even tell an unknown address from a known one.
        .layer(middleware::from_fn_with_state(access.clone(), admit));
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready::<A>))
        .route("/metrics", get(metrics::<A>))
        .nest("/api/v1", admin)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn(deadline))
        .with_state(Shared { api, access, registry })
}

/// How many rows an answer may hold: 1 to 1 000, else 100.
pub(super) fn limit(wanted: Option<u32>) -> Result<u32, Error> {
    let limit = wanted.unwrap_or(100);
    if (1..=1_000).contains(&limit) {
        Ok(limit)
    } else {
        Err(Error::invalid(
            "limit",
            format!("limit {limit} is out of range: it must be from 1 to 1000"),
        ))
    }
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

async fn no_route(uri: Uri) -> Problem {
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

/// Says what is here. The admin page comes later.
async fn page() -> Html<&'static str> {
    Html(
        "<!doctype html><html lang=\"en\"><title>IdGen</title><h1>IdGen</h1><ul>\
         <li><a href=\"/healthz\">/healthz</a>: the process lives\
         <li><a href=\"/readyz\">/readyz</a>: the node takes requests\
         <li><a href=\"/metrics\">/metrics</a>: Prometheus metrics\
         <li>/api/v1: the admin API, with a token (docs/admin-api.md)</ul></html>\n",
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
