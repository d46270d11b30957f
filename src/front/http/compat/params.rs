//! Parameters as servlets find them: in the query, then in a form that is the body.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;

use super::super::answer::IdForm;
use super::super::codes::Fault;
use super::super::problem::Problem;

/// Longest body, in bytes: the longest description of S0 has 256 characters.
const MAX_BODY: usize = 65_536;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The whole body of a request. Read even where nothing is wanted of it: a server that
/// answers and closes before makes the peer's kernel throw the answer away.
pub(super) async fn whole(body: Body) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let seconds = BODY_TIMEOUT.as_secs();
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // A body that breaks off has nobody left to tell.
        Ok(Err(_)) => Err(Problem::fault(
            Fault::TooLarge,
            format!("the body is longer than the limit of {MAX_BODY} bytes"),
        )),
        Err(_) => {
            Err(Problem::fault(Fault::SlowBody, format!("the body took more than {seconds} s")))
        }
    }
}

/// What a request says by name.
pub(super) struct Params<'a> {
    query: &'a str,
    form: &'a [u8],
}

impl<'a> Params<'a> {
    /// Of a request with this body, which counts where it is declared as a form.
    pub(super) fn of(parts: &'a Parts, body: &'a [u8]) -> Self {
        let kind = parts.headers.get(CONTENT_TYPE).map(|v| v.as_bytes()).unwrap_or_default();
        let form = b"application/x-www-form-urlencoded";
        let is_form = kind.get(..form.len()).is_some_and(|k| k.eq_ignore_ascii_case(form));
        let form = if is_form { body } else { &[] };
        Params { query: parts.uri.query().unwrap_or_default(), form }
    }

    /// The first value of this name.
    pub(super) fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let all = form_urlencoded::parse(self.query.as_bytes());
        let all = all.chain(form_urlencoded::parse(self.form));
        all.into_iter().find_map(|(key, value)| (key == name).then_some(value))
    }

    /// How ids are wanted in JSON: `ids=string` is ours, for JavaScript.
    pub(super) fn form(&self) -> IdForm {
        match self.get("ids").as_deref() {
            Some("string") => IdForm::String,
            _ => IdForm::Number,
        }
    }
}

/// An id in JSON.
pub(super) fn push_id(text: &mut String, id: i64, form: IdForm) {
    use std::fmt::Write;
    let _ = match form {
        IdForm::Number => write!(text, "{id}"),
        IdForm::String => write!(text, "\"{id}\""),
    };
}
