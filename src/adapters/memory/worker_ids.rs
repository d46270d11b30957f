//! Worker ids that are forgotten when the process ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;

use super::{MemoryRangeStore, StoreFault};
use crate::adapters::system::SystemClock;
use crate::ports::worker_ids::{all_taken, check_lease, check_ttl, not_held};
use crate::ports::{Clock, StoreError, Tenure, TenureRecord, WorkerIds};

/// All tenures behind one lock, which is the transaction.
pub struct MemoryWorkerIds {
    /// The store's clock.
    clock: Arc<dyn Clock>,
    pools: Mutex<Pools>,
    fault: Mutex<StoreFault>,
}

/// A backup of a [`MemoryWorkerIds`].
pub struct WorkerSnapshot(Pools);

/// By bits and worker id.
type Pools = BTreeMap<(u8, i64), Worker>;

#[derive(Clone)]
struct Worker {
    /// The latest tenure.
    latest: TenureRecord,
    /// `None` once it was released.
    token: Option<String>,
    /// Those before it, oldest first.
    past: Vec<TenureRecord>,
}

impl Default for MemoryWorkerIds {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl MemoryWorkerIds {
    /// A store in which nobody had a worker id yet, and that reads `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        MemoryWorkerIds { clock, pools: Mutex::default(), fault: Mutex::default() }
    }

    /// Everything that it holds now, for [`restore`](Self::restore).
    pub fn snapshot(&self) -> WorkerSnapshot {
        WorkerSnapshot(self.pools().clone())
    }

    /// Goes back to `snapshot`: what came after it is lost.
    pub fn restore(&self, snapshot: &WorkerSnapshot) {
        *self.pools() = snapshot.0.clone();
    }

    /// From now on every call meets `fault`; [`StoreFault::LostAnswer`] is for
    /// those that change something.
    pub fn set_fault(&self, fault: StoreFault) {
        *self.fault.lock().expect("never poisoned") = fault;
    }

    fn pools(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().expect("no one panics while holding the pools")
    }

    fn fault(&self) -> StoreFault {
        *self.fault.lock().expect("never poisoned")
    }

    async fn pass(&self) -> Result<(), StoreError> {
        match self.fault() {
            StoreFault::None | StoreFault::LostAnswer | StoreFault::Once(_) => Ok(()),
            StoreFault::Down => Err(StoreError::Unavailable("down for a test".to_owned())),
            StoreFault::Silent => {
                // As an adapter with a time limit of its own.
                tokio::time::sleep(Duration::from_secs(5)).await;
                Err(StoreError::Unavailable("no answer for a test".to_owned()))
            }
        }
    }

    fn answer<T>(&self, answer: T) -> Result<T, StoreError> {
        match self.fault() {
            StoreFault::LostAnswer => {
                Err(StoreError::Unavailable("the answer was lost".to_owned()))
            }
            _ => Ok(answer),
        }
    }
}

impl Worker {
    fn renewed(&mut self, bits: u8, token: &str, ttl_ms: i64, now_ms: i64) -> Tenure {
        self.latest.until_ms = self.latest.until_ms.max(now_ms + ttl_ms);
        Tenure {
            bits,
            worker: self.latest.worker,
            token: token.to_owned(),
            from_ms: self.latest.from_ms,
            until_ms: self.latest.until_ms,
            now_ms,
        }
    }
}

/// The worker id to lease: the lowest that nobody had, else the one that is
/// free for longest.
fn choose(pools: &Pools, bits: u8, now_ms: i64) -> Result<i64, StoreError> {
    let known = || pools.range((bits, 0)..=(bits, i64::MAX)).map(|(_, worker)| &worker.latest);
    // They are leased from the lowest upwards, so there is no gap.
    let unused = known().count() as i64;
    if unused < 1 << bits {
        return Ok(unused);
    }
    let longest = known().min_by_key(|t| (t.until_ms, t.worker)).expect("there is one at least");
    match longest.until_ms <= now_ms {
        true => Ok(longest.worker),
        false => Err(StoreError::Refused(all_taken(bits, longest.until_ms, now_ms))),
    }
}

#[async_trait]
impl WorkerIds for MemoryWorkerIds {
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        self.pass().await?;
        check_lease(bits, holder, token, ttl_ms).map_err(StoreError::Refused)?;
        let mut pools = self.pools();
        let now_ms = self.clock.now_ms();
        let mut of_pool = pools.range_mut((bits, 0)..=(bits, i64::MAX));
        if let Some((_, held)) = of_pool.find(|(_, w)| w.token.as_deref() == Some(token)) {
            return self.answer(held.renewed(bits, token, ttl_ms, now_ms));
        }
        let worker = choose(&pools, bits, now_ms)?;
        let mut past = Vec::new();
        let mut from_ms = 0;
        if let Some(before) = pools.remove(&(bits, worker)) {
            from_ms = before.latest.until_ms;
            past = before.past;
            past.push(before.latest);
        }
        let latest = TenureRecord { worker, holder: holder.to_owned(), from_ms, until_ms: from_ms };
        let mut held = Worker { latest, token: Some(token.to_owned()), past };
        let tenure = held.renewed(bits, token, ttl_ms, now_ms);
        pools.insert((bits, worker), held);
        self.answer(tenure)
    }

    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        self.pass().await?;
        check_ttl(ttl_ms).map_err(StoreError::Refused)?;
        let mut pools = self.pools();
        let now_ms = self.clock.now_ms();
        match pools.get_mut(&(bits, worker)).filter(|w| w.token.as_deref() == Some(token)) {
            Some(held) => self.answer(held.renewed(bits, token, ttl_ms, now_ms)),
            None => Err(StoreError::Refused(not_held(bits, worker))),
        }
    }

    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        self.pass().await?;
        let mut pools = self.pools();
        let held = pools.get_mut(&(bits, worker)).filter(|w| w.token.as_deref() == Some(token));
        let released = held.is_some();
        if let Some(held) = held {
            held.token = None;
            let latest = &mut held.latest;
            latest.until_ms = used_until_ms.clamp(latest.from_ms, latest.until_ms);
        }
        self.answer(released)
    }

    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError> {
        self.pass().await?;
        let pools = self.pools();
        let Some(known) = pools.get(&(bits, worker)) else {
            return Ok(None);
        };
        let mut all = known.past.iter().chain([&known.latest]);
        Ok(all.find(|t| (t.from_ms..t.until_ms).contains(&time_ms)).cloned())
    }
}

/// Beside the ranges, as in a real store; meets the faults of the range store.
#[async_trait]
impl WorkerIds for MemoryRangeStore {
    async fn lease_worker(
        &self,
        bits: u8,
        holder: &str,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        self.pass().await?;
        self.workers.lease_worker(bits, holder, token, ttl_ms).await
    }

    async fn renew_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        ttl_ms: i64,
    ) -> Result<Tenure, StoreError> {
        self.pass().await?;
        self.workers.renew_worker(bits, worker, token, ttl_ms).await
    }

    async fn release_worker(
        &self,
        bits: u8,
        worker: i64,
        token: &str,
        used_until_ms: i64,
    ) -> Result<bool, StoreError> {
        self.pass().await?;
        self.workers.release_worker(bits, worker, token, used_until_ms).await
    }

    async fn tenure_at(
        &self,
        bits: u8,
        worker: i64,
        time_ms: i64,
    ) -> Result<Option<TenureRecord>, StoreError> {
        self.pass().await?;
        self.workers.tenure_at(bits, worker, time_ms).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::conformance;

    #[tokio::test]
    async fn conforms() {
        conformance::worker_ids(Arc::new(MemoryWorkerIds::default())).await;
    }
}
