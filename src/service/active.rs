//! The types in use: those whose supply is worth a look every second.
//!
//! A node may know a million types, of which a few are busy. A type joins when
//! an id of it is asked for, and leaves when it was not used for a while; its
//! metrics come and go with it, so that their number stays bounded by use.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::catalogue::TypeEntry;

/// Most types with metrics of their own; those beyond are served, but not shown.
const MOST: usize = 10_000;

/// See the module.
#[derive(Default)]
pub(super) struct Active {
    entries: Mutex<Vec<Arc<TypeEntry>>>,
}

impl Active {
    /// The type is in use. Costs one read where that is known.
    #[inline]
    pub(super) fn join(&self, entry: &Arc<TypeEntry>) {
        if !entry.listed.load(Ordering::Relaxed) {
            self.list(entry);
        }
    }

    #[cold]
    fn list(&self, entry: &Arc<TypeEntry>) {
        let mut entries = self.entries.lock().expect("never poisoned");
        if entries.len() < MOST && !entry.listed.swap(true, Ordering::Relaxed) {
            entries.push(entry.clone());
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<TypeEntry>> {
        self.entries.lock().expect("never poisoned").clone()
    }

    /// Keeps those that `is_used`; the others must join again.
    pub(super) fn keep(&self, is_used: impl Fn(&TypeEntry) -> bool) {
        let mut entries = self.entries.lock().expect("never poisoned");
        entries.retain(|entry| {
            let used = is_used(entry);
            entry.listed.store(used, Ordering::Relaxed);
            used
        });
    }
}
