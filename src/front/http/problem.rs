//! Errors as problem details (RFC 9457).

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::codes::{Fault, of_code, of_fault};
use super::schema::ProblemJson;
use crate::domain::Error;

/// The media type of problem details.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// A failed request, ready to be sent. Boxed, because it travels in the error
/// of small functions.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    body: Box<ProblemJson>,
    /// When to come again, in seconds.
    retry_after: u64,
}

impl Problem {
    fn new(
        code: &str,
        status: StatusCode,
        title: &str,
        detail: String,
        field: Option<String>,
        retriable: bool,
    ) -> Self {
        Problem {
            status,
            retry_after: 1,
            body: Box::new(ProblemJson {
                kind: format!("urn:idgen:error:{code}"),
                title: title.to_owned(),
                status: status.as_u16(),
                detail,
                code: code.to_owned(),
                field,
                retriable,
            }),
        }
    }

    /// What went wrong, for a person.
    pub(super) fn detail(&self) -> &str {
        &self.body.detail
    }

    /// A fault before the service; `detail` says what to do.
    pub(super) fn fault(fault: Fault, detail: impl Into<String>) -> Self {
        let (code, status, title) = of_fault(fault);
        Problem::new(code, status, title, detail.into(), None, false)
    }

    /// Too many attempts; another one may be made after `wait`.
    pub(super) fn rate_limited(wait: Duration) -> Self {
        let (code, status, title) = of_fault(Fault::RateLimited);
        let seconds = wait.as_millis().div_ceil(1_000).max(1) as u64;
        let detail = format!("too many attempts failed; the next one may be made in {seconds} s");
        let problem = Problem::new(code, status, title, detail, None, true);
        Problem { retry_after: seconds, ..problem }
    }

    /// An argument that does not have the form that the interface wants.
    pub(super) fn malformed(field: Option<String>, detail: impl Into<String>) -> Self {
        let code = crate::domain::ErrorCode::InvalidArgument;
        let (status, title) = of_code(code);
        Problem::new(code.as_str(), status, title, detail.into(), field, false)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (status, title) = of_code(error.code);
        Problem::new(
            error.code.as_str(),
            status,
            title,
            error.message,
            error.field.map(str::to_owned),
            error.code.is_retriable(),
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Text and numbers alone always serialise.
        let text = serde_json::to_string(&self.body).unwrap_or_default();
        let mut response = (self.status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if self.body.retriable {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
