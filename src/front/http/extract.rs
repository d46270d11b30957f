//! Reads what a request holds, strictly, and answers faults as problem details.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::codes::Fault;
use super::problem::Problem;

/// Longest body, in bytes: a type with the longest description fits when it
/// is plain text.
pub(super) const MAX_BODY: usize = 65_536;
/// Longest body of an import, in bytes.
pub(super) const MAX_IMPORT: usize = 8 * 1024 * 1024;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that is exactly the JSON of `T`.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::fault(
                Fault::MediaType,
                "send the header Content-Type: application/json",
            ));
        }
        let bytes = whole_body(request, state).await?;
        parse(&bytes).map(JsonBody)
    }
}

/// No body is wanted; what is there is read all the same. A server that
/// answers and closes before it has read everything makes the peer's kernel
/// throw the answer away.
pub(super) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        whole_body(request, state).await.map(|_| NoBody)
    }
}

async fn whole_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    // As the addresses have them in the table of routes.
    let path = request.uri().path();
    let is_import = path.ends_with("/imports") || path.ends_with("/imports/tokens");
    let limit = if is_import { MAX_IMPORT } else { MAX_BODY };
    let read = Bytes::from_request(request, state);
    match tokio::time::timeout(BODY_TIMEOUT, read).await {
        Err(_) => Err(Problem::fault(
            Fault::SlowBody,
            format!("the body took more than {} s", BODY_TIMEOUT.as_secs()),
        )),
        Ok(Err(error)) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(Problem::fault(
            Fault::TooLarge,
            format!("the body is longer than the limit of {limit} bytes"),
        )),
        Ok(Err(error)) => Err(Problem::malformed(None, error.body_text())),
        Ok(Ok(bytes)) => Ok(bytes),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = value.and_then(|v| v.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // The parser would take the fields of a list in their order, too.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::malformed(
            None,
            "the body is not JSON, or not an object: it must begin with {",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = field_name(&error.path().to_string());
        let inner = error.into_inner();
        let detail = match (&field, inner.is_data()) {
            (Some(field), true) => format!("body, field {field}: {inner}"),
            (None, true) => format!("body: {inner}"),
            _ => format!("the body is not JSON: {inner}"),
        };
        Problem::malformed(field, detail)
    })?;
    deserializer
        .end()
        .map_err(|error| Problem::malformed(None, format!("the body is not JSON: {error}")))?;
    Ok(value)
}

/// The field of a path such as `max_id` or `options.app_id`, if it names one.
fn field_name(path: &str) -> Option<String> {
    let legal = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(&b));
    // The body as a whole has the path ".".
    let named = !path.is_empty() && !path.starts_with('.') && path.len() <= 64;
    (named && legal).then(|| path.to_owned())
}

/// A query that is exactly that of `T`.
pub(super) struct QueryOf<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(value)) => Ok(QueryOf(value)),
            Err(error) => {
                let text = error.body_text();
                let text =
                    text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
                let field = text.split(": ").next().and_then(field_name);
                Err(Problem::malformed(field, format!("query: {text}")))
            }
        }
    }
}

/// The name in the path.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Name(name)),
            Err(error) => Err(Problem::malformed(
                Some("name".to_owned()),
                format!("name in the path: {}", error.body_text()),
            )),
        }
    }
}
