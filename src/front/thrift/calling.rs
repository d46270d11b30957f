//! Who calls on a connection.
//!
//! The connection keeps who said so by `authenticate`; a client that only knows the
//! original methods shows a token as `caller` of each call instead, and the connection
//! remembers the last one, so that it is looked up once.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::Error;
use crate::front::tls::PeerIdentity;
use crate::service::access::callers::{Call, KnownCaller, Pass, Want};
use crate::service::access::{AccessControl, TOKEN_PREFIX};

use super::method::Method;
use super::request::Request;

/// How long a token that was refused is not looked up again on a connection.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Who makes a call.
#[derive(Clone)]
pub struct Calling<'a> {
    /// `None` where nobody asks who calls.
    access: Option<&'a Arc<AccessControl>>,
    caller: Result<Option<Arc<KnownCaller>>, Error>,
    now: Instant,
    from: IpAddr,
}

impl Calling<'_> {
    /// Where nobody asks.
    pub fn unasked(now: Instant, from: IpAddr) -> Self {
        Calling { access: None, caller: Ok(None), now, from }
    }

    /// The name of who calls, if that is known.
    pub fn name(&self) -> Option<&str> {
        self.caller.as_ref().ok()?.as_ref().map(|caller| caller.name())
    }

    /// Lets a call about the type called `name` pass.
    #[inline]
    pub async fn pass(&self, name: &str, want: Want) -> Result<Pass<'_>, Error> {
        let Some(access) = self.access else { return Ok(Pass::FREE) };
        let caller = self.caller.as_ref().map_err(Clone::clone)?;
        access.admit(caller.as_ref(), Call { name, want, now: self.now, from: self.from }).await
    }
}

/// What a connection knows of its caller.
pub(super) struct CallerOf<'a> {
    access: Option<&'a Arc<AccessControl>>,
    from: IpAddr,
    caller: Option<Arc<KnownCaller>>,
    /// The name in the certificate of the connection, until it is known whose it is.
    certificate: Option<PeerIdentity>,
    /// When that was asked last; nobody had it.
    asked: Option<Instant>,
    /// The last token that came with a call, and whose it is.
    shown: Option<Box<Shown>>,
}

struct Shown {
    token: String,
    caller: Result<Arc<KnownCaller>, Error>,
    at: Instant,
}

impl<'a> CallerOf<'a> {
    /// Nobody said so yet on the connection from `from`, but perhaps a certificate.
    pub(super) fn new(
        access: Option<&'a Arc<AccessControl>>,
        from: IpAddr,
        certificate: Option<PeerIdentity>,
    ) -> Self {
        let certificate = certificate.filter(|_| access.is_some());
        CallerOf { access, from, caller: None, certificate, asked: None, shown: None }
    }

    /// The name of who calls, for the log; empty if that is not known.
    pub(super) fn name(&self) -> &str {
        let certificate = self.certificate.as_ref().map(|identity| &*identity.name);
        self.caller.as_ref().map(|caller| caller.name()).or(certificate).unwrap_or_default()
    }

    /// From here on the calls are of the caller with this token; after a failure of
    /// nobody.
    pub(super) async fn authenticate(&mut self, request: Request<'_>) -> Result<(), Error> {
        self.caller = None;
        // From here on a token says who calls.
        self.certificate = None;
        let token = request.filled(1, "token")?;
        if let Some(access) = self.access {
            self.caller = Some(access.authenticate(token, self.from).await?);
        }
        Ok(())
    }

    /// Who makes this call, if that needs no look-up.
    pub(super) fn known(
        &self,
        method: Method,
        request: &Request<'_>,
        now: Instant,
    ) -> Option<Calling<'a>> {
        let caller = match self.shown_in(method, request) {
            None if self.is_asked(now) => Ok(self.caller.clone()),
            None => return None,
            Some(token) => match &self.shown {
                Some(shown) if shown.token.as_bytes() == token => match &shown.caller {
                    Ok(caller) => Ok(Some(caller.clone())),
                    Err(error) if now < shown.at + REFUSED_FOR => Err(error.clone()),
                    Err(_) => return None,
                },
                _ => return None,
            },
        };
        Some(Calling { access: self.access, caller, now, from: self.from })
    }

    /// Who makes this call.
    pub(super) async fn find(
        &mut self,
        method: Method,
        request: &Request<'_>,
        now: Instant,
    ) -> Calling<'a> {
        let (asker, from) = (self.access, self.from);
        let calling = |caller| Calling { access: asker, caller, now, from };
        let (Some(token), Some(access)) = (self.shown_in(method, request), asker) else {
            return calling(self.by_certificate(now).await);
        };
        // What is no text is no token.
        let token = String::from_utf8_lossy(token).into_owned();
        let caller = access.authenticate(&token, self.from).await;
        let calling = calling(caller.clone().map(Some));
        self.shown = Some(Box::new(Shown { token, caller, at: now }));
        calling
    }

    /// Whether the certificate need not be looked up at `now`.
    fn is_asked(&self, now: Instant) -> bool {
        self.certificate.is_none() || self.asked.is_some_and(|at| now < at + REFUSED_FOR)
    }

    /// Whose the certificate is. Where that cannot be known now, and need not be, nobody's.
    async fn by_certificate(&mut self, now: Instant) -> Result<Option<Arc<KnownCaller>>, Error> {
        if let (Some(PeerIdentity { name }), Some(access)) = (&self.certificate, self.access)
            && !self.is_asked(now)
        {
            match access.caller_by_certificate(name).await {
                Ok(Some(caller)) => {
                    self.caller = Some(caller);
                    self.certificate = None;
                }
                Err(error) if access.tokens_are_required() => return Err(error),
                Ok(None) | Err(_) => self.asked = Some(now),
            }
        }
        Ok(self.caller.clone())
    }

    /// The token in the arguments of an original method.
    fn shown_in<'r>(&self, method: Method, request: &Request<'r>) -> Option<&'r [u8]> {
        if !matches!(method, Method::GetId | Method::GetStrId | Method::AddNewId) {
            return None;
        }
        self.access?;
        let text = request.args.bytes(1, request.message)?;
        text.starts_with(TOKEN_PREFIX.as_bytes()).then_some(text)
    }
}
