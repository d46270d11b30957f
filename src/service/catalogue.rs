//! The types that this node knows.
//!
//! A type is read from the store when it is first asked for, and kept; the
//! feed of changes (see [`super::watch`]) refreshes it. Names that do not
//! exist are remembered for a moment, so that a client with a wrong name does
//! not become load on the store.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::Parts;
use super::api::LocalSupply;
use super::idle::Idle;
use super::segment::Leases;
use super::sequence::Sequence;
use super::snowflake::SnowflakeSource;
use super::supply::Supply;
use crate::domain::calendar::Zone;
use crate::domain::format::Format;
use crate::domain::gate_pass::SHARDS;
use crate::domain::id_map::IdMap;
use crate::domain::opaque::slice_start;
use crate::domain::options::position_in;
use crate::domain::{Error, ErrorCode, IdRange, Mode, PeriodSpan, State, TypeName, TypeRecord};
use crate::ports::{Change, StoreError};

/// A type that does not exist may exist after so long: below the second
/// within which a new type must be served everywhere.
const MISSING_FOR: Duration = Duration::from_millis(500);
/// More remembered missing names than this are forgotten together.
const MAX_MISSING: usize = 10_000;
/// So many types are sorted in no time.
const FEW: usize = 1_000;
/// Lookups in the store at once; more wait. Keeps a storm of unknown names
/// from taking every connection of the store's pool.
const LOOKUPS: usize = 2;

/// A type as this node knows it.
pub(super) struct TypeEntry {
    pub(super) name: TypeName,
    settings: ArcSwap<Settings>,
    /// Of a strict type: who waits, and what is known of the supply.
    pub(super) sequence: Sequence,
    pub(super) supply: Supply,
    /// Ranges of this node's own: of a segment type, or of a strict one while
    /// its Redis instance is away.
    leases: OnceLock<Arc<Leases>>,
    shards: OnceLock<Box<[OnceLock<Arc<Leases>>; SHARDS as usize]>>,
    /// Where its ids come from, for a snowflake type; made at the first use.
    pub(super) snowflake: OnceLock<Arc<SnowflakeSource>>,
    /// What was in use when the type was last looked at for idleness.
    pub(super) idle: Idle,
    /// Whether it counts as in use: see [`super::active`].
    pub(super) listed: AtomicBool,
    /// It left the memory: who still holds it must look the type up again.
    closed: AtomicBool,
}

/// The settings of a type, and what is made of them once.
pub(super) struct Settings {
    pub(super) record: Arc<TypeRecord>,
    /// Fails for settings that make no sense, written past all checks.
    pub(super) writing: Result<Writing, Error>,
    /// Since when this node knows that the type is where it is.
    pub(super) placed: Instant,
}

/// How positions become ids and texts.
pub(super) struct Writing {
    /// `None` for a snowflake type, which has no positions.
    pub(super) map: Option<IdMap>,
    pub(super) format: Option<Format>,
    pub(super) zone: Zone,
}

impl Settings {
    fn new(record: TypeRecord) -> Self {
        let writing = Writing::of(&record);
        if let Err(error) = &writing {
            tracing::error!(id_type = %record.name, %error, "the settings of a type make no sense");
        }
        Settings { record: Arc::new(record), writing, placed: Instant::now() }
    }
}

impl Writing {
    fn of(record: &TypeRecord) -> Result<Self, Error> {
        // A DBA's call can store what the procedures cannot check.
        record.options.validate(record.mode, record.first_id, record.max_id)?;
        Ok(Writing {
            map: match record.mode {
                Mode::Snowflake => None,
                _ => Some(IdMap::new(record)?),
            },
            format: record.options.format.as_deref().map(Format::parse).transpose()?,
            zone: Zone::parse(record.options.time_zone.as_deref())?,
        })
    }
}

impl TypeEntry {
    fn new(record: TypeRecord) -> Self {
        TypeEntry {
            name: record.name.clone(),
            sequence: Sequence::default(),
            supply: Supply::new(record.next_id),
            settings: ArcSwap::from_pointee(Settings::new(record)),
            leases: OnceLock::new(),
            shards: OnceLock::new(),
            snowflake: OnceLock::new(),
            idle: Idle::default(),
            listed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// The one that takes the place of `old`, of which nothing is used any more.
    fn after(old: &TypeEntry, record: TypeRecord) -> Self {
        let same_positions = old.record().mode == record.mode;
        let entry = TypeEntry::new(record);
        if same_positions {
            entry.supply.succeed(&old.supply);
            for leases in old.all_leases() {
                let new = leases.shard.map_or_else(|| entry.leases(), |shard| entry.shard(shard));
                new.settings_changed(leases.floor());
            }
        }
        entry
    }

    /// Whether `record` lacks a key that ids were written with: the store went
    /// back in time. Older reads of the same store, which may come late, lack
    /// only the newest ones.
    fn misses_keys(&self, record: &TypeRecord, anyway: bool) -> bool {
        let held = &self.record().keys;
        let is_older = !anyway && held.starts_with(&record.keys);
        !record.keys.starts_with(held) && !is_older
    }

    /// Its settings, as last read from the store.
    pub(super) fn settings(&self) -> Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// Its settings, for longer than a moment.
    pub(super) fn settings_held(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Its record, as last read from the store.
    pub(super) fn record(&self) -> Arc<TypeRecord> {
        self.settings.load().record.clone()
    }

    /// The ranges of this node's own, but for those of shards.
    pub(super) fn leases(&self) -> &Arc<Leases> {
        self.leases.get_or_init(|| Arc::new(Leases::new(None, self.supply.floor())))
    }

    /// The ranges of this node's own for `shard`, 0 to 63.
    pub(super) fn shard(&self, shard: u8) -> &Arc<Leases> {
        let shards = self.shards.get_or_init(|| Box::new([const { OnceLock::new() }; 64]));
        shards[usize::from(shard)].get_or_init(|| Arc::new(Leases::new(Some(shard), 0)))
    }

    /// All ranges of this node's own that were ever needed.
    pub(super) fn all_leases(&self) -> impl Iterator<Item = &Arc<Leases>> {
        let shards = self.shards.get().into_iter().flat_map(|shards| shards.iter());
        self.leases.get().into_iter().chain(shards.filter_map(OnceLock::get))
    }

    /// What this node has of it for itself; `None` if nothing.
    pub(super) fn local(&self, now_ms: i64) -> Option<LocalSupply> {
        if let Some(source) = self.snowflake.get() {
            return Some(source.local(now_ms));
        }
        self.all_leases().map(|leases| leases.local()).reduce(|a, b| LocalSupply {
            left: a.left + b.left,
            ranges: a.ranges + b.ranges,
            ahead: a.ahead.max(b.ahead),
            rate: a.rate.into_iter().chain(b.rate).reduce(|x, y| x + y),
            runway_s: a.runway_s.into_iter().chain(b.runway_s).reduce(f64::min),
            worker: None,
        })
    }

    /// Whether an id was asked for within `span`, as looks a second apart tell.
    pub(super) fn used_within(&self, span: Duration) -> bool {
        self.supply.note_use(self.mark());
        self.supply.used_within(span)
    }

    /// How many ids this node took of its own leases, or made of the clock, since the
    /// entry was made.
    pub(super) fn leased_ids(&self) -> u64 {
        let leased: u64 = self.all_leases().map(|leases| leases.taken()).sum();
        leased + self.snowflake.get().map_or(0, |source| source.made())
    }

    /// A number that changes with every id that this node makes or takes.
    pub(super) fn mark(&self) -> u64 {
        let leased: u64 = self.all_leases().map(|leases| leases.taken()).sum();
        let made = self.snowflake.get().map_or(0, |source| source.mark());
        leased.wrapping_add(made).wrapping_add(self.supply.takes())
    }

    /// Hands out nothing any more. Gives what is left of its leases, which
    /// belongs to the caller alone.
    pub(super) fn close(&self) -> Vec<(Arc<Leases>, Vec<IdRange>)> {
        self.closed.store(true, Ordering::SeqCst);
        self.all_leases().map(|leases| (leases.clone(), leases.close())).collect()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The first position that is not outdated: by its period, of a calendar
    /// series, or by its key, of an opaque type.
    pub(super) fn least_position(&self, period: Option<PeriodSpan>) -> i64 {
        let record = self.record();
        let newest_key = record.keys.last().zip(record.options.opaque);
        let by_key = newest_key.map_or(0, |(newest, opaque)| {
            let highest = record.options.highest_number(record.mode, record.max_id);
            slice_start(newest.from_slice, highest, opaque)
        });
        by_key.max(period.map_or(0, |period| position_in(period.number, 0)))
    }

    /// Why nobody gets an id, whatever is at hand.
    pub(super) fn verdict(&self) -> Option<Error> {
        let settings = self.settings();
        if settings.record.state == State::Retired {
            return Some(Error::new(
                ErrorCode::Retired,
                format!("id type {} is retired", self.name),
            ));
        }
        settings.writing.as_ref().err().cloned()
    }

    /// Takes over what was read from the store, unless something newer was read
    /// meanwhile: readers may finish in any order. `anyway` is for a store that
    /// went back in time, where the older state is the true one.
    fn update(&self, record: TypeRecord, anyway: bool) {
        let mut new = Settings::new(record);
        let held = self.settings();
        if held.record.placement == new.record.placement {
            new.placed = held.placed;
        }
        let new = Arc::new(new);
        let age = |settings: &Settings| (settings.record.version, settings.record.next_id);
        let before = self.settings.rcu(|held| match !anyway && age(&new) < age(held) {
            true => held.clone(),
            false => new.clone(),
        });
        if !anyway && age(&new) < age(&before) {
            return;
        }
        let next_id = new.record.next_id;
        if new.record.keys.len() > before.record.keys.len() {
            // A new key counts at once, not when the ranges at hand are used up.
            let least = self.least_position(None);
            for leases in self.all_leases() {
                leases.burn_to(least - 1);
            }
        }
        self.supply.raise_floor(next_id);
        self.supply.forgive();
        self.sequence.wake();
        for leases in self.all_leases() {
            // A shard's own next id is not told; that of the type is another's.
            leases.settings_changed(if leases.shard.is_none() { next_id } else { 0 });
        }
    }
}

/// Why a type was read from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The feed of changes named it.
    Feed,
    /// It was needed. What it tells may be newer than the feed, and if the store goes
    /// back in time before the feed has told of it, nothing else tells that it did.
    Need,
    /// The store went back in time: the older state is the true one.
    WentBack,
}

/// See the module.
pub(super) struct Catalogue {
    entries: RwLock<HashMap<TypeName, Arc<TypeEntry>>>,
    /// Types that were read ahead of the feed, and their versions.
    ahead: Mutex<BTreeMap<TypeName, i64>>,
    /// The time of the newest change that the feed told of, by the store's clock.
    feed_at_ms: AtomicI64,
    missing: Mutex<HashMap<TypeName, Instant>>,
    lookups: Semaphore,
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue {
            entries: RwLock::default(),
            ahead: Mutex::default(),
            feed_at_ms: AtomicI64::new(0),
            missing: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
        }
    }
}

impl Catalogue {
    pub(super) fn get(&self, name: &str) -> Option<Arc<TypeEntry>> {
        self.entries.read().expect("never poisoned").get(name).cloned()
    }

    /// Every type. In the order of their names where they are few, so that a run
    /// can be repeated; to sort a million would hold everybody else up.
    pub(super) fn all(&self) -> Vec<Arc<TypeEntry>> {
        let mut all: Vec<_> =
            self.entries.read().expect("never poisoned").values().cloned().collect();
        if all.len() <= FEW {
            all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.entries.read().expect("never poisoned").len()
    }

    /// Keeps `record`, read for that reason: refreshes the entry (see
    /// [`TypeEntry::update`]), or makes it.
    pub(super) fn put(&self, record: TypeRecord, source: Source) -> Arc<TypeEntry> {
        let anyway = source == Source::WentBack;
        self.missing.lock().expect("never poisoned").remove(&record.name);
        let mut entries = self.entries.write().expect("never poisoned");
        let old = entries.get(&record.name).cloned();
        if source == Source::Need {
            self.note_if_ahead(old.as_deref(), &record);
        }
        let entry = match &old {
            // One whose mode changed has issued nothing, and begins anew. So does
            // one of which a key was lost: nothing is written with another.
            Some(old) if old.record().mode != record.mode || old.misses_keys(&record, anyway) => {
                Arc::new(TypeEntry::after(old, record))
            }
            Some(old) => {
                drop(entries);
                old.update(record, anyway);
                return old.clone();
            }
            None => Arc::new(TypeEntry::new(record)),
        };
        entries.insert(entry.name.clone(), entry.clone());
        drop(entries);
        if let Some(old) = old {
            // What is left of its leases is burnt.
            old.close();
            old.sequence.wake();
        }
        entry
    }

    fn note_if_ahead(&self, held: Option<&TypeEntry>, record: &TypeRecord) {
        let is_ahead = match held {
            Some(held) => record.version > held.record().version,
            None => record.updated_ms >= self.feed_at_ms.load(Ordering::Relaxed),
        };
        if is_ahead {
            let mut ahead = self.ahead.lock().expect("never poisoned");
            let version = ahead.entry(record.name.clone()).or_default();
            *version = record.version.max(*version);
        }
    }

    /// The feed told of `newest`, and of all before.
    pub(super) fn feed_is_at(&self, newest: &Option<Change>) {
        let at_ms = newest.as_ref().map_or(0, |change| change.at_ms);
        self.feed_at_ms.store(at_ms, Ordering::Relaxed);
    }

    /// Types that were read ahead of the feed since the last call, with the highest
    /// version that was read.
    pub(super) fn take_ahead(&self) -> Vec<(TypeName, i64)> {
        std::mem::take(&mut *self.ahead.lock().expect("never poisoned")).into_iter().collect()
    }

    /// Takes back what [`take_ahead`](Self::take_ahead) gave and could not be confirmed.
    pub(super) fn put_back_ahead(&self, types: Vec<(TypeName, i64)>) {
        let mut ahead = self.ahead.lock().expect("never poisoned");
        for (name, read) in types {
            let version = ahead.entry(name).or_default();
            *version = read.max(*version);
        }
    }

    /// Forgets `entry`, if it is still the one of its name.
    pub(super) fn remove(&self, entry: &Arc<TypeEntry>) {
        let mut entries = self.entries.write().expect("never poisoned");
        if entries.get(&entry.name).is_some_and(|held| Arc::ptr_eq(held, entry)) {
            entries.remove(&entry.name);
            // A million types that came and went must not leave their table.
            if entries.capacity() > 1_024 && entries.len() < entries.capacity() / 8 {
                entries.shrink_to_fit();
            }
        }
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
            Some(record) => Ok(self.catalogue.put(record, Source::Need)),
            None => {
                self.catalogue.remember_missing(name);
                Err(Error::unknown_type(name.as_str()))
            }
        }
    }

    /// Reads a type again that this node knows; one that it does not know is
    /// read when it is asked for.
    pub(super) async fn refresh(&self, name: &TypeName) -> Result<(), StoreError> {
        self.read_again(name, Source::Need).await
    }

    /// As [`refresh`](Self::refresh), for that reason.
    pub(super) async fn read_again(
        &self,
        name: &TypeName,
        source: Source,
    ) -> Result<(), StoreError> {
        self.catalogue.forget_missing(name);
        if self.catalogue.get(name.as_str()).is_some()
            && let Some(record) = self.store.find_type(name).await?
        {
            self.catalogue.put(record, source);
        }
        Ok(())
    }

    /// Makes sure that the settings at hand tell the ids of `positions`: of an
    /// opaque type, the key of their slice may be newer than the settings; and
    /// settings from before the first id of all may have changed since, which they
    /// never do later. False where the store does not know of the positions.
    pub(super) async fn know(
        &self,
        entry: &Arc<TypeEntry>,
        positions: IdRange,
    ) -> Result<bool, Error> {
        let knows = |entry: &TypeEntry| {
            let settings = entry.settings();
            if !settings.record.has_issued() {
                return false;
            }
            let map = settings.writing.as_ref().ok().and_then(|w| w.map.as_ref());
            map.is_none_or(|map| map.knows(positions.last()))
        };
        if knows(entry) {
            return Ok(true);
        }
        let unknown = || Error::unknown_type(entry.name.as_str());
        let is_older = |record: &TypeRecord| record.version < entry.record().version;
        let mut record = self.store.find_type(&entry.name).await?.ok_or_else(unknown)?;
        let mut went_back = false;
        if is_older(&record) {
            // Another reader may have been faster, but not again: then the store went
            // back in time, and changes since hid that from the feed.
            record = self.store.find_type(&entry.name).await?.ok_or_else(unknown)?;
            went_back = is_older(&record);
        }
        let source = if went_back { Source::WentBack } else { Source::Need };
        let newest = self.catalogue.put(record, source);
        if !Arc::ptr_eq(&newest, entry) {
            return Err(super::unavailable(format!(
                "the settings of id type {} have just changed: try again",
                entry.name
            )));
        }
        Ok(knows(entry))
    }

    /// As [`know`](Self::know), where not to know is an error.
    pub(super) async fn must_know(
        &self,
        entry: &Arc<TypeEntry>,
        positions: IdRange,
    ) -> Result<(), Error> {
        match self.know(entry, positions).await? {
            true => Ok(()),
            false => Err(super::unavailable(format!(
                "the range store does not know that it gave {positions} of id type {} away: it \
                 went back in time, and is being moved forward",
                entry.name
            ))),
        }
    }
}
