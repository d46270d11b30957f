//! Leases from a source that the test steers, on tokio's clock where time matters.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;

use tokio::sync::Semaphore;
use tokio::time::{advance, sleep};

use super::cursor::base;
use super::shelf::BLOCK;
use super::*;

const SECOND: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(2);

/// Gives leases one after another, as its script says.
#[derive(Clone, Default)]
struct Script(Arc<Scripted>);

struct Scripted {
    /// From one id to the next.
    step: i64,
    next: AtomicI64,
    ttl_ms: i64,
    /// How long a lease is under way.
    delay: Duration,
    /// One permit for each lease.
    gate: Semaphore,
    /// What the next leases fail with.
    errors: Mutex<Vec<Error>>,
    /// The count of each lease that was asked for.
    asked: Mutex<Vec<u32>>,
}

impl Default for Scripted {
    fn default() -> Self {
        Scripted {
            step: 1,
            next: AtomicI64::new(1),
            ttl_ms: 60_000,
            delay: Duration::ZERO,
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            errors: Mutex::default(),
            asked: Mutex::default(),
        }
    }
}

impl Source for Script {
    async fn lease(&self, count: u32) -> Result<RangeLease, Error> {
        let Scripted { step, ttl_ms, delay, .. } = *self.0;
        self.0.asked.lock().unwrap().push(count);
        self.0.gate.acquire().await.unwrap().forget();
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if let Some(error) = self.0.errors.lock().unwrap().pop() {
            return Err(error);
        }
        let count = i64::from(count);
        let first = self.0.next.fetch_add(count * step, Ordering::SeqCst);
        Ok(RangeLease { first, count, step, ttl_ms })
    }
}

impl Script {
    fn of(scripted: Scripted) -> Script {
        Script(Arc::new(scripted))
    }

    fn asked(&self) -> Vec<u32> {
        self.0.asked.lock().unwrap().clone()
    }

    async fn open(&self, min: u32, max: u32) -> LocalLease {
        let config = LeaseConfig { min, max, ..LeaseConfig::default() };
        LocalLease::start(self.clone(), &config, DEADLINE).await.unwrap()
    }
}

fn some_error() -> Error {
    Error::Unreachable { node: "a:1".to_owned(), message: "gone".to_owned() }
}

/// Lets the keeper do all that it can do now.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn ids_ascend_by_the_step_from_lease_to_lease() {
    let script = Script::of(Scripted { step: 3, ..Scripted::default() });
    let lease = script.open(10, 10).await;
    for n in 0..100 {
        assert_eq!(lease.next_id().await.unwrap(), 1 + 3 * n);
    }
    assert!(script.asked().len() >= 10);
}

#[tokio::test(start_paused = true)]
async fn the_next_lease_is_there_before_the_first_is_used_up() {
    let script = Script::default();
    let lease = script.open(10, 10).await;
    for _ in 0..5 {
        lease.try_next_id().unwrap();
        settle().await;
    }
    assert_eq!(script.asked().len(), 1);
    lease.try_next_id().unwrap();
    settle().await;
    assert_eq!(script.asked().len(), 2, "more than half of it is used");
    for id in 7..=15 {
        assert_eq!(lease.try_next_id(), Some(id), "without waiting");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_by_the_time_of_its_call() {
    let script = Script::of(Scripted { delay: SECOND, ..Scripted::default() });
    let lease = script.open(1_000, 1_000).await;
    assert_eq!(lease.try_next_id(), Some(1));
    settle().await;
    // 54 s after the call was sent, which took a second.
    advance(53 * SECOND - Duration::from_millis(1)).await;
    assert_eq!(lease.try_next_id(), Some(2), "from the lease that is in use");
    settle().await;
    advance(Duration::from_millis(2)).await;
    settle().await;
    assert_eq!(lease.try_next_id(), None, "its time is up");
    assert_eq!(lease.next_id().await.unwrap(), 1_001);
}

#[tokio::test(start_paused = true)]
async fn a_lease_in_use_is_followed_before_its_time_is_up() {
    let script = Script::default();
    let lease = script.open(1_000, 1_000).await;
    assert_eq!(lease.try_next_id(), Some(1));
    sleep(55 * SECOND).await;
    assert_eq!(script.asked().len(), 2);
    assert_eq!(lease.try_next_id(), Some(1_001), "without waiting");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_not_leased_again() {
    let script = Script::default();
    let lease = script.open(1_000, 1_000).await;
    sleep(3_600 * SECOND).await;
    assert_eq!(script.asked().len(), 1, "never used");
    // What was leased an hour ago is not handed out.
    assert_eq!(lease.next_id().await.unwrap(), 1_001);
    sleep(3_600 * SECOND).await;
    assert_eq!(script.asked().len(), 3, "followed once, as it was in use");
    assert_eq!(lease.next_id().await.unwrap(), 3_001);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_hands_out_no_more_than_a_block() {
    // Without a keeper: nobody ends the lease in time.
    let shelf = Shelf::new(Bounds { lasting: SECOND, min: 100_000, max: 100_000 });
    let now = Instant::now();
    let lease = RangeLease { first: 1, count: 100_000, step: 1, ttl_ms: 60_000 };
    shelf.filled(lease, now, now);
    let ticket = shelf.cursor.take().unwrap_err();
    assert_eq!(shelf.grant(ticket, 1, now).unwrap().unwrap().first, 1);
    let mut late = 0;
    let ticket = loop {
        match shelf.cursor.take() {
            Ok(_) => late += 1,
            Err(ticket) => break ticket,
        }
    };
    assert_eq!(late, BLOCK);
    let then = now + Duration::from_millis(54_000);
    assert_eq!(shelf.grant(ticket, 1, then), Ok(None));
    assert_eq!(shelf.grant(shelf.cursor.take().unwrap_err(), 1, then), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_came_too_late_is_not_used() {
    let script = Script::of(Scripted { ttl_ms: 1_000, delay: 5 * SECOND, ..Scripted::default() });
    let lease = script.open(10, 10).await;
    assert_eq!(lease.try_next_id(), None);
    assert!(matches!(lease.next_id().await, Err(Error::Deadline { last: None })));
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_to_those_who_wait() {
    let script = Script::default();
    let lease = script.open(10, 10).await;
    script.0.errors.lock().unwrap().extend([some_error(), some_error()]);
    for id in 1..=10 {
        assert_eq!(lease.next_id().await.unwrap(), id, "what is there is not held back");
    }
    assert_eq!(lease.next_id().await, Err(some_error()));
    assert_eq!(lease.next_id().await, Err(some_error()));
    assert_eq!(lease.next_id().await.unwrap(), 11, "it goes on when the nodes do");
    assert_eq!(script.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_costs_the_deadline() {
    let script = Script::of(Scripted { gate: Semaphore::new(1), ..Scripted::default() });
    let lease = script.open(2, 2).await;
    assert_eq!(lease.next_id().await.unwrap(), 1);
    assert_eq!(lease.next_id().await.unwrap(), 2);
    let begun = Instant::now();
    assert_eq!(lease.next_id().await, Err(Error::Deadline { last: None }));
    assert_eq!(begun.elapsed().as_secs(), 2);
    script.0.gate.add_permits(1);
    assert_eq!(lease.next_id().await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_in_time_while_the_source_hangs() {
    let script = Script::of(Scripted { gate: Semaphore::new(1), ..Scripted::default() });
    let lease = script.open(10, 10).await;
    for _ in 0..6 {
        lease.next_id().await.unwrap();
    }
    // The next one is under way, for ever.
    sleep(55 * SECOND).await;
    assert_eq!(lease.shelf.cursor.in_use(), 0);
    assert_eq!(lease.try_next_id(), None);
}

#[tokio::test(start_paused = true)]
async fn a_closed_lease_hands_out_nothing_and_keeps_nobody_waiting() {
    let script = Script::of(Scripted { gate: Semaphore::new(1), ..Scripted::default() });
    let lease = Arc::new(script.open(100, 100).await);
    let mut batch = lease.batch(10);
    assert_eq!(lease.next_id().await.unwrap(), 1);
    assert_eq!(batch.next_id().await.unwrap(), 2);
    lease.close();
    assert_eq!(lease.try_next_id(), None);
    assert_eq!(lease.next_id().await, Err(Error::Closed));
    assert_eq!(batch.try_next_id(), None, "though it had nine left");
    assert_eq!(batch.next_id().await, Err(Error::Closed));

    let script = Script::of(Scripted { gate: Semaphore::new(1), ..Scripted::default() });
    let lease = Arc::new(script.open(1, 1).await);
    assert_eq!(lease.next_id().await.unwrap(), 1);
    let waiting = tokio::spawn({
        let lease = Arc::clone(&lease);
        async move { lease.next_id().await }
    });
    settle().await;
    let begun = Instant::now();
    lease.close();
    assert_eq!(waiting.await.unwrap(), Err(Error::Closed));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_ids_of_its_own() {
    let lease = Script::default().open(100, 100).await;
    let (mut a, mut b) = (lease.batch(10), lease.batch(10));
    let mut seen = HashSet::new();
    for _ in 0..1_000 {
        assert!(seen.insert(a.next_id().await.unwrap()));
        assert!(seen.insert(b.next_id().await.unwrap()));
        assert!(seen.insert(lease.next_id().await.unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_length_follows_the_use() {
    let script = Script::default();
    let lease = script.open(100, 1_000_000).await;
    // 1 000 ids a second: ten seconds of them are 10 000.
    for _ in 0..60_000 {
        lease.next_id().await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    let last = *script.asked().last().unwrap();
    assert!((9_000..=11_000).contains(&last), "{:?}", script.asked());
    for _ in 0..3_000 {
        lease.next_id().await.unwrap();
        sleep(SECOND).await;
    }
    assert_eq!(script.asked().last(), Some(&100), "{:?}", script.asked());
}

#[test]
fn a_runtime_that_ends_leaves_nobody_waiting() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lease = runtime.block_on(Script::default().open(10, 10));
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(other.block_on(lease.next_id()), Err(Error::Closed));
}

/// Threads that ask for single ids, threads with batches, and leases of a few ids, some
/// of which end at once: every id is there once, and those of one thread ascend.
#[test]
fn no_id_twice_whatever_the_threads_do() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for (min, max) in [(1, 1), (3, 7), (64, 100_000)] {
        let script = Script::default();
        let lease = runtime.block_on(script.open(min, max));
        let ids: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    let (lease, runtime) = (&lease, &runtime);
                    scope.spawn(move || {
                        let mut batch = lease.batch(5);
                        let one = |_| match number % 2 {
                            0 => runtime.block_on(lease.next_id()).unwrap(),
                            _ => runtime.block_on(batch.next_id()).unwrap(),
                        };
                        (0..3_000).map(one).collect()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut seen = HashSet::new();
        for ids in &ids {
            assert!(ids.is_sorted(), "{min} to {max}");
            assert!(ids.iter().all(|id| seen.insert(*id)), "{min} to {max}: an id came twice");
        }
        let end = script.0.next.load(Ordering::SeqCst);
        assert!(seen.iter().all(|id| (1..end).contains(id)), "only ids that were leased");
    }
}

/// Tickets that were drawn after one lease had ended and before the next one began.
#[test]
fn tickets_from_between_two_leases_are_not_of_the_second() {
    let shelf = Shelf::new(Bounds { lasting: SECOND, min: 1, max: 1 });
    let now = Instant::now();
    let lease = |first, count| RangeLease { first, count, step: 1, ttl_ms: 60_000 };
    shelf.filled(lease(1, 1), now, now);
    assert_eq!(shelf.grant(shelf.cursor.draw(1), 1, now).unwrap().unwrap().first, 1);
    assert_eq!(shelf.grant(shelf.cursor.draw(1), 1, now), Ok(None));
    let between: Vec<_> = (0..5).map(|_| shelf.cursor.take().unwrap_err()).collect();
    shelf.filled(lease(100, 20), now, now);
    let mut granted = |ticket| Some(shelf.grant(ticket, 1, now).unwrap()?.first);
    let mut ids: Vec<_> = between.into_iter().map_while(&mut granted).collect();
    let rest = || match shelf.cursor.take() {
        Ok(id) => Some(id),
        Err(ticket) => granted(ticket),
    };
    ids.extend(std::iter::from_fn(rest));
    assert_eq!(ids, Vec::from_iter(100..120));
}

#[test]
fn tickets_that_are_drawn_in_vain_never_reach_the_next_lease() {
    let shelf = Shelf::new(Bounds { lasting: SECOND, min: 1, max: 1 });
    let now = Instant::now();
    for _ in 0..3 {
        let ticket = shelf.cursor.draw(u32::MAX);
        assert_eq!(shelf.grant(ticket, 1, now), Ok(None));
        assert_eq!(shelf.cursor.peek(), base(1), "back to the beginning");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let cases: [fn(&mut LeaseConfig); 6] = [
        |c| c.min = 0,
        |c| c.max = 999,
        |c| c.max = 10_000_001,
        |c| c.ttl = Duration::from_millis(999),
        |c| c.ttl = Duration::from_secs(86_401),
        |c| c.lasting = Duration::ZERO,
    ];
    assert_eq!(LeaseConfig::default().validate(), Ok(()));
    for (at, case) in cases.into_iter().enumerate() {
        let mut config = LeaseConfig::default();
        case(&mut config);
        assert!(matches!(config.validate(), Err(Error::Config(_))), "case {at}");
    }
}
