use proptest::prelude::*;

use super::*;
use crate::domain::sizing::next_length;
use crate::domain::{Opaque, Sites, TypeName, TypeOptions};

/// 2026-11-21T09:30:00Z
const NOW_MS: i64 = 1_795_253_400_000;

fn spec(mode: Mode, options: TypeOptions) -> TypeSpec {
    let max_id = match mode {
        Mode::Snowflake => TypeSpec::HIGHEST_ID,
        _ => options.default_max_id(),
    };
    TypeSpec { mode, options, max_id, ..TypeSpec::new(TypeName::parse("order").unwrap()) }
}

fn none() -> TypeOptions {
    TypeOptions::default()
}

fn texts(preview: &Preview) -> Vec<&str> {
    preview.ids.iter().map(|id| id.text.as_str()).collect()
}

fn numbers(preview: &Preview) -> Vec<i64> {
    preview.ids.iter().filter_map(|id| id.id).collect()
}

#[test]
fn a_plain_type_by_hand() {
    let spec = TypeSpec {
        prefix: "o-".into(),
        first_id: 7,
        max_id: 1_000_006,
        ..spec(Mode::Strict, none())
    };
    let shown = preview(&spec, 10.0, NOW_MS).unwrap();
    assert_eq!(numbers(&shown), [7, 8, 9, 10, 11]);
    assert_eq!(texts(&shown), ["o-7", "o-8", "o-9", "o-10", "o-11"]);
    assert!(shown.ascending && shown.note.is_none());
    assert_eq!(shown.lasts_s, Some(100_000.0));
    // 1 000 at first; a tenth of it is used after 10 s, and 10 a second for 600 s are 6 000.
    let found: Vec<_> = shown.growth.iter().take(4).map(|g| (g.at_s, g.length, g.end)).collect();
    let expected =
        [(0.0, 1_000, 1_007), (10.0, 6_000, 7_007), (160.0, 6_000, 13_007), (760.0, 6_000, 19_007)];
    assert_eq!(found, expected);
    assert_eq!(shown.growth.len(), RANGES);
}

#[test]
fn a_type_with_few_ids_has_short_ranges_and_an_end() {
    let few = TypeSpec { max_id: 2_500, min_range: 1_000, ..spec(Mode::Strict, none()) };
    let shown = preview(&few, 1_000.0, NOW_MS).unwrap();
    let lengths: Vec<_> = shown.growth.iter().map(|g| g.length).collect();
    assert_eq!(lengths, [1_000, 1_000, 500]);
    assert_eq!(shown.lasts_s, Some(2.5));
    let three = TypeSpec { max_id: 3, ..spec(Mode::Strict, none()) };
    assert_eq!(numbers(&preview(&three, 0.0, NOW_MS).unwrap()), [1, 2, 3]);
}

#[test]
fn without_a_rate_there_is_one_range_and_no_end() {
    let shown = preview(&spec(Mode::Strict, none()), 0.0, NOW_MS).unwrap();
    assert_eq!(shown.growth.len(), 1);
    assert_eq!(shown.lasts_s, None);
}

#[test]
fn every_kind_shows_what_its_callers_see() {
    let sites = TypeOptions { sites: Some(Sites { count: 4, site: 1 }), ..none() };
    assert_eq!(
        numbers(&preview(&spec(Mode::Segment, sites), 1.0, NOW_MS).unwrap()),
        [5, 9, 13, 17, 21]
    );

    let sharded =
        preview(&spec(Mode::Sharded, TypeOptions { app_id: Some(7), ..none() }), 64.0, NOW_MS)
            .unwrap();
    let low = i64::from(shard_of(GATE_PASS)) << 8 | 7;
    assert_eq!(numbers(&sharded)[..2], [1 << 14 | low, 2 << 14 | low]);
    assert!(sharded.note.unwrap().contains(GATE_PASS));

    let daily = TypeOptions {
        calendar: Some(Period::Daily),
        format: Some("{prefix}{date:yyMMdd}{seq:06}".into()),
        ..none()
    };
    let daily = TypeSpec { prefix: "R".into(), ..spec(Mode::Strict, daily) };
    let shown = preview(&daily, 1.0, NOW_MS).unwrap();
    assert_eq!(texts(&shown)[..2], ["R261121000001", "R261121000002"]);
    assert!(numbers(&shown).is_empty());
    assert_eq!(shown.lasts_s, None, "a day has 86 400 seconds");
    assert_eq!(shown.growth[0].end, 1_001);
    assert_eq!(preview(&daily, 100.0, NOW_MS).unwrap().lasts_s, Some(9_999.99));

    let cycle = TypeSpec {
        max_id: 100,
        ..spec(Mode::Strict, TypeOptions { at_limit: AtLimit::Cycle, ..none() })
    };
    let shown = preview(&cycle, 5.0, NOW_MS).unwrap();
    assert_eq!(shown.lasts_s, None);
    assert!(shown.note.unwrap().contains("repeat"));

    let flakes = preview(&spec(Mode::Snowflake, none()), 5e6, NOW_MS).unwrap();
    let layout = Layout::default();
    assert_eq!(layout.unix_ms(layout.decompose(numbers(&flakes)[0]).time), NOW_MS);
    assert!(flakes.growth.is_empty() && flakes.lasts_s.unwrap() > 1.6e9);
    assert!(flakes.note.unwrap().contains("4096000 ids a second"));
}

#[test]
fn the_ids_of_an_opaque_type_are_said_to_be_examples() {
    let opaque = TypeOptions { opaque: Some(Opaque { slices: 4 }), ..none() };
    let shown = preview(&spec(Mode::Strict, opaque), 1.0, NOW_MS).unwrap();
    assert!(!shown.ascending);
    assert!(shown.note.as_ref().unwrap().contains("another key"));
    assert_ne!(numbers(&shown), [1, 2, 3, 4, 5]);
}

#[test]
fn what_is_wrong_is_named() {
    let good = spec(Mode::Strict, none());
    for rate in [-1.0, f64::NAN, f64::INFINITY, 1e13] {
        assert_eq!(preview(&good, rate, NOW_MS).unwrap_err().field, Some("rate"), "{rate}");
    }
    let bad = TypeSpec { min_range: 0, ..good };
    assert_eq!(preview(&bad, 1.0, NOW_MS).unwrap_err(), bad.validate().unwrap_err());
}

proptest! {
    /// Ranges follow each other without a gap, and each has the length that the store
    /// would give it.
    #[test]
    fn growth_is_that_of_the_store(
        rate in 0.001f64..1e9, min in 1i64..1_000_000, max in 0i64..1_000_000_000,
        interval in 1i64..86_400_000, percent in 0.0f64..=1.0, mode in 0usize..2,
    ) {
        let spec = TypeSpec {
            min_range: min, max_range: min + max, load_interval_ms: interval,
            load_percentage: crate::domain::LoadPercentage::from_fraction(percent).unwrap(),
            ..spec([Mode::Strict, Mode::Segment][mode], none())
        };
        let shown = preview(&spec, rate, NOW_MS).unwrap();
        let record = TypeRecord::created(&spec, InstanceId(0), 0);
        let mut end = 1;
        let mut at_s = 0.0;
        prop_assert_eq!(shown.growth[0].length, next_length(record.sizing(), None, None));
        for growth in &shown.growth {
            prop_assert_eq!(growth.end, end + growth.length as i64);
            prop_assert!(growth.at_s >= at_s);
            prop_assert!((min as u64..=(min + max) as u64).contains(&growth.length));
            (end, at_s) = (growth.end, growth.at_s);
        }
    }
}
