//! Worker ids in the SQLite file, beside the ranges.

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::EmbeddedStore;
use super::rows::sqlite;
use crate::adapters::system::unix_ms;
use crate::ports::worker_ids::{all_taken, check_lease, check_ttl, not_held};
use crate::ports::{StoreError, Tenure, TenureRecord, WorkerIds};

fn tenure_record(row: &Row<'_>) -> rusqlite::Result<TenureRecord> {
    Ok(TenureRecord {
        worker: row.get("worker")?,
        holder: row.get("holder")?,
        from_ms: row.get("from_ms")?,
        until_ms: row.get("until_ms")?,
    })
}

/// The worker id to lease: the lowest that nobody had, else the one that is
/// free for longest with its last tenure.
fn choose(
    transaction: &Transaction<'_>,
    bits: u8,
    now_ms: i64,
) -> Result<(i64, Option<TenureRecord>), StoreError> {
    // They are leased from the lowest upwards, so there is no gap.
    let unused: i64 = transaction
        .prepare_cached("SELECT coalesce(max(worker) + 1, 0) FROM worker WHERE bits = ?1")
        .and_then(|mut s| s.query_row([bits], |row| row.get(0)))
        .map_err(sqlite)?;
    if unused < 1 << bits {
        return Ok((unused, None));
    }
    let longest = transaction
        .prepare_cached(
            "SELECT worker, holder, from_ms, until_ms FROM worker WHERE bits = ?1 \
             ORDER BY until_ms, worker LIMIT 1",
        )
        .and_then(|mut s| s.query_row([bits], tenure_record))
        .map_err(sqlite)?;
    match longest.until_ms <= now_ms {
        true => Ok((longest.worker, Some(longest))),
        false => Err(StoreError::Refused(all_taken(bits, longest.until_ms, now_ms))),
    }
}

/// Renews what is held under `token`; only `worker`, where that is given.
fn renew(
    transaction: &Transaction<'_>,
    bits: u8,
    worker: Option<i64>,
    token: &str,
    ttl_ms: i64,
) -> Result<Option<Tenure>, StoreError> {
    let now_ms = unix_ms();
    transaction
        .prepare_cached(
            "UPDATE worker SET until_ms = max(until_ms, ?4) \
             WHERE bits = ?1 AND token = ?2 AND worker = coalesce(?3, worker) \
             RETURNING worker, holder, from_ms, until_ms",
        )
        .and_then(|mut s| {
            s.query_row(params![bits, token, worker, now_ms + ttl_ms], tenure_record).optional()
        })
        .map(|held| {
            held.map(|held| Tenure {
                bits,
                worker: held.worker,
                token: token.to_owned(),
                from_ms: held.from_ms,
                until_ms: held.until_ms,
                now_ms,
            })
        })
        .map_err(sqlite)
}

#[async_trait]
impl WorkerIds for EmbeddedStore {
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        check_lease(bits, holder, token, ttl_ms).map_err(StoreError::Refused)?;
        let (holder, token) = (holder.to_owned(), token.to_owned());
        self.write(move |transaction| {
            if let Some(held) = renew(transaction, bits, None, &token, ttl_ms)? {
                return Ok(held);
            }
            let now_ms = unix_ms();
            let (worker, before) = choose(transaction, bits, now_ms)?;
            let from_ms = before.as_ref().map_or(0, |t| t.until_ms);
            if let Some(past) = before.filter(|t| t.from_ms < t.until_ms) {
                transaction
                    .execute(
                        "INSERT INTO past_tenure (bits, worker, from_ms, until_ms, holder) \
                         VALUES (?1, ?2, ?3, ?4, ?5)",
                        params![bits, worker, past.from_ms, past.until_ms, past.holder],
                    )
                    .map_err(sqlite)?;
            }
            let until_ms = now_ms + ttl_ms;
            transaction
                .execute(
                    "INSERT INTO worker (bits, worker, token, holder, from_ms, until_ms) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                     ON CONFLICT (bits, worker) DO UPDATE SET token = excluded.token, \
                     holder = excluded.holder, from_ms = excluded.from_ms, \
                     until_ms = excluded.until_ms",
                    params![bits, worker, token, holder, from_ms, until_ms],
                )
                .map_err(sqlite)?;
            Ok(Tenure { bits, worker, token, from_ms, until_ms, now_ms })
        })
        .await
    }

    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        check_ttl(ttl_ms).map_err(StoreError::Refused)?;
        let token = token.to_owned();
        self.write(move |transaction| {
            renew(transaction, bits, Some(worker), &token, ttl_ms)?
                .ok_or_else(|| StoreError::Refused(not_held(bits, worker)))
        })
        .await
    }

    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        let token = token.to_owned();
        self.write(move |transaction| {
            transaction
                .execute(
                    "UPDATE worker SET token = NULL, \
                     until_ms = max(from_ms, min(until_ms, ?4)) \
                     WHERE bits = ?1 AND worker = ?2 AND token = ?3",
                    params![bits, worker, token, used_until_ms],
                )
                .map(|changed| changed > 0)
                .map_err(sqlite)
        })
        .await
    }

    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError> {
        self.blocking(move |connection| {
            connection
                .query_row(
                    "SELECT worker, holder, from_ms, until_ms FROM worker \
                     WHERE bits = ?1 AND worker = ?2 AND from_ms <= ?3 AND until_ms > ?3 \
                     UNION ALL \
                     SELECT worker, holder, from_ms, until_ms FROM past_tenure \
                     WHERE bits = ?1 AND worker = ?2 AND from_ms <= ?3 AND until_ms > ?3",
                    params![bits, worker, time_ms],
                    tenure_record,
                )
                .optional()
                .map_err(sqlite)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::adapters::system::SystemEntropy;
    use crate::ports::{Entropy, conformance};

    /// A folder that is removed when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let name = format!("idgen-test-{}", SystemEntropy.token());
            Folder(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test]
    async fn conforms() {
        let folder = Folder::new();
        let store = EmbeddedStore::open(&folder.0).unwrap();
        conformance::worker_ids(Arc::new(store)).await;
    }

    /// What a process promised itself before it died still counts.
    #[tokio::test]
    async fn a_tenure_outlives_the_process() {
        let folder = Folder::new();
        let store = EmbeddedStore::open(&folder.0).unwrap();
        let dead = store.lease_worker(1, "dead", "dead", 600_000).await.unwrap();
        drop(store);
        let store = EmbeddedStore::open(&folder.0).unwrap();
        let next = store.lease_worker(1, "heir", "heir", 600_000).await.unwrap();
        assert_ne!(next.worker, dead.worker);
        store.lease_worker(1, "third", "third", 600_000).await.expect_err("both are taken");
        let holder = store.tenure_at(1, dead.worker, dead.now_ms).await.unwrap();
        assert_eq!(holder.unwrap().holder, "dead");
    }
}
