//! The types that this node knows.
//!
//! A type is read from the store when it is first asked for, and kept; the
//! feed of changes (see [`super::watch`]) refreshes it. Names that do not
//! exist are remembered for a moment, so that a client with a wrong name does
//! not become load on the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::Parts;
use super::sequence::Sequence;
use super::snowflake::SnowflakeSource;
use super::supply::Supply;
use crate::domain::{Error, ErrorCode, TypeName, TypeRecord};
use crate::ports::StoreError;

/// A type that does not exist may exist after so long: below the second
/// within which a new type must be served everywhere.
const MISSING_FOR: Duration = Duration::from_millis(500);
/// More remembered missing names than this are forgotten together.
const MAX_MISSING: usize = 10_000;
/// Lookups in the store at once; more wait. Keeps a storm of unknown names
/// from taking every connection of the store's pool.
const LOOKUPS: usize = 2;

/// A type as this node knows it.
pub(super) struct TypeEntry {
    pub(super) name: TypeName,
    record: RwLock<Arc<TypeRecord>>,
    pub(super) sequence: Sequence,
    pub(super) supply: Supply,
    /// Where its ids come from, for a snowflake type; made at the first use.
    pub(super) snowflake: OnceLock<Arc<SnowflakeSource>>,
}

impl TypeEntry {
    /// Its settings, as last read from the store.
    pub(super) fn record(&self) -> Arc<TypeRecord> {
        self.record.read().expect("never poisoned").clone()
    }

    /// Takes over what was read from the store, unless something newer was read
    /// meanwhile: readers may finish in any order. `anyway` is for a store that
    /// went back in time, where the older state is the true one.
    fn update(&self, record: TypeRecord, anyway: bool) {
        let mut held = self.record.write().expect("never poisoned");
        let age = |record: &TypeRecord| (record.version, record.next_id);
        if !anyway && age(&record) < age(&held) {
            return;
        }
        self.supply.raise_floor(record.next_id);
        *held = Arc::new(record);
        drop(held);
        self.supply.forgive();
        self.sequence.wake();
    }
}

/// See the module.
pub(super) struct Catalogue {
    entries: RwLock<HashMap<TypeName, Arc<TypeEntry>>>,
    missing: Mutex<HashMap<TypeName, Instant>>,
    lookups: Semaphore,
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue {
            entries: RwLock::default(),
            missing: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
        }
    }
}

impl Catalogue {
    pub(super) fn get(&self, name: &str) -> Option<Arc<TypeEntry>> {
        self.entries.read().expect("never poisoned").get(name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<TypeEntry>> {
        self.entries.read().expect("never poisoned").values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.read().expect("never poisoned").len()
    }

    /// Keeps `record`: refreshes the entry (see [`TypeEntry::update`]), or makes it.
    pub(super) fn put(&self, record: TypeRecord, anyway: bool) -> Arc<TypeEntry> {
        self.missing.lock().expect("never poisoned").remove(&record.name);
        let mut entries = self.entries.write().expect("never poisoned");
        if let Some(entry) = entries.get(&record.name) {
            let entry = entry.clone();
            drop(entries);
            entry.update(record, anyway);
            return entry;
        }
        let entry = Arc::new(TypeEntry {
            name: record.name.clone(),
            sequence: Sequence::default(),
            supply: Supply::new(record.next_id),
            snowflake: OnceLock::new(),
            record: RwLock::new(Arc::new(record)),
        });
        entries.insert(entry.name.clone(), entry.clone());
        entry
    }

    fn is_missing(&self, name: &TypeName) -> bool {
        let missing = self.missing.lock().expect("never poisoned");
        missing.get(name).is_some_and(|since| since.elapsed() < MISSING_FOR)
    }

    fn remember_missing(&self, name: &TypeName) {
        let mut missing = self.missing.lock().expect("never poisoned");
        if missing.len() >= MAX_MISSING {
            missing.clear();
        }
        missing.insert(name.clone(), Instant::now());
    }

    /// A type of this name may have been made: look again when asked.
    pub(super) fn forget_missing(&self, name: &TypeName) {
        self.missing.lock().expect("never poisoned").remove(name);
    }
}

impl Parts {
    /// When a call that begins now must have ended.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.config.deadline
    }

    /// The type called `name`, which comes unchecked from the wire.
    pub(super) async fn find(
        &self,
        name: &str,
        deadline: Instant,
    ) -> Result<Arc<TypeEntry>, Error> {
        if let Some(entry) = self.catalogue.get(name) {
            return Ok(entry);
        }
        let name = TypeName::parse(name)?;
        if self.catalogue.is_missing(&name) {
            return Err(Error::unknown_type(name.as_str()));
        }
        match timeout_at(deadline, self.look_up(&name)).await {
            Ok(found) => found,
            Err(_) => Err(Error::new(
                ErrorCode::Deadline,
                format!("id type {name} could not be read from the range store in time"),
            )),
        }
    }

    async fn look_up(&self, name: &TypeName) -> Result<Arc<TypeEntry>, Error> {
        let _permit = self.catalogue.lookups.acquire().await.expect("never closed");
        // Somebody else may have looked while this call waited for its turn.
        if let Some(entry) = self.catalogue.get(name.as_str()) {
            return Ok(entry);
        }
        if self.catalogue.is_missing(name) {
            return Err(Error::unknown_type(name.as_str()));
        }
        match self.store.find_type(name).await? {
            Some(record) => Ok(self.catalogue.put(record, false)),
            None => {
                self.catalogue.remember_missing(name);
                Err(Error::unknown_type(name.as_str()))
            }
        }
    }

    /// Reads a type again that this node knows; one that it does not know is
    /// read when it is asked for.
    pub(super) async fn refresh(&self, name: &TypeName) -> Result<(), StoreError> {
        self.read_again(name, false).await
    }

    /// As [`refresh`](Self::refresh); `anyway` after the store went back in time.
    pub(super) async fn read_again(&self, name: &TypeName, anyway: bool) -> Result<(), StoreError> {
        self.catalogue.forget_missing(name);
        if self.catalogue.get(name.as_str()).is_some()
            && let Some(record) = self.store.find_type(name).await?
        {
            self.catalogue.put(record, anyway);
        }
        Ok(())
    }
}
