//! tinyid: ids as a list, or a range for the client to hand out by itself. Status 200
//! whatever happens: a failure is a code, or an empty body on the simple routes.

use std::fmt::Write;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::answer::IdForm;
use super::callers::{By, Callers};
use super::params::{Params, push_id, whole};
use super::{App, SPRING_JSON, SPRING_TEXT, Shared, answer, spring_error};
use crate::domain::{Error, ErrorCode, IdRange};
use crate::service::admin::AdminApi;
use crate::service::api::{MAX_COUNT, MAX_LEASE, MAX_LEASE_MS, Order};
use crate::service::live::api::LiveApi;

/// At which share of a range tinyid's client fetches the next one, in percent.
const LOADING_PERCENT: i128 = 20;
/// Ids that are written where calls are served; more of them are written beside.
const AT_A_STRETCH: i64 = 1_000;

/// Why there is nothing.
enum No {
    /// The token may not have ids of the type, or there is no such type.
    Token,
    /// Everything else.
    Failed(Error),
    /// What is refused before anybody looks at it.
    Answered(Box<Response>),
}

impl From<Error> for No {
    fn from(error: Error) -> Self {
        match error.code {
            ErrorCode::UnknownType | ErrorCode::PermissionDenied => No::Token,
            _ => No::Failed(error),
        }
    }
}

/// A call whose token is good.
struct Call {
    name: String,
    /// Ids that are wanted; at most [`MAX_COUNT`], and none where it is below 1.
    batch: i64,
    form: IdForm,
    by: By,
}

/// A range as tinyid's client takes it: the ids in `(current, max]` whose remainder by
/// `delta` is `remainder`.
struct Segment {
    max: i64,
    loading: i64,
    current: i64,
    delta: i64,
    remainder: i64,
}

/// `/tinyid/id/nextId`.
pub(super) async fn next_id<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    let (call, ids) = match ids(&app.0, request).await {
        Ok(found) => found,
        Err(no) => return no.in_json(),
    };
    beside(call.batch, move || {
        let mut text = "{\"data\":[".to_owned();
        push_ids(&mut text, &ids, call.form);
        text.push_str("],\"code\":200,\"message\":\"\"}");
        answer(StatusCode::OK, SPRING_JSON, text)
    })
    .await
}

/// `/tinyid/id/nextIdSimple`.
pub(super) async fn next_id_simple<A: AdminApi + LiveApi>(
    app: App<A>,
    request: Request,
) -> Response {
    let (call, ids) = match ids(&app.0, request).await {
        Ok(found) => found,
        Err(no) => return no.in_text(),
    };
    beside(call.batch, move || {
        let mut text = String::new();
        push_ids(&mut text, &ids, IdForm::Number);
        answer(StatusCode::OK, SPRING_TEXT, text)
    })
    .await
}

/// `/tinyid/id/nextSegmentId`.
pub(super) async fn next_segment<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    let (form, segment) = match segment(&app.0, request).await {
        Ok(found) => found,
        Err(no) => return no.in_json(),
    };
    let mut text = "{\"data\":{\"maxId\":".to_owned();
    push_id(&mut text, segment.max, form);
    text.push_str(",\"loadingId\":");
    push_id(&mut text, segment.loading, form);
    text.push_str(",\"currentId\":");
    push_id(&mut text, segment.current, form);
    let Segment { delta, remainder, .. } = segment;
    let _ = write!(
        text,
        ",\"delta\":{delta},\"remainder\":{remainder}}},\"code\":200,\"message\":\"\"}}"
    );
    answer(StatusCode::OK, SPRING_JSON, text)
}

/// `/tinyid/id/nextSegmentIdSimple`, which tinyid's own client calls.
pub(super) async fn next_segment_simple<A: AdminApi + LiveApi>(
    app: App<A>,
    request: Request,
) -> Response {
    match segment(&app.0, request).await {
        Ok((_, Segment { current, loading, max, delta, remainder })) => {
            let text = format!("{current},{loading},{max},{delta},{remainder}");
            answer(StatusCode::OK, SPRING_TEXT, text)
        }
        Err(no) => no.in_text(),
    }
}

async fn ids<A: AdminApi + LiveApi>(
    app: &Shared<A>,
    request: Request,
) -> Result<(Call, Vec<IdRange>), No> {
    let call = admitted(app, request).await?;
    if call.batch < 1 {
        return Ok((call, Vec::new()));
    }
    let pass = call.by.pass(&app.access, &call.name, call.batch).await;
    let pass = pass.map_err(|error| refused(app, error))?;
    let ids = match call.batch {
        // The way of nearly every call: nothing waits where the id is at hand.
        1 => app.api.next_id(&call.name).await.map(|id| Vec::from_iter(IdRange::new(id, id + 1))),
        count => app.api.next_ids(&call.name, Order::of(count)).await,
    };
    pass.settle(if ids.is_ok() { call.batch as u64 } else { 0 });
    app.count(&app.metrics.tinyid, call.batch as usize, &ids);
    Ok((call, ids?))
}

/// Ids for the client to hand out by itself, as long as it likes: nobody else ever gets
/// them, so the time of the lease only has to be a legal one.
async fn segment<A: AdminApi + LiveApi>(
    app: &Shared<A>,
    request: Request,
) -> Result<(IdForm, Segment), No> {
    let call = admitted(app, request).await?;
    let settings = app.api.settings(&call.name).await?;
    // What tinyid calls the step: docs/import.md makes it the shortest range.
    let count = settings.min_range.min(MAX_LEASE);
    let pass = call.by.pass(&app.access, &call.name, count).await;
    let pass = pass.map_err(|error| refused(app, error))?;
    let lease = app.api.lease_range(&call.name, count, MAX_LEASE_MS).await;
    let length = lease.as_ref().map_or(0, |lease| lease.count);
    pass.settle(length.unsigned_abs());
    app.count(&app.metrics.tinyid, length as usize, &lease);
    let lease = lease?;
    let (delta, current) = (lease.step, lease.first - lease.step);
    let max = current + lease.count * delta;
    let until_loading = i128::from(max - current) * LOADING_PERCENT / 100;
    let loading = current + until_loading as i64;
    let remainder = lease.first.rem_euclid(delta);
    Ok((call.form, Segment { max, loading, current, delta, remainder }))
}

/// Reads a call and checks its token.
async fn admitted<A: AdminApi + LiveApi>(app: &Shared<A>, request: Request) -> Result<Call, No> {
    let (parts, body) = request.into_parts();
    let body =
        whole(body).await.map_err(|problem| No::Answered(Box::new(problem.into_response())))?;
    let params = Params::of(&parts, &body);
    let batch = match params.get("batchSize").as_deref().map(str::trim) {
        None | Some("") => 1,
        Some(text) => text.parse::<i32>().map_err(|_| mistyped(app, &parts))?,
    };
    let mut call = Call {
        name: params.get("bizType").unwrap_or_default().into_owned(),
        batch: i64::from(batch).min(MAX_COUNT),
        form: params.form(),
        by: Callers::anybody(&parts),
    };
    if !app.config.tinyid_tokens {
        return Ok(call);
    }
    let token = params.get("token").unwrap_or_default();
    if call.name.is_empty() || token.is_empty() {
        app.metrics.tinyid.refused.inc();
        return Err(No::Token);
    }
    call.by =
        app.callers.with_token(&app.access, &token, &parts).await.map_err(|e| refused(app, e))?;
    Ok(call)
}

/// Counts a call that ends before it asks for ids.
fn refused<A: AdminApi + LiveApi>(app: &Shared<A>, error: Error) -> No {
    app.count(&app.metrics.tinyid, 0, &Err::<(), _>(error.clone()));
    No::from(error)
}

/// What Spring says of a number that is none.
fn mistyped<A: AdminApi>(app: &Shared<A>, parts: &Parts) -> No {
    No::Answered(Box::new(spring_error(
        app.api.now_ms(),
        StatusCode::BAD_REQUEST,
        "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException",
        "batchSize is no whole number of 32 bits",
        parts.uri.path(),
        None,
    )))
}

impl No {
    fn in_json(self) -> Response {
        let (code, message) = match self {
            No::Token => (5, "token is error".to_owned()),
            No::Failed(error) => (6, error.message),
            No::Answered(response) => return *response,
        };
        // serde_json would sort the fields.
        let text = format!("{{\"data\":null,\"code\":{code},\"message\":{}}}", json!(message));
        answer(StatusCode::OK, SPRING_JSON, text)
    }

    fn in_text(self) -> Response {
        match self {
            No::Answered(response) => *response,
            No::Token | No::Failed(_) => answer(StatusCode::OK, SPRING_TEXT, String::new()),
        }
    }
}

fn push_ids(text: &mut String, ranges: &[IdRange], form: IdForm) {
    for (n, id) in ranges.iter().flat_map(|range| range.start()..range.end()).enumerate() {
        if n > 0 {
            text.push(',');
        }
        push_id(text, id, form);
    }
}

/// 100 000 ids take several milliseconds to write: not where calls are served.
async fn beside(count: i64, write: impl FnOnce() -> Response + Send + 'static) -> Response {
    if count <= AT_A_STRETCH {
        return write();
    }
    let written = tokio::task::spawn_blocking(write).await;
    written.unwrap_or_else(|_| {
        No::Failed(Error::new(ErrorCode::Internal, "the answer could not be written")).in_json()
    })
}
