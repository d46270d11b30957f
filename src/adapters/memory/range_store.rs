//! A range store that forgets everything when it is dropped.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use async_trait::async_trait;

use super::MemoryWorkerIds;
use crate::adapters::system::unix_ms;
use crate::domain::instance::choose_instance;
use crate::domain::{
    Error, ErrorCode, History, IdRange, InstanceId, InstanceRecord, InstanceSpec, State,
    TypeChange, TypeName, TypeRecord, TypeSpec, allocation,
};
use crate::ports::{
    Allocation, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore, StoreError,
    Subject, TypeFilter,
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
    /// `next_range` allocates, and then fails: the outcome is unknown.
    LostAnswer,
}

/// The whole store behind one lock, which is its transaction.
#[derive(Default)]
pub struct MemoryRangeStore {
    state: Mutex<Tables>,
    fault: Mutex<StoreFault>,
    pub(super) workers: MemoryWorkerIds,
}

/// A backup of a [`MemoryRangeStore`].
pub struct StoreSnapshot(Tables);

#[derive(Clone, Default)]
struct Tables {
    types: BTreeMap<TypeName, TypeRecord>,
    histories: HashSet<(TypeName, History)>,
    instances: BTreeMap<InstanceId, InstanceRecord>,
    last_instance: i64,
    ranges: Vec<(TypeName, RangeLogEntry)>,
    changes: Vec<Change>,
    audit: Vec<AuditEntry>,
}

impl MemoryRangeStore {
    /// An empty store: no types, no instances.
    pub fn new() -> Self {
        Self::default()
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

    fn fault(&self) -> StoreFault {
        *self.fault.lock().expect("never poisoned")
    }

    pub(super) async fn pass(&self) -> Result<(), StoreError> {
        match self.fault() {
            StoreFault::None | StoreFault::LostAnswer => Ok(()),
            StoreFault::Down => Err(StoreError::Unavailable("down for a test".to_owned())),
            StoreFault::Silent => {
                // As an adapter with a time limit of its own.
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                Err(StoreError::Unavailable("no answer for a test".to_owned()))
            }
        }
    }

    fn tables(&self) -> std::sync::MutexGuard<'_, Tables> {
        self.state.lock().expect("no one panics while holding the tables")
    }
}

fn refused(code: ErrorCode, message: String) -> StoreError {
    StoreError::Refused(Error::new(code, message))
}

impl Tables {
    fn record(&self, name: &TypeName) -> Result<TypeRecord, StoreError> {
        self.types
            .get(name)
            .cloned()
            .ok_or_else(|| StoreError::Refused(Error::unknown_type(name.as_str())))
    }

    fn changed(&mut self, subject: Subject) -> i64 {
        let seq = self.changes.len() as i64 + 1;
        self.changes.push(Change { seq, subject });
        seq
    }

    fn audited(&mut self, subject: Subject, action: &str, actor: &str, name: &str) {
        let seq = self.changed(subject);
        self.audit.push(AuditEntry {
            seq,
            at_ms: unix_ms(),
            actor: actor.to_owned(),
            action: action.to_owned(),
            subject: name.to_owned(),
            before: None,
            after: None,
        });
    }

    fn log(&mut self, name: &TypeName, range: IdRange, at_ms: i64, owner: &str) {
        self.ranges.push((
            name.clone(),
            RangeLogEntry {
                range,
                at_ms,
                owner: owner.to_owned(),
                instance: None,
                history: None,
                shard: None,
            },
        ));
    }

    fn instance_for(&self, wanted: Option<&str>) -> Result<InstanceId, StoreError> {
        let all: Vec<_> = self.instances.values().cloned().collect();
        choose_instance(&all, wanted).map(|i| i.id).map_err(StoreError::Refused)
    }
}

#[async_trait]
impl RangeStore for MemoryRangeStore {
    async fn next_range(&self, request: NextRange<'_>) -> Result<Allocation, StoreError> {
        self.pass().await?;
        let mut tables = self.tables();
        let mut record = tables.record(request.name)?;
        let (range, update_id) = allocation::next_range(&record, request.usage, request.floor)
            .map_err(StoreError::Refused)?;
        if let Some((instance, history)) = request.target {
            if instance != record.instance {
                return Err(StoreError::NotAssigned { name: request.name.to_string(), instance });
            }
            if record.history.as_ref() != Some(history) {
                let key = (request.name.clone(), history.clone());
                if !tables.histories.insert(key) {
                    return Err(StoreError::Superseded {
                        name: request.name.to_string(),
                        history: history.to_string(),
                    });
                }
                record.history = Some(history.clone());
                tables.changed(Subject::Type(request.name.clone()));
            }
        }
        let load_ms = unix_ms();
        record.next_id = range.end();
        record.last_range = Some(range.len() as i64);
        record.last_load_ms = Some(load_ms);
        tables.log(request.name, range, load_ms, request.owner);
        if let Some((instance, history)) = request.target {
            let entry = &mut tables.ranges.last_mut().expect("just logged").1;
            entry.instance = Some(instance);
            entry.history = Some(history.to_string());
        }
        tables.types.insert(request.name.clone(), record);
        if self.fault() == StoreFault::LostAnswer {
            return Err(StoreError::Unavailable("the answer was lost".to_owned()));
        }
        Ok(Allocation { range, update_id, load_ms })
    }

    async fn reserve(
        &self,
        name: &TypeName,
        count: i64,
        floor: i64,
        owner: &str,
    ) -> Result<IdRange, StoreError> {
        self.pass().await?;
        let mut tables = self.tables();
        let mut record = tables.record(name)?;
        let range = allocation::reserve(&record, count, floor).map_err(StoreError::Refused)?;
        record.next_id = range.end();
        tables.log(name, range, unix_ms(), owner);
        tables.types.insert(name.clone(), record);
        tables.audited(Subject::Type(name.clone()), "reserve", owner, name.as_str());
        Ok(range)
    }

    async fn give_back(
        &self,
        _name: &TypeName,
        _shard: Option<u8>,
        _tail: IdRange,
    ) -> Result<bool, StoreError> {
        todo!()
    }

    async fn rotate_key(
        &self,
        _name: &TypeName,
        _key: &crate::domain::OpaqueKey,
        _actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        todo!()
    }

    async fn find_range(
        &self,
        _name: &TypeName,
        _shard: Option<u8>,
        _position: i64,
    ) -> Result<Option<RangeLogEntry>, StoreError> {
        todo!()
    }

    async fn create_type(&self, spec: &TypeSpec, actor: &str) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        spec.validate().map_err(StoreError::Refused)?;
        let mut tables = self.tables();
        if tables.types.contains_key(&spec.name) {
            return Err(refused(
                ErrorCode::AlreadyExists,
                format!("an id type called {} exists already", spec.name),
            ));
        }
        let instance = tables.instance_for(spec.instance.as_deref())?;
        let record = TypeRecord::created(spec, instance, unix_ms());
        tables.types.insert(spec.name.clone(), record.clone());
        tables.instances.get_mut(&instance).expect("just found").types += 1;
        let subject = Subject::Type(spec.name.clone());
        tables.audited(subject, "create_type", actor, spec.name.as_str());
        Ok(record)
    }

    async fn alter_type(
        &self,
        name: &TypeName,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let mut tables = self.tables();
        let record = tables.record(name)?;
        let changed = change.apply_to(&record, unix_ms()).map_err(StoreError::Refused)?;
        tables.types.insert(name.clone(), changed.clone());
        tables.audited(Subject::Type(name.clone()), "alter_type", actor, name.as_str());
        Ok(changed)
    }

    async fn set_retired(
        &self,
        name: &TypeName,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        self.pass().await?;
        let mut tables = self.tables();
        let mut record = tables.record(name)?;
        let (state, action) = match retired {
            true => (State::Retired, "retire_type"),
            false => (State::Active, "restore_type"),
        };
        if record.state != state {
            record.state = state;
            record.version += 1;
            record.updated_ms = unix_ms();
            tables.types.insert(name.clone(), record.clone());
            tables.audited(Subject::Type(name.clone()), action, actor, name.as_str());
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
        let known = tables.histories.contains(&(name.clone(), history.clone()));
        Ok(known && current != Some(history))
    }

    async fn list_types(&self, filter: &TypeFilter) -> Result<Page<TypeRecord>, StoreError> {
        self.pass().await?;
        let limit = filter.limit.clamp(1, 1_000) as usize;
        let tables = self.tables();
        let mut items: Vec<_> = tables
            .types
            .values()
            .filter(|t| filter.after.as_deref().is_none_or(|a| t.name.as_str() > a))
            .filter(|t| filter.contains.as_deref().is_none_or(|c| t.name.as_str().contains(c)))
            .take(limit + 1)
            .cloned()
            .collect();
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Page { items, more })
    }

    async fn add_instance(
        &self,
        spec: &InstanceSpec,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        self.pass().await?;
        spec.validate().map_err(StoreError::Refused)?;
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
        tables.audited(Subject::Instances, "add_redis_instance", actor, &spec.name);
        Ok(record)
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), StoreError> {
        self.pass().await?;
        let mut tables = self.tables();
        let id = tables.instance_for(Some(name))?;
        let types = tables.instances[&id].types;
        if types > 0 {
            return Err(refused(
                ErrorCode::Conflict,
                format!("Redis instance {name} still has {types} id types"),
            ));
        }
        tables.instances.remove(&id);
        tables.audited(Subject::Instances, "remove_redis_instance", actor, name);
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
        Ok(unix_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::conformance;
    use std::sync::Arc;

    #[tokio::test]
    async fn conforms() {
        conformance::range_store(Arc::new(MemoryRangeStore::new())).await;
    }
}
