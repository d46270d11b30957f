//! The port, script by script.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::Script;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::link::{Link, RedisOptions};
use super::{CHANNEL, channel, leases_key, lock_key, request_key, type_key};
use crate::domain::{Error, History, IdRange, TypeName};
use crate::ports::{
    Announcement, DispatchError, Dispatcher, LockOutcome, Publication, PublishOutcome, Refusal,
    Remembered, TakeOutcome, Taken, View, Witness, check_remembered,
};

/// See the module.
pub struct RedisDispatcher {
    link: Arc<Link>,
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
    withdraw: Script,
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
                withdraw: Script::new(concat!(
                    include_str!("prelude.lua"),
                    include_str!("leases.lua"),
                    include_str!("withdraw.lua")
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
    let [replid, age, leased, history, start, cur, end, update, next_start, next_end, used] =
        answer
    else {
        return None;
    };
    let number = |text: &Option<String>| match text {
        None => Some(0),
        Some(text) => text.parse::<i64>().ok(),
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
        let Publication { range, update_id, history, token, replaces } = publication;
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
        let answer: Option<String> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.witness.prepare_invoke();
                call.key(leases_key(name)).arg(shard.unwrap_or(0));
                call.arg(range.start()).arg(range.end()).invoke_async(connection).await
            })
            .await?;
        match answer.as_deref().map(str::parse) {
            None => Ok(Witness::Noted),
            Some(Ok(highest_end)) => Ok(Witness::Overlaps { highest_end }),
            Some(Err(_)) => Err(broken("witness.lua", answer)),
        }
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
                call.key(leases_key(name)).arg(shard.unwrap_or(0));
                call.arg(tail.start()).arg(tail.end()).invoke_async(connection).await
            })
            .await
    }

    async fn remember(
        &self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError> {
        check_remembered(text)?;
        let answer: Option<String> = self
            .link
            .run(async |connection| {
                let mut call = self.scripts.remember.prepare_invoke();
                call.key(request_key(name, key)).arg(text).arg(ms(ttl).max(1));
                call.invoke_async(connection).await
            })
            .await?;
        Ok(answer.map_or(Remembered::Kept, Remembered::Earlier))
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
}
