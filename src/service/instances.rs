//! The Redis instances that this node is connected to.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::catalogue::TypeEntry;
use super::{Parts, refill};
use crate::domain::{Error, History, InstanceId, InstanceRecord, InstanceSpec, TypeName};
use crate::ports::{DispatchError, Dispatcher, DispatcherFactory};

/// A lost instance is asked so often whether it is back.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Tries to replace what lies below the ids that were given without it; after
/// these the next call for ids does.
const REPLACE_TRIES: usize = 50;

/// What a new connection told of the server at its other end counts for so long.
const FRESH: Duration = Duration::from_secs(1);

/// One connected instance. Its tasks end when the last one lets go of it.
pub(super) struct Instance {
    pub(super) record: InstanceRecord,
    pub(super) dispatcher: Arc<dyn Dispatcher>,
    /// Cancelled when the instance is gone; ends its listener.
    pub(super) gone: CancellationToken,
    _guard: DropGuard,
    /// Whether it did not answer, and has not answered since.
    lost: AtomicBool,
    /// Histories at the other end of new connections, and when these were made.
    confirmed: tokio::sync::Mutex<Vec<(History, Instant)>>,
    /// The strict types of which this node gave ids on its own meanwhile.
    alone: Mutex<Vec<Arc<TypeEntry>>>,
}

impl Instance {
    /// Whether it is out of reach, as far as a caller found out.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether `history` is that of the server to which a new connection leads for
    /// the type: an old master that was replaced may still answer on one that was
    /// made before.
    pub(super) async fn is_current(
        &self,
        name: &TypeName,
        history: &History,
    ) -> Result<bool, DispatchError> {
        // One asks for all who want to know at once.
        let mut confirmed = self.confirmed.lock().await;
        confirmed.retain(|(_, at)| at.elapsed() < FRESH);
        if confirmed.iter().any(|(known, _)| known == history) {
            return Ok(true);
        }
        self.dispatcher.reset().await;
        let now = self.dispatcher.view(name).await?.history;
        let is_current = now == *history;
        confirmed.push((now, Instant::now()));
        Ok(is_current)
    }

    /// This node gives ids of the type on its own, until the instance is back.
    pub(super) fn went_on_alone(&self, entry: &Arc<TypeEntry>) {
        self.alone.lock().expect("never poisoned").push(entry.clone());
    }
}

/// It did not answer: from now on somebody asks it, until it does.
pub(super) fn follow_loss(parts: &Arc<Parts>, instance: &Arc<Instance>) {
    if instance.lost.swap(true, Ordering::Relaxed) {
        return;
    }
    tracing::warn!(
        instance = instance.record.name,
        "lost: leases have no witness, and strict types with on_redis_loss = segment go on \
         from leases of this node"
    );
    let (stop, gone) = (parts.stop.clone(), instance.gone.clone());
    // Not the instance itself, which is gone when the last one lets go of it.
    let (dispatcher, instance) = (instance.dispatcher.clone(), Arc::downgrade(instance));
    let for_task = parts.clone();
    parts.tasks.spawn(async move {
        while dispatcher.history().await.is_err() {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = gone.cancelled() => return,
                () = tokio::time::sleep(ASK_AGAIN) => {}
            }
        }
        if let Some(instance) = instance.upgrade() {
            instance.lost.store(false, Ordering::Relaxed);
            tracing::info!(instance = instance.record.name, "is back");
            let alone = std::mem::take(&mut *instance.alone.lock().expect("never poisoned"));
            drop(instance);
            replace_ranges(for_task, &*dispatcher, alone).await;
        }
    });
}

/// What the instance holds of these types, and lies below ids that this node
/// gave on its own, is replaced, so that the ids of all nodes go on above them.
async fn replace_ranges(
    parts: Arc<Parts>,
    dispatcher: &dyn Dispatcher,
    mut alone: Vec<Arc<TypeEntry>>,
) {
    for entry in &alone {
        entry.supply.set_alone(false);
        let view = dispatcher.view(&entry.name).await;
        let is_above = |next| next > entry.supply.returned();
        if !view.is_ok_and(|view| view.next().is_none_or(is_above)) {
            entry.supply.distrust(true);
        }
    }
    for _ in 0..REPLACE_TRIES {
        alone.retain(|entry| entry.supply.is_distrusted());
        if alone.is_empty() {
            return;
        }
        for entry in &alone {
            refill::start(&parts, entry);
        }
        tokio::select! {
            biased;
            () = parts.stop.cancelled() => return,
            () = tokio::time::sleep(ASK_AGAIN) => {}
        }
    }
}

/// See the module.
pub(super) struct Instances {
    factory: Arc<dyn DispatcherFactory>,
    live: RwLock<BTreeMap<InstanceId, Arc<Instance>>>,
}

impl Instances {
    pub(super) fn new(factory: Arc<dyn DispatcherFactory>) -> Self {
        Instances { factory, live: RwLock::default() }
    }

    pub(super) fn get(&self, id: InstanceId) -> Option<Arc<Instance>> {
        self.live.read().expect("never poisoned").get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Instance>> {
        self.live.read().expect("never poisoned").values().cloned().collect()
    }

    /// A connection for a test only; nothing is kept.
    pub(super) fn connect_once(&self, spec: &InstanceSpec) -> Result<Arc<dyn Dispatcher>, Error> {
        self.factory.connect(&spec.clone().into_record(InstanceId(0)))
    }

    /// Makes the live instances those of `records`; returns the new ones. One
    /// whose URL can never work is left out, and returned as an error.
    pub(super) fn replace(
        &self,
        records: Vec<InstanceRecord>,
    ) -> (Vec<Arc<Instance>>, Vec<(String, Error)>) {
        let mut live = self.live.write().expect("never poisoned");
        live.retain(|id, instance| {
            records.iter().any(|r| r.id == *id && r.url == instance.record.url)
        });
        let (mut added, mut failed) = (Vec::new(), Vec::new());
        for record in records {
            if live.contains_key(&record.id) {
                continue;
            }
            match self.factory.connect(&record) {
                Ok(dispatcher) => {
                    let gone = CancellationToken::new();
                    let instance = Arc::new(Instance {
                        dispatcher,
                        _guard: gone.clone().drop_guard(),
                        lost: AtomicBool::new(false),
                        confirmed: tokio::sync::Mutex::default(),
                        alone: Mutex::default(),
                        gone,
                        record,
                    });
                    live.insert(instance.record.id, instance.clone());
                    added.push(instance);
                }
                Err(error) => failed.push((record.name, error)),
            }
        }
        (added, failed)
    }
}
