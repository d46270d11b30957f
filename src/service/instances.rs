//! The Redis instances that this node is connected to.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::domain::{Error, InstanceId, InstanceRecord, InstanceSpec};
use crate::ports::{Dispatcher, DispatcherFactory};

/// One connected instance. Its tasks end when the last one lets go of it.
pub(super) struct Instance {
    pub(super) record: InstanceRecord,
    pub(super) dispatcher: Arc<dyn Dispatcher>,
    /// Cancelled when the instance is gone; ends its listener.
    pub(super) gone: CancellationToken,
    _guard: DropGuard,
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
