//! What this node knows of credentials, for a moment.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::access::{Credential, SecretHash};
use crate::ports::Known;

/// For how long a look-up counts. Within it, what was revoked through another node
/// still works here.
const FRESH: Duration = Duration::from_secs(1);
/// Most credentials that are known.
const MAX_KNOWN: usize = 10_000;

struct Entry {
    known: Known,
    /// When the store was asked last.
    asked: Instant,
    /// When it ends by itself, if it does. By this node's running clock: its clock of
    /// the day may be wrong.
    ends: Option<Instant>,
}

#[derive(Default)]
struct Held {
    entries: HashMap<SecretHash, Entry>,
    /// Counts what made entries outdated.
    generation: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Cache(Mutex<Held>);

/// What the cache says.
pub(super) enum Found {
    /// This holds.
    Fresh(Known),
    /// Ask the store; this holds if it is away.
    Stale(Option<Known>),
}

impl Cache {
    /// What is known now of a credential, and the generation to [`put`](Self::put)
    /// the answer of the store with.
    pub(super) fn find(&self, secret: &SecretHash, now: Instant) -> (Found, u64) {
        let held = self.held();
        let live = |entry: &&Entry| entry.ends.is_none_or(|ends| now < ends);
        let found = match held.entries.get(secret).filter(live) {
            Some(entry) if now < entry.asked + FRESH => Found::Fresh(entry.known.clone()),
            entry => Found::Stale(entry.map(|entry| entry.known.clone())),
        };
        (found, held.generation)
    }

    /// The store, asked at `asked`, said this.
    pub(super) fn put(
        &self,
        secret: &SecretHash,
        known: Option<&Known>,
        asked: Instant,
        generation: u64,
    ) {
        let mut held = self.held();
        if held.generation != generation {
            // Something was revoked meanwhile: it may have been this.
            return;
        }
        let Some(known) = known else {
            held.entries.remove(secret);
            return;
        };
        if held.entries.len() >= MAX_KNOWN && !held.entries.contains_key(secret) {
            let oldest = held.entries.iter().min_by_key(|(_, entry)| entry.asked);
            if let Some(oldest) = oldest.map(|(secret, _)| secret.clone()) {
                held.entries.remove(&oldest);
            }
        }
        let left = known.credential.expires_ms.map(|at| at.saturating_sub(known.now_ms).max(0));
        let ends = left.and_then(|ms| asked.checked_add(Duration::from_millis(ms as u64)));
        held.entries.insert(secret.clone(), Entry { known: known.clone(), asked, ends });
    }

    /// The store is away: what is known of this counts for a moment longer.
    pub(super) fn keep(&self, secret: &SecretHash, now: Instant) {
        if let Some(entry) = self.held().entries.get_mut(secret) {
            entry.asked = now;
        }
    }

    /// What `is_changed` holds for was changed through this node, and is forgotten.
    /// The rest stays: the store may be away the next moment.
    pub(super) fn forget(&self, is_changed: impl Fn(&Credential) -> bool) {
        let mut held = self.held();
        held.entries.retain(|_, entry| !is_changed(&entry.known.credential));
        held.generation += 1;
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.0.lock().expect("no one panics while holding it")
    }
}
