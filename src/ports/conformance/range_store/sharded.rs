//! Sharded types: 64 sequences that know nothing of each other.

use super::{
    Store, allocate, assert_disjoint, code, create, denied, ends, field, find, of_shard, request,
    spec,
};
use crate::domain::{ErrorCode, Mode, TypeOptions, TypeSpec, Usage};
use crate::ports::NextRange;

/// A sharded type whose shards have `highest` positions each.
pub(super) fn sharded(text: &str, highest: i64) -> TypeSpec {
    let mut spec = spec(text);
    spec.mode = Mode::Sharded;
    spec.max_id = ((highest + 1) << TypeOptions::SHARD_BITS) - 1;
    spec.options.app_id = Some(7);
    spec
}

pub(super) async fn each_shard_is_a_sequence(store: &Store) {
    let mut wanted = sharded("sharded", 1_000_000);
    wanted.first_id = 11;
    let record = create(store, &wanted).await;
    assert_eq!((record.next_id, record.max_position), (11, 1_000_000));
    let name = &wanted.name;
    assert_eq!(ends(store, of_shard(name, 0)).await, (11, 1_011));
    assert_eq!(ends(store, of_shard(name, 63)).await, (11, 1_011), "a shard of its own");
    assert_eq!(ends(store, of_shard(name, 0)).await, (1_011, 2_011));
    assert_eq!(find(store, name).await.next_id, 2_011, "that of the furthest shard");

    // A fast shard does not make the others' ranges longer.
    let usage = Some(Usage { consumed: 900, elapsed_ms: 60_000 });
    let fast = allocate(store, NextRange { usage, ..of_shard(name, 0) }).await;
    assert_eq!((fast.range.start(), fast.range.len()), (2_011, 9_000));
    assert_eq!(ends(store, of_shard(name, 63)).await, (1_011, 2_011), "its own last length");
    assert_eq!(allocate(store, of_shard(name, 0)).await.range.len(), 9_000, "and that one's");
    let first = allocate(store, NextRange { usage, ..of_shard(name, 7) }).await;
    assert_eq!(first.range.len(), 1_000, "the first load of a shard is the shortest");
    let record = find(store, name).await;
    assert_eq!((record.next_id, record.version), (20_011, 1));
    assert_eq!(record.last_range, Some(1_000), "of whichever shard was the last");
    assert_eq!(record.last_load_ms, Some(first.load_ms));

    let log = store.range_log(name, 10).await.unwrap();
    let shards: Vec<_> = log.iter().map(|entry| entry.shard).collect();
    assert_eq!(shards, [Some(7), Some(0), Some(63), Some(0), Some(0), Some(63), Some(0)]);
    for (shard, position, start) in
        [(0, 11, Some(11)), (0, 2_010, Some(1_011)), (63, 2_010, Some(1_011)), (63, 2_011, None)]
    {
        let found = store.find_range(name, Some(shard), position).await.unwrap();
        assert_eq!(found.map(|e| (e.range.start(), e.shard)), start.map(|s| (s, Some(shard))));
    }
    assert_eq!(store.find_range(name, None, 11).await.unwrap(), None);
    assert_eq!(store.find_range(name, Some(1), 11).await.unwrap(), None);
}

pub(super) async fn what_a_shard_is(store: &Store) {
    let wanted = sharded("shards", 1_000_000);
    create(store, &wanted).await;
    assert_eq!(field(denied(store, request(&wanted.name)).await), "shard", "missing");
    assert_eq!(field(denied(store, of_shard(&wanted.name, 64)).await), "shard", "too high");
    assert_eq!(field(denied(store, of_shard(&wanted.name, 255)).await), "shard", "too high");
    let plain = spec("no-shards");
    create(store, &plain).await;
    assert_eq!(field(denied(store, of_shard(&plain.name, 0)).await), "shard", "not wanted");
    let error = store.reserve(&wanted.name, 10, 0, "dba").await.unwrap_err();
    assert_eq!(field(error), "mode", "no block over all shards");
    assert!(store.range_log(&wanted.name, 9).await.unwrap().is_empty(), "nothing happened");
    assert_eq!(find(store, &wanted.name).await.last_load_ms, None);
}

pub(super) async fn limit_and_floor(store: &Store) {
    let wanted = sharded("shard-limit", 1_500);
    create(store, &wanted).await;
    let name = &wanted.name;
    let above = |floor, shard| NextRange { floor, ..of_shard(name, shard) };
    assert_eq!(ends(store, above(1_200, 3)).await, (1_200, 1_501), "cut at the limit");
    assert_eq!(code(denied(store, of_shard(name, 3)).await), ErrorCode::Exhausted);
    assert_eq!(ends(store, of_shard(name, 4)).await, (1, 1_001), "the others go on");
    assert_eq!(code(denied(store, above(1_501, 5)).await), ErrorCode::Exhausted);
    assert_eq!(ends(store, of_shard(name, 5)).await, (1, 1_001), "a refusal leaves nothing");
    let record = find(store, name).await;
    assert_eq!((record.next_id, record.left()), (1_501, 0), "of the furthest shard");
}

pub(super) async fn concurrent_callers(store: &Store) {
    let wanted = sharded("shard-concurrent", 1_000_000);
    create(store, &wanted).await;
    let callers: Vec<_> = (0..8u8)
        .map(|i| {
            let (store, name) = (store.clone(), wanted.name.clone());
            tokio::spawn(async move {
                let mut ranges = Vec::new();
                for k in 0..12 {
                    // Four shards, of which some have never had a range.
                    let shard = (i + k) % 4;
                    ranges.push((shard, allocate(&store, of_shard(&name, shard)).await.range));
                }
                ranges
            })
        })
        .collect();
    let mut ranges = Vec::new();
    for caller in callers {
        ranges.extend(caller.await.unwrap());
    }
    for shard in 0..4 {
        let of_shard: Vec<_> =
            ranges.iter().filter(|(of, _)| *of == shard).map(|(_, range)| *range).collect();
        assert_eq!(of_shard.len(), 24);
        let end = of_shard.iter().map(|range| range.end()).max();
        assert_eq!(end, Some(24_001), "without gaps where nothing failed");
        assert_disjoint(of_shard);
    }
}
