//! A range store that forgets everything when it is dropped.

use std::sync::Mutex;

use async_trait::async_trait;

use super::MemoryWorkerIds;
use super::checks::Checks;
use super::tables::{Audit, Tables, refused};
use crate::adapters::audit;
use crate::adapters::system::unix_ms;
use crate::domain::allocation::Sequence;
use crate::domain::instance::{check_drain, choose_instance};
use crate::domain::{
    Assignment, ErrorCode, History, IdRange, InstanceId, InstanceRecord, InstanceSpec, OpaqueKey,
    State, TypeChange, TypeName, TypeRecord, TypeSpec, allocation,
};
use crate::ports::range_store::not_assigned;
use crate::ports::{
    Allocation, Assigned, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore,
    StoreError, Subject, TypeFilter,
};

/// What a test does to a [`MemoryRangeStore`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreFault {
    /// Works.
    #[default]
    None,
    /// Every call fails before it has an effect.
    Down,
    /// Calls are not answered, and fail after 5 s.
    Silent,
    /// `next_range`, `give_back` and `rotate_key` do what they are asked, and
    /// then fail: the outcome is unknown.
    LostAnswer,
    /// So many calls are served, the next one fails, and those after it are served.
    Once(u32),
}

/// The whole store behind one lock, which is its transaction.
#[derive(Default)]
pub struct MemoryRangeStore {
    state: Mutex<Tables>,
    fault: Mutex<StoreFault>,
    clock: Mutex<Option<i64>>,
    checks: Checks,
    pub(super) workers: MemoryWorkerIds,
}

/// A backup of a [`MemoryRangeStore`].
#[derive(Clone)]
pub struct StoreSnapshot(Tables);

impl MemoryRangeStore {
    /// An empty store: no types, no instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), without some of the checks.
    pub fn with_checks(checks: Checks) -> Self {
        MemoryRangeStore { checks, ..Self::default() }
    }

    /// Everything that it holds now, for [`restore`](Self::restore).
    pub fn snapshot(&self) -> StoreSnapshot {
        StoreSnapshot(self.tables().clone())
    }

    /// Goes back to `snapshot`: what came after it is lost.
    pub fn restore(&self, snapshot: StoreSnapshot) {
        *self.tables() = snapshot.0;
    }

    /// From now on every call meets `fault`.
    pub fn set_fault(&self, fault: StoreFault) {
        *self.fault.lock().expect("never poisoned") = fault;
    }

    /// From now on the store's clock stands at `now_ms`, in milliseconds of the
    /// Unix epoch; `None` is the machine's clock again.
    pub fn set_clock(&self, now_ms: Option<i64>) {
        *self.clock.lock().expect("never poisoned") = now_ms;
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.lock().expect("never poisoned").unwrap_or_else(unix_ms)
    }

    /// `done`, unless the answer gets lost.
    fn answer<T>(&self, done: T) -> Result<T, StoreError> {
        match self.fault() {
            StoreFault::LostAnswer => {
                Err(StoreError::Unavailable("the answer was lost".to_owned()))
            }
            _ => Ok(done),
        }
    }

    fn fault(&self) -> StoreFault {
        *self.fault.lock().expect("never poisoned")
    }

    /// The fault that the next call meets.
    fn fault_of_next(&self) -> StoreFault {
        let mut fault = self.fault.lock().expect("never poisoned");
        match *fault {
            StoreFault::Once(0) => {
                *fault = StoreFault::None;
                StoreFault::Down
            }
            StoreFault::Once(served) => {
                *fault = StoreFault::Once(served - 1);
                *fault
            }
            other => other,
        }
    }

    pub(super) async fn pass(&self) -> Result<(), StoreError> {
        match self.fault_of_next() {
            StoreFault::None | StoreFault::LostAnswer | StoreFault::Once(_) => Ok(()),
            StoreFault::Down => Err(StoreError::Unavailable("down for a test".to_owned())),
            StoreFault::Silent => {
                // As an adapter with a time limit of its own.
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                Err(StoreError::Unavailable("no answer for a test".to_owned()))
            }
        }
    }

    pub(super) fn tables(&self) -> std::sync::MutexGuard<'_, Tables> {
        self.state.lock().expect("no one panics while holding the tables")
    }
}

#[async_trait]
impl RangeStore for MemoryRangeStore {
    async fn next_range(&self, request: NextRange<'_>) -> Result<Allocation, StoreError> {
        self.pass().await?;
        let load_ms = self.now_ms();
        let NextRange { shard, period, usage, .. } = request;
        let floor = if self.checks.floor { request.floor } else { 0 };
        let wanted = allocation::Request { shard, period, usage, floor, now_ms: load_ms };
        let read_early = match self.checks.row_lock {
            true => None,
            false => {
                let record = self.tables().record(request.name)?;
                let sequence = self.tables().sequence(&record, shard);
                // A round trip between the read and the write.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                Some(sequence)
            }
        };
        let mut tables = self.tables();
        let mut record = tables.record(request.name)?;
        let sequence = read_early.unwrap_or(tables.sequence(&record, shard));
        let (range, update_id) = allocation::next_range(&record, sequence, &wanted)?;
        if let Some((instance, history)) = request.target {
            if instance != record.instance {
                return Err(StoreError::NotAssigned { name: request.name.to_string(), instance });
            }
            if record.history.as_ref() != Some(history) {
                let is_known = tables.knows_history(request.name, history);
                if is_known && self.checks.superseded {
                    return Err(StoreError::Superseded {
                        name: request.name.to_string(),
                        history: history.to_string(),
                    });
                }
                record.history = Some(history.clone());
                if !is_known {
                    tables.histories.push((request.name.clone(), history.clone(), instance));
                }
                tables.changed(load_ms, Subject::Type(request.name.clone()));
            }
        }
        record.last_range = Some(range.len() as i64);
        record.last_load_ms = Some(load_ms);
        let sequence = Sequence { next_id: range.end(), last_range: record.last_range };
        tables.put_sequence(&mut record, shard, sequence);
        let entry = RangeLogEntry {
            range,
            at_ms: load_ms,
            owner: request.owner.to_owned(),
            instance: request.target.map(|(instance, _)| instance),
            history: request.target.map(|(_, history)| history.to_string()),
            shard,
        };
        tables.ranges.push((request.name.clone(), entry));
        tables.types.insert(request.name.clone(), record);
        self.answer(Allocation { range, update_id, load_ms })
    }

    async fn reserve(
        &self,
        name: &TypeName,
        count: i64,
        floor: i64,
        owner: &str,
    ) -> Result<IdRange, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let mut record = tables.record(name)?;
        let range = allocation::reserve(&record, count, floor).map_err(StoreError::Refused)?;
        record.next_id = range.end();
        let entry = RangeLogEntry {
            range,
            at_ms,
            owner: owner.to_owned(),
            instance: None,
            history: None,
            shard: None,
        };
        tables.ranges.push((name.clone(), entry));
        tables.types.insert(name.clone(), record);
        let audit = Audit { action: "reserve", actor: owner, at_ms };
        tables.audited_type(audit, name, None, Some(audit::block(range)));
        Ok(range)
    }

    async fn give_back(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, StoreError> {
        self.pass().await?;
        let mut tables = self.tables();
        let mut record = tables.record(name)?;
        allocation::check_shard(&record, shard).map_err(StoreError::Refused)?;
        let sequence = tables.sequence(&record, shard);
        let index = tables.range_at(name, shard, tail.start());
        let logged = index.map(|i| &tables.ranges[i].1).filter(|entry| entry.instance.is_none());
        let logged = logged.map(|entry| entry.range);
        let at_end = match self.checks.tail {
            true => sequence,
            false => Sequence { next_id: tail.end(), ..sequence },
        };
        let Some(back) = allocation::give_back(&record, at_end, logged, tail) else {
            return self.answer(false);
        };
        let index = index.expect("a range without a place in the log does not go back");
        match back.left {
            Some(left) => tables.ranges[index].1.range = left,
            None => drop(tables.ranges.remove(index)),
        }
        let sequence = Sequence { next_id: back.next_id, ..sequence };
        tables.put_sequence(&mut record, shard, sequence);
        tables.types.insert(name.clone(), record);
        self.answer(true)
    }

    async fn rotate_key(
        &self,
        name: &TypeName,
        key: &OpaqueKey,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let record = tables.record(name)?;
        let rotation = allocation::rotation(&record).map_err(StoreError::Refused)?;
        let mut changed = rotation.apply_to(&record, key, at_ms);
        for shard in allocation::shards(record.mode) {
            let sequence = tables.sequence(&record, shard);
            let sequence = Sequence { next_id: rotation.next_id, ..sequence };
            tables.put_sequence(&mut changed, shard, sequence);
        }
        tables.types.insert(name.clone(), changed.clone());
        let (before, after) = (audit::settings(&record), audit::rotated(&changed, rotation));
        let audit = Audit { action: "rotate_key", actor, at_ms };
        tables.audited_type(audit, name, Some(before), Some(after));
        self.answer(changed)
    }

    async fn find_range(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        position: i64,
    ) -> Result<Option<RangeLogEntry>, StoreError> {
        self.pass().await?;
        let tables = self.tables();
        let found = tables.range_at(name, shard, position);
        Ok(found.map(|index| tables.ranges[index].1.clone()))
    }

    async fn create_type(&self, spec: &TypeSpec, actor: &str) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        allocation::check_new(spec).map_err(StoreError::Refused)?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        if tables.types.contains_key(&spec.name) {
            return Err(refused(
                ErrorCode::AlreadyExists,
                format!("an id type called {} exists already", spec.name),
            ));
        }
        let all: Vec<_> = tables.instances.values().cloned().collect();
        let instance = choose_instance(&all, spec.instance.as_deref());
        let instance = instance.map_err(StoreError::Refused)?.id;
        let record = TypeRecord::created(spec, instance, at_ms);
        tables.types.insert(spec.name.clone(), record.clone());
        tables.instances.get_mut(&instance).expect("just found").types += 1;
        let audit = Audit { action: "create_type", actor, at_ms };
        tables.audited_type(audit, &spec.name, None, Some(audit::settings(&record)));
        Ok(record)
    }

    async fn alter_type(
        &self,
        name: &TypeName,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let record = tables.record(name)?;
        let changed = change.apply_to(&record, at_ms).map_err(StoreError::Refused)?;
        tables.types.insert(name.clone(), changed.clone());
        let (before, after) = (audit::settings(&record), audit::settings(&changed));
        let audit = Audit { action: "alter_type", actor, at_ms };
        tables.audited_type(audit, name, Some(before), Some(after));
        Ok(changed)
    }

    async fn set_retired(
        &self,
        name: &TypeName,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let mut record = tables.record(name)?;
        let (state, action) = match retired {
            true => (State::Retired, "retire_type"),
            false => (State::Active, "restore_type"),
        };
        if record.state != state {
            let before = Some(audit::settings(&record));
            record.state = state;
            record.version += 1;
            record.updated_ms = at_ms;
            tables.types.insert(name.clone(), record.clone());
            let audit = Audit { action, actor, at_ms };
            let after = Some(audit::settings(&record));
            tables.audited_type(audit, name, before, after);
        }
        Ok(record)
    }

    async fn find_type(&self, name: &TypeName) -> Result<Option<TypeRecord>, StoreError> {
        self.pass().await?;
        Ok(self.tables().types.get(name).cloned())
    }

    async fn is_superseded(&self, name: &TypeName, history: &History) -> Result<bool, StoreError> {
        self.pass().await?;
        let tables = self.tables();
        let current = tables.types.get(name).and_then(|t| t.history.as_ref());
        let known = tables.knows_history(name, history);
        Ok(self.checks.superseded && known && current != Some(history))
    }

    async fn list_types(&self, filter: &TypeFilter) -> Result<Page<TypeRecord>, StoreError> {
        self.pass().await?;
        let limit = filter.limit.clamp(1, 1_000) as usize;
        let tables = self.tables();
        let mut items: Vec<_> = tables
            .types
            .values()
            .filter(|t| filter.after.as_deref().is_none_or(|a| t.name.as_str() > a))
            .filter(|t| filter.instance.is_none_or(|instance| t.instance == instance))
            .filter(|t| filter.contains.as_deref().is_none_or(|c| t.name.as_str().contains(c)))
            .take(limit + 1)
            .cloned()
            .collect();
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Page { items, more })
    }

    async fn begin_migration(
        &self,
        name: &TypeName,
        target: &str,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let record = tables.record(name)?;
        let target = tables.instance(target)?;
        let moving = record.begin_move(&target, at_ms).map_err(StoreError::Refused)?;
        tables.placed(Audit { action: "begin_migration", actor, at_ms }, &record, &moving);
        self.answer(moving)
    }

    async fn assign_type(
        &self,
        name: &TypeName,
        mut assignment: Assignment<'_>,
        actor: &str,
    ) -> Result<Assigned, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let record = tables.record(name)?;
        if !self.checks.generation {
            let newest = record.placement.generation.max(assignment.seal.generation);
            assignment.seal.generation = newest;
        }
        let target = assignment.seal.target;
        if !tables.instances.contains_key(&target) {
            return Err(refused(
                ErrorCode::UnknownInstance,
                format!("no Redis instance has the number {target}"),
            ));
        }
        let Assignment { history, rest_end, .. } = assignment;
        let known = tables.known(name, target, history, rest_end);
        let is_known = known.is_known;
        let assigned = record.assign(assignment, known, at_ms);
        let (moved, keeps_rest) = assigned.map_err(|why| not_assigned(why, name, history))?;
        if let Some(history) = history.filter(|_| !is_known) {
            tables.histories.push((name.clone(), history.clone(), target));
        }
        tables.instances.get_mut(&record.instance).expect("a type has an instance").types -= 1;
        tables.instances.get_mut(&target).expect("just found").types += 1;
        tables.placed(Audit { action: "assign_type", actor, at_ms }, &record, &moved);
        self.answer(Assigned { record: moved, keeps_rest })
    }

    async fn undo_migration(
        &self,
        name: &TypeName,
        generation: i64,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let record = tables.record(name)?;
        let still = record.undo_move(generation, at_ms).map_err(StoreError::Refused)?;
        tables.placed(Audit { action: "undo_migration", actor, at_ms }, &record, &still);
        self.answer(still)
    }

    async fn migrations(&self) -> Result<Vec<TypeRecord>, StoreError> {
        self.pass().await?;
        let tables = self.tables();
        let moving = tables.types.values().filter(|t| t.placement.moving_to.is_some());
        Ok(moving.take(1_000).cloned().collect())
    }

    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let from = tables.instance(name)?;
        let to = to.map(|to| tables.instance(to)).transpose()?;
        if let Some(to) = &to {
            check_drain(&from, to).map_err(StoreError::Refused)?;
        }
        let before = audit::drain(&from);
        let drained = InstanceRecord { drain_to: to.map(|to| to.id), ..from };
        tables.instances.insert(drained.id, drained.clone());
        let audit = Audit { action: "drain_redis_instance", actor, at_ms };
        tables.audited_instance(audit, &drained.name, Some(before), Some(audit::drain(&drained)));
        Ok(drained)
    }

    async fn add_instance(
        &self,
        spec: &InstanceSpec,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        self.pass().await?;
        spec.validate().map_err(StoreError::Refused)?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        if tables.instances.values().any(|i| i.name == spec.name) {
            return Err(refused(
                ErrorCode::AlreadyExists,
                format!("a Redis instance called {} exists already", spec.name),
            ));
        }
        tables.last_instance += 1;
        let record = spec.clone().into_record(InstanceId(tables.last_instance));
        tables.instances.insert(record.id, record.clone());
        let audit = Audit { action: "add_redis_instance", actor, at_ms };
        tables.audited_instance(audit, &spec.name, None, None);
        Ok(record)
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let InstanceRecord { id, types, .. } = tables.instance(name)?;
        let to_come = tables.types.values().filter(|t| t.placement.moving_to == Some(id)).count();
        if types > 0 || to_come > 0 {
            return Err(refused(
                ErrorCode::Conflict,
                format!("Redis instance {name} has {types} id types, and {to_come} are to come"),
            ));
        }
        if let Some(other) = tables.instances.values().find(|i| i.drain_to == Some(id)) {
            return Err(refused(
                ErrorCode::Conflict,
                format!("Redis instance {} is being drained to {name}", other.name),
            ));
        }
        tables.instances.remove(&id);
        let audit = Audit { action: "remove_redis_instance", actor, at_ms };
        tables.audited_instance(audit, name, None, None);
        Ok(())
    }

    async fn instances(&self) -> Result<Vec<InstanceRecord>, StoreError> {
        self.pass().await?;
        Ok(self.tables().instances.values().cloned().collect())
    }

    async fn changes_since(&self, seq: i64) -> Result<Vec<Change>, StoreError> {
        self.pass().await?;
        let tables = self.tables();
        Ok(tables.changes.iter().filter(|c| c.seq > seq).take(1_000).cloned().collect())
    }

    async fn latest_change(&self) -> Result<i64, StoreError> {
        self.pass().await?;
        Ok(self.tables().changes.len() as i64)
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        self.pass().await?;
        let tables = self.tables();
        Ok(tables.audit.iter().rev().take(limit as usize).cloned().collect())
    }

    async fn range_log(
        &self,
        name: &TypeName,
        limit: u32,
    ) -> Result<Vec<RangeLogEntry>, StoreError> {
        self.pass().await?;
        let tables = self.tables();
        let of_type = tables.ranges.iter().rev().filter(|(n, _)| n == name);
        Ok(of_type.take(limit as usize).map(|(_, e)| e.clone()).collect())
    }

    async fn ping(&self) -> Result<i64, StoreError> {
        self.pass().await?;
        Ok(self.now_ms())
    }
}

#[cfg(test)]
#[path = "range_store_tests.rs"]
mod tests;
