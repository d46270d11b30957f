//! The port, script by script.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::Script;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::link::{Link, RedisOptions};
use super::{CHANNEL, channel, leases_key, lock_key, registry, request_key, type_key};
use crate::domain::{Error, History, IdRange, Seal, TypeName};
use crate::ports::{
    Announcement, DispatchError, Dispatcher, LockOutcome, NodeRegistry, Publication,
    PublishOutcome, Refusal, Remembered, Rest, Sealed, ServerFacts, TakeOutcome, Taken, View,
    Witness, WitnessedEnd, check_remembered,
};

/// See the module.
pub struct RedisDispatcher {
    pub(super) link: Arc<Link>,
    pub(super) registry: registry::Scripts,
    scripts: Scripts,
    listeners: broadcast::Sender<Announcement>,
    listening: AbortHandle,
}

struct Scripts {
    take: Script,
    view: Script,
    publish: Script,
    lock: Script,
    renew: Script,
    unlock: Script,
    witness: Script,
    witnessed_end: Script,
    withdraw: Script,
    seal: Script,
    unseal: Script,
    adopt: Script,
    remember: Script,
}

impl RedisDispatcher {
    /// A dispatcher on whatever `url` names: a server, the master of a Sentinel
    /// group, or a Redis Cluster. Does not wait for a connection.
    /// Fails only for a URL that can never work. Needs a tokio runtime.
    pub fn new(url: &str, options: &RedisOptions) -> Result<Self, Error> {
        let link = Arc::new(Link::new(url, options)?);
        // A lagging receiver loses the oldest news, which are only hints.
        let listeners = broadcast::channel(1_024).0;
        let listening = tokio::spawn(channel::listen(link.clone(), listeners.clone()));
        Ok(RedisDispatcher {
            link,
            registry: registry::Scripts::new(),
            scripts: Scripts {
                take: Script::new(concat!(include_str!("prelude.lua"), include_str!("take.lua"))),
                view: Script::new(concat!(include_str!("prelude.lua"), include_str!("view.lua"))),
                publish: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("publish.lua")
                )),
                lock: Script::new(include_str!("lock.lua")),
                renew: Script::new(include_str!("renew.lua")),
                unlock: Script::new(include_str!("unlock.lua")),
                witness: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("leases.lua"),
                    include_str!("witness.lua")
                )),
                witnessed_end: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("leases.lua"),
                    include_str!("witnessed_end.lua")
                )),
                withdraw: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("leases.lua"),
                    include_str!("withdraw.lua")
                )),
                seal: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("leases.lua"),
                    include_str!("seal.lua")
                )),
                unseal: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("unseal.lua")
                )),
                adopt: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("leases.lua"),
                    include_str!("adopt.lua")
                )),
                remember: Script::new(include_str!("remember.lua")),
            },
            listeners,
            listening: listening.abort_handle(),
        })
    }
}

impl Drop for RedisDispatcher {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn broken(script: &str, answer: impl std::fmt::Debug) -> DispatchError {
    DispatchError::Broken(format!("{script} answered {answer:?}"))
}

fn range_of(start: &str, count: &str) -> Option<Option<IdRange>> {
    let (start, count) = (start.parse::<i64>().ok()?, count.parse::<i64>().ok()?);
    if count == 0 {
        return Some(None);
    }
    Some(Some(IdRange::new(start, start.checked_add(count)?).ok()?))
}

fn parse_take(answer: &[String]) -> Option<TakeOutcome> {
    match answer {
        [kind, replid] if kind == "stale" => {
            Some(TakeOutcome::Stale { history: History::new(replid.as_str()) })
        }
        [kind, seal] if kind == "moved" => Seal::parse(seal).map(TakeOutcome::Moved),
        [kind, replid, due, left, start1, count1, start2, count2] if kind == "taken" => {
            let first = range_of(start1, count1)?;
            let second = range_of(start2, count2)?;
            Some(TakeOutcome::Taken(Taken {
                ranges: first.into_iter().chain(second).collect(),
                history: History::new(replid.as_str()),
                due: due == "1",
                left: left.parse().ok()?,
            }))
        }
        _ => None,
    }
}

fn parse_view(answer: &[Option<String>]) -> Option<View> {
    let [replid, age, leased, history, start, cur, end, update, next_start, next_end, used, sealed] =
        answer
    else {
        return None;
    };
    let range = |start: &Option<String>, end: &Option<String>| match (start, end) {
        (None, None) => Some(None),
        _ => Some(Some(IdRange::new(number(start)?, number(end)?).ok()?)),
    };
    Some(View {
        history: History::new(replid.as_deref()?),
        published_history: history.as_deref().map(History::new),
        cursor: number(cur)?,
        current: range(start, end)?,
        update_id: number(update)?,
        second: range(next_start, next_end)?,
        used: number(used)?.try_into().ok()?,
        age_ms: number(age)?.try_into().ok()?,
        leased_end: number(leased)?,
        sealed: match sealed {
            None => None,
            Some(seal) => Some(Seal::parse(seal)?),
        },
    })
}

/// A field that is a number, 0 where it is missing.
fn number(text: &Option<String>) -> Option<i64> {
    match text {
        None => Some(0),
        Some(text) => text.parse().ok(),
    }
}

fn parse_seal(answer: &[Option<String>]) -> Option<Sealed> {
    let [seal, end, next_end, cur, rest_end, update, next_start, rest_next_end, leases @ ..] =
        answer
    else {
        return None;
    };
    let current = match (cur, rest_end, update) {
        (Some(_), Some(_), Some(_)) if number(cur)? < number(rest_end)? => {
            Some((IdRange::new(number(cur)?, number(rest_end)?).ok()?, number(update)?))
        }
        _ => None,
    };
    let second = match (next_start, rest_next_end) {
        (Some(_), Some(_)) => Some(IdRange::new(number(next_start)?, number(rest_next_end)?).ok()?),
        _ => None,
    };
    let pairs = leases.chunks_exact(2);
    let leased_ends = pairs.map(|pair| Some((pair[0].as_ref()?.parse().ok()?, number(&pair[1])?)));
    Some(Sealed {
        seal: Seal::parse(seal.as_deref()?)?,
        rest: Rest { current, second },
        published_end: number(end)?.max(number(next_end)?),
        leased_ends: leased_ends.collect::<Option<_>>()?,
    })
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

#[async_trait]
impl Dispatcher for RedisDispatcher {
    async fn take(&self, name: &TypeName, count: u64) -> Result<TakeOutcome, DispatchError> {
        let answer: Vec<String> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.take.prepare_invoke();
                call.key(type_key(name)).arg(count).invoke_async(connection).await
            })
            .await?;
        parse_take(&answer).ok_or_else(|| broken("take.lua", answer))
    }

    async fn view(&self, name: &TypeName) -> Result<View, DispatchError> {
        let answer: Vec<Option<String>> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.view.prepare_invoke();
                call.key(type_key(name)).key(leases_key(name)).invoke_async(connection).await
            })
            .await?;
        parse_view(&answer).ok_or_else(|| broken("view.lua", answer))
    }

    async fn publish(
        &self,
        name: &TypeName,
        publication: Publication<'_>,
    ) -> Result<PublishOutcome, DispatchError> {
        let Publication { range, update_id, history, token, generation, replaces } = publication;
        let (start, end) = (range.start(), range.end());
        let message = format!("range {name} {start} {end} {update_id}");
        let answer: String = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.publish.prepare_invoke();
                call.key(type_key(name)).key(lock_key(name));
                call.arg(start).arg(end).arg(update_id).arg(history.as_str()).arg(token);
                call.arg(CHANNEL)
                    .arg(message)
                    .arg(u8::from(replaces))
                    .arg(generation)
                    .invoke_async(connection)
                    .await
            })
            .await?;
        match answer.as_str() {
            "published" => Ok(PublishOutcome::Published),
            "history" => Ok(PublishOutcome::Refused(Refusal::History)),
            "token" => Ok(PublishOutcome::Refused(Refusal::Token)),
            "order" => Ok(PublishOutcome::Refused(Refusal::Order)),
            "full" => Ok(PublishOutcome::Refused(Refusal::Full)),
            "moved" => Ok(PublishOutcome::Refused(Refusal::Moved)),
            _ => Err(broken("publish.lua", answer)),
        }
    }

    async fn lock(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
        take_over_after: Option<Duration>,
    ) -> Result<LockOutcome, DispatchError> {
        let grace = take_over_after.map_or(-1, |g| ms(g) as i64);
        let answer: String = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.lock.prepare_invoke();
                call.key(lock_key(name)).arg(token).arg(ms(ttl)).arg(grace);
                call.invoke_async(connection).await
            })
            .await?;
        match answer.as_str() {
            "acquired" => Ok(LockOutcome::Acquired),
            "taken over" => Ok(LockOutcome::TakenOver),
            "held" => Ok(LockOutcome::Held),
            _ => Err(broken("lock.lua", answer)),
        }
    }

    async fn renew(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
    ) -> Result<bool, DispatchError> {
        self.link
            .run(async |connection| {
                let mut call = self.scripts.renew.prepare_invoke();
                call.key(lock_key(name)).arg(token).arg(ms(ttl)).invoke_async(connection).await
            })
            .await
    }

    async fn unlock(&self, name: &TypeName, token: &str) -> Result<bool, DispatchError> {
        self.link
            .run(async |connection| {
                let mut call = self.scripts.unlock.prepare_invoke();
                call.key(lock_key(name)).arg(token).invoke_async(connection).await
            })
            .await
    }

    async fn witness(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        range: IdRange,
    ) -> Result<Witness, DispatchError> {
        let answer: Vec<String> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.witness.prepare_invoke();
                call.key(leases_key(name)).key(type_key(name)).arg(shard.unwrap_or(0));
                call.arg(range.start()).arg(range.end()).invoke_async(connection).await
            })
            .await?;
        let parsed = match answer.as_slice() {
            [kind] if kind == "noted" => Some(Witness::Noted),
            [kind, seal] if kind == "moved" => Seal::parse(seal).map(Witness::Moved),
            [kind, end] if kind == "overlaps" => {
                end.parse().ok().map(|highest_end| Witness::Overlaps { highest_end })
            }
            _ => None,
        };
        parsed.ok_or_else(|| broken("witness.lua", answer))
    }

    async fn witnessed_end(
        &self,
        name: &TypeName,
        shard: Option<u8>,
    ) -> Result<WitnessedEnd, DispatchError> {
        let answer: Vec<String> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.witnessed_end.prepare_invoke();
                call.key(leases_key(name)).key(type_key(name)).arg(shard.unwrap_or(0));
                call.invoke_async(connection).await
            })
            .await?;
        let parsed = match answer.as_slice() {
            [kind, end] if kind == "known" => end.parse().ok().map(WitnessedEnd::Known),
            [kind, seal] if kind == "moved" => Seal::parse(seal).map(WitnessedEnd::Moved),
            _ => None,
        };
        parsed.ok_or_else(|| broken("witnessed_end.lua", answer))
    }

    async fn withdraw(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, DispatchError> {
        self.link
            .run(async |connection| {
                let mut call = self.scripts.withdraw.prepare_invoke();
                call.key(leases_key(name)).key(type_key(name)).arg(shard.unwrap_or(0));
                call.arg(tail.start()).arg(tail.end()).invoke_async(connection).await
            })
            .await
    }

    async fn seal(&self, name: &TypeName, seal: Seal) -> Result<Sealed, DispatchError> {
        let answer: Vec<Option<String>> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.seal.prepare_invoke();
                call.key(type_key(name)).key(leases_key(name));
                call.arg(seal.generation).arg(seal.target.0).invoke_async(connection).await
            })
            .await?;
        parse_seal(&answer).ok_or_else(|| broken("seal.lua", answer))
    }

    async fn unseal(&self, name: &TypeName, generation: i64) -> Result<bool, DispatchError> {
        self.link
            .run(async |connection| {
                let mut call = self.scripts.unseal.prepare_invoke();
                call.key(type_key(name)).arg(generation).invoke_async(connection).await
            })
            .await
    }

    async fn adopt(&self, name: &TypeName, ends: &[(u8, i64)]) -> Result<History, DispatchError> {
        let replid: String = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.adopt.prepare_invoke();
                call.key(leases_key(name));
                for (shard, end) in ends {
                    call.arg(*shard).arg(*end);
                }
                call.invoke_async(connection).await
            })
            .await?;
        Ok(History::new(replid))
    }

    async fn remember(
        &self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError> {
        check_remembered(text)?;
        let answer: Vec<String> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.remember.prepare_invoke();
                call.key(request_key(name, key)).key(type_key(name));
                call.arg(text).arg(ms(ttl).max(1)).invoke_async(connection).await
            })
            .await?;
        let parsed = match answer.as_slice() {
            [kind] if kind == "kept" => Some(Remembered::Kept),
            [kind, earlier] if kind == "earlier" => Some(Remembered::Earlier(earlier.clone())),
            [kind, seal] if kind == "moved" => Seal::parse(seal).map(Remembered::Moved),
            _ => None,
        };
        parsed.ok_or_else(|| broken("remember.lua", answer))
    }

    async fn recall(&self, name: &TypeName, key: &str) -> Result<Option<String>, DispatchError> {
        self.link
            .run(async |connection| {
                redis::cmd("GET").arg(request_key(name, key)).query_async(connection).await
            })
            .await
    }

    async fn announce(&self, announcement: &Announcement) -> Result<(), DispatchError> {
        let Some(message) = channel::encode(announcement) else {
            return Ok(());
        };
        self.link
            .run(async |connection| {
                redis::cmd("PUBLISH").arg(CHANNEL).arg(message).query_async(connection).await
            })
            .await
    }

    fn subscribe(&self) -> broadcast::Receiver<Announcement> {
        self.listeners.subscribe()
    }

    async fn reset(&self) {
        self.link.reset();
    }

    async fn history(&self) -> Result<History, DispatchError> {
        self.link.history().await
    }

    fn registry(&self) -> Option<&dyn NodeRegistry> {
        Some(self)
    }

    async fn server_facts(&self) -> Result<ServerFacts, DispatchError> {
        match self.link.info().await? {
            Some(info) => Ok(registry::read_info(&info)),
            None => {
                let role = Some("cluster".to_owned());
                Ok(ServerFacts { role, ..ServerFacts::default() })
            }
        }
    }
}
