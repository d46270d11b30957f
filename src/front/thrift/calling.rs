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
    /// The last token that came with a call, and whose it is.
    shown: Option<Box<Shown>>,
}

struct Shown {
    token: String,
    caller: Result<Arc<KnownCaller>, Error>,
    at: Instant,
}

impl<'a> CallerOf<'a> {
    /// Nobody said so yet on the connection from `from`.
    pub(super) fn new(access: Option<&'a Arc<AccessControl>>, from: IpAddr) -> Self {
        CallerOf { access, from, caller: None, shown: None }
    }

    /// From here on the calls are of the caller with this token; after a failure of
    /// nobody.
    pub(super) async fn authenticate(&mut self, request: Request<'_>) -> Result<(), Error> {
        self.caller = None;
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
            None => Ok(self.caller.clone()),
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
        let calling = |caller| Calling { access: self.access, caller, now, from: self.from };
        let (Some(token), Some(access)) = (self.shown_in(method, request), self.access) else {
            return calling(Ok(self.caller.clone()));
        };
        // What is no text is no token.
        let token = String::from_utf8_lossy(token).into_owned();
        let caller = access.authenticate(&token, self.from).await;
        let calling = calling(caller.clone().map(Some));
        self.shown = Some(Box::new(Shown { token, caller, at: now }));
        calling
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
