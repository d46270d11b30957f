//! Who may use the admin API, and who it was.
//!
//! Every request shows the token of the cluster as `Authorization: Bearer …`.
//! It is compared in a time that does not depend on where it differs.

use std::fmt;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::codes::Fault;
use super::problem::Problem;
use crate::domain::{Error, ErrorCode};

/// What a request to the admin API must show.
#[derive(Clone, PartialEq, Eq)]
pub enum Access {
    /// This token. Must not be empty; its rule is the configuration's.
    Token(String),
    /// No request is let in; each is answered 403 with this text, which says
    /// how to open the API.
    Closed(String),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Token(_) => f.write_str("Token(***)"),
            Access::Closed(how) => write!(f, "Closed({how:?})"),
        }
    }
}

impl Access {
    /// Whether a request with these headers may pass.
    fn check(&self, parts: &axum::http::HeaderMap) -> Result<(), Problem> {
        let token = match self {
            Access::Closed(how) => {
                return Err(Error::new(ErrorCode::PermissionDenied, how.clone()).into());
            }
            Access::Token(token) => token.as_bytes(),
        };
        let shown = parts.get(AUTHORIZATION).map(|value| value.as_bytes());
        let Some((scheme, shown)) = shown.and_then(|s| s.split_at_checked(7)) else {
            return Err(Problem::fault(
                Fault::Unauthenticated,
                "send the admin token in the header Authorization: Bearer TOKEN",
            ));
        };
        let right = scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(shown.ct_eq(token));
        // An empty token would let in everybody who sends none.
        if right && !token.is_empty() {
            Ok(())
        } else {
            Err(Problem::fault(
                Fault::Unauthenticated,
                "this is not the admin token of the node",
            ))
        }
    }
}

/// Lets a request pass only with the token.
pub(super) async fn require_token(
    State(access): State<Access>,
    request: Request,
    next: Next,
) -> Response {
    match access.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Who asks, for the audit log: the header `X-Idgen-Actor`, cut to 128
/// characters, or `admin token` where it is missing or not printable.
pub(super) struct Actor(pub(super) String);

impl Actor {
    const MAX: usize = 128;

    fn from_bytes(value: Option<&[u8]>) -> Self {
        let text = value.and_then(|v| std::str::from_utf8(v).ok());
        let text: String = text.unwrap_or_default().chars().take(Self::MAX).collect();
        let text = text.trim();
        if text.is_empty() || text.chars().any(char::is_control) {
            Actor("admin token".to_owned())
        } else {
            Actor(text.to_owned())
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let value = parts.headers.get("x-idgen-actor");
        Ok(Actor::from_bytes(value.map(|v| v.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_by_cases() {
        let long = "x".repeat(200);
        for (header, expected) in [
            (None, "admin token"),
            (Some(&b""[..]), "admin token"),
            (Some(b"  "), "admin token"),
            (Some(b"a\x7fb"), "admin token"),
            (Some(b"\xff\xfe"), "admin token"),
            (Some(b" alice "), "alice"),
            (Some("Zoë".as_bytes()), "Zoë"),
            (Some(long.as_bytes()), &long[..128]),
        ] {
            assert_eq!(Actor::from_bytes(header).0, expected);
        }
    }

    #[test]
    fn an_empty_token_lets_nobody_in() {
        let mut headers = axum::http::HeaderMap::new();
        headers.insert(AUTHORIZATION, "Bearer ".parse().unwrap());
        assert!(Access::Token(String::new()).check(&headers).is_err());
    }
}
