//! What a node has in its hands: the ports, at the other end of a line on which
//! anything may get lost.
//!
//! A node acts on the world only through these, so a crash before or after the
//! effect of a call covers a crash at every await: what a node does between two
//! calls nobody sees.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use idgen::domain::{
    Assignment, Error, History, IdRange, InstanceRecord, InstanceSpec, OpaqueKey, Seal, TypeChange,
    TypeName, TypeRecord, TypeSpec,
};
use idgen::ports::{
    Allocation, Announcement, Assigned, AuditEntry, Change, DispatchError, Dispatcher,
    DispatcherFactory, LockOutcome, NextRange, Page, Publication, PublishOutcome, RangeLogEntry,
    RangeStore, Remembered, Sealed, StoreError, TakeOutcome, Tenure, TenureRecord, TypeFilter,
    View, Witness, WitnessedEnd, WorkerIds,
};
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep};

use crate::mistakes::Mistake;
use crate::plan::{Cut, Mishap, Peer};
use crate::world::{Line, Server, World};

/// How a part is called in the trace.
struct Named(Peer);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Peer::Store => f.write_str("store"),
            Peer::Redis(instance) => write!(f, "redis{instance}"),
        }
    }
}

/// The time limits of the adapters.
const STORE_LIMIT: Duration = Duration::from_millis(2_000);
const REDIS_LIMIT: Duration = Duration::from_millis(500);
/// A node that waits longer for the store does not hear of changes in time.
const TROUBLE: Duration = Duration::from_millis(100);

/// A call that failed on its way.
pub struct Lost(&'static str);

impl From<Lost> for StoreError {
    fn from(lost: Lost) -> Self {
        StoreError::Unavailable(lost.0.to_owned())
    }
}

impl From<Lost> for DispatchError {
    fn from(lost: Lost) -> Self {
        DispatchError::Unavailable(lost.0.to_owned())
    }
}

enum Fate {
    Fine { there: Duration, back: Duration },
    FailsAtOnce,
    LostRequest,
    LostAnswer { there: Duration },
    LateEffect { after: Duration },
    CrashBefore,
    CrashAfter,
}

/// The ports of one life of a node.
#[derive(Clone)]
pub struct Wire {
    pub world: Arc<World>,
    pub line: Arc<Line>,
}

impl Wire {
    fn fate(&self, peer: Peer) -> Fate {
        let world = &self.world;
        let rng = &mut *self.line.rng.lock().unwrap();
        let limit = limit_of(peer);
        let mut millis = |low, high| Duration::from_millis(rng.between(low, high) as u64);
        let (there, back) = (millis(0, 2), millis(0, 2));
        let stormy = match peer {
            Peer::Store => world.is_stormy(),
            Peer::Redis(_) => world.may_harm_redis(),
        };
        if !stormy {
            return Fate::Fine { there, back };
        }
        match world.cut(self.line.node, peer) {
            Some(Cut::Requests | Cut::Both) => return Fate::LostRequest,
            Some(Cut::Answers) => return Fate::LostAnswer { there },
            None => {}
        }
        let down = match peer {
            Peer::Store => world.is_store_down(),
            Peer::Redis(instance) => world.is_redis_down(instance),
        };
        if down {
            return if rng.chance(500_000) { Fate::FailsAtOnce } else { Fate::LostRequest };
        }
        for mishap in Mishap::ALL {
            if mishap == Mishap::LostNews || !rng.chance(world.rate(mishap)) {
                continue;
            }
            world.count(mishap.name());
            let mut millis = |low, high| Duration::from_millis(rng.between(low, high) as u64);
            return match mishap {
                Mishap::Slow => match (millis(0, 400), millis(0, 400)) {
                    (there, back) if there + back < limit => Fate::Fine { there, back },
                    (there, _) => Fate::LostAnswer { there },
                },
                Mishap::FailsAtOnce => Fate::FailsAtOnce,
                Mishap::LostRequest => Fate::LostRequest,
                Mishap::LostAnswer => Fate::LostAnswer { there },
                Mishap::LateEffect => Fate::LateEffect { after: millis(10, 5_000) },
                Mishap::CrashBefore => Fate::CrashBefore,
                Mishap::CrashAfter | Mishap::LostNews => Fate::CrashAfter,
            };
        }
        Fate::Fine { there, back }
    }

    /// One call: `effect` is what the other side does, if it hears of it.
    async fn call<T, E>(
        &self,
        peer: Peer,
        what: &'static str,
        effect: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Lost> + Send + 'static,
    {
        self.line.alive().await;
        let began = Instant::now();
        let limit = limit_of(peer);
        let fate = self.fate(peer);
        if peer == Peer::Store {
            self.line.note_trouble(match fate {
                Fate::Fine { there, back } if there + back < TROUBLE => None,
                Fate::Fine { there, back } => Some(began + there + back),
                _ => Some(began + limit),
            });
        }
        match (peer, &fate) {
            (Peer::Store, _) | (_, Fate::Fine { .. }) => {}
            // From now on, so that nobody takes this Redis for a witness meanwhile.
            (Peer::Redis(instance), _) => self.world.redis_failed(&self.line, instance),
        }
        let (result, end) = match fate {
            Fate::Fine { there, back } => {
                pass(there).await;
                let result = effect.await;
                pass(back).await;
                (result, "")
            }
            Fate::FailsAtOnce => (Err(Lost("no connection").into()), " fails at once"),
            Fate::LostRequest => {
                pass(limit).await;
                (Err(Lost("no answer in time").into()), " is lost")
            }
            Fate::LostAnswer { there } => {
                pass(there).await;
                drop(effect.await);
                pass(limit.saturating_sub(there)).await;
                (Err(Lost("no answer in time").into()), " has an effect; its answer is lost")
            }
            Fate::LateEffect { after } => {
                pass(limit).await;
                tokio::spawn(async move {
                    pass(after).await;
                    drop(effect.await);
                });
                (Err(Lost("no answer in time").into()), " has its effect later")
            }
            Fate::CrashBefore => {
                self.world.crash(&self.line);
                std::future::pending().await
            }
            Fate::CrashAfter => {
                drop(effect.await);
                self.world.crash(&self.line);
                std::future::pending().await
            }
        };
        self.line.alive().await;
        let (node, life) = (self.line.node, self.line.life);
        self.world.note(format_args!("n{node}.{life} {} {what}{end}", Named(peer)));
        match peer {
            Peer::Redis(instance) if result.is_err() => {
                self.world.redis_failed(&self.line, instance);
                self.world.connect_again(&self.line, instance);
            }
            _ => {}
        }
        result
    }
}

async fn pass(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

fn limit_of(peer: Peer) -> Duration {
    match peer {
        Peer::Store => STORE_LIMIT,
        Peer::Redis(_) => REDIS_LIMIT,
    }
}

/// A call to the store, whose clock shows the world's time.
macro_rules! on_store {
    ($self:ident, $what:literal, |$world:ident| $effect:expr) => {{
        let $world = $self.world.clone();
        let effect = async move {
            $world.set_store_clock();
            $effect
        };
        $self.call(Peer::Store, $what, effect).await
    }};
}

#[async_trait]
impl RangeStore for Wire {
    async fn next_range(&self, request: NextRange<'_>) -> Result<Allocation, StoreError> {
        let (name, owner) = (request.name.clone(), request.owner.to_owned());
        let target = request.target.map(|(instance, history)| (instance, history.clone()));
        let NextRange { shard, period, usage, floor, .. } = request;
        let line = self.line.clone();
        on_store!(self, "next_range", |world| {
            let target = target.as_ref().map(|(instance, history)| (*instance, history));
            let request =
                NextRange { name: &name, shard, period, target, usage, floor, owner: &owner };
            let allocation = world.store.next_range(request).await?;
            if target.is_none() {
                world.leased(line.range(&name, shard, allocation.range));
            }
            world.gave_out(name.to_string(), shard.unwrap_or(0), allocation.range.end());
            if let Some((_, history)) = target {
                world.recorded(&name, history);
            }
            Ok(allocation)
        })
    }

    async fn reserve(&self, _: &TypeName, _: i64, _: i64, _: &str) -> Result<IdRange, StoreError> {
        unreachable!("no node reserves blocks")
    }

    async fn give_back(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, StoreError> {
        let name = name.clone();
        on_store!(self, "give_back", |world| {
            let done = world.store.give_back(&name, shard, tail).await?;
            if done {
                world.came_back(name.to_string(), shard.unwrap_or(0), tail.start());
            }
            Ok(done)
        })
    }

    async fn rotate_key(
        &self,
        name: &TypeName,
        key: &OpaqueKey,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, key, actor) = (name.clone(), key.clone(), actor.to_owned());
        on_store!(self, "rotate_key", |world| world.store.rotate_key(&name, &key, &actor).await)
    }

    async fn find_range(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        position: i64,
    ) -> Result<Option<RangeLogEntry>, StoreError> {
        let name = name.clone();
        on_store!(self, "find_range", |world| world.store.find_range(&name, shard, position).await)
    }

    async fn create_type(&self, spec: &TypeSpec, actor: &str) -> Result<TypeRecord, StoreError> {
        let (spec, actor) = (spec.clone(), actor.to_owned());
        on_store!(self, "create_type", |world| world.store.create_type(&spec, &actor).await)
    }

    async fn alter_type(
        &self,
        name: &TypeName,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, change, actor) = (name.clone(), change.clone(), actor.to_owned());
        on_store!(self, "alter_type", |world| {
            world.store.alter_type(&name, &change, &actor).await
        })
    }

    async fn set_retired(
        &self,
        name: &TypeName,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, actor) = (name.clone(), actor.to_owned());
        on_store!(self, "set_retired", |world| {
            world.store.set_retired(&name, retired, &actor).await
        })
    }

    async fn find_type(&self, name: &TypeName) -> Result<Option<TypeRecord>, StoreError> {
        let name = name.clone();
        on_store!(self, "find_type", |world| world.store.find_type(&name).await)
    }

    async fn is_superseded(&self, name: &TypeName, history: &History) -> Result<bool, StoreError> {
        let (name, history) = (name.clone(), history.clone());
        let answer = on_store!(self, "is_superseded", |world| {
            world.store.is_superseded(&name, &history).await
        });
        answer.map(|superseded| superseded && self.world.mistake != Some(Mistake::NobodyAsks))
    }

    async fn list_types(&self, filter: &TypeFilter) -> Result<Page<TypeRecord>, StoreError> {
        let filter = filter.clone();
        on_store!(self, "list_types", |world| world.store.list_types(&filter).await)
    }

    async fn begin_migration(
        &self,
        name: &TypeName,
        target: &str,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, target, actor) = (name.clone(), target.to_owned(), actor.to_owned());
        on_store!(self, "begin_migration", |world| {
            world.store.begin_migration(&name, &target, &actor).await
        })
    }

    async fn assign_type(
        &self,
        name: &TypeName,
        assignment: Assignment<'_>,
        actor: &str,
    ) -> Result<Assigned, StoreError> {
        let (name, actor) = (name.clone(), actor.to_owned());
        let Assignment { seal, rest_end, .. } = assignment;
        let history = assignment.history.cloned();
        let assigned = on_store!(self, "assign_type", |world| {
            let assignment = Assignment { seal, history: history.as_ref(), rest_end };
            let before = world.store.find_type(&name).await?.map(|before| before.instance);
            let assigned = world.store.assign_type(&name, assignment, &actor).await?;
            let from = before.unwrap_or(seal.target);
            world.assigned(&name, from, seal.target).await;
            if let Some(history) = &history {
                world.recorded(&name, history);
            }
            Ok::<_, StoreError>(assigned)
        });
        let forced = self.world.mistake == Some(Mistake::KeepsRest);
        assigned.map(|assigned| Assigned { keeps_rest: assigned.keeps_rest || forced, ..assigned })
    }

    async fn undo_migration(
        &self,
        name: &TypeName,
        generation: i64,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, actor) = (name.clone(), actor.to_owned());
        on_store!(self, "undo_migration", |world| {
            world.store.undo_migration(&name, generation, &actor).await
        })
    }

    async fn migrations(&self) -> Result<Vec<TypeRecord>, StoreError> {
        on_store!(self, "migrations", |world| world.store.migrations().await)
    }

    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        let (name, to, actor) = (name.to_owned(), to.map(str::to_owned), actor.to_owned());
        on_store!(self, "drain_instance", |world| {
            world.store.drain_instance(&name, to.as_deref(), &actor).await
        })
    }

    async fn add_instance(
        &self,
        spec: &InstanceSpec,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        let (spec, actor) = (spec.clone(), actor.to_owned());
        on_store!(self, "add_instance", |world| world.store.add_instance(&spec, &actor).await)
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), StoreError> {
        let (name, actor) = (name.to_owned(), actor.to_owned());
        on_store!(self, "remove_instance", |world| {
            world.store.remove_instance(&name, &actor).await
        })
    }

    async fn instances(&self) -> Result<Vec<InstanceRecord>, StoreError> {
        on_store!(self, "instances", |world| world.store.instances().await)
    }

    async fn changes_since(&self, seq: i64) -> Result<Vec<Change>, StoreError> {
        on_store!(self, "changes_since", |world| world.store.changes_since(seq).await)
    }

    async fn latest_change(&self) -> Result<i64, StoreError> {
        on_store!(self, "latest_change", |world| world.store.latest_change().await)
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        on_store!(self, "audit", |world| world.store.audit(limit).await)
    }

    async fn range_log(
        &self,
        name: &TypeName,
        limit: u32,
    ) -> Result<Vec<RangeLogEntry>, StoreError> {
        let name = name.clone();
        on_store!(self, "range_log", |world| world.store.range_log(&name, limit).await)
    }

    async fn ping(&self) -> Result<i64, StoreError> {
        on_store!(self, "ping", |world| world.store.ping().await)
    }
}

fn times_of(bits: u8, worker: i64) -> String {
    format!("worker {worker} of {bits} bits")
}

#[async_trait]
impl WorkerIds for Wire {
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        let (holder, token) = (holder.to_owned(), token.to_owned());
        let leased = on_store!(self, "lease_worker", |world| {
            let tenure = world.workers.lease_worker(bits, &holder, &token, ttl_ms).await?;
            world.gave_out(times_of(bits, tenure.worker), 0, tenure.until_ms);
            Ok::<_, StoreError>(tenure)
        });
        leased.map(|tenure| self.forgetting(tenure))
    }

    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        let token = token.to_owned();
        let renewed = on_store!(self, "renew_worker", |world| {
            let tenure = world.workers.renew_worker(bits, worker, &token, ttl_ms).await?;
            world.gave_out(times_of(bits, worker), 0, tenure.until_ms);
            Ok::<_, StoreError>(tenure)
        });
        renewed.map(|tenure| self.forgetting(tenure))
    }

    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        let token = token.to_owned();
        on_store!(self, "release_worker", |world| {
            let done = world.workers.release_worker(bits, worker, &token, used_until_ms).await?;
            if done {
                world.came_back(times_of(bits, worker), 0, used_until_ms);
            }
            Ok(done)
        })
    }

    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError> {
        on_store!(self, "tenure_at", |world| world.workers.tenure_at(bits, worker, time_ms).await)
    }
}

impl Wire {
    /// The tenure, or one that says that nobody had the worker id before.
    fn forgetting(&self, tenure: Tenure) -> Tenure {
        match self.world.mistake {
            Some(Mistake::TenureSpans) => Tenure { from_ms: 0, ..tenure },
            _ => tenure,
        }
    }
}

#[async_trait]
impl DispatcherFactory for Wire {
    fn connect(&self, record: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        let instance = match record.name.as_str() {
            "redis0" => 0,
            _ => 1,
        };
        let channel = broadcast::channel(64).0;
        tokio::spawn(carry_news(self.clone(), instance, channel.clone()));
        Ok(Arc::new(RedisWire { wire: self.clone(), instance, channel }))
    }
}

/// Announcements of the server that the node is connected to, but for those that
/// get lost.
async fn carry_news(wire: Wire, instance: usize, channel: broadcast::Sender<Announcement>) {
    let Wire { world, line } = wire;
    loop {
        let index = line.connected[instance].load(Ordering::Relaxed);
        let mut news = world.redis[instance].server(index).data.subscribe();
        while line.connected[instance].load(Ordering::Relaxed) == index {
            let heard = tokio::select! {
                biased;
                () = line.dead.cancelled() => return,
                heard = news.recv() => heard.ok(),
                () = sleep(Duration::from_millis(250)) => None,
            };
            let Some(heard) = heard else { continue };
            line.alive().await;
            let loses = {
                let mut rng = line.rng.lock().unwrap();
                rng.chance(world.rate(Mishap::LostNews))
                    || world.cut(line.node, Peer::Redis(instance)).is_some()
            };
            match loses {
                true => world.count(Mishap::LostNews.name()),
                false => drop(channel.send(heard)),
            }
        }
        let _ = channel.send(Announcement::Resumed);
    }
}

/// The line of a node to an instance.
struct RedisWire {
    wire: Wire,
    instance: usize,
    channel: broadcast::Sender<Announcement>,
}

impl RedisWire {
    /// With the mistake of that name.
    async fn drop_forgotten_seal(&self, name: &TypeName) {
        let Wire { world, line } = &self.wire;
        if world.mistake != Some(Mistake::Forgotten) {
            return;
        }
        let index = line.connected[self.instance].load(Ordering::Relaxed);
        let data = &world.redis[self.instance].server(index).data;
        let seal = data.view(name).await.ok().and_then(|view| view.sealed);
        let record = world.store.find_type(name).await.ok().flatten();
        if let (Some(seal), Some(record)) = (seal, record)
            && seal.generation > record.placement.generation
        {
            let _ = data.unseal(name, i64::MAX).await;
        }
    }

    async fn call<T: Send + 'static, F>(
        &self,
        what: &'static str,
        effect: impl FnOnce(Arc<Server>) -> F + Send + 'static,
    ) -> Result<T, DispatchError>
    where
        F: Future<Output = Result<T, DispatchError>> + Send + 'static,
    {
        let Wire { world, line } = &self.wire;
        let redis = &world.redis[self.instance];
        let index = line.connected[self.instance].load(Ordering::Relaxed);
        let server = redis.server(index);
        let (world, line, instance) = (world.clone(), line.clone(), self.instance);
        let effect = async move {
            if !server.up.load(Ordering::Relaxed) {
                return Err(Lost("connection refused").into());
            }
            if world.redis[instance].current.load(Ordering::Relaxed) != index {
                line.health.lock().unwrap().stale_at[instance] = Some(Instant::now());
            }
            effect(server).await
        };
        self.wire.call(Peer::Redis(self.instance), what, effect).await
    }
}

#[async_trait]
impl Dispatcher for RedisWire {
    async fn take(&self, name: &TypeName, count: u64) -> Result<TakeOutcome, DispatchError> {
        self.drop_forgotten_seal(name).await;
        let name = name.clone();
        self.call("take", async move |server| server.data.take(&name, count).await).await
    }

    async fn view(&self, name: &TypeName) -> Result<View, DispatchError> {
        self.drop_forgotten_seal(name).await;
        let name = name.clone();
        self.call("view", async move |server| server.data.view(&name).await).await
    }

    async fn publish(
        &self,
        name: &TypeName,
        publication: Publication<'_>,
    ) -> Result<PublishOutcome, DispatchError> {
        let name = name.clone();
        let Publication { range, update_id, generation, replaces, .. } = publication;
        let (history, token) = (publication.history.clone(), publication.token.to_owned());
        self.call("publish", async move |server| {
            let (history, token) = (&history, token.as_str());
            let publication =
                Publication { range, update_id, history, token, generation, replaces };
            server.data.publish(&name, publication).await
        })
        .await
    }

    async fn lock(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
        take_over_after: Option<Duration>,
    ) -> Result<LockOutcome, DispatchError> {
        let (name, token) = (name.clone(), token.to_owned());
        self.call("lock", async move |server| {
            server.data.lock(&name, &token, ttl, take_over_after).await
        })
        .await
    }

    async fn renew(
        &self,
        name: &TypeName,
        token: &str,
        ttl: Duration,
    ) -> Result<bool, DispatchError> {
        let (name, token) = (name.clone(), token.to_owned());
        self.call("renew", async move |server| server.data.renew(&name, &token, ttl).await).await
    }

    async fn unlock(&self, name: &TypeName, token: &str) -> Result<bool, DispatchError> {
        let (name, token) = (name.clone(), token.to_owned());
        self.call("unlock", async move |server| server.data.unlock(&name, &token).await).await
    }

    async fn witness(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        range: IdRange,
    ) -> Result<Witness, DispatchError> {
        self.drop_forgotten_seal(name).await;
        let name = name.clone();
        let forgets = self.wire.world.mistake == Some(Mistake::TenureSpans) && shard == Some(64);
        let (world, seen) = (self.wire.world.clone(), self.wire.line.range(&name, shard, range));
        self.call("witness", async move |server| {
            world.shown(&seen);
            let answer = server.data.witness(&name, shard, range).await;
            if forgets { Ok(Witness::Noted) } else { answer }
        })
        .await
    }

    async fn witnessed_end(
        &self,
        name: &TypeName,
        shard: Option<u8>,
    ) -> Result<WitnessedEnd, DispatchError> {
        let name = name.clone();
        let mistake = self.wire.world.mistake;
        let forgets =
            matches!(mistake, Some(Mistake::Adoption | Mistake::Witness | Mistake::TailAndWitness));
        self.call("witnessed_end", async move |server| {
            let answer = server.data.witnessed_end(&name, shard).await;
            if forgets { Ok(WitnessedEnd::Known(0)) } else { answer }
        })
        .await
    }

    async fn withdraw(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, DispatchError> {
        let name = name.clone();
        self.call("withdraw", async move |server| server.data.withdraw(&name, shard, tail).await)
            .await
    }

    async fn seal(&self, name: &TypeName, seal: Seal) -> Result<Sealed, DispatchError> {
        let name = name.clone();
        self.call("seal", async move |server| server.data.seal(&name, seal).await).await
    }

    async fn unseal(&self, name: &TypeName, generation: i64) -> Result<bool, DispatchError> {
        let name = name.clone();
        self.call("unseal", async move |server| server.data.unseal(&name, generation).await).await
    }

    async fn adopt(&self, name: &TypeName, ends: &[(u8, i64)]) -> Result<History, DispatchError> {
        let forgets = self.wire.world.mistake == Some(Mistake::Adoption);
        let (name, ends) = (name.clone(), if forgets { Vec::new() } else { ends.to_vec() });
        self.call("adopt", async move |server| server.data.adopt(&name, &ends).await).await
    }

    async fn remember(
        &self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError> {
        let (name, key, text) = (name.clone(), key.to_owned(), text.to_owned());
        let forgets = self.wire.world.mistake == Some(Mistake::RequestKeys);
        self.call("remember", async move |server| {
            let answer = server.data.remember(&name, &key, &text, ttl).await;
            if forgets { answer.map(|_| Remembered::Kept) } else { answer }
        })
        .await
    }

    async fn recall(&self, name: &TypeName, key: &str) -> Result<Option<String>, DispatchError> {
        let (name, key) = (name.clone(), key.to_owned());
        self.call("recall", async move |server| server.data.recall(&name, &key).await).await
    }

    async fn announce(&self, announcement: &Announcement) -> Result<(), DispatchError> {
        let news = announcement.clone();
        self.call("announce", async move |server| server.data.announce(&news).await).await
    }

    fn subscribe(&self) -> broadcast::Receiver<Announcement> {
        self.channel.subscribe()
    }

    async fn reset(&self) {
        let Wire { world, line } = &self.wire;
        if world.mistake == Some(Mistake::Reset) {
            return;
        }
        let current = world.redis[self.instance].current.load(Ordering::Relaxed);
        line.connected[self.instance].store(current, Ordering::Relaxed);
    }

    async fn history(&self) -> Result<History, DispatchError> {
        let found = self.call("history", async move |server| server.data.history().await).await;
        if found.is_ok() {
            self.wire.world.redis_answered(&self.wire.line, self.instance);
        }
        found
    }
}
