//! The range store on MySQL 8.0 and later or MariaDB 10.6 and later.
//!
//! Every change is one call of one stored procedure (`procedures/`), which is
//! one transaction that answers only after its commit. So this adapter needs
//! no transaction of its own, only `EXECUTE` on the procedures and `SELECT` on
//! the views, and its whole duty is: one statement per call, bounded in time,
//! sent at most once, every answer checked, every error number translated.

pub mod doctor;
mod errors;
mod options;
mod pool;
mod rows;
pub mod schema;
mod session;
pub mod sql;

use async_trait::async_trait;
use mysql_async::Params;
use mysql_async::Value;

pub use doctor::doctor;
pub use options::MysqlOptions;

use crate::domain::{
    History, IdRange, InstanceRecord, InstanceSpec, LoadPercentage, TypeChange, TypeName,
    TypeRecord, TypeSpec,
};
use crate::ports::{
    Allocation, AuditEntry, Change, NextRange, Page, RangeLogEntry, RangeStore, StoreError,
    TypeFilter,
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
        rows::type_record(&only(rows)?)
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
            request.target.map(|(instance, _)| instance.0).into(),
            request.target.map(|(_, history)| history.as_str()).into(),
            request.usage.map(|usage| usage.consumed).into(),
            request.usage.map(|usage| usage.elapsed_ms).into(),
            request.floor.into(),
            request.owner.into(),
        ];
        let sql = "CALL idgen_next_range(?, ?, ?, ?, ?, ?, ?)";
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
        if range.start() < request.floor || !(range.start()..=range.end()).contains(&update_id) {
            return Err(StoreError::Broken(format!(
                "{}: idgen_next_range answered {range} with update id {update_id} for floor {}",
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
        spec.validate().map_err(StoreError::Refused)?;
        let sql = "CALL idgen_create_type(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
        let sql = "CALL idgen_alter_type(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let params: Vec<Value> = vec![
            name.as_str().into(),
            change.expected_version.into(),
            change.prefix.as_deref().into(),
            change.description.as_deref().into(),
            change.max_id.into(),
            change.min_range.into(),
            change.max_range.into(),
            change.load_interval_ms.into(),
            change.load_percentage.map(decimal).into(),
            change.lock_ttl_ms.into(),
            actor.into(),
        ];
        self.call_type(sql, params).await
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
        let found = self.list(&sql, (name.as_str(),), rows::type_record).await?;
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
        let sql = format!(
            "SELECT {TYPE_COLUMNS} FROM idgen_types \
             WHERE LOCATE(CONVERT(? USING utf8mb4) COLLATE utf8mb4_bin, CONVERT(name USING utf8mb4)) > 0 \
               AND CONVERT(name USING utf8mb4) > CONVERT(? USING utf8mb4) COLLATE utf8mb4_bin \
             ORDER BY name LIMIT ?"
        );
        let limit = filter.limit.clamp(1, 1_000) as usize;
        let params = (
            filter.contains.as_deref().unwrap_or_default(),
            filter.after.as_deref().unwrap_or_default(),
            limit as u64 + 1,
        );
        let mut items = self.list(&sql, params, rows::type_record).await?;
        let more = items.len() > limit;
        items.truncate(limit);
        Ok(Page { items, more })
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
            id: crate::domain::InstanceId(column(&row, "id")?),
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
        let sql = "SELECT id, name, url, types FROM idgen_node_instances ORDER BY id";
        self.list(sql, (), rows::instance).await
    }

    async fn changes_since(&self, seq: i64) -> Result<Vec<Change>, StoreError> {
        let sql = "SELECT seq, subject_kind, subject FROM idgen_changes WHERE seq > ? \
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
        let sql = "SELECT start_id, end_id, at_ms, owner, instance_id, history \
                   FROM idgen_ranges WHERE name = ? ORDER BY start_id DESC LIMIT ?";
        let params = (name.as_str(), u64::from(limit));
        self.list(sql, params, rows::range_log_entry).await
    }

    async fn ping(&self) -> Result<i64, StoreError> {
        self.pool.rows("SELECT 1 AS one", ()).await?;
        Ok(0)
    }
}

#[async_trait]
impl crate::ports::WorkerIds for MysqlStore {
    async fn lease_worker(
        &self,
        _bits: u8,
        _holder: &str,
        _token: &str,
        _ttl_ms: i64,
    ) -> Result<crate::ports::Tenure, StoreError> {
        todo!()
    }

    async fn renew_worker(
        &self,
        _bits: u8,
        _worker: i64,
        _token: &str,
        _ttl_ms: i64,
    ) -> Result<crate::ports::Tenure, StoreError> {
        todo!()
    }

    async fn release_worker(
        &self,
        _bits: u8,
        _worker: i64,
        _token: &str,
        _used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        todo!()
    }

    async fn tenure_at(
        &self,
        _bits: u8,
        _worker: i64,
        _time_ms: i64,
    ) -> Result<Option<crate::ports::TenureRecord>, StoreError> {
        todo!()
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
