//! `idgen verify`: do nodes keep their promises, whatever happens to them?
//!
//! What a type promises is read from the type itself. Clients take ids through
//! all nodes and record when each call began and ended, by one clock, and what
//! it brought. Each answer is checked by itself (limits, shard, app, site, time);
//! at the end the records are checked together: was any id brought twice, was
//! any call that began after another had returned given a smaller id, where the
//! type promises an order? Nodes may die and come back meanwhile: calls without
//! an answer are errors, which prove nothing either way.
//!
//! Memory: 24 bytes per call (per range, where a call of several ids brings
//! several; 16 per text) and at most 1.5 MB per client. `--max-calls` bounds it:
//! the run then ends early, and says so.

mod prepare;
mod report;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;

pub use prepare::CreateArgs;
pub use report::VerifyReport;

use super::load::promise::Skew;
use super::load::texts::Keeper;
use super::load::{
    self, Answer, Call, CallLog, Client, ErrorCounts, LoadError, Method, Order, Plan, Promise,
    Request, Run, Stalls, TextLog, WireArgs,
};
use super::{Environment, exit};
use crate::service::api::MAX_COUNT;

/// Options of `idgen verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// A node's Thrift address; repeat it for every node of the cluster.
    #[arg(long = "node", value_name = "HOST:PORT", required = true)]
    pub nodes: Vec<String>,
    /// The id type to take ids from.
    #[arg(long = "type", value_name = "TYPE")]
    pub id_type: String,
    /// How many clients, spread evenly over the nodes; at least one per node.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub clients: u32,
    /// How long to take ids.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// How many ids per call.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_COUNT))]
    pub count: u32,
    /// How long each client waits after an answer, before its next call.
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub pause_ms: u64,
    /// The order to check, instead of the one that the type promises: `strict`
    /// across all nodes, `node` through each node, `shard` through each node for
    /// each shard, or `none`.
    #[arg(long, value_enum)]
    pub order: Option<Order>,
    /// How many different gate passes to use, of a sharded type [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub gate_passes: Option<u32>,
    /// Check the numbers of a type that has a format, and not its texts.
    #[arg(long)]
    pub numbers: bool,
    /// How far the time in a snowflake id may be from the time here.
    #[arg(long, value_name = "MS", default_value_t = 10_000,
          value_parser = clap::value_parser!(i64).range(0..=86_400_000))]
    pub max_skew_ms: i64,
    /// Making the type.
    #[command(flatten)]
    pub create: CreateArgs,
    /// End early after so many calls: each takes 24 bytes of memory, so the
    /// default needs 480 MB when it is reached.
    #[arg(long, default_value_t = 20_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub max_calls: u64,
    /// How to talk to the nodes.
    #[command(flatten)]
    pub wire: WireArgs,
    /// Print one JSON object instead of a table. Progress still goes to the
    /// standard error.
    #[arg(long)]
    pub json: bool,
}

/// What one client saw.
#[derive(Default)]
struct Witness {
    log: CallLog,
    texts: TextLog,
    /// Calls that brought texts, and the node that they went through.
    text_calls: u64,
    node: u16,
    errors: ErrorCounts,
    /// The longest call that brought ids, in nanoseconds.
    longest_call_ns: u64,
    malformed: u64,
    wrong_ids: u64,
    /// The first malformed answer and the first wrong id, in words.
    examples: Vec<String>,
    skew: Skew,
}

/// What the clients share: what is right, the bound on memory, and the progress.
struct Shared {
    count: u32,
    pause: Duration,
    promise: Promise,
    max_skew_ms: i64,
    keeper: Keeper,
    /// A moment by the clock of the run, and the same in milliseconds of the
    /// Unix epoch.
    clock: (Instant, i64),
    max_calls: u64,
    /// Records of calls that were kept, or would have been but for the bound.
    calls: AtomicU64,
    stopped_early: AtomicBool,
    errors: AtomicU64,
    nodes: Vec<Seen>,
    stalls: Stalls,
}

/// What all clients of one node saw so far.
#[derive(Default)]
struct Seen {
    ids: AtomicU64,
    stalls: Stalls,
}

impl Shared {
    /// An answer with `ids` ids came through `node`, `at_ns` after the start.
    fn answered(&self, node: u16, ids: u64, at_ns: u64) {
        let seen = &self.nodes[usize::from(node)];
        seen.ids.fetch_add(ids, Ordering::Relaxed);
        seen.stalls.answered(at_ns);
        self.stalls.answered(at_ns);
    }
}

/// Ends a check before its time, from another thread: what was recorded until
/// then is judged.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Ends it.
    pub fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// One that the first SIGINT or SIGTERM sets off; the second ends the
    /// process with 130, as without this. Where signals cannot be listened to,
    /// they end the process as ever.
    pub fn at_signal() -> Self {
        let interrupt = Interrupt::default();
        let for_thread = interrupt.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                use tokio::signal::unix::{SignalKind, signal};
                let (Ok(mut interrupted), Ok(mut terminated)) =
                    (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
                else {
                    return;
                };
                for _ in 0..2 {
                    tokio::select! {
                        _ = interrupted.recv() => {}
                        _ = terminated.recv() => {}
                    }
                    if for_thread.is_due() {
                        std::process::exit(130);
                    }
                    for_thread.now();
                }
            });
        });
        interrupt
    }
}

/// Takes ids and checks them. Writes a line of progress to `progress` every
/// second. Refuses as [`bench::measure`](super::bench::measure) does, and what
/// cannot be checked on this type; a run without a single recorded call is
/// [`LoadError::NoCalls`], as a check that checked nothing is not clean.
pub fn verify(
    args: &VerifyArgs,
    progress: &mut dyn Write,
    interrupt: &Interrupt,
) -> Result<VerifyReport, LoadError> {
    let prepared = prepare::prepare(args)?;
    let request = Request::new(&args.id_type, Method::NextId, args.count);
    let request = Request { texts: prepared.texts, ..request };
    let request = request.with_gate_passes(prepared.gate_passes);
    let clients = load::clients(&args.nodes, args.clients, &args.wire, &request)?;
    let shared = Arc::new(Shared {
        count: args.count,
        pause: Duration::from_millis(args.pause_ms),
        promise: prepared.promise.clone(),
        max_skew_ms: args.max_skew_ms,
        keeper: Keeper::default(),
        clock: (load::now(), unix_ms()),
        max_calls: args.max_calls,
        calls: AtomicU64::new(0),
        stopped_early: AtomicBool::new(false),
        errors: AtomicU64::new(0),
        nodes: args.nodes.iter().map(|_| Seen::default()).collect(),
        stalls: Stalls::default(),
    });
    let plan = Plan { warm_up: Duration::ZERO, measured: Duration::from_secs(args.seconds) };
    let for_clients = (Arc::clone(&shared), interrupt.clone());
    let begun = load::now();
    let mut ids_before = 0;
    let witnesses = load::run(
        clients,
        plan,
        move |client, run| witness(client, run, &for_clients.0, &for_clients.1),
        |tick| {
            let by_node: Vec<u64> =
                shared.nodes.iter().map(|node| node.ids.load(Ordering::Relaxed)).collect();
            let ids: u64 = by_node.iter().sum();
            // Progress is a courtesy: that nobody reads it is no failure.
            let _ = writeln!(
                progress,
                "{:>5.0} s  {ids} ids  {} errors  {} ids/s  by node: {by_node:?}",
                tick.elapsed.as_secs_f64(),
                shared.errors.load(Ordering::Relaxed),
                ids - ids_before,
            );
            ids_before = ids;
        },
    );
    let elapsed = load::now() - begun;
    let stopped_early = shared.stopped_early.load(Ordering::Relaxed);
    if stopped_early {
        let _ = writeln!(
            progress,
            "ended early: {} calls are recorded, as --max-calls allows",
            args.max_calls
        );
    }
    if interrupt.is_due() {
        let _ = writeln!(progress, "ended early: interrupted");
    }
    let (at, at_ms) = shared.clock;
    let watched = report::Watched {
        elapsed,
        stopped_early: stopped_early || interrupt.is_due(),
        started_ms: at_ms + begun.saturating_duration_since(at).as_millis() as i64,
        by_node: shared.nodes.iter().map(|node| node.stalls.until(nanos(elapsed))).collect(),
        stalls: shared.stalls.until(nanos(elapsed)),
    };
    report::judge(args, prepared, witnesses, watched)
}

#[expect(
    clippy::disallowed_methods,
    reason = "times in ids are compared with real time, outside of any simulation"
)]
fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn witness(client: &mut Client, run: &Run, shared: &Shared, interrupt: &Interrupt) -> Witness {
    let mut seen = Witness { node: client.node_index(), ..Witness::default() };
    while !run.is_over(load::now()) {
        if interrupt.is_due() {
            run.stop();
            break;
        }
        let mut begun = load::now();
        let result = client.connect(run.left(begun)).and_then(|()| {
            begun = load::now();
            client.call()
        });
        let ended = load::now();
        match result {
            Ok(answer) => {
                let records = answer.records();
                if shared.calls.fetch_add(records, Ordering::Relaxed) >= shared.max_calls {
                    shared.stopped_early.store(true, Ordering::Relaxed);
                    run.stop();
                    break;
                }
                seen.check(&answer, (begun, ended), client.gate_pass(), shared);
                let times = (since(run, begun), since(run, ended));
                shared.answered(seen.node, answer.ids(), times.1);
                seen.longest_call_ns = seen.longest_call_ns.max(times.1 - times.0);
                seen.record(&answer, times, &shared.keeper);
                if !shared.pause.is_zero() {
                    run.pause(shared.pause);
                }
            }
            Err(error) => {
                shared.errors.fetch_add(1, Ordering::Relaxed);
                seen.errors.add(load::kind_of(&error, run));
                run.pause(client.pace());
            }
        }
    }
    seen
}

/// Nanoseconds since the start of the run: within a day and a grace of it.
fn since(run: &Run, at: Instant) -> u64 {
    at.saturating_duration_since(run.start()).as_nanos() as u64
}

/// The ids of an answer, as ranges of those that can be ids at all.
fn sound_ranges(answer: &Answer) -> impl Iterator<Item = (i64, u32)> {
    let (one, many) = match answer {
        Answer::One(id) => (Some((*id, 1)), &[][..]),
        Answer::Many(ranges) => (None, &ranges[..]),
        Answer::Texts(_) => (None, &[][..]),
    };
    one.into_iter().chain(many.iter().copied()).filter_map(|(first, count)| {
        let fits = count >= 1 && first.checked_add(count - 1).is_some();
        u32::try_from(count).ok().filter(|_| fits).map(|count| (first, count))
    })
}

impl Witness {
    /// Checks an answer by itself.
    fn check(
        &mut self,
        answer: &Answer,
        (begun, ended): (Instant, Instant),
        gate_pass: Option<&str>,
        shared: &Shared,
    ) {
        let promise = &shared.promise;
        if let Some(defect) = answer.defect(shared.count, promise.ascending) {
            if self.malformed == 0 {
                self.examples.push(format!("malformed answer: {defect}"));
            }
            self.malformed += 1;
        }
        let (at, at_ms) = shared.clock;
        let ms = |moment: Instant| at_ms + moment.saturating_duration_since(at).as_millis() as i64;
        for (first, count) in sound_ranges(answer) {
            let mut breach = promise.breach(first, count.into(), gate_pass);
            for id in [first, first + i64::from(count) - 1] {
                let Some(time) = promise.time_in(id) else { continue };
                let skew = Skew::of(time, (ms(begun), ms(ended)));
                self.skew = self.skew.max(skew);
                if skew.exceeds(shared.max_skew_ms) {
                    breach.get_or_insert_with(|| {
                        let Skew { ahead_ms, behind_ms } = skew;
                        format!("the time in {id} is {ahead_ms} ms ahead, {behind_ms} ms behind")
                    });
                }
            }
            if let Some(breach) = breach {
                if self.wrong_ids == 0 {
                    self.examples.push(format!("wrong id: {breach}"));
                }
                self.wrong_ids += 1;
            }
        }
    }

    /// Records what can be recorded of an answer, even of a malformed one: what
    /// was handed out, was handed out.
    fn record(&mut self, answer: &Answer, (start, end): (u64, u64), keeper: &Keeper) {
        for (first, count) in sound_ranges(answer) {
            self.log.push(Call::new(start, end, first, count, self.node));
        }
        if let Answer::Texts(texts) = answer {
            self.text_calls += 1;
            texts.iter().for_each(|text| self.texts.push(keeper.keep(text)));
        }
    }
}

/// Runs `idgen verify`: the result goes to `out`, progress and a message about
/// a failure to `err`. Returns the exit code (see [`exit`]).
pub fn execute(
    args: &VerifyArgs,
    environment: &Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
    interrupt: &Interrupt,
) -> u8 {
    if let Err(failure) = prepare::create(args, environment) {
        let _ = writeln!(err, "idgen verify: {failure}");
        return failure.code;
    }
    let report = match verify(args, err, interrupt) {
        Ok(report) => report,
        Err(error) => {
            let _ = writeln!(err, "idgen verify: {error}");
            return error.exit_code();
        }
    };
    let printed = report::print(&report, args.json, out);
    // A result that nobody could read is no proof either.
    if report.clean && printed.is_ok() { exit::OK } else { exit::FAILED }
}

#[cfg(test)]
#[path = "verify_mode_tests.rs"]
mod mode_tests;
#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
