//! What every dispatcher must do as a witness of leases, and with request keys.

use std::sync::Arc;
use std::time::Duration;

use super::name;
use crate::domain::{IdRange, TypeName};
use crate::ports::{DispatchError, Dispatcher, MAX_REMEMBERED, Remembered, Witness, WitnessedEnd};

type Shared = Arc<dyn Dispatcher>;

/// How many ranges are kept with start and end.
const KEPT: i64 = 16;

pub(super) async fn all(dispatcher: &Shared) {
    witnessing(dispatcher).await;
    falling_out_of_the_list(dispatcher).await;
    withdrawing(dispatcher).await;
    withdrawing_below_the_list(dispatcher).await;
    shards_apart(dispatcher).await;
    how_far_it_goes(dispatcher).await;
    near_the_highest_id(dispatcher).await;
    concurrent_witnesses(dispatcher).await;
    request_keys(dispatcher).await;
}

/// Notes a lease of `name`, so that [`still_witnessed`] can ask for it later.
pub(super) async fn note_one(dispatcher: &Shared, name: &TypeName) {
    note(dispatcher, name, 5_001, 6_001).await;
}

/// Panics unless the lease of [`note_one`] is known, whatever the history.
pub(super) async fn still_witnessed(dispatcher: &Shared, name: &TypeName) {
    refuse(dispatcher, name, 5_001, 5_002, 6_001).await;
    assert_eq!(end(dispatcher, name).await, 6_001);
}

fn range(start: i64, end: i64) -> IdRange {
    IdRange::new(start, end).unwrap()
}

async fn note(dispatcher: &Shared, name: &TypeName, start: i64, end: i64) {
    let answer = dispatcher.witness(name, None, range(start, end)).await.unwrap();
    assert_eq!(answer, Witness::Noted, "{name} [{start}, {end})");
}

async fn refuse(dispatcher: &Shared, name: &TypeName, start: i64, end: i64, highest_end: i64) {
    let answer = dispatcher.witness(name, None, range(start, end)).await.unwrap();
    assert_eq!(answer, Witness::Overlaps { highest_end }, "{name} [{start}, {end})");
}

async fn withdraw(dispatcher: &Shared, name: &TypeName, start: i64, end: i64) -> bool {
    dispatcher.withdraw(name, None, range(start, end)).await.unwrap()
}

/// The highest end that refills learn of.
async fn end(dispatcher: &Shared, name: &TypeName) -> i64 {
    let view = dispatcher.view(name).await.unwrap();
    assert_eq!(view.highest_end(), view.leased_end, "nothing is published");
    view.leased_end
}

async fn witnessing(dispatcher: &Shared) {
    let name = name("witness");
    assert_eq!(end(dispatcher, &name).await, 0);
    note(dispatcher, &name, 1_001, 2_001).await;
    note(dispatcher, &name, 3_001, 4_001).await;
    assert_eq!(end(dispatcher, &name).await, 4_001);
    for (start, end) in [
        (1_001, 2_001),
        (1_500, 1_501),
        (1, 1_002),
        (2_000, 2_001),
        (2_500, 3_002),
        (1, 9_001),
        (4_000, 5_001),
    ] {
        refuse(dispatcher, &name, start, end, 4_001).await;
    }
    assert_eq!(end(dispatcher, &name).await, 4_001, "what overlaps is not noted");
    // Ranges of several nodes come in any order.
    note(dispatcher, &name, 2_001, 3_001).await;
    note(dispatcher, &name, 1, 1_001).await;
    assert_eq!(end(dispatcher, &name).await, 4_001, "the highest end never goes down");
    note(dispatcher, &name, 4_001, 5_001).await;
    refuse(dispatcher, &name, 2_100, 2_101, 5_001).await;
    refuse(dispatcher, &name, 999, 1_000, 5_001).await;
}

async fn falling_out_of_the_list(dispatcher: &Shared) {
    let name = name("witness-many");
    // Two apart, so that there is room between any two.
    let first = |k: i64| 1_000 + 200 * k;
    for k in 0..KEPT {
        note(dispatcher, &name, first(k), first(k) + 100).await;
    }
    let top = first(KEPT - 1) + 100;
    refuse(dispatcher, &name, first(0), first(0) + 1, top).await;
    note(dispatcher, &name, 500, 600).await;
    note(dispatcher, &name, 600, 700).await;
    refuse(dispatcher, &name, 650, 651, top).await;
    refuse(dispatcher, &name, 100, 101, top).await;
    note(dispatcher, &name, first(KEPT), first(KEPT) + 100).await;
    let top = first(KEPT) + 100;
    refuse(dispatcher, &name, first(0), first(0) + 1, top).await;
    refuse(dispatcher, &name, first(0) + 99, first(0) + 150, top).await;
    refuse(dispatcher, &name, 750, 800, top).await;
    // Above the end of what fell out, the list still tells free from given.
    note(dispatcher, &name, first(0) + 100, first(0) + 150).await;
    refuse(dispatcher, &name, first(0) + 149, first(0) + 150, top).await;
    note(dispatcher, &name, first(3) + 100, first(3) + 200).await;
    refuse(dispatcher, &name, first(4), first(4) + 1, top).await;
    assert_eq!(end(dispatcher, &name).await, top);
}

async fn withdrawing(dispatcher: &Shared) {
    let name = name("withdraw");
    assert!(!withdraw(dispatcher, &name, 1, 2).await, "nothing was noted");
    note(dispatcher, &name, 1, 1_001).await;
    note(dispatcher, &name, 1_001, 2_001).await;
    assert!(!withdraw(dispatcher, &name, 501, 1_001).await, "something higher was noted");
    assert!(!withdraw(dispatcher, &name, 1_501, 2_000).await, "not up to the end");
    assert!(!withdraw(dispatcher, &name, 1_501, 2_002).await, "beyond the end");
    assert_eq!(end(dispatcher, &name).await, 2_001);
    assert!(withdraw(dispatcher, &name, 1_501, 2_001).await);
    assert_eq!(end(dispatcher, &name).await, 1_501);
    assert!(!withdraw(dispatcher, &name, 1_501, 2_001).await, "once only");
    refuse(dispatcher, &name, 1_500, 2_001, 1_501).await;
    note(dispatcher, &name, 1_501, 2_001).await;
    assert!(withdraw(dispatcher, &name, 1_501, 2_001).await, "a whole range too");
    assert_eq!(end(dispatcher, &name).await, 1_501);
    assert!(withdraw(dispatcher, &name, 1_001, 1_501).await);
    assert!(withdraw(dispatcher, &name, 1, 1_001).await);
    assert_eq!(end(dispatcher, &name).await, 0);
    note(dispatcher, &name, 1, 101).await;
    note(dispatcher, &name, 101, 201).await;
    assert!(withdraw(dispatcher, &name, 51, 201).await, "over ranges that touch");
    assert_eq!(end(dispatcher, &name).await, 51);
}

async fn withdrawing_below_the_list(dispatcher: &Shared) {
    let name = name("withdraw-many");
    for k in 0..=KEPT {
        note(dispatcher, &name, 1 + 100 * k, 101 + 100 * k).await;
    }
    let mut top = 1 + 100 * (KEPT + 1);
    assert!(!withdraw(dispatcher, &name, 100, top).await, "never below what fell out");
    assert_eq!(end(dispatcher, &name).await, top);
    while top > 101 {
        assert!(withdraw(dispatcher, &name, top - 100, top).await, "up to {top}");
        top -= 100;
        assert_eq!(end(dispatcher, &name).await, top);
    }
    assert!(!withdraw(dispatcher, &name, 51, 101).await, "it fell out of the list");
    refuse(dispatcher, &name, 100, 101, 101).await;
    note(dispatcher, &name, 101, 201).await;
}

async fn how_far_it_goes(dispatcher: &Shared) {
    let name = name("witnessed-end");
    let end = async |shard| dispatcher.witnessed_end(&name, shard).await.unwrap();
    assert_eq!(end(None).await, WitnessedEnd::Known(0));
    note(dispatcher, &name, 301, 401).await;
    note(dispatcher, &name, 101, 201).await;
    assert_eq!(end(None).await, WitnessedEnd::Known(401));
    assert_eq!(end(Some(0)).await, WitnessedEnd::Known(401));
    assert_eq!(end(Some(1)).await, WitnessedEnd::Known(0));
}

async fn shards_apart(dispatcher: &Shared) {
    let name = name("witness-shards");
    let at = |shard| (Some(shard), range(1, 1_001));
    for shard in [0, 1, 11, 63] {
        let (shard, range) = at(shard);
        assert_eq!(dispatcher.witness(&name, shard, range).await.unwrap(), Witness::Noted);
    }
    let (shard, leased) = at(11);
    assert_eq!(
        dispatcher.witness(&name, shard, leased).await.unwrap(),
        Witness::Overlaps { highest_end: 1_001 }
    );
    let higher = range(1_001, 5_001);
    assert_eq!(dispatcher.witness(&name, Some(63), higher).await.unwrap(), Witness::Noted);
    assert!(dispatcher.withdraw(&name, Some(1), range(501, 1_001)).await.unwrap());
    let (shard, leased) = at(1);
    assert_eq!(
        dispatcher.witness(&name, shard, leased).await.unwrap(),
        Witness::Overlaps { highest_end: 501 }
    );
    assert_eq!(end(dispatcher, &name).await, 1_001, "of shard 0");
}

async fn near_the_highest_id(dispatcher: &Shared) {
    // Neighbours there are the same number as doubles.
    for (text, start) in [
        ("witness-above-53", (1_i64 << 53) - 5),
        ("witness-above-62", (1_i64 << 62) + 1),
        ("witness-carry", 8_999_999_999_999_999_995),
        ("witness-highest", i64::MAX - 20),
    ] {
        let name = name(text);
        note(dispatcher, &name, start, start + 10).await;
        refuse(dispatcher, &name, start + 9, start + 11, start + 10).await;
        note(dispatcher, &name, start + 10, start + 20).await;
        refuse(dispatcher, &name, start - 1, start + 1, start + 20).await;
        note(dispatcher, &name, start - 1, start).await;
        assert!(!withdraw(dispatcher, &name, start + 18, start + 19).await);
        assert!(withdraw(dispatcher, &name, start + 19, start + 20).await);
        assert_eq!(end(dispatcher, &name).await, start + 19);
        refuse(dispatcher, &name, start + 18, start + 20, start + 19).await;
        note(dispatcher, &name, start + 19, start + 20).await;
        for k in 0..KEPT {
            let from = 1_000 + k;
            note(dispatcher, &name, from, from + 1).await;
        }
        refuse(dispatcher, &name, 1_002, 1_003, start + 20).await;
        assert_eq!(end(dispatcher, &name).await, start + 20);
    }
}

async fn concurrent_witnesses(dispatcher: &Shared) {
    let name = name("witness-race");
    let tasks: Vec<_> = (0..8)
        .map(|k| {
            let (dispatcher, name) = (dispatcher.clone(), name.clone());
            tokio::spawn(
                async move { dispatcher.witness(&name, None, range(10 + k, 20 + k)).await },
            )
        })
        .collect();
    let mut noted = 0;
    for task in tasks {
        noted += u32::from(task.await.unwrap().unwrap() == Witness::Noted);
    }
    assert_eq!(noted, 1, "of ranges that overlap each other, one is noted");
}

async fn request_keys(dispatcher: &Shared) {
    let (name, other) = (name("request"), name("request-other"));
    let life = Duration::from_secs(600);
    let remember = async |name: &TypeName, key: &str, text: &str, life| {
        dispatcher.remember(name, key, text, life).await.unwrap()
    };
    let recall = async |key: &str| dispatcher.recall(&name, key).await.unwrap();
    assert_eq!(recall("a").await, None);
    assert_eq!(remember(&name, "a", "first \u{1f980} text", life).await, Remembered::Kept);
    let there = Remembered::Earlier("first \u{1f980} text".into());
    assert_eq!(remember(&name, "a", "second", life).await, there);
    assert_eq!(recall("a").await.as_deref(), Some("first \u{1f980} text"), "the first one stays");
    assert_eq!(remember(&name, "a:b{c}", "", life).await, Remembered::Kept);
    assert_eq!(remember(&name, "a:b{c}", "x", life).await, Remembered::Earlier(String::new()));
    assert_eq!(remember(&other, "a", "of another type", life).await, Remembered::Kept);

    let longest = "x".repeat(MAX_REMEMBERED);
    assert_eq!(remember(&name, "long", &longest, life).await, Remembered::Kept);
    assert_eq!(recall("long").await.as_ref(), Some(&longest));
    let too_long = dispatcher.remember(&name, "longer", &(longest + "x"), life).await;
    assert!(matches!(too_long, Err(DispatchError::Broken(_))), "{too_long:?}");
    assert_eq!(recall("longer").await, None);

    // Time has to pass for a text to expire; the bound is a safety net.
    let short = Duration::from_millis(20);
    remember(&name, "short", "1", short).await;
    let expired = async {
        while recall("short").await.is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), expired).await.expect("a text has its time");
    assert_eq!(remember(&name, "short", "2", life).await, Remembered::Kept);
}
