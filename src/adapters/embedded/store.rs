//! The store itself: each method is one closure that runs in one transaction
//! on a thread for blocking work.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use refinery_core::{Migration, Runner};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::migration::{Recorded, add_history};
use super::ranges::{cut_range, log_range, put_key, put_sequence, range_at, range_log, sequence};
use super::rows::{find_type, instances, must_find, put_type, sqlite, types_where};
use crate::adapters::audit;
use crate::adapters::system::unix_ms;
use crate::domain::allocation::Sequence;
use crate::domain::instance::{check_drain, choose_instance, find_instance};
use crate::domain::{
    Assignment, Error, ErrorCode, History, IdRange, InstanceId, InstanceRecord, InstanceSpec,
    OpaqueKey, State, TypeChange, TypeName, TypeRecord, TypeSpec, allocation,
};
use crate::ports::range_store::not_assigned;
use crate::ports::{
    Allocation, Assigned, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore,
    StoreError, Subject, TypeCounts, TypeFilter,
};

pub(super) const MIGRATIONS: &[(&str, &str)] = &[
    ("V1__strict_core", include_str!("V1__strict_core.sql")),
    ("V2__kinds", include_str!("V2__kinds.sql")),
    ("V3__worker_ids", include_str!("V3__worker_ids.sql")),
    ("V4__migration", include_str!("V4__migration.sql")),
    ("V5__accounts", include_str!("V5__accounts.sql")),
    ("V6__callers", include_str!("V6__callers.sql")),
];

/// Longest time for one call: a disk that needs longer is not well.
const TIMEOUT: Duration = Duration::from_secs(5);

/// See the module.
pub struct EmbeddedStore {
    connection: Arc<Mutex<Connection>>,
}

impl EmbeddedStore {
    /// Opens or creates `idgen.sqlite` in `folder` (created if missing), and
    /// brings its schema up to date. Registers the dispatcher of this process
    /// as instance 1. Fails when another process holds it, or a newer version
    /// wrote it.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let file = folder.join("idgen.sqlite");
        let fail = |what: String| {
            StoreError::Unavailable(format!("embedded store {}: {what}", file.display()))
        };
        std::fs::create_dir_all(folder).map_err(|e| fail(e.to_string()))?;
        let mut connection = Connection::open(&file).map_err(|e| fail(e.to_string()))?;
        let configure = |c: &Connection| -> rusqlite::Result<()> {
            // Long enough for a predecessor that is just shutting down.
            c.busy_timeout(Duration::from_secs(1))?;
            c.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            c.pragma_update(None, "journal_mode", "WAL")?;
            c.pragma_update(None, "synchronous", "FULL")?;
            // A migration may make a table anew that others refer to.
            c.pragma_update(None, "foreign_keys", false)?;
            // With the exclusive mode the first write takes the lock for good.
            c.execute_batch("BEGIN IMMEDIATE; COMMIT;")
        };
        configure(&connection).map_err(|e| match e.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy) => fail(
                "another process uses it; each process needs a --data folder of its own".into(),
            ),
            _ => fail(e.to_string()),
        })?;
        migrate(&mut connection, MIGRATIONS).map_err(|e| fail(e.to_string()))?;
        connection.pragma_update(None, "foreign_keys", true).map_err(|e| fail(e.to_string()))?;
        connection
            .execute(
                "INSERT OR IGNORE INTO redis_instance (id, name, url) VALUES (1, 'embedded', ?1)",
                [InstanceRecord::MEMORY_URL],
            )
            .map_err(|e| fail(e.to_string()))?;
        Ok(EmbeddedStore { connection: Arc::new(Mutex::new(connection)) })
    }

    /// Runs `work` in a transaction that is committed, on disk, if it succeeds.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.blocking(move |connection| {
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(sqlite)?;
            let result = work(&transaction)?;
            transaction.commit().map_err(sqlite)?;
            Ok(result)
        })
        .await
    }

    pub(super) async fn blocking<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let connection = self.connection.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().map_err(|_| {
                StoreError::Broken("the embedded store failed in an earlier call".into())
            })?;
            work(&mut connection)
        });
        match tokio::time::timeout(TIMEOUT, work).await {
            Ok(done) => done.map_err(|e| StoreError::Broken(format!("embedded store: {e}")))?,
            // The work goes on; whether it succeeds nobody will hear.
            Err(_) => Err(StoreError::Unavailable(format!(
                "embedded store: no answer within {} s",
                TIMEOUT.as_secs()
            ))),
        }
    }
}

/// Brings the schema up to the last of `migrations`. To be called while foreign
/// keys are off, which cannot be changed within a transaction.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &[(&str, &str)],
) -> Result<(), refinery_core::Error> {
    let migrations = migrations
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, sql))
        .collect::<Result<Vec<_>, _>>()?;
    // A migration that is applied but not known here was written by a newer
    // version; refinery calls it missing and stops.
    Runner::new(&migrations)
        .set_abort_missing(true)
        .set_abort_divergent(true)
        .run(connection)
        .map(|_| ())
}

fn refused(code: ErrorCode, message: String) -> StoreError {
    StoreError::Refused(Error::new(code, message))
}

/// Appends to the feed; with `action` also to the audit log.
pub(super) fn record_change(
    transaction: &Transaction<'_>,
    kind: &str,
    subject: &str,
    actor: &str,
    action: Option<&str>,
    before: Option<String>,
    after: Option<String>,
) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "INSERT INTO change_feed (kind, subject, at_ms, actor, action, before, after) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .and_then(|mut s| {
            s.execute(params![kind, subject, unix_ms(), actor, action, before, after])
        })
        .map_err(sqlite)?;
    Ok(())
}

/// Writes a step of a migration of `before`.
fn record_move(
    transaction: &Transaction<'_>,
    before: &TypeRecord,
    after: &TypeRecord,
    actor: &str,
    action: &str,
) -> Result<(), StoreError> {
    put_type(transaction, after)?;
    let (name, action) = (after.name.as_str(), Some(action));
    let (before, after) = (Some(audit::placement(before)), Some(audit::placement(after)));
    record_change(transaction, "type", name, actor, action, before, after)
}

/// The rule of histories (see the port): a new one becomes the current one, a
/// known one that is not current was succeeded.
fn check_target(
    transaction: &Transaction<'_>,
    record: &mut TypeRecord,
    instance: InstanceId,
    history: History,
    owner: &str,
) -> Result<(), StoreError> {
    if instance != record.instance {
        return Err(StoreError::NotAssigned { name: record.name.to_string(), instance });
    }
    if record.history.as_ref() == Some(&history) {
        return Ok(());
    }
    if !add_history(transaction, &record.name, &history, instance)? {
        return Err(StoreError::Superseded {
            name: record.name.to_string(),
            history: history.to_string(),
        });
    }
    record.history = Some(history);
    record_change(transaction, "type", record.name.as_str(), owner, None, None, None)
}

#[async_trait]
impl RangeStore for EmbeddedStore {
    async fn next_range(&self, request: NextRange<'_>) -> Result<Allocation, StoreError> {
        let name = request.name.clone();
        let target = request.target.map(|(i, h)| (i, h.clone()));
        let NextRange { shard, period, usage, floor, .. } = request;
        let owner = request.owner.to_owned();
        self.write(move |transaction| {
            let load_ms = unix_ms();
            let mut record = must_find(transaction, &name)?;
            let sequence = sequence(transaction, &record, shard)?;
            let wanted = allocation::Request { shard, period, usage, floor, now_ms: load_ms };
            let (range, update_id) = allocation::next_range(&record, sequence, &wanted)?;
            if let Some((instance, history)) = &target {
                check_target(transaction, &mut record, *instance, history.clone(), &owner)?;
            }
            record.last_range = Some(range.len() as i64);
            record.last_load_ms = Some(load_ms);
            let sequence = Sequence { next_id: range.end(), last_range: record.last_range };
            put_sequence(transaction, &mut record, shard, sequence)?;
            let entry = RangeLogEntry {
                shard,
                range,
                at_ms: load_ms,
                owner,
                instance: target.as_ref().map(|t| t.0),
                history: target.map(|t| t.1.to_string()),
            };
            log_range(transaction, &name, &entry)?;
            Ok(Allocation { range, update_id, load_ms })
        })
        .await
    }

    async fn reserve(
        &self,
        name: &TypeName,
        count: i64,
        floor: i64,
        owner: &str,
    ) -> Result<IdRange, StoreError> {
        let (name, owner) = (name.clone(), owner.to_owned());
        self.write(move |transaction| {
            let mut record = must_find(transaction, &name)?;
            let range = allocation::reserve(&record, count, floor).map_err(StoreError::Refused)?;
            record.next_id = range.end();
            put_type(transaction, &record)?;
            let entry = RangeLogEntry {
                range,
                at_ms: unix_ms(),
                owner,
                instance: None,
                history: None,
                shard: None,
            };
            log_range(transaction, &name, &entry)?;
            let (action, after) = (Some("reserve"), Some(audit::block(range)));
            let owner = &entry.owner;
            record_change(transaction, "type", name.as_str(), owner, action, None, after)?;
            Ok(range)
        })
        .await
    }

    async fn give_back(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, StoreError> {
        let name = name.clone();
        self.write(move |transaction| {
            let mut record = must_find(transaction, &name)?;
            allocation::check_shard(&record, shard).map_err(StoreError::Refused)?;
            let sequence = sequence(transaction, &record, shard)?;
            let entry = range_at(transaction, &name, shard, tail.start())?;
            let logged = entry.filter(|entry| entry.instance.is_none()).map(|entry| entry.range);
            let back = allocation::give_back(&record, sequence, logged, tail);
            let (Some(logged), Some(back)) = (logged, back) else { return Ok(false) };
            cut_range(transaction, &name, shard, logged.start(), back.left)?;
            let sequence = Sequence { next_id: back.next_id, ..sequence };
            put_sequence(transaction, &mut record, shard, sequence)?;
            Ok(true)
        })
        .await
    }

    async fn rotate_key(
        &self,
        name: &TypeName,
        key: &OpaqueKey,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, key, actor) = (name.clone(), key.clone(), actor.to_owned());
        self.write(move |transaction| {
            let record = must_find(transaction, &name)?;
            let rotation = allocation::rotation(&record).map_err(StoreError::Refused)?;
            let mut changed = rotation.apply_to(&record, &key, unix_ms());
            for shard in allocation::shards(record.mode) {
                let sequence = sequence(transaction, &record, shard)?;
                let sequence = Sequence { next_id: rotation.next_id, ..sequence };
                put_sequence(transaction, &mut changed, shard, sequence)?;
            }
            let new = changed.keys.last().expect("just added");
            put_key(transaction, &name, new)?;
            let before = Some(audit::settings(&record));
            let after = Some(audit::rotated(&changed, rotation));
            let action = Some("rotate_key");
            record_change(transaction, "type", name.as_str(), &actor, action, before, after)?;
            Ok(changed)
        })
        .await
    }

    async fn find_range(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        position: i64,
    ) -> Result<Option<RangeLogEntry>, StoreError> {
        let name = name.clone();
        self.blocking(move |connection| range_at(connection, &name, shard, position)).await
    }

    async fn create_type(&self, spec: &TypeSpec, actor: &str) -> Result<TypeRecord, StoreError> {
        allocation::check_new(spec).map_err(StoreError::Refused)?;
        let (spec, actor) = (spec.clone(), actor.to_owned());
        self.write(move |transaction| {
            if find_type(transaction, &spec.name)?.is_some() {
                return Err(refused(
                    ErrorCode::AlreadyExists,
                    format!("an id type called {} exists already", spec.name),
                ));
            }
            let all = instances(transaction)?;
            let instance = choose_instance(&all, spec.instance.as_deref());
            let instance = instance.map_err(StoreError::Refused)?;
            let record = TypeRecord::created(&spec, instance.id, unix_ms());
            put_type(transaction, &record)?;
            for key in record.keys.iter() {
                put_key(transaction, &record.name, key)?;
            }
            let after = Some(audit::settings(&record));
            let action = Some("create_type");
            record_change(transaction, "type", record.name.as_str(), &actor, action, None, after)?;
            Ok(record)
        })
        .await
    }

    async fn alter_type(
        &self,
        name: &TypeName,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, change, actor) = (name.clone(), change.clone(), actor.to_owned());
        self.write(move |transaction| {
            let record = must_find(transaction, &name)?;
            let changed = change.apply_to(&record, unix_ms()).map_err(StoreError::Refused)?;
            put_type(transaction, &changed)?;
            let (before, after) = (Some(audit::settings(&record)), Some(audit::settings(&changed)));
            let action = Some("alter_type");
            record_change(transaction, "type", name.as_str(), &actor, action, before, after)?;
            Ok(changed)
        })
        .await
    }

    async fn set_retired(
        &self,
        name: &TypeName,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, actor) = (name.clone(), actor.to_owned());
        let (state, action) = match retired {
            true => (State::Retired, "retire_type"),
            false => (State::Active, "restore_type"),
        };
        self.write(move |transaction| {
            let record = must_find(transaction, &name)?;
            if record.state == state {
                return Ok(record);
            }
            let mut changed = record.clone();
            changed.state = state;
            changed.version += 1;
            changed.updated_ms = unix_ms();
            put_type(transaction, &changed)?;
            let (before, after) = (Some(audit::settings(&record)), Some(audit::settings(&changed)));
            let action = Some(action);
            record_change(transaction, "type", name.as_str(), &actor, action, before, after)?;
            Ok(changed)
        })
        .await
    }

    async fn find_type(&self, name: &TypeName) -> Result<Option<TypeRecord>, StoreError> {
        let name = name.clone();
        self.blocking(move |connection| find_type(connection, &name)).await
    }

    async fn is_superseded(&self, name: &TypeName, history: &History) -> Result<bool, StoreError> {
        let (name, history) = (name.clone(), history.clone());
        self.blocking(move |connection| {
            connection
                .query_row(
                    "SELECT EXISTS (SELECT 1 FROM type_history h JOIN id_type t USING (name) \
                     WHERE h.name = ?1 AND h.history = ?2 AND t.history IS NOT h.history)",
                    [name.as_str(), history.as_str()],
                    |row| row.get(0),
                )
                .map_err(sqlite)
        })
        .await
    }

    async fn list_types(&self, filter: &TypeFilter) -> Result<Page<TypeRecord>, StoreError> {
        let limit = i64::from(filter.limit.clamp(1, 1_000));
        let after = filter.after.clone().unwrap_or_default();
        let contains = filter.contains.clone().unwrap_or_default();
        let instance = filter.instance.map(|id| id.0);
        self.blocking(move |connection| {
            let wanted = "name > ?1 AND instr(name, ?2) > 0 \
                          AND (?3 IS NULL OR instance_id = ?3) ORDER BY name LIMIT ?4";
            let wanted_of = params![after, contains, instance, limit + 1];
            let mut items = types_where(connection, wanted, wanted_of)?;
            let more = items.len() as i64 > limit;
            items.truncate(limit as usize);
            Ok(Page { items, more })
        })
        .await
    }

    async fn count_types(&self) -> Result<TypeCounts, StoreError> {
        self.blocking(|connection| {
            let sql = "SELECT COUNT(*) FILTER (WHERE state = 'active'), \
                       COUNT(*) FILTER (WHERE state <> 'active') FROM id_type";
            let count = |row: &rusqlite::Row<'_>| {
                let (active, retired): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok(TypeCounts { active: active as u64, retired: retired as u64 })
            };
            connection.query_row(sql, [], count).map_err(sqlite)
        })
        .await
    }

    async fn begin_migration(
        &self,
        name: &TypeName,
        target: &str,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, target, actor) = (name.clone(), target.to_owned(), actor.to_owned());
        self.write(move |transaction| {
            let record = must_find(transaction, &name)?;
            let target = find_instance(&instances(transaction)?, &target).cloned();
            let moving = target.and_then(|target| record.begin_move(&target, unix_ms()));
            let moving = moving.map_err(StoreError::Refused)?;
            record_move(transaction, &record, &moving, &actor, "begin_migration")?;
            Ok(moving)
        })
        .await
    }

    async fn assign_type(
        &self,
        name: &TypeName,
        assignment: Assignment<'_>,
        actor: &str,
    ) -> Result<Assigned, StoreError> {
        let (name, actor) = (name.clone(), actor.to_owned());
        let Assignment { seal, history, rest_end } = assignment;
        let history = history.cloned();
        self.write(move |transaction| {
            let record = must_find(transaction, &name)?;
            if !instances(transaction)?.iter().any(|instance| instance.id == seal.target) {
                return Err(refused(
                    ErrorCode::UnknownInstance,
                    format!("no Redis instance has the number {}", seal.target),
                ));
            }
            let history = history.as_ref();
            let recorded = Recorded::of(transaction, &name, seal.target, history, rest_end)?;
            let assignment = Assignment { seal, history, rest_end };
            let (moved, keeps_rest) = record
                .assign(assignment, recorded.known(), unix_ms())
                .map_err(|why| not_assigned(why, &name, history))?;
            if let Some(history) = history {
                add_history(transaction, &name, history, seal.target)?;
            }
            record_move(transaction, &record, &moved, &actor, "assign_type")?;
            Ok(Assigned { record: moved, keeps_rest })
        })
        .await
    }

    async fn undo_migration(
        &self,
        name: &TypeName,
        generation: i64,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let (name, actor) = (name.clone(), actor.to_owned());
        self.write(move |transaction| {
            let record = must_find(transaction, &name)?;
            let still = record.undo_move(generation, unix_ms()).map_err(StoreError::Refused)?;
            record_move(transaction, &record, &still, &actor, "undo_migration")?;
            Ok(still)
        })
        .await
    }

    async fn migrations(&self) -> Result<Vec<TypeRecord>, StoreError> {
        self.blocking(|connection| {
            let moving = "moving_to IS NOT NULL ORDER BY name LIMIT 1000";
            types_where(connection, moving, [])
        })
        .await
    }

    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        let (name, to, actor) = (name.to_owned(), to.map(str::to_owned), actor.to_owned());
        self.write(move |transaction| {
            let all = instances(transaction)?;
            let from = find_instance(&all, &name).map_err(StoreError::Refused)?;
            let to = to.map(|to| find_instance(&all, &to)).transpose();
            let to = to.map_err(StoreError::Refused)?;
            if let Some(to) = to {
                check_drain(from, to).map_err(StoreError::Refused)?;
            }
            let drained = InstanceRecord { drain_to: to.map(|to| to.id), ..from.clone() };
            transaction
                .execute(
                    "UPDATE redis_instance SET drain_to = ?2 WHERE id = ?1",
                    params![drained.id.0, drained.drain_to.map(|id| id.0)],
                )
                .map_err(sqlite)?;
            let action = Some("drain_redis_instance");
            let (before, after) = (Some(audit::drain(from)), Some(audit::drain(&drained)));
            record_change(transaction, "instances", &from.name, &actor, action, before, after)?;
            Ok(drained)
        })
        .await
    }

    async fn add_instance(
        &self,
        spec: &InstanceSpec,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        spec.validate().map_err(StoreError::Refused)?;
        let (spec, actor) = (spec.clone(), actor.to_owned());
        self.write(move |transaction| {
            if instances(transaction)?.iter().any(|i| i.name == spec.name) {
                return Err(refused(
                    ErrorCode::AlreadyExists,
                    format!("a Redis instance called {} exists already", spec.name),
                ));
            }
            transaction
                .execute(
                    "INSERT INTO redis_instance (name, url) VALUES (?1, ?2)",
                    [&spec.name, &spec.url],
                )
                .map_err(sqlite)?;
            let id = InstanceId(transaction.last_insert_rowid());
            let action = Some("add_redis_instance");
            record_change(transaction, "instances", &spec.name, &actor, action, None, None)?;
            Ok(spec.into_record(id))
        })
        .await
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), StoreError> {
        let (name, actor) = (name.to_owned(), actor.to_owned());
        self.write(move |transaction| {
            let all = instances(transaction)?;
            let instance = find_instance(&all, &name).map_err(StoreError::Refused)?;
            let to_come: i64 = transaction
                .query_row(
                    "SELECT count(*) FROM id_type WHERE moving_to = ?1",
                    [instance.id.0],
                    |row| row.get(0),
                )
                .map_err(sqlite)?;
            if instance.types > 0 || to_come > 0 {
                let types = instance.types;
                return Err(refused(
                    ErrorCode::Conflict,
                    format!(
                        "Redis instance {name} has {types} id types, and {to_come} are to come"
                    ),
                ));
            }
            if let Some(other) = all.iter().find(|i| i.drain_to == Some(instance.id)) {
                return Err(refused(
                    ErrorCode::Conflict,
                    format!("Redis instance {} is being drained to {name}", other.name),
                ));
            }
            transaction
                .execute("DELETE FROM redis_instance WHERE id = ?1", [instance.id.0])
                .map_err(sqlite)?;
            let action = Some("remove_redis_instance");
            record_change(transaction, "instances", &instance.name, &actor, action, None, None)
        })
        .await
    }

    async fn instances(&self) -> Result<Vec<InstanceRecord>, StoreError> {
        self.blocking(|connection| instances(connection)).await
    }

    async fn changes_since(&self, seq: i64) -> Result<Vec<Change>, StoreError> {
        self.blocking(move |connection| {
            let rows = connection
                .prepare_cached(
                    "SELECT seq, at_ms, kind, subject FROM change_feed WHERE seq > ?1 \
                     ORDER BY seq LIMIT 1000",
                )
                .and_then(|mut s| {
                    s.query_map([seq], |row| {
                        let texts = (row.get::<_, String>(2)?, row.get::<_, String>(3)?);
                        Ok((row.get(0)?, row.get(1)?, texts))
                    })?
                    .collect::<rusqlite::Result<Vec<_>>>()
                })
                .map_err(sqlite)?;
            rows.into_iter()
                .map(|(seq, at_ms, (kind, subject))| {
                    let subject = match kind.as_str() {
                        "type" => {
                            Subject::Type(TypeName::parse(&subject).map_err(StoreError::Refused)?)
                        }
                        "access" => Subject::Access,
                        _ => Subject::Instances,
                    };
                    Ok(Change { seq, at_ms, subject })
                })
                .collect()
        })
        .await
    }

    async fn latest_change(&self) -> Result<i64, StoreError> {
        self.blocking(|connection| {
            connection
                .query_row("SELECT coalesce(max(seq), 0) FROM change_feed", [], |r| r.get(0))
                .map_err(sqlite)
        })
        .await
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        self.blocking(move |connection| {
            connection
                .prepare_cached(
                    "SELECT seq, at_ms, actor, action, subject, before, after FROM change_feed \
                     WHERE action IS NOT NULL ORDER BY seq DESC LIMIT ?1",
                )
                .and_then(|mut s| {
                    s.query_map([limit], |row| {
                        Ok(AuditEntry {
                            seq: row.get(0)?,
                            at_ms: row.get(1)?,
                            actor: row.get(2)?,
                            action: row.get(3)?,
                            subject: row.get(4)?,
                            before: row.get(5)?,
                            after: row.get(6)?,
                        })
                    })?
                    .collect()
                })
                .map_err(sqlite)
        })
        .await
    }

    async fn range_log(
        &self,
        name: &TypeName,
        limit: u32,
    ) -> Result<Vec<RangeLogEntry>, StoreError> {
        let name = name.clone();
        self.blocking(move |connection| range_log(connection, &name, limit)).await
    }

    async fn ping(&self) -> Result<i64, StoreError> {
        self.blocking(|connection| {
            connection.query_row("SELECT 1", [], |_| Ok(())).map_err(sqlite)
        })
        .await?;
        Ok(unix_ms())
    }
}
