use std::collections::HashSet;

use super::*;
use crate::cli::load::{Method, Request};

fn promise(mode: &str, max_id: i64, options: &str) -> Promise {
    let info = TypeInfo {
        mode: Some(mode.to_owned()),
        options: Some(options.to_owned()),
        first_id: Some(10),
        max_id: Some(max_id),
        ..TypeInfo::default()
    };
    Promise::of(&info).unwrap()
}

const HIGHEST: i64 = i64::MAX - 1;

#[test]
fn what_each_mode_promises() {
    // mode, options, order, ascending within an answer, texts
    let cases = [
        ("strict", "{}", Order::Strict, true, false),
        ("strict", r#"{"on_redis_loss":"segment"}"#, Order::Strict, false, false),
        ("strict", r#"{"opaque":{"slices":2}}"#, Order::None, false, false),
        ("strict", r#"{"at_limit":"cycle"}"#, Order::None, false, false),
        ("strict", r#"{"format":"{seq:09}"}"#, Order::Strict, true, true),
        ("segment", "{}", Order::Node, true, false),
        ("segment", r#"{"calendar":"daily"}"#, Order::Node, true, true),
        ("segment", r#"{"sites":{"count":4,"site":1}}"#, Order::Node, true, false),
        ("segment", r#"{"opaque":{}}"#, Order::None, false, false),
        ("sharded", r#"{"app_id":7}"#, Order::Shard, true, false),
        ("sharded", r#"{"app_id":7,"opaque":{}}"#, Order::None, false, false),
        ("snowflake", "{}", Order::Node, true, false),
    ];
    for (mode, options, order, ascending, texts) in cases {
        let promise = promise(mode, HIGHEST, options);
        assert_eq!(promise.order, order, "{mode} {options}");
        assert_eq!(promise.ascending, ascending, "{mode} {options}");
        assert_eq!(promise.has_format, texts, "{mode} {options}");
        assert_eq!(promise.only_texts, options.contains("calendar"), "{mode} {options}");
        assert_eq!(promise.order_may_lapse, options.contains("redis_loss"), "{mode} {options}");
    }
}

#[test]
fn what_cannot_be_understood_is_said() {
    let info = |mode: &str, options: &str| TypeInfo {
        mode: Some(mode.to_owned()),
        options: Some(options.to_owned()),
        first_id: Some(1),
        max_id: Some(HIGHEST),
        ..TypeInfo::default()
    };
    for (info, part) in [
        (info("quantum", "{}"), "quantum"),
        (info("strict", r#"{"new_option":1}"#), "new_option"),
        (info("sharded", "{}"), "app id"),
        (TypeInfo { max_id: None, ..info("strict", "{}") }, "maxId"),
    ] {
        let message = Promise::of(&info).unwrap_err();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn ids_out_of_shape_are_found() {
    let id = |number: i64, shard: i64, app: i64| number << 14 | shard << 8 | app;
    // "gate-1".hashCode() is -1253028945 in Java: shard 17.
    let (pass, shard) = ("gate-1", 17);
    let plain = promise("strict", 1_000, "{}");
    let opaque = promise("segment", 32_000_000, r#"{"opaque":{}}"#);
    let sites = promise("segment", HIGHEST, r#"{"sites":{"count":4,"site":1}}"#);
    let sharded = promise("sharded", HIGHEST, r#"{"app_id":7}"#);
    let hidden = promise("sharded", HIGHEST, r#"{"app_id":7,"opaque":{}}"#);
    for (promise, first, count) in [
        (&plain, 10, 1),
        (&plain, 10, 991),
        (&opaque, 1, 1),
        (&opaque, 32_000_000, 1),
        (&sites, 41, 1),
        (&sites, 4_000_001, 1),
        (&sharded, id(10, shard, 7), 1),
        (&hidden, id(1, shard, 7), 1),
    ] {
        assert_eq!(promise.breach(first, count, Some(pass)), None, "{first}");
    }
    for (promise, first, count, part) in [
        (&plain, 9, 1, "below the first one: 9 < 10"),
        (&plain, 1_001, 1, "1001 is above the highest id 1000"),
        (&plain, 990, 12, "above the highest id"),
        (&opaque, 32_000_001, 1, "above the highest id"),
        (&opaque, 0, 1, "below the first one"),
        (&sites, 42, 1, "42 is of site 2, not 1"),
        (&sites, 41, 5, "42 is of site 2, not 1"),
        (&sites, 37, 1, "below the first one: 9 < 10"),
        (&sharded, id(10, shard, 8), 1, "of app 8, not 7"),
        (&sharded, id(10, shard + 1, 7), 1, "is of shard 18; \"gate-1\" is of 17"),
        (&sharded, id(9, shard, 7), 1, "below the first one: 9 < 10"),
        (&sharded, id(10, shard, 7), 2, "of app 8, not 7"),
        (&hidden, id(0, shard, 7), 1, "below the first one"),
    ] {
        let breach = promise.breach(first, count, Some(pass)).unwrap_or_default();
        assert!(breach.contains(part), "{first}: {breach:?}");
    }
}

#[test]
fn the_length_of_a_cycle() {
    let cycle = |mode, max_id, options| promise(mode, max_id, options).cycle;
    assert_eq!(cycle("strict", 99, "{}"), None);
    assert_eq!(cycle("strict", 99, r#"{"at_limit":"cycle"}"#), Some(90));
    let sites = r#"{"at_limit":"cycle","sites":{"count":2,"site":0}}"#;
    assert_eq!(cycle("segment", 99, sites), Some(40), "numbers 10 to 49");
}

#[test]
fn times_in_ids() {
    let default = promise("snowflake", HIGHEST, "{}");
    let at = 1_795_000_000_123;
    let id = (at - Layout::LEAF_EPOCH_MS) << 22 | 1_023 << 12 | 4_095;
    assert_eq!(default.time_in(id), Some((at, at)));
    let seconds = r#"{"snowflake":{"time_bits":33,"worker_bits":10,"sequence_bits":20,
                      "unit":"s","epoch_ms":1000}}"#;
    let seconds = promise("snowflake", HIGHEST, seconds);
    assert_eq!(seconds.time_in(5 << 30), Some((6_000, 6_999)));
    assert_eq!(promise("strict", HIGHEST, "{}").time_in(5 << 30), None);

    let skew = |ahead_ms, behind_ms| Skew { ahead_ms, behind_ms };
    assert_eq!(Skew::of((6_000, 6_999), (6_500, 6_501)), skew(0, 0));
    assert_eq!(Skew::of((6_000, 6_999), (5_000, 5_990)), skew(10, 0));
    assert_eq!(Skew::of((6_000, 6_999), (7_009, 7_010)), skew(0, 10));
    assert_eq!(skew(3, 1).max(skew(2, 4)), skew(3, 4));
    assert!(!skew(5, 5).exceeds(5));
    assert!(skew(6, 0).exceeds(5) && skew(0, 6).exceeds(5));
}

#[test]
fn the_gate_passes_reach_every_shard() {
    let sharded = promise("sharded", HIGHEST, r#"{"app_id":7}"#);
    let count = sharded.gate_passes(None).unwrap();
    let request = Request::new("t", Method::NextId, 1).with_gate_passes(count);
    let shards: HashSet<u8> = request.gate_passes.iter().map(|pass| shard_of(pass)).collect();
    assert_eq!(shards.len(), 64);
    assert_eq!(sharded.gate_passes(Some(3)), Ok(3));
    let strict = promise("strict", HIGHEST, "{}");
    assert_eq!(strict.gate_passes(None), Ok(0));
    assert!(strict.gate_passes(Some(3)).unwrap_err().contains("--gate-passes"));
}
