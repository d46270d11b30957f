//! Generators and sources by themselves; tests/snowflake.rs has the whole.

use std::collections::HashSet;
use std::sync::atomic::AtomicI64;

use proptest::prelude::*;

use super::tenancy::Tenancy;
use super::*;
use crate::domain::snowflake::TimeUnit;
use crate::ports::Tenure;

#[derive(Default)]
struct Hand(AtomicI64);

impl Hand {
    fn at(ms: i64) -> Self {
        Hand(AtomicI64::new(ms))
    }

    fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn layout(sequence_bits: u8, unit: TimeUnit) -> Layout {
    Layout { time_bits: 35, worker_bits: 2, sequence_bits, unit, epoch_ms: 0 }
}

fn tenancy(worker: i64, from_ms: i64, until_ms: i64) -> Arc<Tenancy> {
    let token = "t".to_owned();
    let tenure = Tenure { bits: 2, worker, token, from_ms, until_ms, now_ms: from_ms };
    Arc::new(Tenancy::new(&tenure, 0))
}

fn ids(took: Took) -> IdRange {
    match took {
        Took::Ids(range) => range,
        other => panic!("expected ids, got {other:?}"),
    }
}

#[test]
fn a_unit_is_used_only_if_all_of_it_lies_in_the_tenure() {
    let clock = Hand::at(0);
    let layout = layout(3, TimeUnit::Seconds);
    let generator = Generator::new(layout, tenancy(1, 4_001, 7_999), 0, 0);
    // The predecessor may have used second 4 up to its end.
    clock.set(4_999);
    assert_eq!(generator.take(&clock, 1), Took::Behind { now_ms: 4_999, until_ms: 5_000 });
    clock.set(5_000);
    assert_eq!(layout.decompose(ids(generator.take(&clock, 1)).start()).time, 5);
    clock.set(6_999);
    assert_eq!(layout.decompose(ids(generator.take(&clock, 1)).start()).time, 6);
    clock.set(7_000);
    assert_eq!(generator.take(&clock, 1), Took::NoTenure { now_ms: 7_000 });
    generator.tenancy().extend(8_000);
    assert_eq!(layout.decompose(ids(generator.take(&clock, 1)).start()).time, 7);
}

/// The store forgot, and gives a worker id again that this node had.
#[test]
fn what_a_node_knows_to_be_used_is_not_used_again() {
    let layout = layout(3, TimeUnit::Milliseconds);
    let token = "t".to_owned();
    let tenure = Tenure { bits: 2, worker: 1, token, from_ms: 0, until_ms: 9_000, now_ms: 50 };
    let generator = Generator::new(layout, Arc::new(Tenancy::new(&tenure, 700)), 0, 0);
    let clock = Hand::at(699);
    assert_eq!(generator.take(&clock, 1), Took::Behind { now_ms: 699, until_ms: 700 });
    clock.set(700);
    ids(generator.take(&clock, 1));
}

#[test]
fn a_full_unit_waits_for_the_next_one() {
    let clock = Hand::at(50);
    let generator = Generator::new(layout(4, TimeUnit::Milliseconds), tenancy(0, 0, 1_000), 0, 0);
    // 16 ids, of which the first is left out: starts rotate below 2.
    assert_eq!(ids(generator.take(&clock, 100)).len(), 15);
    assert_eq!(generator.take(&clock, 1), Took::Full { now_ms: 50, until_ms: 51 });
    clock.set(51);
    assert_eq!(ids(generator.take(&clock, 100)).len(), 16);
    clock.set(50);
    assert_eq!(generator.take(&clock, 1), Took::Behind { now_ms: 50, until_ms: 51 });
}

#[test]
fn the_last_unit_and_the_first_one_are_left_out() {
    let layout = Layout { time_bits: 28, worker_bits: 20, sequence_bits: 15, ..Layout::default() };
    let clock = Hand::at(layout.epoch_ms);
    let highest = (1 << 20) - 1;
    let generator = Generator::new(layout, tenancy(highest, 0, i64::MAX), 0, 0);
    assert!(matches!(generator.take(&clock, 1), Took::Behind { .. }));
    clock.set(layout.end_ms() - 1);
    let range = ids(generator.take(&clock, u64::MAX));
    assert_eq!(layout.decompose(range.last()).sequence, (1 << 15) - 1);
    clock.set(layout.end_ms());
    assert_eq!(generator.take(&clock, 1), Took::Ended);
}

/// Threads that race with each other, with a clock that moves and with a freeze.
#[test]
fn calls_at_once_share_nothing_and_a_freeze_ends_them() {
    for round in 0..8 {
        let clock = Hand::at(1_000);
        let layout = layout(6, TimeUnit::Milliseconds);
        let generator = Generator::new(layout, tenancy(3, 0, i64::MAX), 0, round);
        let (mut seen, mut frozen) = (Vec::new(), None);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut got = Vec::new();
                        loop {
                            match generator.take(&clock, 3) {
                                Took::Ids(range) => got.push(range),
                                Took::Full { until_ms, .. } => {
                                    clock.0.fetch_max(until_ms, Ordering::SeqCst);
                                }
                                Took::NoTenure { .. } => return got,
                                other => panic!("{other:?}: the clock never goes back"),
                            }
                        }
                    })
                })
                .collect();
            while clock.now_ms() < 1_100 {
                std::thread::yield_now();
            }
            frozen = generator.freeze();
            for thread in threads {
                seen.extend(thread.join().unwrap());
            }
        });
        let last = frozen.expect("it was used");
        let mut unique = HashSet::new();
        for id in seen.iter().flat_map(|r| r.start()..r.end()) {
            assert!(unique.insert(id), "{id} twice");
            let parts = layout.decompose(id);
            assert!(
                parts.worker == 3 && parts.time <= last,
                "{parts:?} after the freeze at {last}"
            );
        }
        assert_eq!(generator.freeze(), Some(last), "it tells the same again");
    }
}

fn take(source: &SnowflakeSource, clock: &Hand) -> Took {
    source.current.load().as_ref().expect("it has a generator").take(clock, 1)
}

fn adopt(source: &SnowflakeSource) -> bool {
    source.go_over(source.current.load_full().as_ref(), 0)
}

fn source(snowflakes: &Snowflakes, pool: &Arc<Pool>) -> Arc<SnowflakeSource> {
    let name = TypeName::parse("order").unwrap();
    snowflakes.source_in(pool.clone(), &name, &layout(4, TimeUnit::Milliseconds))
}

#[test]
fn a_type_that_left_the_memory_does_not_repeat() {
    let (snowflakes, pool, clock) = (Snowflakes::default(), Arc::new(Pool::new(2)), Hand::at(100));
    pool.hold(tenancy(1, 0, 10_000));
    let first = source(&snowflakes, &pool);
    assert!(adopt(&first) && !adopt(&first), "once for each tenure");
    first.try_next(&clock).unwrap();
    snowflakes.sweep();
    assert!(Arc::ptr_eq(&first, &source(&snowflakes, &pool)), "it is in use");
    drop(first);
    snowflakes.sweep();
    let again = source(&snowflakes, &pool);
    assert_eq!(again.local(0).worker, None, "it was forgotten");
    assert!(adopt(&again));
    for now_ms in [100, 50] {
        clock.set(now_ms);
        assert_eq!(take(&again, &clock), Took::Behind { now_ms, until_ms: 101 });
    }
    clock.set(101);
    again.try_next(&clock).unwrap();
}

/// Of two calls that find the same generator over, one goes over, and the other
/// one tries again.
#[test]
fn who_comes_late_does_not_go_over_again() {
    let (snowflakes, pool) = (Snowflakes::default(), Arc::new(Pool::new(2)));
    let source = source(&snowflakes, &pool);
    assert!(!source.go_over(None, 0), "there is no tenure yet");
    pool.hold(tenancy(1, 0, 10_000));
    assert!(source.go_over(None, 0));
    let made = source.current.load_full();
    assert!(source.go_over(None, 0), "try again");
    assert!(Arc::ptr_eq(&made.unwrap(), &source.current.load_full().unwrap()));
}

#[test]
fn ids_go_on_increasing_under_another_worker_id() {
    let (snowflakes, pool, clock) = (Snowflakes::default(), Arc::new(Pool::new(2)), Hand::at(100));
    let source = source(&snowflakes, &pool);
    let mut last = 0;
    // An id under the second worker id is never above one under the third.
    for (worker, same_unit) in [(1, true), (3, true), (2, false), (2, false)] {
        pool.hold(tenancy(worker, 0, 10_000));
        assert!(adopt(&source));
        if !same_unit {
            let now_ms = clock.now_ms();
            let wait = Took::Behind { now_ms, until_ms: now_ms + 1 };
            assert_eq!(take(&source, &clock), wait, "worker id {worker}");
            clock.set(now_ms + 1);
        }
        let id = source.try_next(&clock).unwrap();
        assert!(id > last, "{id} after {last}");
        last = id;
    }
}

#[test]
fn a_tenure_that_is_over_is_not_adopted() {
    let (snowflakes, pool, clock) = (Snowflakes::default(), Arc::new(Pool::new(2)), Hand::at(100));
    let held = tenancy(1, 0, 10_000);
    pool.hold(held.clone());
    let used = source(&snowflakes, &pool);
    assert!(adopt(&used));
    used.try_next(&clock).unwrap();
    held.end();
    assert_eq!(used.stop(&held), Some(101));
    assert_eq!(used.try_next(&clock), None);
    let name = TypeName::parse("other").unwrap();
    let late = snowflakes.source_in(pool, &name, &layout(4, TimeUnit::Milliseconds));
    assert!(!adopt(&late), "no generator is made that nobody would stop");
}

proptest! {
    /// Holders one after the other, each with a clock of its own: no id twice,
    /// in types of both units and whatever the epoch.
    #[test]
    fn spans_that_follow_each_other_share_no_id(
        borders in prop::collection::vec(0i64..8_000, 1..6),
        clocks in prop::collection::vec((0usize..6, 0i64..9_000, 1u64..40), 0..200),
        epoch_ms in 0i64..3_000, seconds: bool,
    ) {
        let unit = if seconds { TimeUnit::Seconds } else { TimeUnit::Milliseconds };
        let layout = Layout { epoch_ms, ..layout(5, unit) };
        let mut borders = borders;
        borders.extend([0, 9_000]);
        borders.sort_unstable();
        let holders: Vec<_> = borders
            .windows(2)
            .map(|span| Generator::new(layout, tenancy(2, span[0], span[1]), 0, 7))
            .collect();
        let mut seen = HashSet::new();
        for (holder, now_ms, count) in clocks {
            if let Took::Ids(range) = holders[holder % holders.len()].take(&Hand::at(now_ms), count) {
                for id in range.start()..range.end() {
                    prop_assert!(seen.insert(id), "{} twice", id);
                    prop_assert_eq!(layout.decompose(id).time, layout.time_at(now_ms));
                }
            }
        }
    }
}
