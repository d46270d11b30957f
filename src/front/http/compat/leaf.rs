//! Leaf: an id as bare text, or status 500 with `Result{id=N, status=EXCEPTION}`.

use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::params::{Params, whole};
use super::{App, SPRING_JSON, SPRING_TEXT, Shared, answer, spring_error};
use crate::domain::calendar::Zone;
use crate::domain::{Error, ErrorCode, Mode};
use crate::service::admin::AdminApi;
use crate::service::live::api::LiveApi;

/// Leaf's epoch, in milliseconds of the Unix epoch.
const EPOCH_MS: i64 = 1_288_834_974_657;
const WORKER_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;

/// The class that Leaf's server throws.
const EXCEPTION: &str = "com.sankuai.inf.leaf.server.exception.LeafServerException";

/// `/api/segment/get/{key}`: the next id of a type of any mode but snowflake.
pub(super) async fn segment<A: AdminApi + LiveApi>(
    app: App<A>,
    Path(key): Path<String>,
    request: Request,
) -> Response {
    serve(&app.0, &key, request, false).await
}

/// `/api/snowflake/get/{key}`: the next id of a snowflake type.
pub(super) async fn snowflake<A: AdminApi + LiveApi>(
    app: App<A>,
    Path(key): Path<String>,
    request: Request,
) -> Response {
    serve(&app.0, &key, request, true).await
}

async fn serve<A: AdminApi + LiveApi>(
    app: &Shared<A>,
    key: &str,
    request: Request,
    of_snowflake: bool,
) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(problem) = whole(body).await {
        return problem.into_response();
    }
    let result = next(app, &parts, key, of_snowflake).await;
    app.count(&app.metrics.leaf, 1, &result);
    match result {
        Ok(id) => answer(StatusCode::OK, SPRING_TEXT, id.to_string()),
        Err(error) => {
            let number = if of_snowflake { snowflake_error(&error) } else { segment_error(&error) };
            let message = format!("Result{{id={number}, status=EXCEPTION}}");
            failed(app, &parts, StatusCode::INTERNAL_SERVER_ERROR, &message, &error.message)
        }
    }
}

async fn next<A: AdminApi + LiveApi>(
    app: &Shared<A>,
    parts: &Parts,
    key: &str,
    of_snowflake: bool,
) -> Result<i64, Error> {
    let mode = app.api.settings(key).await?.mode;
    if (mode == Mode::Snowflake) != of_snowflake {
        let place = if of_snowflake { "segment" } else { "snowflake" };
        return Err(Error::invalid(
            "mode",
            format!("id type {key} is {mode}: its ids are at /api/{place}/get/{key}"),
        ));
    }
    app.next_id(parts, key).await
}

/// Leaf's numbers: -2 no such key, -3 both segments are empty. Its -1, not initialised,
/// cannot be: a node listens after it has started.
fn segment_error(error: &Error) -> i64 {
    match error.code {
        ErrorCode::UnknownType | ErrorCode::Retired | ErrorCode::InvalidArgument => -2,
        _ => -3,
    }
}

/// Leaf's numbers: -3 the clock is behind, -1 no id after waiting. Its -2, interrupted,
/// stands for a key without snowflake ids here, which Leaf does not know.
fn snowflake_error(error: &Error) -> i64 {
    match error.code {
        ErrorCode::UnknownType | ErrorCode::Retired | ErrorCode::InvalidArgument => -2,
        ErrorCode::ClockBackwards => -3,
        _ => -1,
    }
}

fn failed<A: AdminApi>(
    app: &Shared<A>,
    parts: &Parts,
    status: StatusCode,
    message: &str,
    detail: &str,
) -> Response {
    let now_ms = app.api.now_ms();
    spring_error(now_ms, status, EXCEPTION, message, parts.uri.path(), Some(detail))
}

/// What a snowflake id tells, all of it as text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    timestamp: String,
    worker_id: String,
    sequence_id: String,
}

/// `/decodeSnowflakeId`: by Leaf's own layout, whatever types there are.
pub(super) async fn decode<A: AdminApi + LiveApi>(app: App<A>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match whole(body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let Some(text) = Params::of(&parts, &body).get("snowflakeId") else {
        let exception = "org.springframework.web.bind.MissingServletRequestParameterException";
        let message = "Required String parameter 'snowflakeId' is not present";
        let (now_ms, path) = (app.api.now_ms(), parts.uri.path());
        return spring_error(now_ms, StatusCode::BAD_REQUEST, exception, message, path, None);
    };
    let body = match text.parse::<i64>() {
        Ok(id) => serde_json::to_string(&told(id)),
        Err(_) => {
            let why = "snowflakeId is no whole number of 64 bits";
            serde_json::to_string(&serde_json::json!({ "errorMsg": why }))
        }
    };
    // Texts alone always serialise.
    answer(StatusCode::OK, SPRING_JSON, body.unwrap_or_default())
}

fn told(id: i64) -> Told {
    let at_ms = (id >> (WORKER_BITS + SEQUENCE_BITS)) + EPOCH_MS;
    let moment = Zone::parse(None).expect("UTC is a zone").moment(at_ms);
    Told {
        timestamp: format!(
            "{at_ms}({:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03})",
            moment.year,
            moment.month,
            moment.day,
            moment.hour,
            moment.minute,
            moment.second,
            at_ms.rem_euclid(1_000)
        ),
        worker_id: (id >> SEQUENCE_BITS & ((1 << WORKER_BITS) - 1)).to_string(),
        sequence_id: (id & ((1 << SEQUENCE_BITS) - 1)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_decoded_by_the_layout_of_leaf() {
        // 1567733700834 ms, worker 39, sequence 3448.
        let id = (1_567_733_700_834 - EPOCH_MS) << 22 | 39 << 12 | 3_448;
        let found = told(id);
        assert_eq!(found.timestamp, "1567733700834(2019-09-06 01:35:00.834)");
        assert_eq!((found.worker_id.as_str(), found.sequence_id.as_str()), ("39", "3448"));
        let zero = told(0);
        assert_eq!(zero.timestamp, "1288834974657(2010-11-04 01:42:54.657)");
        let below = told(-1);
        assert_eq!((below.worker_id.as_str(), below.sequence_id.as_str()), ("1023", "4095"));
        assert!(told(i64::MIN).timestamp.starts_with("-910188280895("));
    }

    #[test]
    fn errors_have_the_numbers_of_leaf() {
        for code in ErrorCode::ALL {
            let error = Error::new(code, "x");
            let (segment, snowflake) = match code {
                ErrorCode::UnknownType | ErrorCode::Retired | ErrorCode::InvalidArgument => {
                    (-2, -2)
                }
                ErrorCode::ClockBackwards => (-3, -3),
                _ => (-3, -1),
            };
            assert_eq!((segment_error(&error), snowflake_error(&error)), (segment, snowflake));
        }
    }
}
