//! An admin service in memory, and a server with it, for the tests of the
//! HTTP side and of the client commands.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus::{IntCounter, Registry};
use tokio::sync::watch;

use super::fake_live::FakeLive;
use super::{Access, AdminToken, Compat, CompatConfig, CompatMetrics, HttpConfig, bind};
use crate::adapters::memory::MemoryRangeStore;
use crate::adapters::system::{SystemClock, SystemEntropy};
use crate::domain::allocation::{check_block, reserve};
use crate::domain::calendar::Moment;
use crate::domain::format::Format;
use crate::domain::gate_pass::shard_of;
use crate::domain::import::{Source, Table, read_text};
use crate::domain::instance::{check_drain, choose_instance, find_instance};
use crate::domain::migration::Known;
use crate::domain::preview::{Preview, preview};
use crate::domain::{
    Assignment, Error, ErrorCode, History, IdRange, InstanceId, InstanceRecord, InstanceSpec, Mode,
    OpaqueKey, Seal, State, TypeChange, TypeName, TypeOptions, TypeRecord, TypeSpec,
};
use crate::ports::{AuditEntry, ForeignTable, Page, RangeLogEntry, TypeFilter, View};
use crate::service::access::AccessControl;
use crate::service::admin::{
    AdminApi, InstanceCheck, InstanceStatus, InstanceTarget, Migrated, MigrationPlan, Place,
    Reserved,
};
use crate::service::api::{
    Decoded, IdApi, LocalSupply, NodeStatus, Order, PartStatus, RangeLease, TypeStatus,
};

/// The token of every server of these tests.
pub(crate) const TOKEN: &str = "the-right-token";

/// When everything happens.
const MADE_MS: i64 = 1_700_000_000_000;

/// The key of every opaque type, which nobody may ever see.
pub(crate) const SECRET_KEY: [u8; 32] = *b"s3cr3t-opaque-key-of-every-type!";

/// What the service holds.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) types: BTreeMap<TypeName, TypeRecord>,
    pub(crate) instances: Vec<InstanceRecord>,
    pub(crate) audit: Vec<AuditEntry>,
    pub(crate) not_ready: bool,
    /// Every change that was asked for.
    pub(crate) changes: Vec<TypeChange>,
    /// Types and request keys, with the count and the ids that they stand for.
    remembered: BTreeMap<(String, String), (i64, Vec<IdRange>)>,
    pub(crate) live: FakeLive,
    /// Calls of `next_ids` for the type `slow` wait for ever.
    pub(crate) entered_slow: Option<tokio::sync::oneshot::Sender<()>>,
}

/// Types of an instance being drained that are found moved at each look.
const DRAINED_PER_LOOK: usize = 5;

impl Held {
    /// How many types are on this instance.
    fn on(&self, id: InstanceId) -> u64 {
        self.types.values().filter(|record| record.instance == id).count() as u64
    }

    fn drain_some(&mut self, from: InstanceId, to: InstanceId) {
        let target = self.instances.iter().find(|i| i.id == to).unwrap();
        let on = self.types.values_mut().filter(|record| record.instance == from);
        for record in on.take(DRAINED_PER_LOOK) {
            if let Ok(moving) = record.begin_move(target, MADE_MS) {
                *record = arrived(&moving, to);
            }
        }
    }
}

/// A type on its way, once it is there.
fn arrived(moving: &TypeRecord, to: InstanceId) -> TypeRecord {
    let seal = Seal { generation: moving.placement.generation, target: to };
    let assignment = Assignment { seal, history: None, rest_end: None };
    let known = Known { last_history: None, is_known: false, allocated_above: false };
    moving.assign(assignment, known, MADE_MS).unwrap().0
}

/// What the dispatcher holds of a type, always.
pub(super) fn view_of(record: &TypeRecord) -> View {
    View {
        sealed: None,
        history: History::new("h1"),
        published_history: Some(History::new("h1")),
        cursor: record.next_id,
        current: IdRange::new(record.next_id, record.next_id + 1_000).ok(),
        update_id: record.next_id + 100,
        second: None,
        used: 0,
        age_ms: 5,
        leased_end: 0,
    }
}

#[derive(Default)]
pub(crate) struct Fake(pub(crate) Mutex<Held>);

impl Fake {
    fn find(&self, name: &str) -> Result<TypeRecord, Error> {
        let name = TypeName::parse(name)?;
        let held = self.0.lock().unwrap();
        let found = held.types.get(&name).cloned();
        found.ok_or_else(|| Error::unknown_type(name.as_str()))
    }

    fn note(&self, action: &str, subject: &str, actor: &str, after: Option<String>) {
        let mut held = self.0.lock().unwrap();
        let seq = held.audit.len() as i64 + 1;
        held.audit.push(AuditEntry {
            seq,
            at_ms: MADE_MS + seq,
            actor: actor.to_owned(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            before: None,
            after,
        });
    }

    /// The ids of an order: for a sharded type each by itself, for others in a row.
    fn issue(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        let mut record = self.find(name)?;
        if record.state == State::Retired {
            return Err(Error::new(
                ErrorCode::Retired,
                format!("{name} hands out no ids any more"),
            ));
        }
        let sharded = record.mode == Mode::Sharded;
        if sharded != order.gate_pass.is_some() {
            let text = "gate_pass is for sharded types, which need one";
            return Err(Error::invalid("gate_pass", text));
        }
        let key = order.request_key.map(|key| (name.to_owned(), key.to_owned()));
        if let Some((count, ids)) = key.as_ref().and_then(|k| self.remembered(k)) {
            return match count == order.count {
                true => Ok(ids),
                false => Err(Error::new(
                    ErrorCode::Conflict,
                    "the request key was used with other arguments",
                )),
            };
        }
        let positions = record.next_id..record.next_id + order.count;
        record.next_id = positions.end;
        let ids: Vec<IdRange> = match order.gate_pass {
            None => vec![IdRange::new(positions.start, positions.end).unwrap()],
            Some(gate_pass) => {
                let app = record.options.app_id.unwrap_or(0);
                let low = i64::from(shard_of(gate_pass)) << 8 | app;
                let id = |position| position << TypeOptions::SHARD_BITS | low;
                positions.map(|at| IdRange::new(id(at), id(at) + 1).unwrap()).collect()
            }
        };
        self.store(record);
        if let Some(key) = key {
            self.0.lock().unwrap().remembered.insert(key, (order.count, ids.clone()));
        }
        Ok(ids)
    }

    fn remembered(&self, key: &(String, String)) -> Option<(i64, Vec<IdRange>)> {
        self.0.lock().unwrap().remembered.get(key).cloned()
    }

    fn store(&self, record: TypeRecord) -> TypeRecord {
        let mut held = self.0.lock().unwrap();
        held.types.insert(record.name.clone(), record.clone());
        record
    }
}

impl IdApi for Fake {
    async fn next_id(&self, name: &str) -> Result<i64, Error> {
        Ok(self.next_ids(name, Order::of(1)).await?[0].start())
    }

    async fn next_ids(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        if name == "slow" {
            let entered = self.0.lock().unwrap().entered_slow.take();
            if let Some(entered) = entered {
                entered.send(()).unwrap();
            }
            return std::future::pending().await;
        }
        self.issue(name, order)
    }

    async fn next_string_ids(
        &self,
        name: &str,
        order: Order<'_>,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        let ranges = self.issue(name, order)?;
        let record = self.find(name)?;
        let ids = ranges.iter().flat_map(|range| range.start()..range.end());
        Ok(ids.map(|id| text_of(&record, id, with_prefix)).collect())
    }

    async fn lease_range(&self, name: &str, count: i64, ttl_ms: i64) -> Result<RangeLease, Error> {
        let mode = self.find(name)?.mode;
        if mode != Mode::Segment {
            return Err(Error::invalid("mode", format!("mode {mode} has no leases")));
        }
        let first = self.issue(name, Order::of(count))?[0].start();
        Ok(RangeLease { first, count, step: 1, ttl_ms })
    }

    async fn decode(&self, name: &str, id: &str) -> Result<Decoded, Error> {
        let record = self.find(name)?;
        let digits = id.strip_prefix(record.prefix.as_str()).unwrap_or(id);
        let number: i64 = digits
            .parse()
            .map_err(|_| Error::invalid("id", format!("id {id:?} is no id of {name}")))?;
        let sharded = record.mode == Mode::Sharded;
        let position = if sharded { number >> TypeOptions::SHARD_BITS } else { number };
        Ok(Decoded {
            id_type: name.to_owned(),
            mode: record.mode.as_str(),
            id: Some(number),
            text: text_of(&record, number, true),
            position: Some(position),
            shard: sharded.then_some((number >> 8 & 63) as u8),
            app_id: sharded.then_some(number & 255),
            at_ms: Some(MADE_MS),
            node: Some("here:5900".to_owned()),
            range_first: Some(1),
            range_count: Some(1_000),
            issued: position < record.next_id,
            ..Decoded::default()
        })
    }

    async fn describe(&self, name: &str) -> Result<TypeStatus, Error> {
        let record = self.find(name)?;
        let view = view_of(&record);
        if record.mode == Mode::Strict {
            let exhausted_at_ms = None;
            return Ok(TypeStatus { record, view: Some(view), local: None, exhausted_at_ms });
        }
        let local = LocalSupply {
            left: 1_500,
            ranges: 2,
            ahead: 2,
            rate: Some(2.5),
            runway_s: Some(600.0),
            worker: (record.mode == Mode::Snowflake).then_some(3),
        };
        let exhausted_at_ms = Some(MADE_MS + 86_400_000);
        Ok(TypeStatus { record, view: None, local: Some(local), exhausted_at_ms })
    }

    async fn create_type(&self, spec: TypeSpec, actor: &str) -> Result<TypeRecord, Error> {
        if self.0.lock().unwrap().types.contains_key(&spec.name) {
            return Err(Error::new(
                ErrorCode::AlreadyExists,
                format!("an id type called {:?} exists already", spec.name.as_str()),
            ));
        }
        // Without any, it is the one that a node would have registered.
        let instance = match &self.0.lock().unwrap().instances[..] {
            [] => InstanceId(1),
            all => choose_instance(all, spec.instance.as_deref())?.id,
        };
        self.note("create_type", spec.name.as_str(), actor, None);
        let mut spec = spec;
        spec.key = spec.options.opaque.map(|_| OpaqueKey::new(SECRET_KEY));
        Ok(self.store(TypeRecord::created(&spec, instance, MADE_MS)))
    }

    async fn node_status(&self) -> NodeStatus {
        let held = self.0.lock().unwrap();
        NodeStatus {
            node: "here:5900".to_owned(),
            version: "0.1.0",
            uptime_s: 7,
            ready: !held.not_ready,
            draining: false,
            types_loaded: held.types.len() as u64,
            parts: vec![PartStatus {
                name: "main".to_owned(),
                kind: "redis",
                reachable: !held.not_ready,
                error: held.not_ready.then(|| "connection refused".to_owned()),
            }],
        }
    }
}

impl AdminApi for Fake {
    async fn plan_migration(&self, name: &str, target: &str) -> Result<MigrationPlan, Error> {
        let record = self.find(name)?;
        let target = self.find_instance(target).await?;
        let from = self.find_instance(&record.instance.to_string()).await?;
        let mut problems = Vec::new();
        problems.extend(record.begin_move(&target, MADE_MS).err().map(|error| error.message));
        let mut place = |instance: InstanceRecord, view: View| {
            let error = check(&instance.url).error;
            problems.extend(error.iter().map(|error| format!("{}: {error}", instance.name)));
            Place { id: instance.id, name: instance.name, view: error.is_none().then_some(view) }
        };
        let rest = if record.mode == Mode::Strict { 1_000 } else { 0 };
        let from = place(from, view_of(&record));
        let nothing = View {
            published_history: None,
            cursor: 0,
            current: None,
            update_id: 0,
            age_ms: 0,
            ..view_of(&record)
        };
        let to = place(target, nothing);
        Ok(MigrationPlan { record, from, to, rest, keeps_rest: rest > 0, problems })
    }

    async fn migrate(
        &self,
        name: &str,
        target: &str,
        abandon: bool,
        actor: &str,
    ) -> Result<Migrated, Error> {
        let record = self.find(name)?;
        let target = self.find_instance(target).await?;
        let moving = record.begin_move(&target, MADE_MS)?;
        let from = self.find_instance(&record.instance.to_string()).await?;
        for instance in [(!abandon).then_some(&from), Some(&target)].into_iter().flatten() {
            if let Some(error) = check(&instance.url).error {
                let text = format!("{}: {error}", instance.name);
                return Err(Error::new(ErrorCode::Unavailable, text));
            }
        }
        self.note("migrate", name, actor, None);
        let left = if record.mode == Mode::Strict { 1_000 } else { 0 };
        let (kept, burnt) = if abandon { (0, left) } else { (left, 0) };
        let record = self.store(arrived(&moving, target.id));
        Ok(Migrated { record, kept, burnt, took: Duration::from_millis(12) })
    }

    async fn undo_migration(&self, name: &str, actor: &str) -> Result<TypeRecord, Error> {
        let record = self.find(name)?;
        if record.placement.moving_to.is_some() {
            self.note("undo_migration", name, actor, None);
            return Ok(self.store(record.undo_move(record.placement.generation, MADE_MS)?));
        }
        let Some(back) = record.placement.moved_from else {
            let text = format!("id type {name} was never moved: there is nothing to undo");
            return Err(Error::new(ErrorCode::Conflict, text));
        };
        Ok(self.migrate(name, &back.to_string(), false, actor).await?.record)
    }

    async fn migrations(&self) -> Result<Vec<TypeRecord>, Error> {
        let held = self.0.lock().unwrap();
        let moving = held.types.values().filter(|t| t.placement.moving_to.is_some());
        Ok(moving.cloned().collect())
    }

    async fn drain_instance(
        &self,
        name: &str,
        to: Option<&str>,
        actor: &str,
    ) -> Result<InstanceRecord, Error> {
        let from = self.find_instance(name).await?;
        let to = match to {
            Some(to) => Some(self.find_instance(to).await?),
            None => None,
        };
        if let Some(to) = &to {
            check_drain(&from, to)?;
        }
        self.note("drain_redis_instance", &from.name, actor, None);
        let mut held = self.0.lock().unwrap();
        let found = held.instances.iter_mut().find(|i| i.id == from.id).unwrap();
        found.drain_to = to.map(|to| to.id);
        let drained = found.clone();
        Ok(InstanceRecord { types: held.on(drained.id), ..drained })
    }

    async fn find_instance(&self, wanted: &str) -> Result<InstanceRecord, Error> {
        let held = self.0.lock().unwrap();
        find_instance(&held.instances, wanted).cloned()
    }

    async fn list_types(&self, filter: TypeFilter) -> Result<Page<TypeRecord>, Error> {
        let held = self.0.lock().unwrap();
        let mut items: Vec<TypeRecord> = held.types.values().cloned().collect();
        if let Some(text) = &filter.contains {
            items.retain(|r| r.name.as_str().contains(text.as_str()));
        }
        if let Some(instance) = filter.instance {
            items.retain(|r| r.instance == instance);
        }
        if let Some(after) = &filter.after {
            items.retain(|r| r.name.as_str() > after.as_str());
        }
        let more = items.len() > filter.limit as usize;
        items.truncate(filter.limit as usize);
        Ok(Page { items, more })
    }

    async fn alter_type(
        &self,
        name: &str,
        change: TypeChange,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        let record = self.find(name)?;
        self.0.lock().unwrap().changes.push(change.clone());
        let changed = change.apply_to(&record, record.updated_ms)?;
        self.note("alter_type", name, actor, None);
        Ok(self.store(changed))
    }

    async fn set_retired(
        &self,
        name: &str,
        retired: bool,
        actor: &str,
    ) -> Result<TypeRecord, Error> {
        let mut record = self.find(name)?;
        record.state = if retired { State::Retired } else { State::Active };
        record.version += 1;
        self.note("set_retired", name, actor, None);
        Ok(self.store(record))
    }

    async fn instances(&self) -> Result<Vec<InstanceStatus>, Error> {
        let mut held = self.0.lock().unwrap();
        let instances = held.instances.clone();
        for (from, to) in instances.iter().filter_map(|i| Some((i.id, i.drain_to?))) {
            held.drain_some(from, to);
        }
        let status = |record: InstanceRecord| InstanceStatus {
            check: check(&record.url),
            record: InstanceRecord { types: held.on(record.id), ..record },
        };
        Ok(instances.into_iter().map(status).collect())
    }

    async fn add_instance(
        &self,
        spec: InstanceSpec,
        test: bool,
        actor: &str,
    ) -> Result<InstanceRecord, Error> {
        if let (true, Some(error)) = (test, check(&spec.url).error) {
            return Err(Error::new(ErrorCode::Unavailable, error));
        }
        let after = format!("{{\"url\":{:?}}}", spec.url);
        self.note("add_instance", &spec.name, actor, Some(after));
        let mut held = self.0.lock().unwrap();
        let record = InstanceRecord {
            drain_to: None,
            id: InstanceId(held.instances.len() as i64 + 1),
            name: spec.name,
            url: spec.url,
            types: 0,
        };
        held.instances.push(record.clone());
        Ok(record)
    }

    async fn test_instance(&self, target: InstanceTarget) -> Result<InstanceCheck, Error> {
        match target {
            InstanceTarget::Spec(spec) => Ok(check(&spec.url)),
            InstanceTarget::Name(name) => {
                let held = self.0.lock().unwrap();
                let found = held.instances.iter().find(|i| i.name == name);
                found.map(|i| check(&i.url)).ok_or_else(|| unknown(&name))
            }
        }
    }

    async fn remove_instance(&self, name: &str, actor: &str) -> Result<(), Error> {
        {
            let mut held = self.0.lock().unwrap();
            let place = held.instances.iter().position(|i| i.name == name);
            let place = place.ok_or_else(|| unknown(name))?;
            let types = held.on(held.instances[place].id);
            if types > 0 {
                let text = format!("Redis instance {name} has {types} id types");
                return Err(Error::new(ErrorCode::Conflict, text));
            }
            held.instances.remove(place);
        }
        self.note("remove_instance", name, actor, None);
        Ok(())
    }

    async fn rotate_key(&self, name: &str, actor: &str) -> Result<TypeRecord, Error> {
        let mut record = self.find(name)?;
        let Some(opaque) = record.options.opaque else {
            return Err(Error::invalid("opaque", format!("{name} is not opaque: it has no key")));
        };
        record.next_id = record.max_id / i64::from(opaque.slices) + 1;
        record.version += 1;
        self.note("rotate_key", name, actor, None);
        Ok(self.store(record))
    }

    async fn reserve(&self, name: &str, count: i64, actor: &str) -> Result<Reserved, Error> {
        let mut record = self.find(name)?;
        check_block(&record)?;
        let range = reserve(&record, count, 0)?;
        record.next_id = range.end();
        self.note("reserve", name, actor, None);
        let name = self.store(record).name;
        Ok(Reserved { name, start: range.start(), end: range.end(), step: 1, count })
    }

    async fn preview(&self, spec: TypeSpec, rate: f64) -> Result<Preview, Error> {
        preview(&spec, rate, MADE_MS)
    }

    fn now_ms(&self) -> i64 {
        MADE_MS
    }

    fn check_new(&self, spec: &TypeSpec) -> Result<(), Error> {
        spec.validate()
    }

    async fn find_types(
        &self,
        names: Vec<TypeName>,
    ) -> Result<HashMap<TypeName, TypeRecord>, Error> {
        let held = self.0.lock().unwrap();
        let found = names.into_iter().filter_map(|name| held.types.get(&name).cloned());
        Ok(found.map(|record| (record.name.clone(), record)).collect())
    }

    async fn read_foreign(&self, wanted: &ForeignTable) -> Result<Table, Error> {
        if wanted.url.contains("down") {
            return Err(Error::new(ErrorCode::Unavailable, "source.url: connection refused"));
        }
        match read_text("biz_tag,max_id,step\norder,5001,1000\n", None)? {
            Source::Table(_, table) => Ok(table),
            Source::Export(_) => unreachable!("it is a table"),
        }
    }

    async fn settings(&self, name: &str) -> Result<Arc<TypeRecord>, Error> {
        self.find(name).map(Arc::new)
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        let held = self.0.lock().unwrap();
        let newest = held.audit.iter().rev().take(limit as usize);
        Ok(newest.cloned().collect())
    }

    async fn range_log(&self, name: &str, _: u32) -> Result<Vec<RangeLogEntry>, Error> {
        let record = self.find(name)?;
        Ok(vec![RangeLogEntry {
            range: IdRange::new(record.next_id, record.next_id + 1_000).unwrap(),
            at_ms: MADE_MS,
            owner: "here:5900".to_owned(),
            instance: Some(record.instance),
            history: Some("h1".to_owned()),
            shard: None,
        }])
    }
}

/// An id as text, on the day that it always is here.
fn text_of(record: &TypeRecord, id: i64, with_prefix: bool) -> String {
    let prefix = if with_prefix { record.prefix.as_str() } else { "" };
    let date = Moment { year: 2026, month: 11, day: 21, hour: 9, minute: 30, second: 0 };
    match record.options.format.as_deref().map(Format::parse) {
        Some(Ok(format)) => format.write(prefix, id, date),
        _ => format!("{prefix}{id}"),
    }
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorCode::UnknownInstance, format!("no Redis instance is called {name:?}"))
}

/// Instances on the host `down` do not answer.
fn check(url: &str) -> InstanceCheck {
    let down = url.contains("down");
    InstanceCheck {
        history: (!down).then(|| History::new("h1")),
        round_trip_us: if down { 0 } else { 250 },
        error: down.then(|| "connection refused".to_owned()),
    }
}

/// The admin token [`TOKEN`], and accounts in memory.
pub(crate) fn access() -> Access {
    access_over(Arc::new(MemoryRangeStore::new()))
}

/// The same over accounts that somebody else sees as well.
pub(crate) fn access_over(accounts: Arc<MemoryRangeStore>) -> Access {
    let control = AccessControl::new(accounts, Arc::new(SystemEntropy), Arc::new(SystemClock));
    Access {
        admin: AdminToken::Token(TOKEN.to_owned()),
        control: Arc::new(control.unwrap()),
        secure_cookies: false,
    }
}

/// A server on a free port of this machine, in a thread of its own; it ends
/// with the value.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) fake: Arc<Fake>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Server::with(access(), 16)
    }

    pub(crate) fn with(access: Access, max_connections: usize) -> Self {
        Server::with_compat(access, max_connections, CompatConfig::default(), false)
    }

    /// With the routes of other systems, beside the others or alone.
    pub(crate) fn with_compat(
        access: Access,
        max_connections: usize,
        config: CompatConfig,
        alone: bool,
    ) -> Self {
        let fake = Arc::new(Fake::default());
        let registry = Registry::new();
        let counter = IntCounter::new("idgen_test_total", "counts nothing").unwrap();
        registry.register(Box::new(counter)).unwrap();
        let (stop, stopped) = watch::channel(false);
        let (tell, told) = std::sync::mpsc::channel();
        let api = fake.clone();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let http = HttpConfig {
                    addr: Some("127.0.0.1:0".parse().unwrap()),
                    max_connections,
                    drain: Duration::from_millis(200),
                };
                let http = bind(http).await.unwrap();
                tell.send(http.local_addr().unwrap()).unwrap();
                let metrics = CompatMetrics::register(&registry).unwrap();
                let compat = Compat { config, metrics };
                match alone {
                    true => http.serve_compat(api, access, compat, stopped).await,
                    false => http.serve(api, registry, access, Some(compat), stopped).await,
                };
            });
        });
        Server { addr: told.recv().unwrap(), fake, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Stops it and waits until it has ended.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
