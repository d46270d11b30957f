//! What this node knows of credentials, for a moment.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::access::{Credential, SecretHash};
use crate::ports::Known;

/// For how long a look-up counts. Within it, what was revoked through another node
/// still works here.
pub(super) const FRESH: Duration = Duration::from_secs(1);
/// Most credentials that are known.
const MAX_KNOWN: usize = 10_000;

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) known: Known,
    /// When the store was asked last.
    pub(super) asked: Instant,
    /// When it ends by itself, if it does. By this node's running clock: its clock of
    /// the day may be wrong.
    pub(super) ends: Option<Instant>,
}

type Entries = HashMap<SecretHash, Entry>;

/// See the module.
#[derive(Default)]
pub(super) struct Cache {
    entries: Mutex<Entries>,
    /// Counts what made entries outdated. Changes under the lock.
    generation: AtomicU64,
}

/// What the cache says.
pub(super) enum Found {
    /// This holds.
    Fresh(Entry),
    /// Ask the store; this holds if it is away.
    Stale(Option<Entry>),
}

impl Cache {
    /// What is known now of a credential, and the generation to [`put`](Self::put)
    /// the answer of the store with. What is younger than `fresh` holds.
    pub(super) fn find(&self, secret: &SecretHash, now: Instant, fresh: Duration) -> (Found, u64) {
        let entries = self.entries();
        let live = |entry: &&Entry| entry.ends.is_none_or(|ends| now < ends);
        let found = match entries.get(secret).filter(live) {
            Some(entry) if now < entry.asked + fresh => Found::Fresh(entry.clone()),
            entry => Found::Stale(entry.cloned()),
        };
        (found, self.generation())
    }

    /// Counts what was changed through this node.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The store, asked at `asked`, said this.
    pub(super) fn put(
        &self,
        secret: &SecretHash,
        known: Option<&Known>,
        asked: Instant,
        generation: u64,
    ) {
        let mut entries = self.entries();
        if self.generation() != generation {
            // Something was revoked meanwhile: it may have been this.
            return;
        }
        let Some(known) = known else {
            entries.remove(secret);
            return;
        };
        if entries.len() >= MAX_KNOWN && !entries.contains_key(secret) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.asked);
            if let Some(oldest) = oldest.map(|(secret, _)| secret.clone()) {
                entries.remove(&oldest);
            }
        }
        entries.insert(secret.clone(), Entry::of(known.clone(), asked));
    }

    /// The store is away: what is known of this counts for a moment longer.
    pub(super) fn keep(&self, secret: &SecretHash, now: Instant) {
        if let Some(entry) = self.entries().get_mut(secret) {
            entry.asked = now;
        }
    }

    /// What `is_changed` holds for was changed through this node, and is forgotten.
    /// The rest stays: the store may be away the next moment.
    pub(super) fn forget(&self, is_changed: impl Fn(&Credential) -> bool) {
        let mut entries = self.entries();
        entries.retain(|_, entry| !is_changed(&entry.known.credential));
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().expect("no one panics while holding it")
    }
}

impl Entry {
    /// What the store said when it was asked at `asked`.
    pub(super) fn of(known: Known, asked: Instant) -> Self {
        let left = known.credential.expires_ms.map(|at| at.saturating_sub(known.now_ms).max(0));
        let ends = left.and_then(|ms| asked.checked_add(Duration::from_millis(ms as u64)));
        Entry { known, asked, ends }
    }
}
