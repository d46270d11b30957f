//! Ranges of one plain sequence: length, floor, limit, blocks, concurrency.

use super::{Store, assert_disjoint, code, create, name, next, request, spec};
use crate::domain::{ErrorCode, TypeSpec, Usage};
use crate::ports::{NextRange, Subject};

pub(super) async fn first_and_next_range(store: &Store) {
    let mut wanted = spec("first");
    wanted.first_id = 1_001;
    wanted.min_range = 500;
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    assert_eq!((first.range.start(), first.range.end()), (1_001, 1_501));
    assert_eq!(first.update_id, 1_051);
    let record = store.find_type(&wanted.name).await.unwrap().unwrap();
    assert_eq!(record.next_id, 1_501, "durable before it is answered");
    assert_eq!(record.last_range, Some(500));
    assert_eq!(record.last_load_ms, Some(first.load_ms));
    assert_eq!(record.version, 1, "a range is no change of the settings");
    let second = next(store, &wanted.name).await;
    assert_eq!(second.range.start(), first.range.end());
    let log = store.range_log(&wanted.name, 10).await.unwrap();
    let logged: Vec<_> = log.iter().map(|e| e.range).collect();
    assert_eq!(logged, [second.range, first.range], "newest first");
    assert_eq!(log[0].owner, "suite");
    assert_eq!(store.range_log(&wanted.name, 1).await.unwrap().len(), 1);
    let error = store.next_range(request(&name("nobody"))).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownType);
}

pub(super) async fn sizing_by_cases(store: &Store) {
    let mut wanted = spec("sized");
    wanted.min_range = 1_000;
    wanted.max_range = 100_000_000;
    wanted.load_interval_ms = 600_000;
    create(store, &wanted).await;
    let usage = |consumed, elapsed_ms| Some(Usage { consumed, elapsed_ms });
    for (usage, length, why) in [
        (usage(5_000_000, 10), 1_000, "the first load is the shortest"),
        (usage(1_000, 600_000), 1_000, "as planned"),
        (usage(900, 60_000), 9_000, "ten times as fast"),
        (None, 9_000, "no usage keeps the length"),
        (usage(7, 1_999), 2_101, "rounds down"),
        (usage(900, 600_000), 1_000, "slowed down"),
        (usage(100, 0), 60_000_000, "no time passed"),
        (usage(i64::MAX as u64, 1), 100_000_000, "huge, without overflow"),
        (usage(0, 600_000), 1_000, "not used"),
    ] {
        let request = NextRange { usage, ..request(&wanted.name) };
        let allocation = store.next_range(request).await.unwrap();
        assert_eq!(allocation.range.len(), length, "{why}");
        assert_eq!(allocation.update_id, allocation.range.start() + (length / 10) as i64, "{why}");
    }
}

pub(super) async fn floor(store: &Store) {
    let wanted = spec("floor");
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    let at = |floor| NextRange { floor, ..request(&wanted.name) };
    let jumped = store.next_range(at(1_000_000)).await.unwrap();
    assert_eq!(jumped.range.start(), 1_000_000, "a higher floor is jumped to");
    let after = store.next_range(at(first.range.end())).await.unwrap();
    assert_eq!(after.range.start(), jumped.range.end(), "a lower floor changes nothing");
    let error = store.next_range(at(-1)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::InvalidArgument);
    let error = store.next_range(at(i64::MAX)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
    let again = next(store, &wanted.name).await;
    assert_eq!(again.range.start(), after.range.end(), "a refusal leaves nothing behind");
}

pub(super) async fn limit(store: &Store) {
    let mut wanted = spec("limit");
    wanted.min_range = 1_000;
    wanted.max_id = 1_500;
    create(store, &wanted).await;
    assert_eq!(next(store, &wanted.name).await.range.end(), 1_001);
    let last = next(store, &wanted.name).await;
    assert_eq!((last.range.last(), last.range.len()), (1_500, 500), "cut at the limit");
    let error = store.next_range(request(&wanted.name)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
    let record = store.find_type(&wanted.name).await.unwrap().unwrap();
    assert_eq!((record.next_id, record.left()), (1_501, 0));
}

pub(super) async fn highest_numbers(store: &Store) {
    let mut wanted = spec("highest");
    wanted.first_id = i64::MAX - 1_500;
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    assert_eq!((first.range.start(), first.range.len()), (i64::MAX - 1_500, 1_000));
    let last = next(store, &wanted.name).await;
    assert_eq!(last.range.last(), i64::MAX - 1);
    let error = store.next_range(request(&wanted.name)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
}

pub(super) async fn reserving(store: &Store) {
    let mut wanted = spec("reserved");
    wanted.max_id = 10_000;
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    let seen = store.latest_change().await.unwrap();
    let block = store.reserve(&wanted.name, 5_000, 0, "dba").await.unwrap();
    let changes = store.changes_since(seen).await.unwrap();
    assert_eq!(
        changes.iter().map(|c| &c.subject).collect::<Vec<_>>(),
        [&Subject::Type(wanted.name.clone())],
        "nodes hear of a block, and become its witness"
    );
    assert_eq!(store.audit(1).await.unwrap()[0].action, "reserve");
    assert_eq!((block.start(), block.len()), (first.range.end(), 5_000));
    assert_eq!(next(store, &wanted.name).await.range.len(), 1_000, "the sizing is not touched");
    let error = store.reserve(&wanted.name, 5_000, 0, "dba").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted, "a block is whole or not at all");
    for count in [0, -1, TypeSpec::LONGEST_RANGE + 1] {
        let error = store.reserve(&wanted.name, count, 0, "dba").await.unwrap_err();
        assert_eq!(code(error), ErrorCode::InvalidArgument, "{count}");
    }
    let block = store.reserve(&wanted.name, 10, 8_000, "dba").await.unwrap();
    assert_eq!(block.start(), 8_000, "the floor counts here too");
}

pub(super) async fn concurrent_callers(store: &Store) {
    let wanted = spec("concurrent");
    create(store, &wanted).await;
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (store, name) = (store.clone(), wanted.name.clone());
            tokio::spawn(async move {
                let mut ranges = Vec::new();
                for _ in 0..25 {
                    ranges.push(next(&store, &name).await.range);
                }
                ranges
            })
        })
        .collect();
    let mut ranges = Vec::new();
    for caller in callers {
        ranges.extend(caller.await.unwrap());
    }
    assert_eq!(ranges.len(), 200);
    let end = ranges.iter().map(|r| r.end()).max().unwrap();
    assert_eq!(end, 1 + 200 * 1_000, "without gaps where nothing failed");
    assert_disjoint(ranges);
}
