//! The dispatcher: hands out the published range of a strict type, in order.
//!
//! One dispatcher is one Redis instance, or the memory of one process. It may
//! lose or roll back everything at any time: then its history changes, and
//! what it held before is dropped, never resumed (invariant 4).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::{NodeRegistry, ServerFacts};
use crate::domain::{Error, ErrorCode, History, IdRange, InstanceRecord, Seal, TypeName};

/// Ids that now belong to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The ids, ascending: none, one range, or two where the published range
    /// ended and the second one began. Less than asked for when there is no more.
    pub ranges: Vec<IdRange>,
    /// The history under which they were taken.
    pub history: History,
    /// Whether the next range is due: the update id is reached and no second
    /// range is there.
    pub due: bool,
    /// How many ids are left, in both ranges.
    pub left: u64,
}

/// What became of a take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// Done; perhaps with fewer ids than asked for.
    Taken(Taken),
    /// Nothing was taken: nothing is published, or it was published under
    /// another history and may have been rolled back. A refill must come first.
    Stale {
        /// The history now.
        history: History,
    },
    /// Nothing was taken: the type was [sealed](Dispatcher::seal) here.
    Moved(Seal),
}

/// The state of a type in a dispatcher, for refills and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The history now.
    pub history: History,
    /// The history under which the ranges below were published; they are dead
    /// if it differs from `history`. `None` when nothing is there.
    pub published_history: Option<History>,
    /// The next id to hand out, in the current range or at its end.
    pub cursor: i64,
    /// The current range, if anything was ever published.
    pub current: Option<IdRange>,
    /// The update id of the current range.
    pub update_id: i64,
    /// The range in reserve.
    pub second: Option<IdRange>,
    /// Ids taken since the last publication.
    pub used: u64,
    /// Time since the last publication, in milliseconds by the dispatcher's clock.
    pub age_ms: u64,
    /// The highest end of a range that was [witnessed](Dispatcher::witness), 0 if
    /// none; of shard 0, for a sharded type.
    pub leased_end: i64,
    /// The seal under which the type is closed here; what is published is dead then.
    pub sealed: Option<Seal>,
}

/// A type that is closed, see [`Dispatcher::seal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The seal in force: the given one, or a later one that was there.
    pub seal: Seal,
    /// What was live when it was closed, and has not been rolled back since: what
    /// is left of the current range with its update id, and the range in reserve.
    /// Empty under a seal other than the given one.
    pub rest: Rest,
    /// The highest end of any range that is or was published, taken away or not.
    pub published_end: i64,
    /// The highest end that was [witnessed](Dispatcher::witness), by shard.
    pub leased_ends: Vec<(u8, i64)>,
}

/// What is left of the published ranges of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Of the current range, with its update id.
    pub current: Option<(IdRange, i64)>,
    /// The range in reserve.
    pub second: Option<IdRange>,
}

impl Rest {
    /// The end of the last one.
    pub fn end(&self) -> Option<i64> {
        self.second.or(self.current.map(|(range, _)| range)).map(|range| range.end())
    }

    /// How many ids these are.
    pub fn len(&self) -> u64 {
        self.current.map_or(0, |(range, _)| range.len()) + self.second.map_or(0, |r| r.len())
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl View {
    /// Whether the published ranges may be used.
    pub fn is_live(&self) -> bool {
        self.published_history.as_ref() == Some(&self.history)
    }

    /// How many ids are left to take.
    pub fn left(&self) -> u64 {
        if !self.is_live() {
            return 0;
        }
        let current = self.current.map_or(0, |r| (r.end() - self.cursor).max(0) as u64);
        current + self.second.map_or(0, IdRange::len)
    }

    /// The next id to hand out, if there is one.
    pub fn next(&self) -> Option<i64> {
        let current = self.current.filter(|r| self.is_live() && self.cursor < r.end());
        let second = self.second.filter(|_| self.is_live());
        current.map(|_| self.cursor).or(second.map(IdRange::start))
    }

    /// Whether the next range is due.
    pub fn is_due(&self) -> bool {
        !self.is_live() || (self.second.is_none() && self.cursor >= self.update_id)
    }

    /// Where the next range may begin, as [`Dispatcher::publish`] checks the order.
    pub fn least_to_publish(&self) -> i64 {
        match self.sealed {
            Some(_) => self.cursor,
            None => self.second.or(self.current).map_or(0, IdRange::end),
        }
    }

    /// The highest end of any range that is or was published here; 0 if none.
    /// Counts dead ranges too: their ends are still witnesses (invariant 6).
    pub fn highest_end(&self) -> i64 {
        let current = self.current.map_or(0, IdRange::end);
        current.max(self.second.map_or(0, IdRange::end)).max(self.leased_end)
    }
}

/// A range to publish.
#[derive(Clone, Debug)]
pub struct Publication<'a> {
    /// The ids, durable in the range store.
    pub range: IdRange,
    /// Reaching it makes the next range due.
    pub update_id: i64,
    /// The history under which the refill began.
    pub history: &'a History,
    /// The token under which the refill holds the lock.
    pub token: &'a str,
    /// The generation of the type, as the refill read it: see [`Placement`].
    ///
    /// [`Placement`]: crate::domain::Placement
    pub generation: i64,
    /// Drop what is published and live: it was found to lie below ids that
    /// were returned already (somebody put old data back by hand).
    pub replaces: bool,
}

/// Why a range was not published. It is burnt: nobody may use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The history changed since the refill began.
    History,
    /// The lock was lost to somebody else, or ran out.
    Token,
    /// The range starts below the end of what is published.
    Order,
    /// There is a second range already.
    Full,
    /// The type was sealed here, by this generation or a later one.
    Moved,
}

impl Refusal {
    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::History => "history",
            Refusal::Token => "token",
            Refusal::Order => "order",
            Refusal::Full => "full",
            Refusal::Moved => "moved",
        }
    }
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// Published; every node can take from it.
    Published,
    /// Refused, and so burnt.
    Refused(Refusal),
}

/// What became of a try to get the refill lock of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// It was free; it is the caller's.
    Acquired,
    /// Its holder was silent for too long; it is the caller's, and the old
    /// holder's publication will be refused.
    TakenOver,
    /// Somebody else holds it.
    Held,
}

/// News from peers. Only a hint: a lost one costs freshness, never safety.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// A range of this type was published.
    Range(TypeName),
    /// The settings or the state of this type changed in the range store.
    Type(TypeName),
    /// The connection to the channel was lost and is back: anything may have
    /// been missed.
    Resumed,
}

/// What a dispatcher knows of a range that a node was given for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// It is new, and was noted.
    Noted,
    /// Some of it may have been given to another node before: the range store
    /// went back in time. The range is burnt, and the next one must start at
    /// `highest_end` or above.
    Overlaps {
        /// The highest end of all ranges that were noted.
        highest_end: i64,
    },
    /// Nothing was noted: the type was sealed here, and its witness is elsewhere.
    Moved(Seal),
}

/// How far ranges of a type were witnessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessedEnd {
    /// Up to here.
    Known(i64),
    /// The type was sealed here, and its witness is elsewhere.
    Moved(Seal),
}

/// What was remembered under a request key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// Nothing was there; the given text is kept now.
    Kept,
    /// Somebody was faster: this is there, and stays.
    Earlier(String),
    /// Nothing was kept: the type was sealed here.
    Moved(Seal),
}

/// The longest text that is kept under a request key, in bytes: 64 KiB.
pub const MAX_REMEMBERED: usize = 65_536;

/// Refuses a text that is longer than [`MAX_REMEMBERED`], as every dispatcher does.
pub fn check_remembered(text: &str) -> Result<(), DispatchError> {
    match text.len() {
        0..=MAX_REMEMBERED => Ok(()),
        length => Err(DispatchError::Broken(format!(
            "{length} bytes under a request key: it keeps at most {MAX_REMEMBERED}"
        ))),
    }
}

/// Why a dispatcher did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// Out of reach, or no answer in time: what was asked may or may not have
    /// happened; ids that may have been taken are burnt.
    #[error("Redis instance unavailable: {0}")]
    Unavailable(String),
    /// The answer breaks the contract, or the server refuses the command.
    #[error("Redis instance: {0}")]
    Broken(String),
}

impl From<DispatchError> for Error {
    fn from(error: DispatchError) -> Self {
        let code = match error {
            DispatchError::Unavailable(_) => ErrorCode::Unavailable,
            DispatchError::Broken(_) => ErrorCode::Internal,
        };
        Error::new(code, error.to_string())
    }
}

/// Hands out published ranges, keeps the refill lock, carries news.
///
/// Every method returns within the adapter's own time limit, and is atomic
/// against every other call of any node.
#[async_trait]
pub trait Dispatcher: Send + Sync {
    /// Takes up to `count` ids (at least 1) from the published ranges. The ids
    /// of a later call are larger than those of an earlier one, across nodes.
    async fn take(&self, name: &TypeName, count: u64) -> Result<TakeOutcome, DispatchError>;

    /// Reads the state of a type without changing it.
    async fn view(&self, name: &TypeName) -> Result<View, DispatchError>;

    /// Publishes a range: as the current one when nothing live is left, or when
    /// it replaces, else as the second one. Resets the usage and announces it.
    /// Removes a seal of an earlier generation. Checks, in this order: history,
    /// token, seal, free place, order (against the end of everything that is there,
    /// dead or alive; under an earlier seal, against what was taken before).
    async fn publish(
        &self,
        name: &TypeName,
        publication: Publication<'_>,
    ) -> Result<PublishOutcome, DispatchError>;

    /// Tries to get the refill lock for `ttl`. With `take_over_after`, a holder
    /// that gave no sign of life (see [`renew`](Self::renew)) for so long loses it.
    async fn lock(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
        take_over_after: Option<Duration>,
    ) -> Result<LockOutcome, DispatchError>;

    /// A sign of life: the lock lasts `ttl` from now. False when it is not
    /// held under `token` any more.
    async fn renew(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
    ) -> Result<bool, DispatchError>;

    /// Releases the lock if it is held under `token`; false otherwise.
    async fn unlock(&self, name: &TypeName, token: &str) -> Result<bool, DispatchError>;

    /// Notes a range that a node leased for itself, before the first id of it is
    /// issued, so that a range store that went back in time is found out
    /// (invariant 6). The end of the highest one is kept for ever; of the 16
    /// highest, start and end too, so that ranges of several nodes may come in any
    /// order. It [overlaps](Witness::Overlaps) where it shares an id with one of
    /// those, or starts below the end of one that is not kept any more.
    /// Does not look at the history: what it knows can only be too little. A sealed
    /// type is [`Moved`](Witness::Moved), unless the shard is none of a type's.
    async fn witness(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        range: IdRange,
    ) -> Result<Witness, DispatchError>;

    /// The highest end that was [witnessed](Self::witness), 0 if none.
    async fn witnessed_end(
        &self,
        name: &TypeName,
        shard: Option<u8>,
    ) -> Result<WitnessedEnd, DispatchError>;

    /// Forgets the end of a range that was noted and is about to be given back
    /// to the store, if nothing higher was noted: see
    /// [`RangeStore::give_back`](super::RangeStore::give_back). Answers whether it did;
    /// if not, nothing changed, and it must not be given back.
    async fn withdraw(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, DispatchError>;

    /// Keeps `text` (at most [`MAX_REMEMBERED`] bytes, else `Broken`) under a
    /// request key for `ttl`, unless something is there. An implementation may
    /// hold a bounded number of them, and is `Unavailable` beyond that.
    async fn remember(
        &self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError>;

    /// Closes the type for a migration: from now on nothing of it is taken,
    /// published, witnessed or remembered here; whoever tries is told the seal. What
    /// is published is dead for ever here, and is answered, once for this call and
    /// again for each repetition. A later seal stays; one of the same generation
    /// and another target, too: the range store has forgotten that one.
    async fn seal(&self, name: &TypeName, seal: Seal) -> Result<Sealed, DispatchError>;

    /// Removes a seal of an earlier generation than `generation`. What it closed
    /// stays dead. Answers whether there is none now.
    async fn unseal(&self, name: &TypeName, generation: i64) -> Result<bool, DispatchError>;

    /// Becomes the witness of what was given away elsewhere: by shard, nothing that
    /// starts below the given end is witnessed any more. Lowers nothing. Answers
    /// the history now.
    async fn adopt(&self, name: &TypeName, ends: &[(u8, i64)]) -> Result<History, DispatchError>;

    /// What is kept under a request key.
    async fn recall(&self, name: &TypeName, key: &str) -> Result<Option<String>, DispatchError>;

    /// Tells all nodes, this one included.
    async fn announce(&self, announcement: &Announcement) -> Result<(), DispatchError>;

    /// News from now on. A receiver that lags loses the oldest.
    fn subscribe(&self) -> broadcast::Receiver<Announcement>;

    /// Forgets the connection, so that the next call makes a new one: the
    /// server at the other end was replaced.
    async fn reset(&self);

    /// Whether it answers, and its history now. Where types are on several
    /// servers, this is something that changes with any of them: the history of
    /// a type is the one in its [`view`](Self::view).
    async fn history(&self) -> Result<History, DispatchError>;

    /// Where the nodes that share this dispatcher report themselves; `None` where
    /// it belongs to one process.
    fn registry(&self) -> Option<&dyn NodeRegistry> {
        None
    }

    /// What the server says of itself, for people; nothing where there is none.
    async fn server_facts(&self) -> Result<ServerFacts, DispatchError> {
        Ok(ServerFacts::default())
    }
}

/// Makes the dispatcher of an instance. Does not wait for a connection: an
/// instance that is out of reach answers `Unavailable` until it is back.
pub trait DispatcherFactory: Send + Sync {
    /// The dispatcher of `instance`; fails for a URL that can never work.
    fn connect(&self, instance: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error>;
}
