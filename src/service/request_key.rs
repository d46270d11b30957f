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
use super::catalogue::{Settings, TypeEntry};
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
    ) -> Result<Issued, Error> {
        check_key(keyed.key)?;
        let late =
            |_| Error::new(ErrorCode::Deadline, "the request key could not be looked up in time");
        let record = entry.record();
        let found = timeout_at(deadline, self.recall(&record, keyed.key)).await;
        if let Some(text) = found.map_err(late)?? {
            return self.replay(entry, &text, keyed, deadline).await;
        }
        let issued = self.grant(entry, settings, shard, keyed.order.count, deadline).await?;
        let text = write(&issued, keyed);
        let kept = self.remember(entry, keyed.key, &text, record.instance);
        // What is not known to be kept is burnt: a retry must not get other ids
        // than this call.
        let burn = || self.metrics.burnt_ids.inc_by(issued.granted.len());
        match timeout_at(deadline, kept).await {
            Ok(Ok(None)) => Ok(issued),
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
    async fn recall(&self, record: &TypeRecord, key: &str) -> Result<Option<String>, Error> {
        let here = self.redis_of(record)?.dispatcher.recall(&record.name, key).await;
        if let Some(text) = here.map_err(needs_redis)? {
            return Ok(Some(text));
        }
        let life_ms = REQUEST_KEY_LIFE.as_millis() as i64;
        let placement = &record.placement;
        let is_recent =
            self.store_clock.now_ms().is_none_or(|now| now < placement.moved_ms + life_ms);
        let before =
            placement.moved_from.filter(|_| is_recent).and_then(|id| self.instances.get(id));
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
                && let Some(earlier) = self.recall(&record, key).await?
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
    ) -> Result<Issued, Error> {
        let issued = read(text, keyed)?;
        let work = async {
            for range in issued.granted.ranges() {
                self.must_know(entry, range).await?;
            }
            Ok::<(), Error>(())
        };
        let late = |_| {
            Error::new(
                ErrorCode::Deadline,
                format!("id type {} could not be read from the range store in time", entry.name),
            )
        };
        timeout_at(deadline, work).await.map_err(late)??;
        Ok(issued)
    }
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

fn write(issued: &Issued, keyed: Keyed<'_>) -> String {
    let kept = Kept {
        count: keyed.order.count,
        text: keyed.as_text,
        gate_pass: keyed.order.gate_pass.map(str::to_owned),
        shard: issued.shard,
        at_ms: issued.at_ms,
        ranges: issued.granted.ranges().map(|r| (r.start(), r.end())).collect(),
    };
    serde_json::to_string(&kept).expect("plain values are always JSON")
}

fn read(text: &str, keyed: Keyed<'_>) -> Result<Issued, Error> {
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
    Ok(Issued { granted, shard: kept.shard, at_ms: kept.at_ms })
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
        let text = write(&issued(), keyed(order));
        assert_eq!(read(&text, keyed(order)).unwrap(), issued());
    }

    #[test]
    fn other_arguments_are_a_conflict() {
        let order = Order { gate_pass: Some("p"), ..Order::of(12) };
        let text = write(&issued(), keyed(order));
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
