//! A dispatcher in the memory of one process.
//!
//! Its history is drawn when it is made, so after a restart of the process
//! everything that was published before is gone with it, as with a Redis that
//! came back empty.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::checks::Checks;
use super::leases::Leases;
use super::requests::Requests;
use crate::domain::gate_pass::SHARDS;
use crate::domain::{History, IdRange, Seal, TypeName};
use crate::ports::{
    Announcement, DispatchError, Dispatcher, Entropy, LockOutcome, Publication, PublishOutcome,
    Refusal, Remembered, Rest, Sealed, TakeOutcome, Taken, View, Witness, WitnessedEnd,
    check_remembered,
};

/// See the module.
pub struct MemoryDispatcher {
    state: Mutex<State>,
    channel: broadcast::Sender<Announcement>,
    checks: Checks,
}

/// Everything that a [`MemoryDispatcher`] held at a moment: a snapshot on disk, or
/// what a replica has.
#[derive(Clone)]
pub struct DispatcherSnapshot(State);

#[derive(Clone)]
struct State {
    history: History,
    types: HashMap<TypeName, Published>,
    closed: HashMap<TypeName, Closed>,
    locks: HashMap<TypeName, Lock>,
    /// By type and shard; of a type without shards, shard 0.
    leases: HashMap<(TypeName, u8), Leases>,
    requests: Requests,
}

/// A sealed type, and what was left of it then.
#[derive(Clone)]
struct Closed {
    seal: Seal,
    rest: Rest,
    history: History,
}

#[derive(Clone)]
struct Published {
    /// `None` once it was sealed: dead for ever.
    history: Option<History>,
    cursor: i64,
    current: IdRange,
    update_id: i64,
    second: Option<(IdRange, i64)>,
    used: u64,
    at: Instant,
}

#[derive(Clone)]
struct Lock {
    token: String,
    last_sign: Instant,
    ttl: Duration,
}

impl MemoryDispatcher {
    /// An empty dispatcher with a history of its own.
    pub fn new(entropy: &dyn Entropy) -> Self {
        Self::with_checks(entropy, Checks::default())
    }

    /// As [`new`](Self::new), without some of the checks.
    pub fn with_checks(entropy: &dyn Entropy, checks: Checks) -> Self {
        MemoryDispatcher {
            state: Mutex::new(State::empty(History::new(entropy.token()))),
            channel: broadcast::channel(1_024).0,
            checks,
        }
    }

    /// Everything that it holds now, for [`restart_from`](Self::restart_from).
    pub fn snapshot(&self) -> DispatcherSnapshot {
        DispatcherSnapshot(self.state().clone())
    }

    /// Holds what `snapshot` holds, under a new history: a restart from disk, or a
    /// replica that becomes the master. What came after the snapshot is lost.
    pub fn restart_from(&self, snapshot: &DispatcherSnapshot, entropy: &dyn Entropy) {
        let history = History::new(entropy.token());
        *self.state() = State { history, ..snapshot.0.clone() };
    }

    /// Everything is gone, and the history stays, as after `FLUSHALL`.
    pub fn flush(&self) {
        let mut state = self.state();
        *state = State::empty(state.history.clone());
    }

    /// The hash of one type is gone, as after an eviction.
    pub fn evict(&self, name: &TypeName) {
        let mut state = self.state();
        state.types.remove(name);
        // The seal is kept in the same hash.
        state.closed.remove(name);
    }

    /// Changes the history as a restart or a promotion does; what was
    /// published stays, as after a restart from an old snapshot.
    pub fn change_history(&self, entropy: &dyn Entropy) {
        self.state().history = History::new(entropy.token());
    }

    /// Puts the data of one type back as `backup` holds it, under this
    /// dispatcher's own history: what `RESTORE` by a careless hand does.
    pub async fn restore_from(&self, backup: &MemoryDispatcher, name: &TypeName) {
        let Some(mut old) = backup.state().types.remove(name) else { return };
        let mut state = self.state();
        old.history = Some(state.history.clone());
        state.types.insert(name.clone(), old);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no one panics while holding the state")
    }
}

impl State {
    fn empty(history: History) -> Self {
        State {
            history,
            types: HashMap::new(),
            closed: HashMap::new(),
            locks: HashMap::new(),
            leases: HashMap::new(),
            requests: Requests::default(),
        }
    }

    fn seal_of(&self, name: &TypeName) -> Option<Seal> {
        self.closed.get(name).map(|closed| closed.seal)
    }

    /// The seal that keeps `shard` from being witnessed here.
    fn seal_of_shard(&self, name: &TypeName, shard: Option<u8>) -> Option<Seal> {
        // What is no shard of a type is not moved with it.
        self.seal_of(name).filter(|_| shard.is_none_or(|shard| shard < SHARDS))
    }
}

impl Published {
    /// Whether nothing has been rolled back or sealed since it was published.
    fn may_be_used(&self, history: &History, checks: Checks) -> bool {
        let published = self.history.as_ref();
        published.is_some_and(|published| published == history || !checks.history)
    }

    fn highest_end(&self) -> i64 {
        self.second.map_or(self.current.end(), |(range, _)| range.end())
    }

    fn rest(&self) -> Rest {
        let current = IdRange::new(self.cursor, self.current.end()).ok();
        Rest {
            current: current.map(|range| (range, self.update_id)),
            second: self.second.map(|(range, _)| range),
        }
    }

    fn left(&self) -> u64 {
        let current = (self.current.end() - self.cursor) as u64;
        current + self.second.map_or(0, |(r, _)| r.len())
    }

    fn take_from_current(&mut self, count: u64) -> Option<IdRange> {
        let rest = IdRange::new(self.cursor, self.current.end()).ok()?;
        let (head, _) = rest.split(count);
        self.cursor = head.end();
        Some(head)
    }
}

#[async_trait]
impl Dispatcher for MemoryDispatcher {
    async fn take(&self, name: &TypeName, count: u64) -> Result<TakeOutcome, DispatchError> {
        let mut state = self.state();
        let history = state.history.clone();
        if let Some(seal) = state.seal_of(name).filter(|_| self.checks.seals) {
            return Ok(TakeOutcome::Moved(seal));
        }
        let published = match state.types.get_mut(name) {
            Some(published) if published.may_be_used(&history, self.checks) => published,
            _ => return Ok(TakeOutcome::Stale { history }),
        };
        let mut ranges = Vec::new();
        let mut wanted = count;
        if let Some(head) = published.take_from_current(wanted) {
            wanted -= head.len();
            ranges.push(head);
        }
        if wanted > 0
            && let Some((range, update_id)) = published.second.take()
        {
            published.current = range;
            published.cursor = range.start();
            published.update_id = update_id;
            let head = published.take_from_current(wanted).expect("a range is not empty");
            wanted -= head.len();
            ranges.push(head);
        }
        published.used += count - wanted;
        Ok(TakeOutcome::Taken(Taken {
            ranges,
            history,
            due: published.second.is_none() && published.cursor >= published.update_id,
            left: published.left(),
        }))
    }

    async fn view(&self, name: &TypeName) -> Result<View, DispatchError> {
        let state = self.state();
        let history = state.history.clone();
        let sealed = state.seal_of(name);
        let leased_end = state.leases.get(&(name.clone(), 0)).map_or(0, Leases::highest_end);
        Ok(match state.types.get(name) {
            None => View {
                history,
                published_history: None,
                cursor: 0,
                current: None,
                update_id: 0,
                second: None,
                used: 0,
                age_ms: 0,
                leased_end,
                sealed,
            },
            Some(p) => View {
                history,
                published_history: p.history.clone(),
                cursor: p.cursor,
                current: Some(p.current),
                update_id: p.update_id,
                second: p.second.map(|(r, _)| r),
                used: p.used,
                age_ms: p.at.elapsed().as_millis() as u64,
                leased_end,
                sealed,
            },
        })
    }

    async fn publish(
        &self,
        name: &TypeName,
        publication: Publication<'_>,
    ) -> Result<PublishOutcome, DispatchError> {
        let mut state = self.state();
        if self.checks.history && state.history != *publication.history {
            return Ok(PublishOutcome::Refused(Refusal::History));
        }
        let holds =
            state.locks.get(name).is_some_and(|l| l.token == publication.token && l.is_live());
        if self.checks.token && !holds {
            return Ok(PublishOutcome::Refused(Refusal::Token));
        }
        if state.seal_of(name).is_some_and(|seal| seal.generation >= publication.generation) {
            return Ok(PublishOutcome::Refused(Refusal::Moved));
        }
        let has_come_back = state.closed.contains_key(name);
        let history = state.history.clone();
        let fresh = Published {
            history: Some(history.clone()),
            cursor: publication.range.start(),
            current: publication.range,
            update_id: publication.update_id,
            second: None,
            used: 0,
            at: Instant::now(),
        };
        match state.types.get_mut(name) {
            None => {
                state.types.insert(name.clone(), fresh);
            }
            Some(old) => {
                let live = old.may_be_used(&history, self.checks) && !publication.replaces;
                if live && old.second.is_some() {
                    return Ok(PublishOutcome::Refused(Refusal::Full));
                }
                // Dead ranges count here too: their ends are witnesses. Of a type that
                // left and has come back, what was not taken here before may come
                // back with it.
                let least = match has_come_back {
                    true => old.cursor,
                    false => old.highest_end(),
                };
                if self.checks.order && publication.range.start() < least {
                    return Ok(PublishOutcome::Refused(Refusal::Order));
                }
                if live && old.cursor < old.current.end() {
                    old.second = Some((publication.range, publication.update_id));
                    old.used = 0;
                    old.at = Instant::now();
                } else {
                    *old = fresh;
                }
            }
        }
        state.closed.remove(name);
        // No receiver is no error: then nobody waits for news.
        let _ = self.channel.send(Announcement::Range(name.clone()));
        Ok(PublishOutcome::Published)
    }

    async fn lock(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
        take_over_after: Option<Duration>,
    ) -> Result<LockOutcome, DispatchError> {
        let mut state = self.state();
        let outcome = match state.locks.get(name) {
            Some(lock) if lock.is_live() => match take_over_after {
                Some(grace) if lock.last_sign.elapsed() >= grace => LockOutcome::TakenOver,
                _ => return Ok(LockOutcome::Held),
            },
            _ => LockOutcome::Acquired,
        };
        let lock = Lock { token: token.to_owned(), last_sign: Instant::now(), ttl };
        state.locks.insert(name.clone(), lock);
        Ok(outcome)
    }

    async fn renew(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
    ) -> Result<bool, DispatchError> {
        let mut state = self.state();
        match state.locks.get_mut(name) {
            Some(lock) if lock.token == token && lock.is_live() => {
                lock.last_sign = Instant::now();
                lock.ttl = ttl;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn unlock(&self, name: &TypeName, token: &str) -> Result<bool, DispatchError> {
        let mut state = self.state();
        match state.locks.get(name) {
            Some(lock) if lock.token == token => {
                let live = lock.is_live();
                state.locks.remove(name);
                Ok(live)
            }
            _ => Ok(false),
        }
    }

    async fn witness(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        range: IdRange,
    ) -> Result<Witness, DispatchError> {
        let mut state = self.state();
        if let Some(seal) = state.seal_of_shard(name, shard) {
            return Ok(Witness::Moved(seal));
        }
        let key = (name.clone(), shard.unwrap_or(0));
        let known = state.leases.entry(key).or_default().witness(range);
        Ok(if self.checks.witness { known } else { Witness::Noted })
    }

    async fn witnessed_end(
        &self,
        name: &TypeName,
        shard: Option<u8>,
    ) -> Result<WitnessedEnd, DispatchError> {
        let state = self.state();
        if let Some(seal) = state.seal_of_shard(name, shard) {
            return Ok(WitnessedEnd::Moved(seal));
        }
        let leases = state.leases.get(&(name.clone(), shard.unwrap_or(0)));
        Ok(WitnessedEnd::Known(leases.map_or(0, Leases::highest_end)))
    }

    async fn withdraw(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, DispatchError> {
        let mut state = self.state();
        if state.seal_of_shard(name, shard).is_some() {
            return Ok(false);
        }
        if !self.checks.tail {
            return Ok(true);
        }
        let key = (name.clone(), shard.unwrap_or(0));
        Ok(state.leases.get_mut(&key).is_some_and(|leases| leases.withdraw(tail)))
    }

    async fn seal(&self, name: &TypeName, seal: Seal) -> Result<Sealed, DispatchError> {
        let mut state = self.state();
        let history = state.history.clone();
        let stays = state.seal_of(name).filter(|there| there.generation >= seal.generation);
        if stays.is_none() {
            let live = state.types.get_mut(name).filter(|p| p.history.as_ref() == Some(&history));
            let rest = live.map(|published| {
                if self.checks.seals {
                    published.history = None;
                }
                published.rest()
            });
            let closed = Closed { seal, rest: rest.unwrap_or_default(), history: history.clone() };
            state.closed.insert(name.clone(), closed);
        }
        let closed = &state.closed[name];
        let counts = closed.seal == seal && closed.history == history;
        let ends = state.leases.iter().filter(|((of, shard), _)| of == name && *shard < SHARDS);
        let mut leased_ends: Vec<_> =
            ends.map(|((_, shard), leases)| (*shard, leases.highest_end())).collect();
        leased_ends.sort_unstable();
        Ok(Sealed {
            seal: closed.seal,
            rest: if counts { closed.rest.clone() } else { Rest::default() },
            published_end: state.types.get(name).map_or(0, Published::highest_end),
            leased_ends,
        })
    }

    async fn unseal(&self, name: &TypeName, generation: i64) -> Result<bool, DispatchError> {
        let mut state = self.state();
        if state.seal_of(name).is_some_and(|seal| seal.generation < generation) {
            state.closed.remove(name);
        }
        Ok(!state.closed.contains_key(name))
    }

    async fn adopt(&self, name: &TypeName, ends: &[(u8, i64)]) -> Result<History, DispatchError> {
        let mut state = self.state();
        for (shard, end) in ends {
            state.leases.entry((name.clone(), *shard)).or_default().adopt(*end);
        }
        Ok(state.history.clone())
    }

    async fn remember(
        &self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError> {
        check_remembered(text)?;
        let mut state = self.state();
        match state.seal_of(name) {
            Some(seal) => Ok(Remembered::Moved(seal)),
            None => state.requests.remember(name, key, text, ttl),
        }
    }

    async fn recall(&self, name: &TypeName, key: &str) -> Result<Option<String>, DispatchError> {
        Ok(self.state().requests.recall(name, key))
    }

    async fn announce(&self, announcement: &Announcement) -> Result<(), DispatchError> {
        let _ = self.channel.send(announcement.clone());
        Ok(())
    }

    fn subscribe(&self) -> broadcast::Receiver<Announcement> {
        self.channel.subscribe()
    }

    async fn reset(&self) {}

    async fn history(&self) -> Result<History, DispatchError> {
        Ok(self.state().history.clone())
    }
}

impl Lock {
    fn is_live(&self) -> bool {
        self.last_sign.elapsed() < self.ttl
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::system::SystemEntropy;
    use crate::ports::conformance;
    use std::sync::Arc;

    #[tokio::test]
    async fn conforms() {
        let dispatcher = Arc::new(MemoryDispatcher::new(&SystemEntropy));
        conformance::dispatcher(dispatcher.clone()).await;
        let lose = dispatcher.clone();
        conformance::dispatcher_after_rollback(dispatcher, async move || {
            lose.change_history(&SystemEntropy);
        })
        .await;
    }
}
