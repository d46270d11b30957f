//! Calendar series, on stores whose clock nobody can move: the suite makes up
//! periods around the clock that the store has.

use super::{Store, allocate, code, create, denied, ends, field, find, request, spec};
use crate::domain::options::position_in;
use crate::domain::{ErrorCode, Period, PeriodSpan, TypeName, TypeSpec};
use crate::ports::{NextRange, StoreError};

const HOUR_MS: i64 = 3_600_000;

/// A daily series with the numbers `1..=1500`.
pub(super) fn daily(text: &str) -> TypeSpec {
    let mut spec = spec(text);
    spec.max_id = 1_500;
    spec.options.calendar = Some(Period::Daily);
    spec.options.format = Some("{date:yyMMdd}{seq:04}".into());
    spec
}

/// A period `number` that began `from` hours after the clock of the store and
/// ends `until` hours after it.
async fn span(store: &Store, number: i64, from: i64, until: i64) -> PeriodSpan {
    let now_ms = store.ping().await.unwrap();
    PeriodSpan { number, from_ms: now_ms + from * HOUR_MS, until_ms: now_ms + until * HOUR_MS }
}

/// A request in a period that the clock of the store is in for long.
pub(super) async fn today<'a>(store: &Store, name: &'a TypeName, number: i64) -> NextRange<'a> {
    let period = Some(span(store, number, -1, 1).await);
    NextRange { period, ..request(name) }
}

pub(super) async fn what_a_period_is(store: &Store) {
    let wanted = daily("periods");
    let record = create(store, &wanted).await;
    assert_eq!((record.next_id, record.max_position), (1, 1_500));
    let name = &wanted.name;
    assert_eq!(field(denied(store, request(name)).await), "period", "missing");
    for number in [-1, 1 << 23, i64::MAX] {
        let request = today(store, name, number).await;
        assert_eq!(field(denied(store, request).await), "period", "{number}");
    }
    let shard = NextRange { shard: Some(0), ..today(store, name, 20_000).await };
    assert_eq!(field(denied(store, shard).await), "shard");
    let plain = spec("no-periods");
    create(store, &plain).await;
    let request = today(store, &plain.name, 20_000).await;
    assert_eq!(field(denied(store, request).await), "period", "not wanted");
    let error = store.reserve(name, 10, 0, "dba").await.unwrap_err();
    assert_eq!(field(error), "mode", "no block over all periods");

    for (from, until) in [(-2, -1), (1, 2)] {
        let before = store.ping().await.unwrap();
        let period = Some(span(store, 20_000, from, until).await);
        match denied(store, NextRange { period, ..self::request(name) }).await {
            StoreError::WrongPeriod { now_ms } => {
                let after = store.ping().await.unwrap();
                assert!((before..=after).contains(&now_ms), "{now_ms} is no clock");
            }
            other => panic!("the clock is outside the period, but: {other:?}"),
        }
    }
    let now_ms = store.ping().await.unwrap();
    let over = PeriodSpan { number: 20_000, from_ms: now_ms - HOUR_MS, until_ms: now_ms };
    match denied(store, NextRange { period: Some(over), ..self::request(name) }).await {
        StoreError::WrongPeriod { .. } => {}
        other => panic!("the end belongs to the next period, but: {other:?}"),
    }
    assert_eq!(find(store, name).await, record, "nothing happened");
    assert!(store.range_log(name, 9).await.unwrap().is_empty());
}

pub(super) async fn roll_over(store: &Store) {
    let mut wanted = daily("roll-over");
    wanted.first_id = 101;
    create(store, &wanted).await;
    let name = &wanted.name;
    let on = async |number| ends(store, today(store, name, number).await).await;
    let p = |period, number| position_in(period, number);
    assert_eq!(on(20_000).await, (p(20_000, 101), p(20_000, 1_101)));
    assert_eq!(find(store, name).await.left(), 400, "of the period");
    assert_eq!(on(20_001).await, (p(20_001, 101), p(20_001, 1_101)), "numbers restart");
    let record = find(store, name).await;
    assert_eq!((record.next_id, record.last_range), (p(20_001, 1_101), Some(1_000)));
    assert_eq!(
        on(20_000).await,
        (p(20_001, 1_101), p(20_001, 1_501)),
        "a caller that is late gets numbers of the new period"
    );
    assert_eq!(on(20_005).await.0, p(20_005, 101), "over days without a call");
    let found = store.find_range(name, None, p(20_001, 1_100)).await.unwrap().unwrap();
    assert_eq!(found.range.start(), p(20_001, 101));
    assert_eq!(store.find_range(name, None, p(20_002, 101)).await.unwrap(), None);
}

pub(super) async fn end_of_a_period(store: &Store) {
    let wanted = daily("period-end");
    create(store, &wanted).await;
    let name = &wanted.name;
    let on = async |number| today(store, name, number).await;
    let p = |number| position_in(20_000, number);
    assert_eq!(ends(store, on(20_000).await).await, (p(1), p(1_001)));
    assert_eq!(ends(store, on(20_000).await).await, (p(1_001), p(1_501)), "cut at the limit");
    let error = denied(store, on(20_000).await).await;
    assert_eq!(code(error), ErrorCode::Exhausted, "the period is used up");
    let error = denied(store, on(19_999).await).await;
    assert_eq!(code(error), ErrorCode::Exhausted, "for whoever is late, too");
    assert_eq!(find(store, name).await.left(), 0);
    let next = allocate(store, on(20_001).await).await;
    assert_eq!(next.range.start(), position_in(20_001, 1), "the next one has its own");
}

pub(super) async fn floors(store: &Store) {
    let mut wanted = daily("period-floor");
    wanted.first_id = 5;
    create(store, &wanted).await;
    let name = &wanted.name;
    let p = position_in;
    for (floor, expected, why) in [
        (p(20_000, 300), (p(20_000, 300), p(20_000, 1_300)), "a floor in the period"),
        (p(19_000, 300), (p(20_000, 1_300), p(20_000, 1_501)), "one before it"),
        (p(20_003, 700), (p(20_003, 700), p(20_003, 1_501)), "one in a later period"),
        (p(20_004, 2), (p(20_004, 5), p(20_004, 1_005)), "one below the first number"),
    ] {
        let request = NextRange { floor, ..today(store, name, 20_000).await };
        assert_eq!(ends(store, request).await, expected, "{why}");
    }
    for floor in [p(20_004, 1_501), i64::MAX] {
        let request = NextRange { floor, ..today(store, name, 20_000).await };
        assert_eq!(code(denied(store, request).await), ErrorCode::Exhausted, "{floor}");
    }
    let request = NextRange { floor: -1, ..today(store, name, 20_000).await };
    assert_eq!(field(denied(store, request).await), "floor");
    let again = ends(store, today(store, name, 20_000).await).await;
    assert_eq!(again.0, p(20_004, 1_005), "a refusal leaves nothing behind");
    let last = NextRange { floor: p((1 << 23) - 1, 0), ..today(store, name, 20_000).await };
    assert_eq!(ends(store, last).await.0, p((1 << 23) - 1, 5), "the highest period");
}
