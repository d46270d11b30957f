//! Worker ids: each call is one of the procedures `idgen_lease_worker`,
//! `idgen_renew_worker` and `idgen_release_worker`, and a look at two views.

use async_trait::async_trait;
use mysql_async::Row;

use super::MysqlStore;
use super::rows::{broken, column, only};
use crate::ports::worker_ids::{check_lease, check_ttl};
use crate::ports::{StoreError, Tenure, TenureRecord, WorkerIds};

/// The tenure that a procedure answers with, checked: whoever puts times of
/// another one into ids makes duplicates.
fn tenure(row: &Row, bits: u8, token: &str, ttl_ms: i64) -> Result<Tenure, StoreError> {
    let tenure = Tenure {
        bits: column(row, "bits")?,
        worker: column(row, "worker")?,
        token: token.to_owned(),
        from_ms: column(row, "from_ms")?,
        until_ms: column(row, "until_ms")?,
        now_ms: column(row, "now_ms")?,
    };
    let in_pool = tenure.bits == bits && (0..1i64 << bits).contains(&tenure.worker);
    let ends = tenure.now_ms.saturating_add(ttl_ms) <= tenure.until_ms;
    if !in_pool || !ends || tenure.from_ms < 0 || tenure.from_ms > tenure.until_ms {
        return Err(broken("a tenure that is not what was asked for"));
    }
    Ok(tenure)
}

#[async_trait]
impl WorkerIds for MysqlStore {
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        check_lease(bits, holder, token, ttl_ms).map_err(StoreError::Refused)?;
        let sql = "CALL idgen_lease_worker(?, ?, ?, ?)";
        let rows = self.pool.rows(sql, (bits, holder, token, ttl_ms)).await?;
        tenure(&only(rows)?, bits, token, ttl_ms)
    }

    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        check_ttl(ttl_ms).map_err(StoreError::Refused)?;
        let sql = "CALL idgen_renew_worker(?, ?, ?, ?)";
        let rows = self.pool.rows(sql, (bits, worker, token, ttl_ms)).await?;
        let tenure = tenure(&only(rows)?, bits, token, ttl_ms)?;
        match tenure.worker == worker {
            true => Ok(tenure),
            false => Err(broken("the tenure of another worker id")),
        }
    }

    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        let sql = "CALL idgen_release_worker(?, ?, ?, ?)";
        let rows = self.pool.rows(sql, (bits, worker, token, used_until_ms)).await?;
        Ok(column::<i64>(&only(rows)?, "released")? != 0)
    }

    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError> {
        // The newest one first: it may become a past one between the two.
        for view in ["idgen_workers", "idgen_past_workers"] {
            let sql = format!(
                "SELECT worker, holder, from_ms, until_ms FROM {view} \
                 WHERE bits = ? AND worker = ? AND from_ms <= ? AND until_ms > ? LIMIT 1"
            );
            let found = self.list(&sql, (bits, worker, time_ms, time_ms), record).await?;
            if let Some(record) = found.into_iter().next() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

fn record(row: &Row) -> Result<TenureRecord, StoreError> {
    Ok(TenureRecord {
        worker: column(row, "worker")?,
        holder: column(row, "holder")?,
        from_ms: column(row, "from_ms")?,
        until_ms: column(row, "until_ms")?,
    })
}
