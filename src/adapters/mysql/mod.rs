//! The range store on MySQL 8.0 and later or MariaDB 10.6 and later.
//!
//! Every change is one call of one stored procedure (`procedures/`), which is
//! one transaction that answers only after its commit. So this adapter needs
//! no transaction of its own, only `EXECUTE` on the procedures and `SELECT` on
//! the views, and its whole duty is: one statement per call, bounded in time,
//! sent at most once, every answer checked, every error number translated.

mod accounts;
pub mod doctor;
mod errors;
mod import;
mod options;
mod pool;
mod rows;
pub mod schema;
mod session;
pub mod sql;
mod worker_ids;

use std::collections::HashMap;

use async_trait::async_trait;
use mysql_async::Params;
use mysql_async::Value;

pub use doctor::doctor;
pub use import::MysqlImportSource;
pub use options::MysqlOptions;

use crate::domain::migration::NotAssigned;
use crate::domain::options::{in_one_period, period_of};
use crate::domain::{
    Assignment, Error, ErrorCode, History, IdRange, InstanceId, InstanceRecord, InstanceSpec,
    LoadPercentage, Mode, OpaqueKey, SliceKey, State, TypeChange, TypeName, TypeOptions,
    TypeRecord, TypeSpec, allocation,
};
use crate::ports::range_store::not_assigned;
use crate::ports::{
    Allocation, Assigned, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore,
    StoreError, TypeCounts, TypeFilter,
};
use pool::Pool;
use rows::{TYPE_COLUMNS, column, only};

/// The range store of one MySQL or MariaDB database.
pub struct MysqlStore {
    pool: Pool,
}

impl MysqlStore {
    /// Connects, and checks that this program knows the schema and that the
    /// account may do all that a node does.
    ///
    /// Errors: `Refused` with `INVALID_ARGUMENT` for options that can never
    /// work and `PERMISSION_DENIED` for a wrong password or missing rights;
    /// `Broken` for an unknown database, a missing or unknown schema (the
    /// message names the command that helps) or TLS that does not fit;
    /// `Unavailable` when the server cannot be reached.
    pub async fn connect(options: MysqlOptions) -> Result<MysqlStore, StoreError> {
        let store = MysqlStore { pool: open_pool(&options)? };
        schema::verify(&store.pool).await?;
        Ok(store)
    }

    /// Where it connects to, such as `MySQL app@db:3306/idgen`; without secrets.
    pub fn target(&self) -> &str {
        self.pool.target()
    }

    async fn call_type(&self, sql: &str, params: Vec<Value>) -> Result<TypeRecord, StoreError> {
        let rows = self.pool.rows(sql, Params::Positional(params)).await?;
        self.with_keys(rows::type_record(&only(rows)?)?).await
    }

    async fn with_keys(&self, record: TypeRecord) -> Result<TypeRecord, StoreError> {
        let mut records = vec![record];
        self.add_keys(&mut records).await?;
        Ok(records.remove(0))
    }

    /// Reads the keys of those types that have some.
    ///
    /// After the types, never before: a key that was added in between is for
    /// slices above `next_id`, which nobody uses without reading the type again.
    /// The other way round, a slice could be taken for final without its key.
    async fn add_keys(&self, records: &mut [TypeRecord]) -> Result<(), StoreError> {
        let opaque = records.iter_mut().filter(|record| record.options.opaque.is_some());
        let mut opaque: Vec<_> = opaque.collect();
        if opaque.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT name, from_slice, key_hex FROM idgen_type_keys WHERE name IN ({}) \
             ORDER BY from_slice",
            vec!["?"; opaque.len()].join(", ")
        );
        let names = opaque.iter().map(|record| Value::from(record.name.as_str())).collect();
        let keys = self.list(&sql, Params::Positional(names), rows::slice_key).await?;
        let mut by_name: HashMap<String, Vec<SliceKey>> = HashMap::new();
        for (name, key) in keys {
            by_name.entry(name).or_default().push(key);
        }
        for record in &mut opaque {
            record.keys = by_name.remove(record.name.as_str()).unwrap_or_default().into();
        }
        Ok(())
    }

    /// Changes `record`, if it is still the same.
    async fn alter_version(
        &self,
        record: &TypeRecord,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let sql = "CALL idgen_alter_type(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let params: Vec<Value> = vec![
            record.name.as_str().into(),
            record.version.into(),
            change.prefix.as_deref().into(),
            change.description.as_deref().into(),
            change.max_id.into(),
            change.min_range.into(),
            change.max_range.into(),
            change.load_interval_ms.into(),
            change.load_percentage.map(decimal).into(),
            change.lock_ttl_ms.into(),
            change.mode.map(Mode::as_str).into(),
            change.options.as_ref().map(TypeOptions::to_json).into(),
            actor.into(),
        ];
        self.call_type(sql, params).await
    }

    async fn list<T>(
        &self,
        sql: &str,
        params: impl Into<Params> + Send,
        read: fn(&mysql_async::Row) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.pool.rows(sql, params).await?;
        rows.iter().map(read).collect()
    }
}

/// A pool for `options`; connects nowhere yet.
fn open_pool(options: &MysqlOptions) -> Result<Pool, StoreError> {
    options::ensure_tls_provider();
    let (opts, target) = options.driver_opts()?;
    Ok(Pool::new(opts, target, options.pool_max, options.timeout))
}

/// As text, because a DECIMAL made from a double could be off by one step.
fn decimal(percentage: LoadPercentage) -> String {
    let points = percentage.basis_points();
    let whole = LoadPercentage::WHOLE;
    format!("{}.{:04}", points / whole, points % whole)
}

#[async_trait]
impl RangeStore for MysqlStore {
    async fn next_range(&self, request: NextRange<'_>) -> Result<Allocation, StoreError> {
        let name = request.name.as_str();
        let params: Vec<Value> = vec![
            name.into(),
            request.shard.into(),
            request.period.map(|period| period.number).into(),
            request.period.map(|period| period.from_ms).into(),
            request.period.map(|period| period.until_ms).into(),
            request.target.map(|(instance, _)| instance.0).into(),
            request.target.map(|(_, history)| history.as_str()).into(),
            request.usage.map(|usage| usage.consumed).into(),
            request.usage.map(|usage| usage.elapsed_ms).into(),
            request.floor.into(),
            request.owner.into(),
        ];
        let sql = "CALL idgen_lease_range(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let rows = match (self.pool.rows(sql, params).await, request.target) {
            (Err(error), Some((instance, history))) => {
                return Err(match error.errno {
                    Some(errors::NOT_ASSIGNED) => {
                        StoreError::NotAssigned { name: name.to_owned(), instance }
                    }
                    Some(errors::SUPERSEDED) => StoreError::Superseded {
                        name: name.to_owned(),
                        history: history.to_string(),
                    },
                    _ => error.into(),
                });
            }
            (rows, _) => rows?,
        };
        let row = only(rows)?;
        let range = rows::range(&row)?;
        let update_id = column(&row, "update_id")?;
        // A range that reaches into two periods would write two days into one text.
        let mixed = request
            .period
            .is_some_and(|p| period_of(range.start()) < p.number || !in_one_period(range));
        if range.start() < request.floor
            || !(range.start()..=range.end()).contains(&update_id)
            || mixed
        {
            return Err(StoreError::Broken(format!(
                "{}: idgen_lease_range answered {range} with update id {update_id} for floor {}",
                self.target(),
                request.floor
            )));
        }
        Ok(Allocation { range, update_id, load_ms: column(&row, "load_time_ms")? })
    }

    async fn reserve(
        &self,
        name: &TypeName,
        count: i64,
        floor: i64,
        owner: &str,
    ) -> Result<IdRange, StoreError> {
        let sql = "CALL idgen_reserve(?, ?, ?, ?)";
        let params = (name.as_str(), count, floor, owner);
        rows::range(&only(self.pool.rows(sql, params).await?)?)
    }

    async fn give_back(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        tail: IdRange,
    ) -> Result<bool, StoreError> {
        let sql = "CALL idgen_give_back(?, ?, ?, ?)";
        let params = (name.as_str(), shard, tail.start(), tail.end());
        let row = only(self.pool.rows(sql, params).await?)?;
        Ok(column::<i64>(&row, "given_back")? != 0)
    }

    async fn rotate_key(
        &self,
        name: &TypeName,
        key: &OpaqueKey,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let sql = "CALL idgen_rotate_key(?, ?, ?)";
        self.call_type(sql, vec![name.as_str().into(), key.to_hex().into(), actor.into()]).await
    }

    async fn find_range(
        &self,
        name: &TypeName,
        shard: Option<u8>,
        position: i64,
    ) -> Result<Option<RangeLogEntry>, StoreError> {
        let sql = "SELECT shard, start_id, end_id, at_ms, owner, instance_id, history \
                   FROM idgen_ranges WHERE name = ? AND shard = ? AND start_id <= ? \
                   ORDER BY start_id DESC LIMIT 1";
        let params = (name.as_str(), shard.map_or(-1, i64::from), position);
        let found = self.list(sql, params, rows::range_log_entry).await?;
        // Ranges do not overlap, so it is this one or none.
        Ok(found.into_iter().find(|entry| position < entry.range.end()))
    }

    async fn create_type(&self, spec: &TypeSpec, actor: &str) -> Result<TypeRecord, StoreError> {
        allocation::check_new(spec).map_err(StoreError::Refused)?;
        let sql = "CALL idgen_create_type(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let params: Vec<Value> = vec![
            spec.name.as_str().into(),
            spec.mode.as_str().into(),
            spec.prefix.as_str().into(),
            spec.description.as_str().into(),
            spec.first_id.into(),
            spec.max_id.into(),
            spec.min_range.into(),
            spec.max_range.into(),
            spec.load_interval_ms.into(),
            decimal(spec.load_percentage).into(),
            spec.lock_ttl_ms.into(),
            spec.instance.as_deref().into(),
            spec.options.to_json().into(),
            spec.key.as_ref().map(OpaqueKey::to_hex).into(),
            actor.into(),
        ];
        self.call_type(sql, params).await
    }

    async fn alter_type(
        &self,
        name: &TypeName,
        change: &TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        // The procedure knows neither the grammar of a format nor the names of time
        // zones. So all is checked here first, and the change is made only to what
        // was checked; where nobody expects a version, a type that others change at
        // the same time is looked at again.
        let mut tries = 5;
        loop {
            let found = self.find_type(name).await?;
            let record = found.ok_or_else(|| Error::unknown_type(name.as_str()));
            let record = record.map_err(StoreError::Refused)?;
            change.apply_to(&record, 0).map_err(StoreError::Refused)?;
            let answer = self.alter_version(&record, change, actor).await;
            tries -= 1;
            match answer {
                Err(StoreError::Refused(error))
                    if error.code == ErrorCode::Conflict
                        && change.expected_version.is_none()
                        && tries > 0 => {}
                answer => return answer,
            }
        }
    }

    async fn set_retired(
        &self,
        name: &TypeName,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let sql = match retired {
            true => "CALL idgen_retire_type(?, ?)",
            false => "CALL idgen_restore_type(?, ?)",
        };
        self.call_type(sql, vec![name.as_str().into(), actor.into()]).await
    }

    async fn find_type(&self, name: &TypeName) -> Result<Option<TypeRecord>, StoreError> {
        let sql = format!("SELECT {TYPE_COLUMNS} FROM idgen_types WHERE name = ?");
        let mut found = self.list(&sql, (name.as_str(),), rows::type_record).await?;
        self.add_keys(&mut found).await?;
        Ok(found.into_iter().next())
    }

    async fn is_superseded(&self, name: &TypeName, history: &History) -> Result<bool, StoreError> {
        let sql = "SELECT COUNT(*) AS superseded FROM idgen_histories \
                   WHERE name = ? AND history = ? AND NOT is_current";
        let row = only(self.pool.rows(sql, (name.as_str(), history.as_str())).await?)?;
        Ok(column::<i64>(&row, "superseded")? > 0)
    }

    async fn list_types(&self, filter: &TypeFilter) -> Result<Page<TypeRecord>, StoreError> {
        // Names are ASCII, the texts to compare with need not be; and one row
        // more than asked for tells whether there are more.
        let of_instance = match filter.instance {
            Some(_) => "AND instance_id = ?",
            None => "",
        };
        let sql = format!(
            "SELECT {TYPE_COLUMNS} FROM idgen_types \
             WHERE LOCATE(CONVERT(? USING utf8mb4) COLLATE utf8mb4_bin, CONVERT(name USING utf8mb4)) > 0 \
               AND CONVERT(name USING utf8mb4) > CONVERT(? USING utf8mb4) COLLATE utf8mb4_bin \
               {of_instance} \
             ORDER BY name LIMIT ?"
        );
        let limit = filter.limit.clamp(1, 1_000) as usize;
        let mut params: Vec<Value> = vec![
            filter.contains.as_deref().unwrap_or_default().into(),
            filter.after.as_deref().unwrap_or_default().into(),
        ];
        params.extend(filter.instance.map(|instance| Value::from(instance.0)));
        params.push((limit as u64 + 1).into());
        let mut items = self.list(&sql, params, rows::type_record).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        self.add_keys(&mut items).await?;
        Ok(Page { items, more })
    }

    async fn count_types(&self) -> Result<TypeCounts, StoreError> {
        let sql = "SELECT state, COUNT(*) AS types FROM idgen_types GROUP BY state";
        let mut counts = TypeCounts::default();
        for row in self.pool.rows(sql, ()).await? {
            let types: u64 = column(&row, "types")?;
            match State::parse(&column::<String>(&row, "state")?) {
                Some(State::Active) => counts.active = types,
                Some(State::Retired) => counts.retired = types,
                None => return Err(rows::broken("a state that is not known")),
            }
        }
        Ok(counts)
    }

    async fn begin_migration(
        &self,
        name: &TypeName,
        target: &str,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let sql = "CALL idgen_begin_migration(?, ?, ?)";
        let params = vec![name.as_str().into(), target.into(), actor.into()];
        let record = self.call_type(sql, params).await?;
        match record.placement.moving_to {
            Some(_) => Ok(record),
            // Between the commit and the answer.
            None => Err(StoreError::Refused(Error::new(
                ErrorCode::Conflict,
                format!("this migration of id type {name} was finished or undone already"),
            ))),
        }
    }

    async fn assign_type(
        &self,
        name: &TypeName,
        assignment: Assignment<'_>,
        actor: &str,
    ) -> Result<Assigned, StoreError> {
        let Assignment { seal, history, rest_end } = assignment;
        let sql = "CALL idgen_assign_type(?, ?, ?, ?, ?, ?)";
        let params = (
            name.as_str(),
            seal.target.0,
            seal.generation,
            history.map(History::as_str),
            rest_end,
            actor,
        );
        let answer = self.pool.rows(sql, params).await.map_err(|failure| match failure.errno {
            Some(errors::SUPERSEDED) => not_assigned(NotAssigned::Superseded, name, history),
            _ => failure.into(),
        });
        let row = only(answer?)?;
        let keeps_rest = column::<i64>(&row, "keeps_rest")? != 0;
        Ok(Assigned { record: self.with_keys(rows::type_record(&row)?).await?, keeps_rest })
    }

    async fn undo_migration(
        &self,
        name: &TypeName,
        generation: i64,
        actor: &str,
    ) -> Result<TypeRecord, StoreError> {
        let sql = "CALL idgen_undo_migration(?, ?, ?)";
        self.call_type(sql, vec![name.as_str().into(), generation.into(), actor.into()]).await
    }

    async fn migrations(&self) -> Result<Vec<TypeRecord>, StoreError> {
        let sql = format!(
            "SELECT {TYPE_COLUMNS} FROM idgen_types WHERE moving_to IS NOT NULL \
             ORDER BY name LIMIT 1000"
        );
        let mut found = self.list(&sql, (), rows::type_record).await?;
        self.add_keys(&mut found).await?;
        Ok(found)
    }

    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        let sql = "CALL idgen_drain_redis_instance(?, ?, ?)";
        let id: i64 = column(&only(self.pool.rows(sql, (name, to, actor)).await?)?, "id")?;
        // The procedure answers for people, with the secret hidden.
        let found = self.instances().await?.into_iter().find(|i| i.id.0 == id);
        found.ok_or_else(|| rows::broken("an instance that is not listed"))
    }

    async fn add_instance(
        &self,
        spec: &InstanceSpec,
        actor: &str,
    ) -> Result<InstanceRecord, StoreError> {
        spec.validate().map_err(StoreError::Refused)?;
        let sql = "CALL idgen_add_redis_instance(?, ?, ?)";
        let params = (spec.name.as_str(), spec.url.as_str(), actor);
        let row = only(self.pool.rows(sql, params).await?)?;
        // The procedure answers for people, with the secret hidden.
        Ok(InstanceRecord {
            drain_to: None,
            id: InstanceId(column(&row, "id")?),
            name: column(&row, "name")?,
            url: spec.url.clone(),
            types: column(&row, "types")?,
        })
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), StoreError> {
        let sql = "CALL idgen_remove_redis_instance(?, ?)";
        only(self.pool.rows(sql, (name, actor)).await?).map(drop)
    }

    async fn instances(&self) -> Result<Vec<InstanceRecord>, StoreError> {
        let sql = "SELECT n.id AS id, n.name AS name, n.url AS url, i.types AS types, \
                   n.drain_to AS drain_to \
                   FROM idgen_node_instances n JOIN idgen_instances i ON i.id = n.id \
                   ORDER BY n.id";
        self.list(sql, (), rows::instance).await
    }

    async fn connections(&self) -> Result<Vec<InstanceRecord>, StoreError> {
        let sql = "SELECT id, name, url, 0 AS types, drain_to FROM idgen_node_instances \
                   ORDER BY id";
        self.list(sql, (), rows::instance).await
    }

    async fn changes_since(&self, seq: i64) -> Result<Vec<Change>, StoreError> {
        let sql = "SELECT seq, at_ms, subject_kind, subject FROM idgen_changes WHERE seq > ? \
                   ORDER BY seq LIMIT 1000";
        self.list(sql, (seq,), rows::change).await
    }

    async fn latest_change(&self) -> Result<i64, StoreError> {
        let sql = "SELECT COALESCE(MAX(seq), 0) AS seq FROM idgen_changes";
        column(&only(self.pool.rows(sql, ()).await?)?, "seq")
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let sql = "SELECT seq, at_ms, actor, action, subject, before_json, after_json \
                   FROM idgen_changes WHERE action <> 'history' ORDER BY seq DESC LIMIT ?";
        self.list(sql, (u64::from(limit),), rows::audit_entry).await
    }

    async fn range_log(
        &self,
        name: &TypeName,
        limit: u32,
    ) -> Result<Vec<RangeLogEntry>, StoreError> {
        let sql = "SELECT shard, start_id, end_id, at_ms, owner, instance_id, history \
                   FROM idgen_ranges WHERE name = ? ORDER BY id DESC LIMIT ?";
        let params = (name.as_str(), u64::from(limit));
        self.list(sql, params, rows::range_log_entry).await
    }

    async fn ping(&self) -> Result<i64, StoreError> {
        let sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 \
                   AS now_ms";
        column(&only(self.pool.rows(sql, ()).await?)?, "now_ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_go_out_exactly() {
        let text = |f| decimal(LoadPercentage::from_fraction(f).unwrap());
        assert_eq!(
            [text(0.0), text(0.1), text(0.0001), text(1.0)],
            ["0.0000", "0.1000", "0.0001", "1.0000"]
        );
    }
}
