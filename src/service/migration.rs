//! Moving types between Redis instances while they are in use
//! (the steps and their rules: [`domain::migration`](crate::domain::migration)).
//!
//! Whoever needs a type that is sealed finishes its migration, or finds that it is
//! finished: a caller's request ([`Parts::settle`]) at once, and otherwise every
//! node a few seconds after the one that began it stopped ([`look_after`]). That is
//! safe because no step does harm when it is repeated, late, or done by two at
//! once; see `finish`. While the new instance is out of reach a migration is undone
//! instead, unless the range store has forgotten it.
//!
//! An instance that is being drained is emptied by all nodes together, type after
//! type.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{Instrument, info_span};

use super::Parts;
use super::admin::{Migrated, MigrationPlan, Place};
use super::catalogue::Source;
use super::instances::Instance;
use super::unavailable;
use crate::domain::instance::find_instance;
use crate::domain::migration::{Meaning, meaning};
use crate::domain::sizing::update_id;
use crate::domain::{
    Assignment, Error, ErrorCode, History, IdRange, InstanceId, Mode, Seal, TypeName, TypeRecord,
};
use crate::ports::{LockOutcome, Publication, PublishOutcome, Rest, StoreError, TypeFilter, View};

/// How often migrations that nobody finished, and instances to drain, are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// A migration that was begun so long ago, and is not finished, was left alone.
const LEFT_ALONE: Duration = Duration::from_secs(3);
/// How often a caller looks whether the one who began a migration has ended it.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Types of one instance that a node moves between two looks.
const DRAINED_AT_ONCE: u32 = 100;

/// What finishing a migration needs to know.
struct Unfinished {
    name: TypeName,
    from: InstanceId,
    seal: Seal,
    /// The old instance is not asked any more: it is out of reach for good.
    abandon: bool,
}

/// What was found when the old instance was closed.
struct Closed {
    /// The seal in force.
    seal: Seal,
    rest: Rest,
    /// The highest ends that were given away, by shard.
    ends: Vec<(u8, i64)>,
}

/// How a migration ended.
struct Finished {
    record: TypeRecord,
    kept: u64,
    burnt: u64,
}

impl Parts {
    /// A dispatcher said that the type is sealed there: makes sure that the settings
    /// at hand say where it is now. Runs to its end whatever becomes of the caller.
    pub(super) async fn settle(
        self: &Arc<Self>,
        name: &TypeName,
        on: InstanceId,
        seal: Seal,
    ) -> Result<(), Error> {
        let (parts, name) = (self.clone(), name.clone());
        let work = self.tasks.spawn(async move { parts.settle_now(&name, on, seal).await });
        work.await.unwrap_or_else(|_| Err(unavailable("the node is shutting down")))
    }

    async fn settle_now(
        self: &Arc<Self>,
        name: &TypeName,
        on: InstanceId,
        seal: Seal,
    ) -> Result<(), Error> {
        let record = self.must_find(name).await?;
        match meaning(seal, on, &record) {
            Meaning::Elsewhere => self.follow(record, on),
            Meaning::Outdated => {
                let old = self.reached(on)?;
                old.dispatcher.unseal(name, record.placement.generation).await?;
                self.catalogue.put(record, Source::Need);
            }
            Meaning::Unfinished => {
                if record.placement.generation < seal.generation {
                    tracing::warn!(
                        id_type = %name, target = %seal.target,
                        "the range store has forgotten a migration: doing it again"
                    );
                }
                if record.placement.generation == seal.generation
                    && self.ended_meanwhile(name, on, seal).await?
                {
                    return Ok(());
                }
                let work = Unfinished { name: name.clone(), from: on, seal, abandon: false };
                match self.finish_or_undo(work, &self.config.node).await {
                    // Another node undid it.
                    Err(error) if error.code == ErrorCode::Conflict => self.refresh(name).await?,
                    done => drop(done?),
                }
            }
        }
        Ok(())
    }

    /// Gives the one who began a migration the time to end it: with several at it, what
    /// is left on the old instance may be burnt.
    async fn ended_meanwhile(
        &self,
        name: &TypeName,
        on: InstanceId,
        seal: Seal,
    ) -> Result<bool, Error> {
        // As for a silent holder of a refill lock.
        let bound = Instant::now() + self.config.takeover_grace;
        while Instant::now() < bound {
            sleep(LOOK_AGAIN).await;
            let record = self.must_find(name).await?;
            if record.placement.generation > seal.generation {
                self.follow(record, on);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes over what was just read of a type that is not on the instance `left`.
    /// Settings at hand that say that it is there are of a time that the range store
    /// has forgotten, whatever their version.
    fn follow(&self, record: TypeRecord, left: InstanceId) {
        let entry = self.catalogue.put(record.clone(), Source::Need);
        if record.instance != left && entry.record().instance == left {
            self.catalogue.put(record, Source::WentBack);
        }
    }

    /// The range store said that the type is not assigned to the instance `left`:
    /// reads where it is.
    pub(super) async fn find_again(&self, name: &TypeName, left: InstanceId) {
        if let Ok(record) = self.must_find(name).await {
            self.follow(record, left);
        }
    }

    async fn must_find(&self, name: &TypeName) -> Result<TypeRecord, Error> {
        let found = self.store.find_type(name).await?;
        found.ok_or_else(|| Error::unknown_type(name.as_str()))
    }

    fn reached(&self, id: InstanceId) -> Result<Arc<Instance>, Error> {
        self.instances.get(id).ok_or_else(|| {
            unavailable(format!(
                "Redis instance {id} is not known to this node: register it again if the range \
                 store was restored from a backup"
            ))
        })
    }

    /// What a migration of `name` to `target` would do.
    pub(super) async fn plan_migration(
        &self,
        name: &TypeName,
        target: &str,
    ) -> Result<MigrationPlan, Error> {
        let record = self.must_find(name).await?;
        let all = self.store.instances().await?;
        let target = find_instance(&all, target)?.clone();
        let from = all.iter().find(|i| i.id == record.instance).cloned();
        let mut problems = Vec::new();
        if let Err(error) = record.begin_move(&target, 0) {
            problems.push(error.message);
        }
        let mut place = async |id: InstanceId, name: &str| {
            let view = match self.instances.get(id) {
                Some(instance) => instance.dispatcher.view(&record.name).await,
                None => Err(crate::ports::DispatchError::Unavailable(
                    "this node is not connected to it yet".to_owned(),
                )),
            };
            let view = view.map_err(|error| problems.push(format!("{name}: {error}"))).ok();
            Place { id, name: name.to_owned(), view }
        };
        let from_name = from.map_or_else(|| record.instance.to_string(), |from| from.name);
        let from = place(record.instance, &from_name).await;
        let to = place(target.id, &target.name).await;
        if let (Some(here), Some(there)) = (&from.view, &to.view)
            && let Err(error) = check_servers(here, there)
            && from.id != to.id
        {
            problems.push(error.message);
        }
        let least = to.view.as_ref().map_or(0, View::least_to_publish);
        let rest = from.view.as_ref().map_or(0, |view| view.left());
        let next = from.view.as_ref().and_then(|view| view.next());
        let keeps_rest = rest > 0 && next.is_some_and(|next| next >= least);
        Ok(MigrationPlan { record, from, to, rest, keeps_rest, problems })
    }

    /// Moves `name` to the instance called `target`. With `abandon` the old instance
    /// is not asked: it is out of reach for good.
    pub(super) async fn migrate(
        self: &Arc<Self>,
        name: &TypeName,
        target: &str,
        abandon: bool,
        actor: &str,
    ) -> Result<Migrated, Error> {
        let (parts, name) = (self.clone(), name.clone());
        let (target, actor) = (target.to_owned(), actor.to_owned());
        // To its end, whatever becomes of the caller's connection.
        let work = self.tasks.spawn(async move {
            let began = Instant::now();
            let Finished { record, kept, burnt } =
                parts.begin_and_finish(&name, &target, abandon, &actor).await?;
            Ok(Migrated { record, kept, burnt, took: began.elapsed() })
        });
        work.await.unwrap_or_else(|_| Err(unavailable("the node is shutting down")))
    }

    async fn begin_and_finish(
        self: &Arc<Self>,
        name: &TypeName,
        target: &str,
        abandon: bool,
        actor: &str,
    ) -> Result<Finished, Error> {
        let before = self.must_find(name).await?;
        // What is out of reach is found out before anything is closed.
        let all = self.store.connections().await?;
        let to = find_instance(&all, target)?;
        before.begin_move(to, 0)?;
        let there = self.reached(to.id)?.dispatcher.view(name).await?;
        if !abandon {
            let view = self.reached(before.instance)?.dispatcher.view(name).await?;
            check_servers(&view, &there)?;
            if let Some(seal) = view.sealed {
                self.settle_now(name, before.instance, seal).await?;
            }
        }
        let moving = self.store.begin_migration(name, target, actor).await?;
        let target = moving.placement.moving_to.expect("it has just begun");
        let seal = Seal { generation: moving.placement.generation, target };
        let work = Unfinished { name: name.clone(), from: moving.instance, seal, abandon };
        let finished = self.finish_or_undo(work, actor).await?;
        match finished.record.instance == target {
            true => Ok(finished),
            false => Err(Error::new(
                ErrorCode::Conflict,
                format!(
                    "id type {name} went to Redis instance {}: the range store had forgotten an \
                     earlier migration",
                    finished.record.instance
                ),
            )),
        }
    }

    /// Ends a migration, or undoes it where the new instance does not answer.
    async fn finish_or_undo(
        self: &Arc<Self>,
        work: Unfinished,
        actor: &str,
    ) -> Result<Finished, Error> {
        let (name, generation) = (work.name.clone(), work.seal.generation);
        let count = |outcome: &str| self.metrics.migrations.with_label_values(&[outcome]).inc();
        let span = info_span!("move", id_type = %name, generation);
        let error = match self.finish(work, actor).instrument(span).await {
            Ok(finished) => {
                count("moved");
                return Ok(finished);
            }
            Err(error) => error,
        };
        // Nothing was assigned, or the store refuses this.
        let undone = match error.code {
            ErrorCode::Unavailable => self.undo(&name, generation, actor).await.is_ok(),
            _ => false,
        };
        match (undone, error.code) {
            (true, _) => count("undone"),
            // Another node was faster.
            (false, ErrorCode::Conflict) => {}
            (false, _) => count("failed"),
        }
        Err(error)
    }

    /// Ends a migration from any point on:
    ///
    /// 1. Seal the old instance. A repetition gets the same answer; what is there is
    ///    dead from now on, so nobody else takes it.
    /// 2. Let the new instance be the witness of all that was given away.
    /// 3. Assign. One caller only succeeds, and only it may go on to 4.
    /// 4. Publish what was left. The refill lock, which it holds since before 3,
    ///    keeps others from putting a new range in its place; if it fails, those ids
    ///    are burnt.
    async fn finish(self: &Arc<Self>, work: Unfinished, actor: &str) -> Result<Finished, Error> {
        let record = self.must_find(&work.name).await?;
        let Closed { seal, rest, ends } = self.close_old(&work, &record).await?;
        let target = self.reached(seal.target)?;
        let history = target.dispatcher.adopt(&work.name, &ends).await?;
        if record.mode != Mode::Strict {
            return self.assign_alone(&record, seal, actor).await;
        }
        if target.dispatcher.view(&work.name).await?.is_live() {
            // It was abandoned once, and came back with what it had then: lower ids.
            let abandoned = Seal { generation: seal.generation - 1, target: seal.target };
            target.dispatcher.seal(&work.name, abandoned).await?;
        }
        // The store would take a history that it does not know for the newest.
        if !target.is_current(&work.name, &history).await? {
            return Err(unavailable("the new Redis instance was replaced by another server"));
        }
        let token = self.entropy.token();
        let ttl = Duration::from_millis(record.lock_ttl_ms as u64);
        let locked = target.dispatcher.lock(&work.name, &token, ttl, None).await?;
        let assignment = Assignment { seal, history: Some(&history), rest_end: rest.end() };
        let assign = self.store.assign_type(&work.name, assignment, actor);
        let assigned = self.showing_life(&target.dispatcher, &work.name, &token, ttl, assign).await;
        let kept = match &assigned {
            Ok(assigned) if assigned.keeps_rest && locked != LockOutcome::Held => {
                publish_rest(&target, &assigned.record, &rest, &history, &token).await
            }
            _ => 0,
        };
        let _ = target.dispatcher.unlock(&work.name, &token).await;
        let record = match assigned {
            Ok(assigned) => assigned.record,
            Err(error) => return self.finished_by_another(&work.name, seal, error).await,
        };
        self.changed(&record).await;
        let burnt = rest.len() - kept;
        self.metrics.burnt_ids.inc_by(burnt);
        let (name, from, to) = (&work.name, work.from, &target.record.name);
        tracing::info!(id_type = %name, %from, to, kept, burnt, "moved");
        Ok(Finished { record, kept, burnt })
    }

    /// Seals the old instance, unless it is abandoned.
    async fn close_old(&self, work: &Unfinished, record: &TypeRecord) -> Result<Closed, Error> {
        let mut ends = BTreeMap::new();
        // What this node knows itself helps where the old instance does not tell.
        if let Some(entry) = self.catalogue.get(work.name.as_str())
            && record.mode == Mode::Strict
        {
            raise(&mut ends, entry.supply.floor());
        }
        let (mut seal, mut rest) = (work.seal, Rest::default());
        if !work.abandon {
            let sealed = self.reached(work.from)?.dispatcher.seal(&work.name, seal).await?;
            // Another one, if the store has forgotten where the type went: there are
            // the newer ids.
            seal = sealed.seal;
            rest = sealed.rest;
            for (shard, end) in sealed.leased_ends {
                let known = ends.entry(shard).or_default();
                *known = end.max(*known);
            }
            raise(&mut ends, sealed.published_end);
        }
        Ok(Closed { seal, rest, ends: ends.into_iter().collect() })
    }

    /// The store did not assign. That is no failure where somebody else was faster.
    async fn finished_by_another(
        &self,
        name: &TypeName,
        seal: Seal,
        error: StoreError,
    ) -> Result<Finished, Error> {
        let error = Error::from(error);
        if error.code != ErrorCode::Conflict {
            return Err(error);
        }
        let record = self.must_find(name).await?;
        if record.instance != seal.target || record.placement.generation <= seal.generation {
            return Err(error);
        }
        self.catalogue.put(record.clone(), Source::Need);
        // What became of the rest, the other one knows.
        Ok(Finished { record, kept: 0, burnt: 0 })
    }

    /// Step 3 for a type of which nothing is published.
    async fn assign_alone(
        &self,
        record: &TypeRecord,
        seal: Seal,
        actor: &str,
    ) -> Result<Finished, Error> {
        let assignment = Assignment { seal, history: None, rest_end: None };
        let record = match self.store.assign_type(&record.name, assignment, actor).await {
            Ok(assigned) => assigned.record,
            Err(error) => return self.finished_by_another(&record.name, seal, error).await,
        };
        self.changed(&record).await;
        tracing::info!(id_type = %record.name, to = %record.instance, "moved");
        Ok(Finished { record, kept: 0, burnt: 0 })
    }

    /// Ends the migration of this generation and leaves the type where it is.
    async fn undo(
        self: &Arc<Self>,
        name: &TypeName,
        generation: i64,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        let record = self.store.undo_migration(name, generation, actor).await?;
        // If this is lost, the first one who meets the seal removes it.
        if let Some(old) = self.instances.get(record.instance) {
            let _ = old.dispatcher.unseal(name, record.placement.generation).await;
        }
        self.changed(&record).await;
        Ok(record)
    }

    /// Undoes the migration that is under way, or moves the type back to where it
    /// came from.
    pub(super) async fn undo_migration(
        self: &Arc<Self>,
        name: &TypeName,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        let record = self.must_find(name).await?;
        if record.placement.moving_to.is_some() {
            return self.undo(name, record.placement.generation, actor).await;
        }
        let Some(back) = record.placement.moved_from else {
            return Err(Error::new(
                ErrorCode::Conflict,
                format!("id type {name} was never moved: there is nothing to undo"),
            ));
        };
        let all = self.store.instances().await?;
        let back = all.into_iter().find(|instance| instance.id == back).ok_or_else(|| {
            Error::new(
                ErrorCode::UnknownInstance,
                format!("id type {name} came from Redis instance {back}, which was removed"),
            )
        })?;
        Ok(self.migrate(name, &back.name, false, actor).await?.record)
    }
}

/// Step 4; how many ids went along.
async fn publish_rest(
    target: &Instance,
    record: &TypeRecord,
    rest: &Rest,
    history: &History,
    token: &str,
) -> u64 {
    let mut kept = 0;
    let due = |range: IdRange| update_id(range.start(), range.len(), record.load_percentage);
    let second = rest.second.map(|range| (range, due(range)));
    for (range, update_id) in rest.current.into_iter().chain(second) {
        let publication = Publication {
            range,
            update_id: update_id.max(range.start()),
            history,
            token,
            generation: record.placement.generation,
            replaces: false,
        };
        match target.dispatcher.publish(&record.name, publication).await {
            Ok(PublishOutcome::Published) => kept += range.len(),
            // Burnt, and with it what lies above.
            Ok(PublishOutcome::Refused(_)) | Err(_) => break,
        }
    }
    kept
}

/// Raises the end of shard 0, under which a type without shards is witnessed.
fn raise(ends: &mut BTreeMap<u8, i64>, end: i64) {
    if end > 0 {
        let first = ends.entry(0).or_default();
        *first = end.max(*first);
    }
}

/// Finishes what others began and left alone, and drains instances.
pub(super) async fn look_after(parts: Arc<Parts>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // When this node first saw a migration under way.
    let mut seen: BTreeMap<(TypeName, i64), Instant> = BTreeMap::new();
    loop {
        ticks.tick().await;
        let Ok(moving) = parts.store.migrations().await else { continue };
        let now = Instant::now();
        let key = |record: &TypeRecord| (record.name.clone(), record.placement.generation);
        let mut still = BTreeMap::new();
        for record in &moving {
            still.insert(key(record), *seen.get(&key(record)).unwrap_or(&now));
        }
        seen = still;
        for record in &moving {
            let Some(target) = record.placement.moving_to else { continue };
            if seen[&key(record)].elapsed() < LEFT_ALONE {
                continue;
            }
            let seal = Seal { generation: record.placement.generation, target };
            let name = record.name.clone();
            tracing::info!(id_type = %name, %target, "finishing a migration that was left alone");
            let work = Unfinished { name, from: record.instance, seal, abandon: false };
            let work = parts.clone().finish_by_itself(work);
            log_failure(&record.name, parts.tasks.spawn(work).await.unwrap_or(Ok(())));
        }
        if let Err(error) = drain(&parts).await {
            tracing::debug!(%error, "draining will go on");
        }
    }
}

impl Parts {
    async fn finish_by_itself(self: Arc<Self>, work: Unfinished) -> Result<(), Error> {
        let node = self.config.node.clone();
        self.finish_or_undo(work, &node).await.map(drop)
    }
}

async fn drain(parts: &Arc<Parts>) -> Result<(), StoreError> {
    let instances = parts.store.connections().await?;
    for instance in &instances {
        let to = instances.iter().find(|to| Some(to.id) == instance.drain_to);
        let Some(to) = to else { continue };
        let filter = TypeFilter {
            instance: Some(instance.id),
            limit: DRAINED_AT_ONCE,
            ..TypeFilter::default()
        };
        let mut types = parts.store.list_types(&filter).await?.items;
        types.retain(|record| record.placement.moving_to.is_none());
        // All nodes are at it, each begins elsewhere.
        let length = types.len().max(1);
        types.rotate_left((parts.entropy.random_u128() % length as u128) as usize % length);
        for record in types {
            let moved = parts.migrate(&record.name, &to.name, false, &parts.config.node).await;
            match moved {
                // Another node was faster.
                Err(error) if error.code == ErrorCode::Conflict => {}
                Err(error) if error.code == ErrorCode::Unavailable => {
                    log_failure(&record.name, Err(error));
                    break;
                }
                moved => log_failure(&record.name, moved.map(drop)),
            }
        }
    }
    Ok(())
}

fn log_failure(name: &TypeName, result: Result<(), Error>) {
    if let Err(error) = result {
        tracing::warn!(id_type = %name, %error, "a migration did not end: it will be tried again");
    }
}

/// Two databases of one server have one history: the range store could not tell them
/// apart, and would refuse the second of them as the older.
fn check_servers(here: &View, there: &View) -> Result<(), Error> {
    if here.history != there.history {
        return Ok(());
    }
    Err(Error::invalid(
        "instance",
        "instance is on the same Redis server as the one that the type is on: move it to another \
         server",
    ))
}
