//! Which token may have ids of which type, for a second.
//!
//! A look-up is a call of the store. At every insert that is too much, and all callers of
//! a token would make it at once when the one before is over: so one of them asks, while
//! the others go by the verdict before. A token that lets nobody in is remembered as
//! well, or a client with a wrong one would keep the store busy.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout};

use super::LOOK_UP;
use crate::domain::{Error, ErrorCode};
use crate::service::access::AccessControl;

/// How long a verdict counts before somebody asks again.
const FRESH: Duration = Duration::from_secs(1);
/// Most verdicts; above, those that are not fresh are forgotten.
const MAX_KNOWN: usize = 10_000;
/// A refusal is logged no more often.
const LOG_EVERY: Duration = Duration::from_secs(1);

struct Verdict {
    may: bool,
    /// When the access service was asked last.
    asked: Instant,
    /// Since when somebody asks again.
    asking: Option<Instant>,
}

#[derive(Default)]
struct Held {
    known: HashMap<[u8; 32], Verdict>,
    logged: Option<Instant>,
    /// Refusals that were not logged.
    silent: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Verdicts(Mutex<Held>);

impl Verdicts {
    /// Whether the token with this secret may have ids of the type called `name`.
    pub(super) async fn may(
        &self,
        control: &AccessControl,
        secret: &str,
        name: &str,
    ) -> Result<bool, Error> {
        let key = key(secret, name);
        let now = Instant::now();
        if let Some(may) = self.find(&key, now) {
            return Ok(may);
        }
        let asked = timeout(LOOK_UP, control.may_issue(secret, name)).await;
        let may = asked.unwrap_or_else(|_| {
            Err(Error::new(ErrorCode::Deadline, "the token could not be looked up in time"))
        })?;
        let mut held = self.held();
        if held.known.len() >= MAX_KNOWN {
            held.known.retain(|_, verdict| now < verdict.asked + FRESH);
            if held.known.len() >= MAX_KNOWN {
                held.known.clear();
            }
        }
        held.known.insert(key, Verdict { may, asked: now, asking: None });
        Ok(may)
    }

    /// The verdict, if it is fresh, or somebody else is asking.
    fn find(&self, key: &[u8; 32], now: Instant) -> Option<bool> {
        let mut held = self.held();
        let verdict = held.known.get_mut(key)?;
        let is_asking = verdict.asking.is_some_and(|since| now < since + FRESH);
        if now < verdict.asked + FRESH || is_asking {
            return Some(verdict.may);
        }
        verdict.asking = Some(now);
        None
    }

    /// Logs a refusal, with how many were not logged before.
    pub(super) fn note_refusal(&self, name: &str) {
        let now = Instant::now();
        let mut held = self.held();
        if held.logged.is_some_and(|at| now < at + LOG_EVERY) {
            held.silent += 1;
            return;
        }
        held.logged = Some(now);
        let before = std::mem::take(&mut held.silent);
        drop(held);
        let id_type: String = name.chars().take(128).collect();
        tracing::warn!(
            id_type,
            before,
            "tinyid: a token was refused: it is unknown, revoked, expired, or not for this type"
        );
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().expect("no one panics while holding it")
    }
}

/// No secret is kept.
fn key(secret: &str, name: &str) -> [u8; 32] {
    Sha256::new().chain_update(secret).chain_update([0]).chain_update(name).finalize().into()
}
