//! The world of a schedule: a store, two Redis instances, three nodes, and what is
//! wrong with them at the moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idgen::adapters::memory::{
    DispatcherSnapshot, MemoryDispatcher, MemoryRangeStore, MemoryWorkerIds, StoreSnapshot,
    WorkerSnapshot,
};
use idgen::domain::{History, IdRange, InstanceId, TypeName};
use idgen::ports::{Clock, Dispatcher};
use idgen::service::Service;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::checker::Checker;
use crate::mistakes::Mistake;
use crate::plan::{Cut, INSTANCES, Mishap, NODES, Peer, Plan};
use crate::rng::{Rng, SeededEntropy};
use crate::trace::Trace;

/// A clock that follows tokio's, and that a schedule can move.
pub struct SimClock {
    start_ms: i64,
    began: Instant,
    skew_ms: AtomicI64,
}

impl SimClock {
    fn new(start_ms: i64, began: Instant) -> Arc<Self> {
        Arc::new(SimClock { start_ms, began, skew_ms: AtomicI64::new(0) })
    }

    pub fn set_skew(&self, ms: i64) {
        self.skew_ms.store(ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        let skew = self.skew_ms.load(Ordering::Relaxed);
        self.start_ms + self.began.elapsed().as_millis() as i64 + skew
    }
}

/// A Redis process.
pub struct Server {
    pub data: MemoryDispatcher,
    pub up: AtomicBool,
}

/// A registered instance: the servers that ever stood behind its name. New
/// connections lead to the current one.
pub struct Redis {
    pub servers: Mutex<Vec<Arc<Server>>>,
    pub current: AtomicUsize,
    /// What a replica has, and what is on disk; both lag.
    pub replica: Mutex<DispatcherSnapshot>,
    pub disk: Mutex<DispatcherSnapshot>,
}

impl Redis {
    pub fn server(&self, index: usize) -> Arc<Server> {
        self.servers.lock().unwrap()[index].clone()
    }

    pub fn master(&self) -> Arc<Server> {
        self.server(self.current.load(Ordering::Relaxed))
    }
}

/// One life of a node, as the world sees it: its lines to the other parts.
pub struct Line {
    pub node: usize,
    pub life: u32,
    /// The process is gone.
    pub dead: CancellationToken,
    /// Somebody stops it in order.
    pub stop: Notify,
    paused_until: Mutex<Instant>,
    woken: Notify,
    pub rng: Mutex<Rng>,
    /// Which server of each instance it is connected to.
    pub connected: [AtomicUsize; INSTANCES],
    pub health: Mutex<LineHealth>,
}

/// What went wrong lately between a node and the others.
#[derive(Clone, Copy)]
pub struct LineHealth {
    /// It may take an instance for lost until then; `None` until it answered.
    suspect_until: [Option<Instant>; INSTANCES],
    /// It last used a server that was replaced, and still answered.
    pub stale_at: [Option<Instant>; INSTANCES],
    /// The store was slow to it or did not answer, or it was paused.
    pub trouble_at: Option<Instant>,
    pub paused_at: Option<Instant>,
}

impl Line {
    /// A range of a node's own, on this line.
    pub fn range(&self, name: &TypeName, shard: Option<u8>, range: IdRange) -> Unseen {
        let (node, life) = (self.node, self.life);
        Unseen {
            node,
            life,
            what: name.to_string(),
            part: shard.unwrap_or(0),
            start: range.start(),
        }
    }

    pub fn is_dead(&self) -> bool {
        self.dead.is_cancelled()
    }

    pub fn pause(&self, ms: i64) {
        let until = Instant::now() + Duration::from_millis(ms as u64);
        *self.paused_until.lock().unwrap() = until;
        self.note_trouble(Some(until));
        let mut health = self.health.lock().unwrap();
        health.paused_at = Some(until);
    }

    /// Until then the node may not hear from the store.
    pub fn note_trouble(&self, until: Option<Instant>) {
        let mut health = self.health.lock().unwrap();
        health.trouble_at = health.trouble_at.max(until);
    }

    fn wake(&self) {
        *self.paused_until.lock().unwrap() = Instant::now();
        self.woken.notify_waiters();
    }

    /// Waits while the node is paused; for ever, when it is dead.
    pub async fn alive(&self) {
        loop {
            if self.is_dead() {
                std::future::pending::<()>().await;
            }
            let until = *self.paused_until.lock().unwrap();
            if until <= Instant::now() {
                return;
            }
            tokio::select! {
                biased;
                () = self.woken.notified() => {}
                () = sleep_until(until) => {}
            }
        }
    }
}

/// What the store held at a backup, and how the world was then.
#[derive(Clone)]
struct Backup {
    tables: StoreSnapshot,
    workers: Arc<WorkerSnapshot>,
    ends: BTreeMap<(String, u8), i64>,
    homes: BTreeMap<TypeName, usize>,
    moves: BTreeMap<TypeName, u64>,
    harm: u64,
}

/// What is wrong, and what was promised.
/// A node that no longer shows a range to Redis after so long has dropped it.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);

/// A range of a node's own: whose, of what, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    pub node: usize,
    pub life: u32,
    pub what: String,
    pub part: u8,
    pub start: i64,
}

pub struct State {
    pub trace: Trace,
    pub checker: Checker,
    pub faults: BTreeMap<&'static str, u64>,
    /// Node, peer, what is cut, until when.
    cuts: Vec<(usize, Peer, Cut, Instant)>,
    store_down_until: Option<Instant>,
    redis_down_until: [Option<Instant>; INSTANCES],
    /// How often Redis lost or missed something, or somebody outside the rule of
    /// a single failure did something that only the store knows.
    pub harm: u64,
    /// The highest ends ever given out, by type and shard or width and worker id.
    highest: BTreeMap<(String, u8), i64>,
    /// What of that the store knows.
    known: BTreeMap<(String, u8), i64>,
    backup: Option<Backup>,
    /// The store went back, and does not know again what it forgot.
    healing: bool,
    /// Ranges that it gave away again since, which their nodes have not shown to Redis
    /// yet; until when that is waited for.
    unseen: Vec<(Unseen, Instant)>,
    /// Where types that were moved are.
    homes: BTreeMap<TypeName, usize>,
    /// What of that the store knows.
    known_homes: BTreeMap<TypeName, usize>,
    /// How often each was assigned.
    moves: BTreeMap<TypeName, u64>,
    /// Types of which the store forgot that they were moved, and so where their
    /// request keys are.
    pub keys_forgotten: BTreeSet<TypeName>,
    /// Types whose old instance was not to be asked.
    pub abandoned: BTreeSet<TypeName>,
    /// When a type was last assigned while nothing closed it on the old instance.
    pub unsealed_at: BTreeMap<TypeName, Instant>,
    /// The history that the store has of a type, and since when.
    recorded: BTreeMap<TypeName, (History, Instant)>,
    /// The highest number of a history that the store has of a type and an instance.
    newest: BTreeMap<(TypeName, usize), usize>,
    /// Histories: their instance, and a number in the order in which they began.
    histories: HashMap<History, (usize, usize)>,
    /// Types of which the store took an older history for a newer one.
    pub out_of_order: BTreeSet<TypeName>,
    pub clocks_moved: bool,
    /// A call to it failed, or it lost something.
    pub redis_lost: [bool; INSTANCES],
    /// It lost something.
    data_lost: [bool; INSTANCES],
}

/// A node that serves.
#[derive(Clone)]
pub struct Up {
    pub line: Arc<Line>,
    pub service: Arc<Service>,
}

pub struct World {
    pub plan: Plan,
    pub mistake: Option<Mistake>,
    pub began: Instant,
    pub store: MemoryRangeStore,
    pub workers: MemoryWorkerIds,
    pub store_clock: Arc<SimClock>,
    pub node_clocks: Vec<Arc<SimClock>>,
    pub redis: Vec<Redis>,
    pub entropy: SeededEntropy,
    pub nodes: Mutex<Vec<Option<Up>>>,
    pub lines: Mutex<Vec<Option<Arc<Line>>>>,
    pub storm: AtomicBool,
    /// Something happened that must not.
    pub over: CancellationToken,
    state: Mutex<State>,
}

impl World {
    pub fn new(plan: Plan, mistake: Option<Mistake>, verbose: bool) -> Arc<Self> {
        let began = Instant::now();
        let entropy = SeededEntropy::new(plan.seed, "world");
        let checks = mistake.map(Mistake::checks).unwrap_or_default();
        let redis = (0..INSTANCES)
            .map(|_| {
                let data = MemoryDispatcher::with_checks(&entropy, checks);
                let now = data.snapshot();
                Redis {
                    servers: Mutex::new(vec![Arc::new(Server { data, up: AtomicBool::new(true) })]),
                    current: AtomicUsize::new(0),
                    replica: Mutex::new(now.clone()),
                    disk: Mutex::new(now),
                }
            })
            .collect();
        let store_clock = SimClock::new(plan.start_ms, began);
        let state = State {
            trace: Trace::new(verbose),
            checker: Checker::new(&plan.types),
            faults: BTreeMap::new(),
            cuts: Vec::new(),
            store_down_until: None,
            redis_down_until: [None; INSTANCES],
            harm: 0,
            highest: BTreeMap::new(),
            known: BTreeMap::new(),
            backup: None,
            healing: false,
            unseen: Vec::new(),
            homes: BTreeMap::new(),
            known_homes: BTreeMap::new(),
            moves: BTreeMap::new(),
            keys_forgotten: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            unsealed_at: BTreeMap::new(),
            recorded: BTreeMap::new(),
            newest: BTreeMap::new(),
            histories: HashMap::new(),
            out_of_order: BTreeSet::new(),
            clocks_moved: false,
            redis_lost: [false; INSTANCES],
            data_lost: [false; INSTANCES],
        };
        Arc::new(World {
            mistake,
            began,
            store: MemoryRangeStore::with_checks(checks),
            workers: MemoryWorkerIds::new(store_clock.clone()),
            store_clock,
            node_clocks: (0..NODES).map(|_| SimClock::new(plan.start_ms, began)).collect(),
            redis,
            entropy,
            nodes: Mutex::new(vec![None; NODES]),
            lines: Mutex::new(vec![None; NODES]),
            storm: AtomicBool::new(true),
            over: CancellationToken::new(),
            state: Mutex::new(state),
            plan,
        })
    }

    pub fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn note(&self, event: fmt::Arguments<'_>) {
        let at = self.began.elapsed().as_millis() as u64;
        self.state().trace.note(at, event);
    }

    pub fn count(&self, fault: &'static str) {
        *self.state().faults.entry(fault).or_default() += 1;
    }

    pub fn set_store_clock(&self) {
        self.store.set_clock(Some(self.store_clock.now_ms()));
    }

    pub fn is_stormy(&self) -> bool {
        self.storm.load(Ordering::Relaxed)
    }

    pub fn up(&self, node: usize) -> Option<Up> {
        self.nodes.lock().unwrap()[node].clone()
    }

    pub fn line(&self, node: usize) -> Option<Arc<Line>> {
        self.lines.lock().unwrap()[node].clone()
    }

    pub fn new_line(&self, node: usize, life: u32) -> Arc<Line> {
        let current = |i: usize| AtomicUsize::new(self.redis[i].current.load(Ordering::Relaxed));
        let line = Arc::new(Line {
            node,
            life,
            dead: CancellationToken::new(),
            stop: Notify::new(),
            paused_until: Mutex::new(Instant::now()),
            woken: Notify::new(),
            rng: Mutex::new(Rng::new(self.plan.seed, &format!("line {node} {life}"))),
            connected: std::array::from_fn(current),
            health: Mutex::new(LineHealth {
                suspect_until: [Some(Instant::now()); INSTANCES],
                stale_at: [None; INSTANCES],
                trouble_at: None,
                paused_at: None,
            }),
        });
        self.lines.lock().unwrap()[node] = Some(line.clone());
        line
    }

    /// The process ends from one moment to the next.
    pub fn crash(&self, line: &Line) {
        if !line.is_dead() {
            self.note(format_args!("n{}.{} crashes", line.node, line.life));
            line.dead.cancel();
        }
    }

    /// Whether calls of the node to `peer` are cut now.
    pub fn cut(&self, node: usize, peer: Peer) -> Option<Cut> {
        let now = Instant::now();
        let state = self.state();
        let found =
            state.cuts.iter().find(|(n, p, _, until)| *n == node && *p == peer && now < *until);
        found.map(|(_, _, cut, _)| *cut)
    }

    pub fn is_store_down(&self) -> bool {
        self.state().store_down_until.is_some_and(|until| Instant::now() < until)
    }

    pub fn is_redis_down(&self, instance: usize) -> bool {
        self.state().redis_down_until[instance].is_some_and(|until| Instant::now() < until)
    }

    /// Whether Redis may fail now.
    pub fn may_harm_redis(&self) -> bool {
        self.is_stormy() && !self.plan.redis_is_safe && !self.state().healing
    }

    pub fn add_cut(&self, node: usize, peer: Peer, cut: Cut, until: Instant) {
        self.state().cuts.push((node, peer, cut, until));
    }

    pub fn set_store_down(&self, until: Instant) {
        self.state().store_down_until = Some(until);
    }

    pub fn set_redis_down(&self, instance: usize, until: Instant) {
        self.state().redis_down_until[instance] = Some(until);
    }

    /// A call to Redis failed, or will: what the node does now, Redis may miss.
    pub fn redis_failed(&self, line: &Line, instance: usize) {
        line.health.lock().unwrap().suspect_until[instance] = None;
        let mut state = self.state();
        state.harm += 1;
        state.redis_lost[instance] = true;
    }

    /// After a call that failed the next one uses a new connection.
    pub fn connect_again(&self, line: &Line, instance: usize) {
        let current = self.redis[instance].current.load(Ordering::Relaxed);
        line.connected[instance].store(current, Ordering::Relaxed);
    }

    /// It says that it is there: soon the node goes to it again.
    pub fn redis_answered(&self, line: &Line, instance: usize) {
        let mut health = line.health.lock().unwrap();
        if health.suspect_until[instance].is_none() {
            health.suspect_until[instance] = Some(Instant::now() + Duration::from_secs(1));
        }
    }

    /// Redis lost something.
    pub fn redis_lost(&self, instance: usize) {
        let mut state = self.state();
        state.harm += 1;
        state.redis_lost[instance] = true;
        state.data_lost[instance] = true;
    }

    /// Whether a call failed to an instance that the type may have been on, or one
    /// of these lost something.
    pub fn is_redis_lost(&self, of: usize) -> bool {
        let state = self.state();
        (0..INSTANCES).any(|i| state.redis_lost[i] && self.plan.touches(of, i))
    }

    /// Where the type is.
    pub fn home(&self, of: usize) -> usize {
        let of_type = &self.plan.types[of];
        self.state().homes.get(&of_type.name).copied().unwrap_or(of_type.instance)
    }

    /// The store assigned a type to another instance.
    pub async fn assigned(&self, name: &TypeName, from: InstanceId, to: InstanceId) {
        let (from, to) = (from.0 as usize - 1, to.0 as usize - 1);
        let view = self.redis[from].master().data.view(name).await.expect("memory answers");
        let mut state = self.state();
        state.homes.insert(name.clone(), to);
        state.known_homes.insert(name.clone(), to);
        *state.moves.entry(name.clone()).or_default() += 1;
        let excused = state.data_lost[from] || state.abandoned.contains(name);
        if from != to && view.sealed.is_none() && excused {
            state.unsealed_at.insert(name.clone(), Instant::now());
            *state.faults.entry("LIMIT: moved without a seal").or_default() += 1;
        }
        *state.faults.entry("type moved").or_default() += 1;
        self.look_whether_healed(state);
    }

    /// A range, or times of a worker id, up to `end` were given out by the store.
    pub fn gave_out(&self, what: String, part: u8, end: i64) {
        let mut state = self.state();
        let highest = state.highest.entry((what.clone(), part)).or_default();
        *highest = end.max(*highest);
        let known = state.known.entry((what, part)).or_default();
        *known = end.max(*known);
        self.look_whether_healed(state);
    }

    /// A node was given a range of its own. Where the store went back, the range may have
    /// been given out before, which Redis knows.
    pub fn leased(&self, of: Unseen) {
        let mut state = self.state();
        let given = state.highest.get(&(of.what.clone(), of.part));
        if state.healing && given.is_some_and(|end| *end > of.start) {
            state.unseen.push((of, Instant::now() + FORGOTTEN_AFTER));
        }
    }

    /// A node showed a range to Redis.
    pub fn shown(&self, of: &Unseen) {
        let mut state = self.state();
        state.unseen.retain(|(unseen, _)| unseen != of);
        self.look_whether_healed(state);
    }

    /// The end of what was given out came back, from `start` on.
    pub fn came_back(&self, what: String, part: u8, start: i64) {
        let mut state = self.state();
        let key = (what, part);
        let (highest, known) = (state.highest.get(&key).copied(), state.known.get(&key).copied());
        if highest == known {
            state.highest.insert(key.clone(), start);
        }
        state.known.insert(key, start);
        self.look_whether_healed(state);
    }

    /// A history of an instance, which has just begun.
    pub async fn history_began(&self, instance: usize) {
        let history = self.redis[instance].master().data.history().await;
        let mut state = self.state();
        let number = state.histories.len();
        let history = history.expect("memory always answers");
        state.histories.entry(history).or_insert((instance, number));
    }

    /// The store heard of a history.
    pub fn recorded(&self, name: &TypeName, history: &History) {
        let mut state = self.state();
        let (instance, number) = state.histories[history];
        let newest = state.newest.entry((name.clone(), instance)).or_default();
        let older = *newest > number;
        *newest = number;
        if older && state.out_of_order.insert(name.clone()) {
            *state.faults.entry("LIMIT: an older history recorded last").or_default() += 1;
        }
        if state.recorded.get(name).is_none_or(|(known, _)| known != history) {
            state.recorded.insert(name.clone(), (history.clone(), Instant::now()));
        }
    }

    /// Since when the store has the history of a type that it has now.
    pub fn recorded_at(&self, name: &TypeName) -> Option<Instant> {
        self.state().recorded.get(name).map(|(_, at)| *at)
    }

    fn look_whether_healed(&self, mut state: std::sync::MutexGuard<'_, State>) {
        let knows = |state: &State| {
            let now = Instant::now();
            state.homes == state.known_homes
                && state.unseen.iter().all(|(_, until)| *until <= now)
                && state.highest.iter().all(|(k, end)| state.known.get(k) >= Some(end))
        };
        if state.healing && knows(&state) {
            state.healing = false;
            state.unseen.clear();
            drop(state);
            self.note(format_args!("the store knows everything again"));
        }
    }

    /// Whether each part of the world could witness what the store may forget.
    fn is_redis_whole(&self) -> bool {
        let now = Instant::now();
        let up = (0..INSTANCES).all(|i| {
            let redis = &self.redis[i];
            !self.is_redis_down(i) && redis.master().up.load(Ordering::Relaxed)
        });
        up && self.lines.lock().unwrap().iter().flatten().filter(|l| !l.is_dead()).all(|line| {
            let health = line.health.lock().unwrap();
            (0..INSTANCES).all(|i| {
                let current = self.redis[i].current.load(Ordering::Relaxed);
                let trusts = health.suspect_until[i].is_some_and(|until| until <= now);
                trusts && line.connected[i].load(Ordering::Relaxed) == current
            })
        })
    }

    pub fn take_backup(&self) {
        if !self.is_redis_whole() || self.state().healing {
            return;
        }
        let tables = self.store.snapshot();
        let workers = Arc::new(self.workers.snapshot());
        let mut state = self.state();
        let (ends, homes, harm) = (state.known.clone(), state.known_homes.clone(), state.harm);
        let moves = state.moves.clone();
        state.backup = Some(Backup { tables, workers, ends, homes, moves, harm });
        drop(state);
        self.note(format_args!("a backup of the store"));
    }

    /// Puts the latest backup back, if the rule of a single failure allows it:
    /// docs/simulation.md.
    pub fn restore_backup(&self) {
        let whole = self.is_redis_whole();
        let mut state = self.state();
        let allowed = whole && !state.healing && state.abandoned.is_empty();
        let Some(backup) = state.backup.clone().filter(|b| allowed && b.harm == state.harm) else {
            return;
        };
        self.store.restore(backup.tables);
        self.workers.restore(&backup.workers);
        state.known = backup.ends;
        state.known_homes = backup.homes;
        let forgotten =
            state.moves.iter().filter(|(n, moves)| backup.moves.get(*n) != Some(*moves));
        let forgotten: Vec<_> = forgotten.map(|(name, _)| name.clone()).collect();
        state.keys_forgotten.extend(forgotten);
        // Of one that was not moved before, it knows that it is where it was made.
        for of_type in &self.plan.types {
            if state.homes.contains_key(&of_type.name) {
                let made_on = of_type.instance;
                state.known_homes.entry(of_type.name.clone()).or_insert(made_on);
            }
        }
        state.healing = true;
        state.cuts.retain(|(_, peer, _, _)| *peer == Peer::Store);
        *state.faults.entry("store rolled back").or_default() += 1;
        drop(state);
        self.note(format_args!("the store goes back to its backup"));
        self.look_whether_healed(self.state());
    }

    /// Ends everything that is wrong.
    pub fn calm(&self) {
        self.storm.store(false, Ordering::Relaxed);
        {
            let mut state = self.state();
            state.cuts.clear();
            state.store_down_until = None;
            state.redis_down_until = [None; INSTANCES];
        }
        for redis in &self.redis {
            let current = redis.current.load(Ordering::Relaxed);
            for (index, server) in redis.servers.lock().unwrap().iter().enumerate() {
                server.up.store(index == current, Ordering::Relaxed);
            }
        }
        self.store_clock.set_skew(0);
        self.node_clocks.iter().for_each(|clock| clock.set_skew(0));
        self.set_store_clock();
        self.lines.lock().unwrap().iter().flatten().for_each(|line| line.wake());
        self.note(format_args!("calm"));
    }

    /// The first thing that must not have happened, if something did.
    pub fn violation(&self) -> Option<String> {
        self.state().checker.violation().map(str::to_owned)
    }

    /// How often a mishap happens now, per million calls.
    pub fn rate(&self, mishap: Mishap) -> u64 {
        let index = Mishap::ALL.iter().position(|m| *m == mishap).expect("one of all");
        if self.is_stormy() { self.plan.rates[index] } else { 0 }
    }
}
