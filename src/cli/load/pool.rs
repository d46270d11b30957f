//! Runs many clients for an exact time.
//!
//! Every client is a job on its own thread of a `threadpool`. All connect
//! first, meet at a barrier, and start together; the first one to leave it
//! starts the clock. The calling thread supervises: it reports progress once a
//! second, and [`GRACE`] after the end it cuts the connections of those that
//! still wait for an answer. So a run ends on time even if a node hangs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use threadpool::Builder;

use super::client::{Client, Cutter};

/// How long a call that is in flight at the end may take to bring its answer.
pub const GRACE: Duration = Duration::from_millis(500);

/// A client needs little stack; so a thousand of them need little memory.
const STACK_BYTES: usize = 256 * 1024;

/// How long to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Calls that begin within this time from the start are not measured.
    pub warm_up: Duration,
    /// The time that is measured, after the warm-up.
    pub measured: Duration,
}

/// Where a run is; passed to the progress report once a second.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// Time since the start, warm-up included.
    pub elapsed: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
    measure_from: Instant,
    end: Instant,
}

/// A run as its clients see it.
#[derive(Debug)]
pub struct Run {
    plan: Plan,
    clock: OnceLock<Clock>,
    stopped: AtomicBool,
    cut: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Run {
    fn new(plan: Plan) -> Self {
        Run {
            plan,
            clock: OnceLock::new(),
            stopped: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// The clock; the first call of all starts it.
    fn clock(&self) -> Clock {
        *self.clock.get_or_init(|| {
            let start = now();
            let measure_from = start + self.plan.warm_up;
            Clock { start, measure_from, end: measure_from + self.plan.measured }
        })
    }

    /// When the run started.
    pub fn start(&self) -> Instant {
        self.clock().start
    }

    /// Whether a call that ran from `begun` to `ended` lies wholly within the
    /// measured time.
    pub fn measures(&self, begun: Instant, ended: Instant) -> bool {
        let clock = self.clock();
        begun >= clock.measure_from && ended <= clock.end
    }

    /// Whether the warm-up was over at `at`.
    pub fn is_warm(&self, at: Instant) -> bool {
        at >= self.clock().measure_from
    }

    /// Whether no call may begin at `at` any more.
    pub fn is_over(&self, at: Instant) -> bool {
        at >= self.clock().end || self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the supervisor has cut the connections: a failure after that is
    /// its doing.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// How long the run lasts from `at` on.
    pub fn left(&self, at: Instant) -> Duration {
        self.clock().end.saturating_duration_since(at)
    }

    /// Ends the run before its time.
    pub fn stop(&self) {
        let _guard = self.lock.lock().expect("no holder panics");
        self.stopped.store(true, Ordering::SeqCst);
        self.wake.notify_all();
    }

    /// Waits for `pace`, but not beyond the end of the run.
    pub fn pause(&self, pace: Duration) {
        let pace = pace.min(self.left(now()));
        let guard = self.lock.lock().expect("no holder panics");
        let _ = self
            .wake
            .wait_timeout_while(guard, pace, |()| !self.stopped.load(Ordering::SeqCst))
            .expect("no holder panics");
    }
}

/// The monotonic clock of all measurements.
#[expect(
    clippy::disallowed_methods,
    reason = "the load generator measures real time, outside of any simulation"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Runs `work` once for each of `clients`, all at the same time, and returns
/// what they return, in no particular order. `work` must return soon after
/// [`Run::is_over`] says so. `tick` is called once a second, on this thread.
///
/// # Panics
/// When a client panics, or a thread cannot be started.
pub fn run<R, W>(clients: Vec<Client>, plan: Plan, work: W, mut tick: impl FnMut(Tick)) -> Vec<R>
where
    R: Send + 'static,
    W: Fn(&mut Client, &Run) -> R + Send + Sync + 'static,
{
    let count = clients.len();
    let cutters: Vec<Cutter> = clients.iter().map(Client::cutter).collect();
    let run = Arc::new(Run::new(plan));
    let barrier = Arc::new(Barrier::new(count + 1));
    let work = Arc::new(work);
    let (sender, results) = mpsc::channel();
    let pool = Builder::new()
        .num_threads(count)
        .thread_name("idgen-load".to_owned())
        .thread_stack_size(STACK_BYTES)
        .build();
    for mut client in clients {
        let (run, barrier) = (Arc::clone(&run), Arc::clone(&barrier));
        let (work, sender) = (Arc::clone(&work), sender.clone());
        pool.execute(move || {
            // A failure shows again at the first call, where it is counted.
            let _ = client.connect(Duration::MAX);
            barrier.wait();
            run.clock();
            // The receiver is gone only if the supervisor panicked.
            let _ = sender.send(work(&mut client, &run));
        });
    }
    drop(sender);
    barrier.wait();
    supervise(&run, &cutters, &results, count, &mut tick)
}

fn supervise<R>(
    run: &Run,
    cutters: &[Cutter],
    results: &mpsc::Receiver<R>,
    count: usize,
    tick: &mut impl FnMut(Tick),
) -> Vec<R> {
    const SECOND: Duration = Duration::from_secs(1);
    let clock = run.clock();
    let mut next_tick = clock.start + SECOND;
    let mut cut_at = clock.end + GRACE;
    let mut done = Vec::with_capacity(count);
    while done.len() < count {
        let next = next_tick.min(cut_at);
        match results.recv_timeout(next.saturating_duration_since(now())) {
            Ok(result) => {
                // One that returns early means that all were told to.
                cut_at = cut_at.min(now() + GRACE);
                done.push(result);
            }
            Err(RecvTimeoutError::Disconnected) => panic!("a simulated client panicked"),
            Err(RecvTimeoutError::Timeout) => {
                let at = now();
                if at >= next_tick {
                    next_tick += SECOND;
                    tick(Tick { elapsed: at - clock.start });
                }
                if at >= cut_at {
                    run.cut.store(true, Ordering::SeqCst);
                    cutters.iter().for_each(Cutter::cut);
                    // Again, should one have been connecting at that moment.
                    cut_at = at + GRACE;
                }
            }
        }
    }
    done
}
