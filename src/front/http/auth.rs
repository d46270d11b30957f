//! Who asks, and whether they may.
//!
//! A request shows one of: the admin token of the configuration or an API token, both
//! as `Authorization: Bearer …`, or the cookie of a session. Each operation needs a role
//! ([`operations`](super::operations)). What changes something and comes with a cookie must
//! also hold what another page cannot know.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::RequestExt;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use super::codes::Fault;
use super::problem::Problem;
use crate::domain::access::{CredentialKind, Role, in_scope};
use crate::domain::{Error, ErrorCode};
use crate::service::access::callers::{Call, KnownCaller, Pass, Refusal, Want};
use crate::service::access::{AccessControl, Caller, Origin, TOKEN_PREFIX};

/// The admin token of the configuration.
#[derive(Clone, PartialEq, Eq)]
pub enum AdminToken {
    /// This token. Must not be empty; its rule is the configuration's.
    Token(String),
    /// There is none; the text says how to set one.
    Closed(String),
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminToken::Token(_) => f.write_str("Token(***)"),
            AdminToken::Closed(how) => write!(f, "Closed({how:?})"),
        }
    }
}

/// Who is let in.
#[derive(Clone)]
pub struct Access {
    /// The token of the configuration.
    pub admin: AdminToken,
    /// Accounts, sessions and API tokens.
    pub control: Arc<AccessControl>,
    /// Whether browsers may send the cookie over TLS only.
    pub secure_cookies: bool,
}

/// Where a connection comes from; with every request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Who asks.
#[derive(Clone)]
pub(super) enum Who {
    /// Who has the admin token.
    Admin,
    /// Who has an API token, and whom its calls count for.
    Token(Box<Caller>, Arc<KnownCaller>),
    /// A person who logged in, with the proof that a page of ours asks.
    Session(Box<Caller>, String),
}

impl Who {
    pub(super) fn role(&self) -> Role {
        match self {
            Who::Admin => Role::Administer,
            Who::Token(caller, _) | Who::Session(caller, _) => caller.role,
        }
    }

    /// The session or API token.
    pub(super) fn caller(&self) -> Option<&Caller> {
        match self {
            Who::Admin => None,
            Who::Token(caller, _) | Who::Session(caller, _) => Some(caller),
        }
    }
}

impl Access {
    /// The name of the cookie. The long one makes browsers refuse what did not come
    /// over TLS, or from another host.
    pub(super) fn cookie(&self) -> &'static str {
        if self.secure_cookies { "__Host-idgen_session" } else { "idgen_session" }
    }

    /// The value of `Set-Cookie` for the secret of a session; an empty one removes it.
    pub(super) fn set_cookie(&self, secret: &str) -> HeaderValue {
        let age = if secret.is_empty() { 0 } else { 7 * 86_400 };
        let secure = if self.secure_cookies { "; Secure" } else { "" };
        let text = format!(
            "{}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}",
            self.cookie()
        );
        HeaderValue::try_from(text).expect("hexadecimal digits are legal in a header")
    }

    /// Who sends a request with these headers from `from`.
    pub(super) async fn who(
        &self,
        method: &Method,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<Who, Problem> {
        if let Some(shown) = headers.get(AUTHORIZATION) {
            return self.bearer(shown.as_bytes(), from).await;
        }
        let Some(secret) = cookie_of(headers, self.cookie()) else {
            let how = match &self.admin {
                AdminToken::Token(_) => String::new(),
                AdminToken::Closed(how) => format!("; {how}"),
            };
            return Err(unauthenticated(format!(
                "log in, or send a token in the header Authorization: Bearer TOKEN{how}"
            )));
        };
        let caller = self.control.who(CredentialKind::Session, secret).await?;
        let Some(caller) = caller else {
            return Err(unauthenticated("the session has ended: log in again"));
        };
        let csrf = AccessControl::csrf(secret);
        if !matches!(*method, Method::GET | Method::HEAD) {
            let shown = headers.get("x-idgen-csrf").map(|v| v.as_bytes()).unwrap_or_default();
            if !bool::from(shown.ct_eq(csrf.as_bytes())) {
                return Err(denied(
                    "a change with the cookie of a session needs the header X-Idgen-Csrf with \
                     the field csrf of GET /api/v1/session",
                ));
            }
        }
        Ok(Who::Session(Box::new(caller), csrf))
    }

    /// Who asks, for the audit log, where it may change the type called `name`.
    pub(super) async fn operator(&self, parts: &Parts, name: &str) -> Result<String, Problem> {
        let Parts { method, headers, extensions, .. } = parts;
        let who = self.who(method, headers, peer(extensions)).await?;
        if !who.role().includes(Role::Operate) {
            return Err(too_weak(Role::Operate, who.role()));
        }
        match who.caller() {
            Some(caller) if !in_scope(&caller.credential.types, name) => Err(out_of_scope()),
            Some(caller) => Ok(caller.actor()),
            None => Ok(Actor::from_bytes(headers.get("x-idgen-actor").map(|v| v.as_bytes())).0),
        }
    }

    async fn bearer(&self, shown: &[u8], from: IpAddr) -> Result<Who, Problem> {
        let Some((scheme, shown)) = shown.split_at_checked(7) else {
            return Err(unauthenticated("send the header as Authorization: Bearer TOKEN"));
        };
        let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ");
        if is_bearer
            && let AdminToken::Token(token) = &self.admin
            // An empty token would let in everybody who sends none. The time of the
            // comparison does not depend on where they differ.
            && bool::from(shown.ct_eq(token.as_bytes()))
            && !token.is_empty()
        {
            return Ok(Who::Admin);
        }
        let text = std::str::from_utf8(shown).unwrap_or_default();
        if is_bearer && text.starts_with(TOKEN_PREFIX) && text.len() <= 128 {
            if let Some((caller, known)) = self.control.who_calls(text).await? {
                return Ok(Who::Token(Box::new(caller), known));
            }
            let message = "this API token is not valid: it never was, was revoked, has expired, or \
                           its account is closed";
            let refusal = self.control.refuse(None, Refusal::BadToken, from, message.to_owned());
            return Err(unauthenticated(refusal.message));
        }
        match &self.admin {
            AdminToken::Closed(how) => Err(denied(how.clone())),
            AdminToken::Token(_) => {
                Err(unauthenticated("this is neither the admin token of the node nor an API token"))
            }
        }
    }
}

fn unauthenticated(detail: impl Into<String>) -> Problem {
    Problem::fault(Fault::Unauthenticated, detail)
}

fn denied(detail: impl Into<String>) -> Problem {
    Error::new(ErrorCode::PermissionDenied, detail).into()
}

fn too_weak(needed: Role, role: Role) -> Problem {
    denied(format!("this needs the role {needed}; who asks has the role {role}"))
}

fn out_of_scope() -> Problem {
    denied("this token is limited to some types, and the request is not about one of them")
}

/// The value of the first cookie of this name, if it can be a secret of ours.
fn cookie_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|p| p.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    let value = value.trim();
    ((1..=128).contains(&value.len())).then_some(value)
}

/// Lets a request pass whose sender has the role that it needs.
pub(super) async fn admit(
    State((access, needed, for_callers)): State<(Access, Role, bool)>,
    mut request: Request,
    next: Next,
) -> Response {
    match check(&access, needed, for_callers, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn check(
    access: &Access,
    needed: Role,
    for_callers: bool,
    request: &mut Request,
) -> Result<(), Problem> {
    let path = request.extensions().get::<MatchedPath>().map(|path| {
        let path = path.as_str();
        path.strip_prefix("/api/v1").unwrap_or(path).to_owned()
    });
    let from = peer(request.extensions());
    let who = access.who(request.method(), request.headers(), from).await?;
    let denied = |reason, message: String| -> Problem {
        match &who {
            Who::Token(_, known) => access.control.refuse(Some(known), reason, from, message),
            _ => Error::new(ErrorCode::PermissionDenied, message),
        }
        .into()
    };
    let role = who.role();
    let may = role.includes(needed) || for_callers && role == Role::Issue;
    if !may {
        let or = if needed == Role::Issue { " or operate" } else { "" };
        let message = format!("this needs the role {needed}{or}; who asks has the role {role}");
        return Err(denied(Refusal::Role, message));
    }
    if let Some(caller) = who.caller().filter(|caller| !caller.credential.types.is_empty()) {
        let about_type = path.as_deref().is_some_and(|path| path.starts_with("/types/{name}"));
        let name = match about_type {
            true => type_in_path(request).await,
            false => None,
        };
        let about_itself = matches!(path.as_deref(), Some("/session" | "/node"));
        let inside = name.is_some_and(|name| in_scope(&caller.credential.types, &name));
        if !inside && !about_itself {
            let message =
                "this token is limited to some types, and the request is not about one of them";
            return Err(denied(Refusal::Type, message.to_owned()));
        }
    }
    request.extensions_mut().insert(who);
    Ok(())
}

async fn type_in_path(request: &mut Request) -> Option<String> {
    let params = request.extract_parts::<RawPathParams>().await.ok()?;
    params.iter().find(|(key, _)| *key == "name").map(|(_, value)| value.to_owned())
}

/// Where a request comes from.
pub(super) fn peer(extensions: &Extensions) -> IpAddr {
    let peer = extensions.get::<Peer>().map(|peer| peer.0);
    peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Who takes ids: whom they count for, which is nobody but a token.
pub(super) struct Taker {
    known: Option<Arc<KnownCaller>>,
    from: IpAddr,
}

impl Taker {
    /// Lets `count` ids of the type called `name` pass.
    pub(super) async fn pass(
        &self,
        access: &Access,
        name: &str,
        count: i64,
    ) -> Result<Pass<'_>, Error> {
        // Others are people and the admin token, who are let in already.
        if self.known.is_none() {
            return Ok(Pass::FREE);
        }
        let call = Call { name, want: Want::Ids(count), now: Instant::now(), from: self.from };
        access.control.admit(self.known.as_ref(), call).await
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Taker {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let known = match parts.extensions.get::<Who>() {
            Some(Who::Token(_, known)) => Some(known.clone()),
            _ => None,
        };
        Ok(Taker { known, from: peer(&parts.extensions) })
    }
}

/// Who asks, where that is known.
pub(super) struct Asker(pub(super) Who);

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let who = parts.extensions.get::<Who>().cloned();
        who.map(Asker).ok_or_else(|| unauthenticated("log in first"))
    }
}

/// Where a request comes from.
pub(super) struct Sender(pub(super) Origin);

impl<S: Send + Sync> FromRequestParts<S> for Sender {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        Ok(Sender(Origin {
            address: peer(&parts.extensions),
            agent: agent.unwrap_or_default().to_owned(),
        }))
    }
}

/// Who asks, for the audit log: the name of the account, `token NAME`, or for the admin
/// token the header `X-Idgen-Actor`, cut to 128 characters, or `admin token` where it
/// is missing or not printable.
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
        if let Some(caller) = parts.extensions.get::<Who>().and_then(Who::caller) {
            return Ok(Actor(caller.actor()));
        }
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
    fn cookies_by_cases() {
        let long = format!("idgen_session={}", "a".repeat(129));
        for (header, expected) in [
            ("idgen_session=ab", Some("ab")),
            ("other=1; idgen_session=ab; x=y", Some("ab")),
            ("__Host-idgen_session=ab", None),
            ("idgen_session=", None),
            ("idgen_session", None),
            (long.as_str(), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, header.parse().unwrap());
            assert_eq!(cookie_of(&headers, "idgen_session"), expected, "{header:.40}");
        }
    }

    #[tokio::test]
    async fn an_empty_token_lets_nobody_in() {
        let mut access = super::super::fake::access();
        access.admin = AdminToken::Token(String::new());
        assert!(access.bearer(b"Bearer ", IpAddr::V4(Ipv4Addr::LOCALHOST)).await.is_err());
    }
}
