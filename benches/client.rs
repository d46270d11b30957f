//! What an id of a local lease costs beside a bare counter: `make bench-client`
//! (docs/rust-client.md).
//!
//! Criterion tells how long each takes. The ratios are measured apart, in turns of about
//! a millisecond, so that whatever else the machine does is shared by both.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use criterion::Criterion;
use idgen::client::{BlockingClient, BlockingLease, Client, Config, LeaseConfig, LocalLease};
use tokio::runtime::Runtime;
use tokio::time::Instant;

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/rust_client/fake.rs"]
mod fake;

/// Turns of each pair of measurements.
const TURNS: usize = 1_001;
/// Ids of each thread in a turn.
const IDS: u64 = 50_000;

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --benches` runs this too, and must not measure.
        println!("run by `make bench-client`, or `cargo bench --bench client`");
        return ExitCode::SUCCESS;
    }
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let node = fake::Fake::start(fake::leases());
    let config = Config::new([node.name()]);
    // The fastest program there is empties the longest lease in a tenth of a second.
    let mut leases = LeaseConfig::default();
    (leases.min, leases.max) = (10_000_000, 10_000_000);
    let client = BlockingClient::new(config.clone()).expect("a client");
    let lease = client.local_lease("event", leases.clone()).expect("a lease");
    let runtime = Runtime::new().expect("a runtime");
    let client = Client::new(config).expect("a client");
    let tasks = runtime.block_on(client.local_lease("event", leases)).expect("a lease");

    let counter = AtomicI64::new(0);
    println!("speed beside bare fetch_add on as many threads: in the median, and in the fastest");
    println!("tenth of the turns, which a busy machine disturbs least");
    for threads in [1, 2] {
        let bare = |ids| bare(&counter, threads, ids);
        ratio(&format!("BlockingLease::next_id/{threads}"), bare, |n| single(&lease, threads, n));
        ratio(&format!("BlockingBatch::next_id/{threads}"), bare, |n| batched(&lease, threads, n));
        if threads == 1 {
            ratio("LocalLease::next_id/1", bare, |n| task(&runtime, &tasks, n));
            ratio("LocalLease::try_next_id/1", bare, |n| at_hand(&runtime, &tasks, n));
        }
    }
    for threads in [1, 2] {
        let mut measure = |name: &str, run: &dyn Fn(u64) -> Duration| {
            criterion.bench_function(&format!("{name}/{threads}"), |b| b.iter_custom(run));
        };
        measure("bare fetch_add", &|ids| bare(&counter, threads, ids));
        measure("BlockingLease::next_id", &|ids| single(&lease, threads, ids));
        measure("BlockingBatch::next_id", &|ids| batched(&lease, threads, ids));
    }
    criterion.bench_function("LocalLease::next_id/1", |b| {
        b.iter_custom(|ids| task(&runtime, &tasks, ids));
    });
    criterion.final_summary();
    ExitCode::SUCCESS
}

fn bare(counter: &AtomicI64, threads: usize, ids: u64) -> Duration {
    on(threads, ids, || {
        || {
            black_box(counter.fetch_add(1, Ordering::Relaxed));
        }
    })
}

fn single(lease: &BlockingLease, threads: usize, ids: u64) -> Duration {
    on(threads, ids, || {
        || {
            black_box(lease.next_id().expect("an id"));
        }
    })
}

fn batched(lease: &BlockingLease, threads: usize, ids: u64) -> Duration {
    on(threads, ids, || {
        let mut batch = lease.batch(1_000);
        move || {
            black_box(batch.next_id().expect("an id"));
        }
    })
}

fn task(runtime: &Runtime, lease: &LocalLease, ids: u64) -> Duration {
    runtime.block_on(async {
        let begun = Instant::now();
        for _ in 0..ids {
            black_box(lease.next_id().await.expect("an id"));
        }
        begun.elapsed()
    })
}

fn at_hand(runtime: &Runtime, lease: &LocalLease, ids: u64) -> Duration {
    runtime.block_on(async {
        let begun = Instant::now();
        for _ in 0..ids {
            let id = match lease.try_next_id() {
                Some(id) => id,
                None => lease.next_id().await.expect("an id"),
            };
            black_box(id);
        }
        begun.elapsed()
    })
}

/// How long `ids` times the work takes on each of so many threads at a time; each makes
/// its own with `make`.
fn on<W: FnMut()>(threads: usize, ids: u64, make: impl Fn() -> W + Sync) -> Duration {
    let barrier = Barrier::new(threads);
    let run = || {
        let mut work = make();
        barrier.wait();
        let begun = Instant::now();
        for _ in 0..ids {
            work();
        }
        begun.elapsed()
    };
    if threads == 1 {
        return run();
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let took = running.into_iter().map(|thread| thread.join().expect("a thread"));
        took.max().expect("at least one")
    })
}

fn ratio(name: &str, bare: impl Fn(u64) -> Duration, with: impl Fn(u64) -> Duration) {
    let (mut bares, mut withs): (Vec<_>, Vec<_>) =
        (0..TURNS).map(|_| (bare(IDS).as_secs_f64(), with(IDS).as_secs_f64())).unzip();
    bares.sort_by(f64::total_cmp);
    withs.sort_by(f64::total_cmp);
    let [fast, middle] = [TURNS / 10, TURNS / 2].map(|at| bares[at] / withs[at]);
    println!("{name:26} {middle:.2}   {fast:.2}");
}
