//! The HTTP routes of other systems, so that their clients need another address and
//! nothing else: Leaf, tinyid and S0, the Leaf-segment service in Go (docs/compat.md).
//!
//! Paths, methods, parameters, shapes, status codes and content types are theirs, and so
//! is what a failure looks like. The rules of ids are ours: no id twice, a clear failure
//! instead of a doubtful id. Each system is off until the configuration turns it on.
//!
//! These routes are called at every insert. So they pass none of the layers of the admin
//! API, and can have a port of their own, with more connections that live longer, where
//! the admin API is not ([`BoundHttp::serve_compat`](super::BoundHttp::serve_compat)).
//! They are other systems' contracts and no part of `idl/openapi.json`.

mod callers;
mod leaf;
mod params;
mod s0;
#[cfg(test)]
mod tests;
mod tinyid;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, put};
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

use super::auth::Access;
use super::routes::no_route;
use crate::domain::{Error, ErrorCode};
use crate::service::admin::AdminApi;
use crate::service::live::api::LiveApi;
use callers::Callers;

/// Which routes are served, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompatConfig {
    /// Those of Leaf.
    pub leaf: bool,
    /// Those of tinyid.
    pub tinyid: bool,
    /// Whether its tokens are checked.
    pub tinyid_tokens: bool,
    /// Those of S0.
    pub s0: bool,
    /// Whether those that change types need no token.
    pub s0_open: bool,
}

impl CompatConfig {
    /// Whether any is served.
    pub fn is_any(&self) -> bool {
        self.leaf || self.tinyid || self.s0
    }
}

/// `idgen_compat_requests_total{system,result}`. `refused`: by its token.
#[derive(Clone, Debug)]
pub struct CompatMetrics {
    leaf: Counters,
    tinyid: Counters,
    s0: Counters,
}

/// Those of one system, found once.
#[derive(Clone, Debug)]
struct Counters {
    served: IntCounter,
    refused: IntCounter,
    failed: IntCounter,
}

impl CompatMetrics {
    /// Registers them.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let opts = Opts::new(
            "idgen_compat_requests_total",
            "Requests on the routes of other systems, by what became of them.",
        );
        let all = IntCounterVec::new(opts, &["system", "result"])?;
        registry.register(Box::new(all.clone()))?;
        let of = |system: &str| Counters {
            served: all.with_label_values(&[system, "served"]),
            refused: all.with_label_values(&[system, "refused"]),
            failed: all.with_label_values(&[system, "failed"]),
        };
        Ok(CompatMetrics { leaf: of("leaf"), tinyid: of("tinyid"), s0: of("s0") })
    }
}

/// What the routes are made of.
#[derive(Clone)]
pub struct Compat {
    /// Which are served.
    pub config: CompatConfig,
    /// What is counted.
    pub metrics: CompatMetrics,
}

/// What the handlers share.
struct Shared<A> {
    api: Arc<A>,
    access: Access,
    config: CompatConfig,
    metrics: CompatMetrics,
    callers: Callers,
}

type App<A> = State<Arc<Shared<A>>>;

impl<A: AdminApi + LiveApi> Shared<A> {
    /// The next id of the type called `name`, for whoever makes the call.
    async fn next_id(&self, parts: &Parts, name: &str) -> Result<i64, Error> {
        let by = self.callers.of(&self.access, parts).await?;
        let pass = by.pass(&self.access, name, 1).await?;
        let id = self.api.next_id(name).await;
        pass.settle(u64::from(id.is_ok()));
        id
    }

    /// Counts a call for `ids` ids.
    fn count<T>(&self, counters: &Counters, ids: usize, result: &Result<T, Error>) {
        match result {
            Ok(_) => {
                counters.served.inc();
                self.api.served(Ok(ids as u64));
            }
            Err(error) => {
                match error.code {
                    ErrorCode::PermissionDenied => counters.refused.inc(),
                    _ => counters.failed.inc(),
                }
                self.api.served(Err(error));
            }
        }
    }
}

/// The routes that `compat` turns on; `None` without any.
pub(super) fn router<A: AdminApi + LiveApi>(
    api: Arc<A>,
    access: Access,
    compat: Compat,
) -> Option<Router> {
    let Compat { config, metrics } = compat;
    if !config.is_any() {
        return None;
    }
    let mut router = Router::new();
    if config.leaf {
        // Spring takes a slash at the end for none.
        router = router
            .route("/api/segment/get/{key}", any(leaf::segment::<A>))
            .route("/api/segment/get/{key}/", any(leaf::segment::<A>))
            .route("/api/snowflake/get/{key}", any(leaf::snowflake::<A>))
            .route("/api/snowflake/get/{key}/", any(leaf::snowflake::<A>))
            .route("/decodeSnowflakeId", any(leaf::decode::<A>))
            .route("/decodeSnowflakeId/", any(leaf::decode::<A>));
    }
    if config.tinyid {
        for end in ["", "/"] {
            let path = |name: &str| format!("/tinyid/id/{name}{end}");
            router = router
                .route(&path("nextId"), any(tinyid::next_id::<A>))
                .route(&path("nextIdSimple"), any(tinyid::next_id_simple::<A>))
                .route(&path("nextSegmentId"), any(tinyid::next_segment::<A>))
                .route(&path("nextSegmentIdSimple"), any(tinyid::next_segment_simple::<A>));
        }
    }
    if config.s0 {
        router = router
            .route("/api/leaf", get(s0::next_id::<A>).post(s0::create::<A>))
            .route("/api/leaf/step", put(s0::set_step::<A>))
            .route("/api/leaf/init/cache", put(s0::warm::<A>));
    }
    let callers = Callers::default();
    Some(router.with_state(Arc::new(Shared { api, access, config, metrics, callers })))
}

/// The same on a port of their own, with what a load balancer asks.
pub(super) fn alone<A: AdminApi + LiveApi>(api: Arc<A>, access: Access, compat: Compat) -> Router {
    let health = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready::<A>))
        .with_state(api.clone());
    let routes = router(api, access, compat).unwrap_or_default();
    routes.merge(health).fallback(no_route)
}

/// Only whether: why is for operators.
async fn ready<A: AdminApi>(State(api): State<Arc<A>>) -> (StatusCode, &'static str) {
    match api.node_status().await.ready {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
    }
}

const SPRING_JSON: HeaderValue = HeaderValue::from_static("application/json;charset=UTF-8");
const SPRING_TEXT: HeaderValue = HeaderValue::from_static("text/plain;charset=UTF-8");

/// An answer that nothing on the way may keep: the next caller must get another id.
fn answer(status: StatusCode, kind: HeaderValue, body: String) -> Response {
    let no_store = HeaderValue::from_static("no-store");
    (status, [(CONTENT_TYPE, kind), (CACHE_CONTROL, no_store)], body).into_response()
}

/// What Spring Boot 1.5, under Leaf and tinyid, makes of an exception.
#[derive(serde::Serialize)]
struct SpringError<'a> {
    timestamp: i64,
    status: u16,
    error: &'a str,
    exception: &'a str,
    message: &'a str,
    path: &'a str,
    /// What is behind it here. Spring has no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// The answer to a failure in the form of Spring Boot.
fn spring_error(
    now_ms: i64,
    status: StatusCode,
    exception: &str,
    message: &str,
    path: &str,
    detail: Option<&str>,
) -> Response {
    let error = status.canonical_reason().unwrap_or_default();
    let (timestamp, status_code) = (now_ms, status.as_u16());
    let body =
        SpringError { timestamp, status: status_code, error, exception, message, path, detail };
    // Texts and numbers alone always serialise.
    answer(status, SPRING_JSON, serde_json::to_string(&body).unwrap_or_default())
}
