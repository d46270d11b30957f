//! Who calls these routes, and whether they may have ids of a type.
//!
//! A client of tinyid shows a token as a parameter; the others have none, unless somebody
//! adds a header, or a certificate. A look-up is a call of the store, too much at every
//! insert: so who is known stays known, and the access service keeps that up to date
//! beside the calls. A token that lets nobody in is remembered for a moment, or a client
//! with a wrong one would keep the store busy.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout};

use super::super::auth::{Access, Who, peer};
use crate::domain::{Error, ErrorCode};
use crate::front::tls::PeerIdentity;
use crate::service::access::callers::{Call, KnownCaller, Pass, Refusal, Want};

/// How long a look-up may take. Ids themselves are bounded by the deadline of the service.
const LOOK_UP: Duration = Duration::from_secs(5);
/// How long nobody is asked again for what lets nobody in.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
/// Most callers that are remembered.
const MAX_KNOWN: usize = 10_000;

type Key = [u8; 32];

/// What was found, and when.
type Found = (Option<Arc<KnownCaller>>, Instant);

/// Those that were looked up.
#[derive(Default)]
pub(super) struct Callers(Mutex<HashMap<Key, Found>>);

/// Who makes a call.
pub(super) struct By {
    caller: Option<Arc<KnownCaller>>,
    /// Whoever has the admin token need not be asked.
    is_free: bool,
    from: IpAddr,
}

impl By {
    /// Lets a call for `count` ids of the type called `name` pass. Refused: as
    /// [`AccessControl::admit`](crate::service::access::AccessControl::admit) says.
    pub(super) async fn pass(
        &self,
        access: &Access,
        name: &str,
        count: i64,
    ) -> Result<Pass<'_>, Error> {
        if self.is_free {
            return Ok(Pass::FREE);
        }
        let call = Call { name, want: Want::Ids(count), now: Instant::now(), from: self.from };
        access.control.admit(self.caller.as_ref(), call).await
    }
}

impl Callers {
    /// Who has `token`, whatever it looks like: tinyid's are their users' choice.
    pub(super) async fn with_token(
        &self,
        access: &Access,
        token: &str,
        parts: &Parts,
    ) -> Result<By, Error> {
        let from = peer(&parts.extensions);
        let look_up = async {
            let found = access.control.who_calls(token).await?;
            Ok(found.map(|(_, caller)| caller))
        };
        match self.find("token", token, look_up).await? {
            Some(caller) => Ok(By { caller: Some(caller), is_free: false, from }),
            None => {
                let message = "this token is not valid: it never was, was revoked, or has expired";
                let control = &access.control;
                Err(control.refuse(None, Refusal::BadToken, from, message.to_owned()))
            }
        }
    }

    /// Where nobody asks for a token.
    pub(super) fn anybody(parts: &Parts) -> By {
        By { caller: None, is_free: false, from: peer(&parts.extensions) }
    }

    /// Who says so by a header, or by a certificate; else nobody.
    pub(super) async fn of(&self, access: &Access, parts: &Parts) -> Result<By, Error> {
        let from = peer(&parts.extensions);
        if parts.headers.contains_key(AUTHORIZATION) {
            let who = access.who(&parts.method, &parts.headers, from).await;
            return match who {
                Ok(Who::Token(_, caller)) => Ok(By { caller: Some(caller), is_free: false, from }),
                Ok(_) => Ok(By { caller: None, is_free: true, from }),
                Err(problem) => Err(Error::new(ErrorCode::PermissionDenied, problem.detail())),
            };
        }
        let caller = match parts.extensions.get::<PeerIdentity>() {
            None => None,
            Some(PeerIdentity { name }) => {
                self.find("certificate", name, access.control.caller_by_certificate(name)).await?
            }
        };
        Ok(By { caller, is_free: false, from })
    }

    async fn find(
        &self,
        kind: &str,
        secret: &str,
        look_up: impl Future<Output = Result<Option<Arc<KnownCaller>>, Error>>,
    ) -> Result<Option<Arc<KnownCaller>>, Error> {
        let key = key(kind, secret);
        let now = Instant::now();
        if let Some((caller, at)) = self.held().get(&key)
            && (caller.as_ref().is_some_and(|caller| caller.is_live()) || now < *at + UNKNOWN_FOR)
        {
            return Ok(caller.clone());
        }
        let caller = timeout(LOOK_UP, look_up).await.unwrap_or_else(|_| {
            Err(Error::new(ErrorCode::Deadline, "the token could not be looked up in time"))
        })?;
        let mut held = self.held();
        if held.len() >= MAX_KNOWN {
            held.clear();
        }
        held.insert(key, (caller.clone(), now));
        Ok(caller)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Found>> {
        self.0.lock().expect("no one panics while holding it")
    }
}

/// No secret is kept.
fn key(kind: &str, secret: &str) -> Key {
    Sha256::new().chain_update(kind).chain_update([0]).chain_update(secret).finalize().into()
}
