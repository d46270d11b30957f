//! The control plane: types, Redis instances, status.

use tokio::time::{Instant, timeout, timeout_at};

use super::admin::{
    AdminApi, InstanceCheck, InstanceStatus, InstanceTarget, Migrated, MigrationPlan, Reserved,
};
use super::api::{NodeStatus, TypeStatus};
use super::catalogue::{Source, TypeEntry};
use super::watch::refresh_instances;
use super::{Parts, Service, snowflake};
use crate::domain::allocation;
use crate::domain::import::Table;
use crate::domain::instance::find_instance;
use crate::domain::preview::{Preview, preview};
use crate::domain::{
    Error, ErrorCode, InstanceRecord, InstanceSpec, Mode, OnRedisLoss, OpaqueKey, TypeChange,
    TypeName, TypeRecord, TypeSpec,
};
use crate::ports::{
    Announcement, AuditEntry, Dispatcher, ForeignTable, NextRange, Page, RangeLogEntry, TypeFilter,
    WitnessedEnd,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a change waits for its announcement; who misses it reads the feed.
const TELL: Duration = Duration::from_millis(250);

impl Parts {
    /// Whether a type like this may be made through this node.
    fn check_new(&self, spec: &TypeSpec) -> Result<(), Error> {
        spec.validate()?;
        if spec.mode == Mode::Snowflake {
            snowflake::check_new(self, &spec.options.snowflake.unwrap_or_default())?;
        }
        if let Some(sites) = spec.options.sites
            && self.config.site != Some(sites.site)
        {
            return Err(Error::invalid(
                "sites.site",
                format!(
                    "sites.site {} is not the site of this node: make the type through a node of \
                     that site, which was started with store.site {}",
                    sites.site, sites.site
                ),
            ));
        }
        Ok(())
    }

    pub(super) async fn create_type(
        &self,
        mut spec: TypeSpec,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        self.check_new(&spec)?;
        if spec.options.opaque.is_some() && spec.key.is_none() {
            spec.key = Some(self.draw_key());
        }
        let record = self.store.create_type(&spec, actor).await?;
        self.changed(&record).await;
        Ok(record)
    }

    /// Makes sure that the store knows what Redis knows of an opaque type before it
    /// begins a new key: ids of one slice are never written with two. A store that went
    /// back in time is moved to the slice after all that was given away.
    async fn bring_forward(self: &Arc<Self>, name: &TypeName) -> Result<(), Error> {
        let found = self.store.find_type(name).await?;
        let record = found.ok_or_else(|| Error::unknown_type(name.as_str()))?;
        if record.options.opaque.is_none() {
            return Ok(()); // refused by the store, which says why
        }
        let shards = allocation::shards(record.mode);
        let instance = self.instances.get(record.instance).ok_or_else(|| {
            super::unavailable("a new key needs the Redis instance of the type, which is not known")
        })?;
        for shard in shards {
            let end = match instance.dispatcher.witnessed_end(name, shard).await? {
                WitnessedEnd::Known(end) => end,
                WitnessedEnd::Moved(seal) => {
                    self.settle(name, instance.record.id, seal).await?;
                    return Err(super::unavailable("the id type is being moved: try again"));
                }
            };
            let published = match record.mode {
                Mode::Strict => instance.dispatcher.view(name).await?.highest_end(),
                _ => 0,
            };
            let floor = end.max(published);
            if floor > record.next_id {
                let owner = &self.config.node;
                let request = NextRange { shard, floor, ..NextRange::of(name, owner) };
                let burnt = self.store.next_range(request).await?.range;
                self.metrics.burnt_ids.inc_by(burnt.len());
            }
        }
        Ok(())
    }

    fn draw_key(&self) -> OpaqueKey {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.entropy.random_u128().to_be_bytes());
        bytes[16..].copy_from_slice(&self.entropy.random_u128().to_be_bytes());
        OpaqueKey::new(bytes)
    }

    /// This node knows at once, its peers by the announcement, and those who
    /// miss that by the feed.
    pub(super) async fn changed(&self, record: &TypeRecord) {
        self.catalogue.put(record.clone(), Source::Need);
        let news = Announcement::Type(record.name.clone());
        // An instance that is out of reach must not hold the answer up.
        let tell = async {
            for instance in self.instances.all() {
                let _ = instance.dispatcher.announce(&news).await;
            }
        };
        let _ = timeout(TELL, tell).await;
    }

    pub(super) async fn describe(&self, name: &str) -> Result<TypeStatus, Error> {
        let deadline = self.deadline();
        let entry = self.find(name, deadline).await?;
        // Half of the time for each side, so that one that is away leaves the
        // other its turn.
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        // The settings are as fresh as the feed when the store is away.
        let record = match timeout_at(half, self.store.find_type(&entry.name)).await {
            Ok(Ok(Some(record))) => record,
            Ok(Ok(None)) => return Err(Error::unknown_type(name)),
            Ok(Err(_)) | Err(_) => (*entry.record()).clone(),
        };
        let view = match self.instances.get(record.instance) {
            _ if record.mode != Mode::Strict => None,
            Some(instance) => {
                let view = timeout_at(deadline, instance.dispatcher.view(&entry.name)).await;
                view.ok().and_then(Result::ok)
            }
            None => None,
        };
        let exhausted_at_ms = self.exhausted_at_ms(&entry, view.as_ref());
        let local = entry.local(self.clock.now_ms());
        Ok(TypeStatus { record, view, local, exhausted_at_ms })
    }

    pub(super) fn node_status(&self) -> NodeStatus {
        let parts = self.health.parts();
        let draining = self.draining.load(Ordering::Relaxed);
        // Types that need no Redis are served without it.
        let needs_none = |entry: &Arc<TypeEntry>| {
            let settings = entry.settings();
            settings.record.mode != Mode::Strict
                || settings.record.options.on_redis_loss == OnRedisLoss::Segment
        };
        let dispatches = parts.iter().any(|p| p.name != "store" && p.reachable)
            || self.active.all().iter().any(needs_none);
        NodeStatus {
            node: self.config.node.clone(),
            version: crate::VERSION,
            uptime_s: self.started.elapsed().as_secs(),
            ready: dispatches && !draining,
            draining,
            types_loaded: self.catalogue.len() as u64,
            parts,
        }
    }
}

async fn check(dispatcher: Arc<dyn Dispatcher>) -> InstanceCheck {
    let began = Instant::now();
    match dispatcher.history().await {
        Ok(history) => InstanceCheck {
            history: Some(history),
            round_trip_us: began.elapsed().as_micros() as u64,
            error: None,
        },
        Err(error) => {
            InstanceCheck { history: None, round_trip_us: 0, error: Some(error.to_string()) }
        }
    }
}

impl AdminApi for Service {
    async fn list_types(&self, filter: TypeFilter) -> Result<Page<TypeRecord>, Error> {
        Ok(self.parts.store.list_types(&filter).await?)
    }

    async fn alter_type(
        &self,
        name: &str,
        change: TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        let name = TypeName::parse(name)?;
        let nothing =
            TypeChange { expected_version: change.expected_version, ..TypeChange::default() };
        if change == nothing {
            return Err(Error::invalid("change", "change names no setting: give at least one"));
        }
        let record = self.parts.store.alter_type(&name, &change, actor).await?;
        self.parts.changed(&record).await;
        Ok(record)
    }

    async fn set_retired(
        &self,
        name: &str,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        let name = TypeName::parse(name)?;
        let record = self.parts.store.set_retired(&name, retired, actor).await?;
        self.parts.changed(&record).await;
        Ok(record)
    }

    async fn rotate_key(&self, name: &str, actor: &str) -> Result<TypeRecord, Error> {
        let name = TypeName::parse(name)?;
        self.parts.bring_forward(&name).await?;
        let key = self.parts.draw_key();
        let record = self.parts.store.rotate_key(&name, &key, actor).await?;
        self.parts.changed(&record).await;
        Ok(record)
    }

    async fn reserve(&self, name: &str, count: i64, actor: &str) -> Result<Reserved, Error> {
        self.parts.reserve(name, count, actor).await
    }

    async fn preview(&self, spec: TypeSpec, rate: f64) -> Result<Preview, Error> {
        self.parts.check_new(&spec)?;
        preview(&spec, rate, self.now_ms())
    }

    fn now_ms(&self) -> i64 {
        self.parts.clock.now_ms()
    }

    fn check_new(&self, spec: &TypeSpec) -> Result<(), Error> {
        self.parts.check_new(spec)
    }

    async fn find_types(
        &self,
        names: Vec<TypeName>,
    ) -> Result<HashMap<TypeName, TypeRecord>, Error> {
        self.parts.find_types(names).await
    }

    async fn read_foreign(&self, wanted: &ForeignTable) -> Result<Table, Error> {
        self.parts.read_foreign(wanted).await
    }

    async fn instances(&self) -> Result<Vec<InstanceStatus>, Error> {
        let mut found = Vec::new();
        for record in self.parts.store.instances().await? {
            let check = match self.parts.instances.get(record.id) {
                Some(instance) => check(instance.dispatcher.clone()).await,
                None => InstanceCheck {
                    history: None,
                    round_trip_us: 0,
                    error: Some("this node is not connected to it yet".to_owned()),
                },
            };
            found.push(InstanceStatus { record, check });
        }
        Ok(found)
    }

    async fn find_instance(&self, wanted: &str) -> Result<InstanceRecord, Error> {
        let all = self.parts.store.connections().await?;
        find_instance(&all, wanted).cloned()
    }

    async fn add_instance(
        &self,
        spec: InstanceSpec,
        test: bool,
        actor: &str,
    ) -> Result<InstanceRecord, Error> {
        spec.validate()?;
        let dispatcher = self.parts.instances.connect_once(&spec)?;
        if test && let Some(error) = check(dispatcher).await.error {
            return Err(super::unavailable(error));
        }
        let record = self.parts.store.add_instance(&spec, actor).await?;
        refresh_instances(&self.parts).await?;
        Ok(record)
    }

    async fn test_instance(&self, target: InstanceTarget) -> Result<InstanceCheck, Error> {
        let spec = match target {
            InstanceTarget::Spec(spec) => spec,
            InstanceTarget::Name(name) => {
                let all = self.parts.store.instances().await?;
                let found = all.into_iter().find(|i| i.name == name).ok_or_else(|| {
                    Error::new(
                        ErrorCode::UnknownInstance,
                        format!("no Redis instance is called {name:?}"),
                    )
                })?;
                if let Some(instance) = self.parts.instances.get(found.id) {
                    return Ok(check(instance.dispatcher.clone()).await);
                }
                InstanceSpec { name: found.name, url: found.url }
            }
        };
        Ok(check(self.parts.instances.connect_once(&spec)?).await)
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), Error> {
        self.parts.store.remove_instance(name, actor).await?;
        Ok(refresh_instances(&self.parts).await?)
    }

    async fn plan_migration(&self, name: &str, target: &str) -> Result<MigrationPlan, Error> {
        self.parts.plan_migration(&TypeName::parse(name)?, target).await
    }

    async fn migrate(
        &self,
        name: &str,
        target: &str,
        abandon: bool,
        actor: &str,
    ) -> Result<Migrated, Error> {
        self.parts.migrate(&TypeName::parse(name)?, target, abandon, actor).await
    }

    async fn undo_migration(&self, name: &str, actor: &str) -> Result<TypeRecord, Error> {
        self.parts.undo_migration(&TypeName::parse(name)?, actor).await
    }

    async fn migrations(&self) -> Result<Vec<TypeRecord>, Error> {
        Ok(self.parts.store.migrations().await?)
    }

    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, Error> {
        Ok(self.parts.store.drain_instance(name, to, actor).await?)
    }

    async fn settings(&self, name: &str) -> Result<Arc<TypeRecord>, Error> {
        let known = self.parts.catalogue.get(name);
        let entry = match known {
            Some(entry) => entry,
            None => self.parts.find(name, self.parts.deadline()).await?,
        };
        Ok(entry.record())
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        Ok(self.parts.store.audit(limit.clamp(1, 1_000)).await?)
    }

    async fn range_log(&self, name: &str, limit: u32) -> Result<Vec<RangeLogEntry>, Error> {
        let entry = self.parts.find(name, self.parts.deadline()).await?;
        Ok(self.parts.store.range_log(&entry.name, limit.clamp(1, 1_000)).await?)
    }
}
