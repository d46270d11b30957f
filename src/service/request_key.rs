//! Request keys: the same call again gives the same ids again.
//!
//! What a key was given is kept in the type's Redis instance, so that a retry
//! may go to any node. Ids are taken first and kept then: of two calls at once,
//! one keeps its ids and both answer with them; those of the other are burnt.
//! The kept text holds positions and the time, from which the same ids and the
//! same texts are made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::api::{MAX_REQUEST_KEY, Order, REQUEST_KEY_LIFE};
use super::catalogue::{Settings, Source, TypeEntry};
use super::granted::Granted;
use super::instances::Instance;
use super::issue::Issued;
use super::{Parts, unavailable};
use crate::domain::{Error, ErrorCode, IdRange, InstanceId, TypeRecord};
use crate::ports::{DispatchError, Remembered};

/// So many migrations may come between a call and the keeping of its answer.
const MOVES: usize = 3;

/// A call with a key.
#[derive(Clone, Copy)]
pub(super) struct Keyed<'a> {
    pub(super) key: &'a str,
    pub(super) order: Order<'a>,
    pub(super) as_text: bool,
}

/// What is kept. Read by other versions of the program: names stay.
#[derive(Serialize, Deserialize)]
struct Kept {
    count: i64,
    text: bool,
    gate_pass: Option<String>,
    shard: Option<u8>,
    at_ms: i64,
    /// First and end of each range.
    ranges: Vec<(i64, i64)>,
    /// The first and the last id of each range, where they depend on the type's keys,
    /// of which the range store may forget one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ids: Vec<(i64, i64)>,
}

impl Parts {
    /// As [`Parts::grant`], but once for a key.
    pub(super) async fn grant_once(
        self: &Arc<Self>,
        entry: &Arc<TypeEntry>,
        settings: &Settings,
        shard: Option<u8>,
        keyed: Keyed<'_>,
        deadline: Instant,
    ) -> Result<(Issued, Arc<Settings>), Error> {
        check_key(keyed.key)?;
        let late =
            |_| Error::new(ErrorCode::Deadline, "the request key could not be looked up in time");
        let record = entry.record();
        let found = timeout_at(deadline, self.recall(entry, keyed.key)).await;
        if let Some(text) = found.map_err(late)?? {
            return self.replay(entry, &text, keyed, deadline).await;
        }
        let issued = self.grant(entry, settings, shard, keyed.order.count, deadline).await?;
        // The settings from before may lack a key that the positions need.
        let settings = entry.settings_held();
        let text = write(&issued, keyed, ids(&settings, &issued)?);
        let kept = self.remember(entry, keyed.key, &text, record.instance);
        // What is not known to be kept is burnt: a retry must not get other ids
        // than this call.
        let burn = || self.metrics.burnt_ids.inc_by(issued.granted.len());
        match timeout_at(deadline, kept).await {
            Ok(Ok(None)) => Ok((issued, settings)),
            Ok(Ok(Some(text))) => {
                burn();
                self.replay(entry, &text, keyed, deadline).await
            }
            Ok(Err(error)) => {
                burn();
                Err(error)
            }
            Err(elapsed) => {
                burn();
                Err(late(elapsed))
            }
        }
    }

    /// What is kept under a key: where the type is, as `record` says, or where it came
    /// from while a key of then may be used.
    async fn recall(&self, entry: &TypeEntry, key: &str) -> Result<Option<String>, Error> {
        let settings = entry.settings_held();
        let record = &settings.record;
        let here = self.redis_of(record)?.dispatcher.recall(&record.name, key).await;
        if let Some(text) = here.map_err(needs_redis)? {
            return Ok(Some(text));
        }
        // By this node's own clock: that of the store may have been set since.
        let is_recent = settings.placed.elapsed() < REQUEST_KEY_LIFE;
        let from = record.placement.moved_from.filter(|_| is_recent);
        let before = from.and_then(|id| self.instances.get(id));
        match before {
            None => Ok(None),
            Some(before) => before.dispatcher.recall(&record.name, key).await.map_err(needs_redis),
        }
    }

    /// Keeps `text` under a key, where the type is, or answers what is kept. It was looked for on `seen`: if the
    /// type has moved since, another call may have kept its own there until it left.
    async fn remember(
        self: &Arc<Self>,
        entry: &TypeEntry,
        key: &str,
        text: &str,
        mut seen: InstanceId,
    ) -> Result<Option<String>, Error> {
        for _ in 0..MOVES {
            let record = entry.record();
            if record.instance != seen
                && let Some(earlier) = self.recall(entry, key).await?
            {
                return Ok(Some(earlier));
            }
            seen = record.instance;
            let instance = self.redis_of(&record)?;
            let kept = instance.dispatcher.remember(&entry.name, key, text, REQUEST_KEY_LIFE);
            match kept.await.map_err(needs_redis)? {
                Remembered::Moved(seal) => self.settle(&entry.name, seen, seal).await?,
                Remembered::Kept => return Ok(None),
                Remembered::Earlier(earlier) => return Ok(Some(earlier)),
            }
        }
        Err(unavailable("the id type is being moved: try again"))
    }

    fn redis_of(&self, record: &TypeRecord) -> Result<Arc<Instance>, Error> {
        self.instances.get(record.instance).ok_or_else(|| {
            unavailable(format!("the Redis instance of id type {} is not known", record.name))
        })
    }

    /// What was given before, perhaps by another node: this one may have to read
    /// the type again to write the same ids.
    async fn replay(
        &self,
        entry: &Arc<TypeEntry>,
        text: &str,
        keyed: Keyed<'_>,
        deadline: Instant,
    ) -> Result<(Issued, Arc<Settings>), Error> {
        let (issued, told) = read(text, keyed)?;
        let work = async {
            for range in issued.granted.ranges() {
                self.must_know(entry, range).await?;
            }
            let settings = entry.settings_held();
            if told.is_empty() || ids(&settings, &issued)? == told {
                return Ok(settings);
            }
            // Perhaps the key at hand is the one that the store has forgotten.
            self.read_again(&entry.name, Source::Need).await?;
            let settings = entry.settings_held();
            match ids(&settings, &issued)? == told {
                true => Ok(settings),
                false => Err(forgotten(entry)),
            }
        };
        let late = |_| {
            Error::new(
                ErrorCode::Deadline,
                format!("id type {} could not be read from the range store in time", entry.name),
            )
        };
        let settings = timeout_at(deadline, work).await.map_err(late)??;
        Ok((issued, settings))
    }
}

/// The first and the last id of each range, where keys make them. A call takes far less
/// than a slice, so a range has ids of two keys at most.
fn ids(settings: &Settings, issued: &Issued) -> Result<Vec<(i64, i64)>, Error> {
    if settings.record.options.opaque.is_none() {
        return Ok(Vec::new());
    }
    let writing = settings.writing.as_ref().map_err(Error::clone)?;
    let id = |position| writing.map.as_ref().map_or(position, |map| map.id(position, issued.shard));
    Ok(issued.granted.ranges().map(|r| (id(r.start()), id(r.last()))).collect())
}

fn forgotten(entry: &TypeEntry) -> Error {
    Error::new(
        ErrorCode::Conflict,
        format!(
            "the ids that were given under this request_key cannot be told again: the range \
             store went back in time and lost the key of id type {} that they were written \
             with; use a new request key",
            entry.name
        ),
    )
}

fn needs_redis(error: DispatchError) -> Error {
    let error = Error::from(error);
    Error::new(error.code, format!("a request key needs Redis: {}", error.message))
}

fn check_key(key: &str) -> Result<(), Error> {
    if key.is_empty() || key.len() > MAX_REQUEST_KEY {
        return Err(Error::invalid(
            "request_key",
            format!(
                "request_key has {} bytes: it must have from 1 to {MAX_REQUEST_KEY}",
                key.len()
            ),
        ));
    }
    match key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(Error::invalid(
            "request_key",
            "request_key must consist of printable ASCII characters without spaces",
        )),
    }
}

fn write(issued: &Issued, keyed: Keyed<'_>, ids: Vec<(i64, i64)>) -> String {
    let kept = Kept {
        count: keyed.order.count,
        text: keyed.as_text,
        gate_pass: keyed.order.gate_pass.map(str::to_owned),
        shard: issued.shard,
        at_ms: issued.at_ms,
        ranges: issued.granted.ranges().map(|r| (r.start(), r.end())).collect(),
        ids,
    };
    serde_json::to_string(&kept).expect("plain values are always JSON")
}

/// What was issued, and what [`ids`] said of it then.
fn read(text: &str, keyed: Keyed<'_>) -> Result<(Issued, Vec<(i64, i64)>), Error> {
    let broken = || Error::new(ErrorCode::Internal, "what is kept under the request key is broken");
    let kept: Kept = serde_json::from_str(text).map_err(|_| broken())?;
    let same = (kept.count, kept.text, kept.gate_pass.as_deref())
        == (keyed.order.count, keyed.as_text, keyed.order.gate_pass);
    if !same {
        return Err(Error::new(
            ErrorCode::Conflict,
            format!(
                "request_key was used with other arguments in the last {} minutes: use a new key \
                 for a new request",
                REQUEST_KEY_LIFE.as_secs() / 60
            ),
        ));
    }
    let mut ranges = kept.ranges.iter().map(|(start, end)| IdRange::new(*start, *end));
    let mut granted = Granted::of(ranges.next().and_then(Result::ok).ok_or_else(broken)?);
    for range in ranges {
        granted.push(range.map_err(|_| broken())?);
    }
    Ok((Issued { granted, shard: kept.shard, at_ms: kept.at_ms }, kept.ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued() -> Issued {
        let mut granted = Granted::of(IdRange::new(1, 4).unwrap());
        granted.push(IdRange::new(i64::MAX - 9, i64::MAX).unwrap());
        Issued { granted, shard: Some(63), at_ms: 1_700_000_000_000 }
    }

    fn keyed(order: Order<'_>) -> Keyed<'_> {
        Keyed { key: "k", order, as_text: false }
    }

    #[test]
    fn what_is_kept_reads_back() {
        let order = Order { gate_pass: Some("p"), ..Order::of(12) };
        let text = write(&issued(), keyed(order), vec![(7, 9)]);
        assert_eq!(read(&text, keyed(order)).unwrap(), (issued(), vec![(7, 9)]));
    }

    #[test]
    fn other_arguments_are_a_conflict() {
        let order = Order { gate_pass: Some("p"), ..Order::of(12) };
        let text = write(&issued(), keyed(order), Vec::new());
        for other in [
            keyed(Order { gate_pass: Some("q"), ..order }),
            keyed(Order { gate_pass: None, ..order }),
            keyed(Order { count: 11, ..order }),
            Keyed { as_text: true, ..keyed(order) },
        ] {
            let error = read(&text, other).unwrap_err();
            assert_eq!(error.code, ErrorCode::Conflict);
            assert!(error.message.contains("request_key"), "{error}");
        }
        assert_eq!(read("{}", keyed(order)).unwrap_err().code, ErrorCode::Internal);
    }

    #[test]
    fn keys_by_cases() {
        for (key, legal) in [
            ("a", true),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
            ("", false),
            ("a b", false),
            ("ä", false),
            ("a\n", false),
        ] {
            assert_eq!(check_key(key).is_ok(), legal, "{key:?}");
        }
    }
}
