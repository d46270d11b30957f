//! Tails of ranges that nobody used.

use super::calendar::{daily, today};
use super::sharded::sharded;
use super::{
    Store, allocate, assert_disjoint, code, create, denied, ends, field, find, next, of_shard,
    request, spec,
};
use crate::domain::options::position_in;
use crate::domain::{ErrorCode, History, IdRange, InstanceId, TypeName};
use crate::ports::{NextRange, StoreError};

async fn back(store: &Store, name: &TypeName, shard: Option<u8>, start: i64, end: i64) -> bool {
    let tail = IdRange::new(start, end).unwrap();
    store.give_back(name, shard, tail).await.unwrap_or_else(|e| panic!("{name} {tail}: {e}"))
}

async fn refused(store: &Store, name: &TypeName, shard: Option<u8>) -> StoreError {
    store.give_back(name, shard, IdRange::new(500, 1_001).unwrap()).await.unwrap_err()
}

pub(super) async fn the_end_goes_back(store: &Store) {
    let wanted = spec("given-back");
    create(store, &wanted).await;
    let name = &wanted.name;
    next(store, name).await;
    let first = find(store, name).await;
    let (seen, audited) = (store.latest_change().await.unwrap(), store.audit(1).await.unwrap());
    assert!(back(store, name, None, 301, 1_001).await, "a part");
    let record = find(store, name).await;
    assert_eq!(record.next_id, 301);
    assert_eq!(
        (record.last_range, record.last_load_ms, record.version, record.updated_ms),
        (first.last_range, first.last_load_ms, first.version, first.updated_ms),
        "nothing else changes"
    );
    let log = store.range_log(name, 9).await.unwrap();
    assert_eq!(log.iter().map(|e| e.range.to_string()).collect::<Vec<_>>(), ["[1, 301)"]);
    assert_eq!(store.find_range(name, None, 300).await.unwrap().unwrap(), log[0]);
    assert_eq!(store.find_range(name, None, 301).await.unwrap(), None);
    assert_eq!(ends(store, request(name)).await, (301, 1_301), "given away again, once");

    assert!(back(store, name, None, 301, 1_301).await, "all of it");
    let log = store.range_log(name, 9).await.unwrap();
    assert_eq!(log.len(), 1, "the log forgets it");
    assert!(back(store, name, None, 1, 301).await, "and then the end of the one before");
    assert!(store.range_log(name, 9).await.unwrap().is_empty());
    let record = find(store, name).await;
    assert_eq!((record.next_id, record.last_load_ms.is_some()), (1, true), "ids were issued");
    assert_eq!(store.latest_change().await.unwrap(), seen, "no change of the settings");
    assert_eq!(store.audit(1).await.unwrap(), audited, "and no act of a person");

    let at = NextRange { floor: 5_000, ..request(name) };
    assert_eq!(ends(store, at).await, (5_000, 6_000));
    store.set_retired(name, true, "suite").await.unwrap();
    assert!(back(store, name, None, 5_999, 6_000).await, "of a retired type, too");
}

pub(super) async fn nothing_else_goes_back(store: &Store) {
    let wanted = spec("kept");
    create(store, &wanted).await;
    let name = &wanted.name;
    assert!(!back(store, name, None, 1, 2).await, "before the first range");
    next(store, name).await; // [1, 1001)
    next(store, name).await; // [1001, 2001)
    for (start, end, why) in [
        (500, 1_001, "something was allocated after it"),
        (1_500, 2_000, "not the end"),
        (1_000, 2_001, "more than one range"),
        (1_500, 2_002, "more than was allocated"),
        (2_001, 2_002, "never allocated"),
    ] {
        assert!(!back(store, name, None, start, end).await, "{why}");
    }
    assert_eq!(find(store, name).await.next_id, 2_001);
    let log = store.range_log(name, 9).await.unwrap();
    let logged: Vec<_> = log.iter().map(|e| e.range.to_string()).collect();
    assert_eq!(logged, ["[1001, 2001)", "[1, 1001)"], "nothing happened");
    assert!(back(store, name, None, 1_500, 2_001).await);
    assert!(!back(store, name, None, 1_500, 2_001).await, "once is enough");
    assert!(!back(store, name, None, 1_200, 2_001).await, "the end has gone already");
    assert_eq!(ends(store, request(name)).await, (1_500, 2_500));
    assert!(!back(store, name, None, 1_200, 1_500).await, "somebody has what follows");

    // After a jump the end is the end of the jump.
    let jumped = NextRange { floor: 9_000, ..request(name) };
    assert_eq!(ends(store, jumped).await, (9_000, 10_000));
    assert!(!back(store, name, None, 2_000, 2_500).await);
    assert!(back(store, name, None, 9_000, 10_000).await);
    assert_eq!(ends(store, request(name)).await.0, 9_000, "the gap stays a gap");

    let error = refused(store, &super::name("nobody"), None).await;
    assert_eq!(code(error), ErrorCode::UnknownType);
    assert_eq!(field(refused(store, name, Some(0)).await), "shard");
}

pub(super) async fn ranges_with_a_target_stay(store: &Store, instance: InstanceId) {
    let mut wanted = spec("kept-for-redis");
    wanted.instance = Some(instance.to_string());
    create(store, &wanted).await;
    let history = History::new("d".repeat(40));
    let target = Some((instance, &history));
    let published = allocate(store, NextRange { target, ..request(&wanted.name) }).await.range;
    let (start, end) = (published.start(), published.end());
    assert!(!back(store, &wanted.name, None, start, end).await, "Redis may hand it out");
    assert!(!back(store, &wanted.name, None, end - 1, end).await);
    assert_eq!(find(store, &wanted.name).await.next_id, end);
    let leased = next(store, &wanted.name).await.range;
    assert!(back(store, &wanted.name, None, leased.start(), leased.end()).await, "a lease may");
    assert!(!back(store, &wanted.name, None, start, end).await, "but no further");
}

pub(super) async fn by_shard_and_period(store: &Store) {
    let wanted = sharded("given-back-shards", 1_000_000);
    create(store, &wanted).await;
    let name = &wanted.name;
    for shard in [2, 2, 9] {
        allocate(store, of_shard(name, shard)).await;
    }
    assert!(!back(store, name, Some(9), 1_500, 2_001).await, "that is the end of shard 2");
    assert!(back(store, name, Some(2), 1_500, 2_001).await);
    assert_eq!(find(store, name).await.next_id, 1_500, "still that of the furthest shard");
    assert!(back(store, name, Some(2), 1_001, 1_500).await);
    assert!(back(store, name, Some(2), 1, 1_001).await);
    assert_eq!(find(store, name).await.next_id, 1_001, "now shard 9");
    assert_eq!(ends(store, of_shard(name, 2)).await, (1, 1_001));
    assert_eq!(ends(store, of_shard(name, 9)).await, (1_001, 2_001), "was left alone");
    let log = store.range_log(name, 9).await.unwrap();
    assert_eq!(log.len(), 3, "{log:?}");
    assert_eq!(field(refused(store, name, None).await), "shard");
    assert_eq!(field(refused(store, name, Some(64)).await), "shard");

    let wanted = daily("given-back-periods");
    create(store, &wanted).await;
    let name = &wanted.name;
    let on = async |number| ends(store, today(store, name, number).await).await;
    let (start, end) = on(20_000).await;
    assert!(back(store, name, None, start + 10, end).await);
    assert_eq!(on(20_000).await.0, start + 10);
    let (start, end) = on(20_001).await;
    assert!(back(store, name, None, start, end).await, "the whole first range of a day");
    let again = on(20_000).await;
    assert_eq!(again.0, position_in(20_001, 1), "which does not bring the day before back");
}

/// Callers that give back most of what they get: what each keeps is nobody else's.
pub(super) async fn concurrent_callers(store: &Store) {
    let wanted = spec("given-back-concurrently");
    create(store, &wanted).await;
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (store, name) = (store.clone(), wanted.name.clone());
            tokio::spawn(async move {
                let mut kept = Vec::new();
                for keep in 1..=15 {
                    let range = next(&store, &name).await.range;
                    let (used, tail) = range.split(keep);
                    kept.push(used);
                    store.give_back(&name, None, tail.expect("ranges are longer")).await.unwrap();
                }
                kept
            })
        })
        .collect();
    let mut kept = Vec::new();
    for caller in callers {
        kept.extend(caller.await.unwrap());
    }
    assert_eq!(kept.len(), 120);
    for used in &kept {
        let logged = store.find_range(&wanted.name, None, used.last()).await.unwrap().unwrap();
        assert_eq!(logged.range.start(), used.start(), "every range is found by its positions");
    }
    assert_disjoint(kept);
    let wanted = NextRange { floor: -1, ..request(&wanted.name) };
    assert_eq!(field(denied(store, wanted).await), "floor");
}
