use super::*;
use crate::domain::options::position_in;

fn spec() -> TypeSpec {
    TypeSpec::new(TypeName::parse("order").unwrap())
}

#[test]
fn defaults_are_legal() {
    spec().validate().unwrap();
}

#[test]
fn each_broken_rule_names_its_field() {
    type Break = fn(&mut TypeSpec);
    let cases: [(&str, Break); 13] = [
        ("prefix", |s| s.prefix = "x".repeat(65)),
        ("prefix", |s| s.prefix = "a\nb".into()),
        ("description", |s| s.description = "x".repeat(65_536)),
        ("first_id", |s| s.first_id = 0),
        ("first_id", |s| s.first_id = i64::MAX),
        ("max_id", |s| {
            s.first_id = 10;
            s.max_id = 9;
        }),
        ("max_id", |s| s.max_id = i64::MAX),
        ("min_range", |s| s.min_range = 0),
        ("max_range", |s| s.max_range = 999),
        ("load_interval_ms", |s| s.load_interval_ms = 0),
        ("lock_ttl_ms", |s| s.lock_ttl_ms = 999),
        ("key", |s| s.key = Some(OpaqueKey::new([1; 32]))),
        ("app_id", |s| s.mode = Mode::Sharded),
    ];
    for (field, change) in cases {
        let mut broken = spec();
        change(&mut broken);
        let error = broken.validate().unwrap_err();
        assert_eq!(error.field, Some(field), "{error}");
        assert!(error.message.contains(field), "{error}");
    }
}

#[test]
fn load_percentage_is_a_fraction() {
    assert!(LoadPercentage::from_fraction(-0.1).is_err());
    assert!(LoadPercentage::from_fraction(1.1).is_err());
    assert!(LoadPercentage::from_fraction(f64::NAN).is_err());
    assert_eq!(LoadPercentage::from_fraction(0.1).unwrap(), LoadPercentage::DEFAULT);
}

fn options(json: &str) -> TypeOptions {
    TypeOptions::from_json(json).unwrap()
}

/// A type of these settings, and whether it has issued ids.
fn record(mode: Mode, max_id: i64, json: &str, issued: i64) -> TypeRecord {
    let mut spec = spec();
    spec.mode = mode;
    spec.max_id = max_id;
    spec.options = options(json);
    spec.key = spec.options.opaque.map(|_| OpaqueKey::new([1; 32]));
    spec.validate().unwrap();
    let mut record = TypeRecord::created(&spec, InstanceId(1), 5);
    record.next_id += issued;
    record
}

const TOP: i64 = TypeSpec::HIGHEST_ID;

#[test]
fn a_change_counts_and_leaves_the_rest() {
    let before = record(Mode::Strict, TOP, "{}", 100);
    let change = TypeChange {
        expected_version: Some(1),
        options: Some(options(r#"{"on_redis_loss":"segment"}"#)),
        description: Some("new".into()),
        prefix: Some("B-".into()),
        max_id: Some(1_000),
        ..TypeChange::default()
    };
    let after = change.apply_to(&before, 77).unwrap();
    let expected = TypeRecord {
        options: options(r#"{"on_redis_loss":"segment"}"#),
        description: "new".into(),
        prefix: "B-".into(),
        max_id: 1_000,
        max_position: 1_000,
        version: 2,
        updated_ms: 77,
        ..before.clone()
    };
    assert_eq!(after, expected);
    let error = change.apply_to(&after, 78).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("version 2"), "{error}");
    let any = TypeChange { expected_version: None, ..change };
    assert_eq!(any.apply_to(&after, 78).unwrap().version, 3);
}

#[test]
fn before_the_first_id_all_but_opaque_may_change() {
    let change = |mode, json| TypeChange {
        mode: Some(mode),
        options: Some(options(json)),
        ..TypeChange::default()
    };
    let plain = record(Mode::Strict, TOP, "{}", 0);
    let sharded = change(Mode::Sharded, r#"{"app_id":3,"format":"{seq:019}"}"#);
    let after = sharded.apply_to(&plain, 6).unwrap();
    assert_eq!((after.mode, after.max_position), (Mode::Sharded, (1 << 49) - 2));
    let opaque = record(Mode::Strict, TOP, r#"{"opaque":{}}"#, 0);
    let fewer = change(Mode::Segment, r#"{"opaque":{"slices":4}}"#);
    fewer.apply_to(&opaque, 6).unwrap();

    let cases = [
        ("options", &plain, change(Mode::Strict, r#"{"opaque":{}}"#)),
        ("options", &opaque, change(Mode::Strict, "{}")),
        ("app_id", &plain, change(Mode::Sharded, "{}")),
        ("format", &plain, change(Mode::Strict, r#"{"format":"{seq:03}"}"#)),
        ("max_id", &record(Mode::Strict, 9, "{}", 0), change(Mode::Snowflake, "{}")),
    ];
    for (field, record, change) in cases {
        let error = change.apply_to(record, 6).unwrap_err();
        assert_eq!(error.field, Some(field), "{error}");
    }
}

#[test]
fn what_is_kept_once_ids_were_issued() {
    let mode = |mode| TypeChange { mode: Some(mode), ..TypeChange::default() };
    let with = |json| TypeChange { options: Some(options(json)), ..TypeChange::default() };
    let max = |max_id| TypeChange { max_id: Some(max_id), ..TypeChange::default() };
    let daily = r#"{"calendar":"daily","format":"{date:yyMMdd}{seq:04}"}"#;
    let four = r#"{"sites":{"count":4,"site":1}}"#;
    let strict = record(Mode::Strict, 1_000, "{}", 100);
    let cases = [
        // Also where the new mode asks for more, or for less.
        ("mode", strict.clone(), mode(Mode::Segment)),
        ("mode", strict.clone(), mode(Mode::Sharded)),
        ("mode", strict.clone(), mode(Mode::Snowflake)),
        ("mode", record(Mode::Snowflake, TOP, "{}", 0), mode(Mode::Strict)),
        ("at_limit", strict.clone(), with(r#"{"at_limit":"cycle"}"#)),
        ("format", strict.clone(), with(r#"{"format":"{seq}"}"#)),
        ("format", strict.clone(), with(daily)),
        (
            "calendar",
            record(Mode::Strict, 9_999, daily, 9),
            with(&daily.replace("daily", "monthly")),
        ),
        ("app_id", record(Mode::Sharded, TOP, r#"{"app_id":3}"#, 9), with(r#"{"app_id":4}"#)),
        ("sites", record(Mode::Segment, TOP, four, 9), with("{}")),
        ("opaque", strict, with(r#"{"opaque":{"slices":1}}"#).with_max(TOP)),
        (
            "opaque",
            record(Mode::Strict, TOP, r#"{"opaque":{}}"#, 1),
            with(r#"{"opaque":{"slices":1}}"#),
        ),
        ("max_id", record(Mode::Strict, 16_000_000, r#"{"opaque":{}}"#, 1), max(16_000_001)),
        ("max_id", record(Mode::Strict, 17_000_000, r#"{"opaque":{}}"#, 1), max(16_000_000)),
        ("max_id", record(Mode::Strict, 9, r#"{"at_limit":"cycle"}"#, 1), max(10)),
        ("max_id", record(Mode::Strict, 1_000, "{}", 100), max(99)),
        // 9 positions of 4 sites are ids up to 37.
        ("max_id", record(Mode::Segment, 1_000, four, 9), max(36)),
        ("max_id", record(Mode::Strict, 1_000, "{}", 100), max(i64::MAX)),
        ("format", record(Mode::Strict, 9_999, daily, 9), max(10_000)),
    ];
    for (case, (field, record, change)) in cases.into_iter().enumerate() {
        let error = change.apply_to(&record, 6).unwrap_err();
        assert_eq!(error.field, Some(field), "case {case}: {error}");
        assert!(error.message.contains(field), "case {case}: {error}");
    }
    let allowed = [
        (record(Mode::Strict, 1_000, "{}", 100), max(100)),
        (record(Mode::Strict, 1_000, "{}", 100), max(TOP)),
        (record(Mode::Segment, 1_000, four, 9), max(37)),
        (record(Mode::Strict, 16_000_000, r#"{"opaque":{}}"#, 1), max(16_000_000)),
    ];
    for (case, (record, change)) in allowed.into_iter().enumerate() {
        change.apply_to(&record, 6).unwrap_or_else(|error| panic!("case {case}: {error}"));
    }
}

impl TypeChange {
    fn with_max(self, max_id: i64) -> Self {
        TypeChange { max_id: Some(max_id), ..self }
    }
}

/// In a calendar series the limit is one of each period.
#[test]
fn the_limit_of_a_calendar_series() {
    let daily = r#"{"calendar":"daily","format":"{date:yyMMdd}{seq:04}"}"#;
    let mut record = record(Mode::Strict, 9_999, daily, 0);
    record.next_id = position_in(20_000, 501);
    assert_eq!(record.left(), 9_999 - 500);
    let max = |max_id| TypeChange { max_id: Some(max_id), ..TypeChange::default() };
    assert_eq!(max(500).apply_to(&record, 6).unwrap().left(), 0);
    let error = max(499).apply_to(&record, 6).unwrap_err();
    assert!(error.message.contains("positions up to 500"), "{error}");
}

#[test]
fn how_many_are_left() {
    assert_eq!(record(Mode::Strict, 9, "{}", 0).left(), 9);
    assert_eq!(record(Mode::Strict, 9, "{}", 9).left(), 0);
    assert_eq!(record(Mode::Strict, 9, r#"{"at_limit":"cycle"}"#, 9).left(), TOP as u64 - 9);
    let sharded = record(Mode::Sharded, TOP, r#"{"app_id":3}"#, 0);
    assert_eq!(sharded.left(), (1 << 49) - 2);
    let past_the_checks = TypeRecord { max_position: i64::MAX, ..sharded };
    assert_eq!(past_the_checks.left(), i64::MAX as u64 - 1);
}

#[test]
fn prefixes_that_may_change() {
    let cases = [
        ("", "A", "{}", true),
        ("A", "", "{}", true),
        ("A", "B2-", "{}", true),
        ("A", "A1", "{}", false),
        ("A1", "A", "{}", false),
        ("A1", "B1", "{}", false),
        ("A1", "A1", "{}", true),
        ("A", "B", r#"{"format":"{prefix}{seq}"}"#, false),
        ("A", "A", r#"{"format":"{prefix}{seq}"}"#, true),
    ];
    for (from, to, json, allowed) in cases {
        for issued in [0, 5] {
            let mut record = record(Mode::Strict, TOP, json, issued);
            record.prefix = from.into();
            let change = TypeChange { prefix: Some(to.into()), ..TypeChange::default() };
            let result = change.apply_to(&record, 6);
            assert_eq!(result.is_ok(), allowed || issued == 0, "{from:?} {to:?} {json}");
            if let Err(error) = result {
                assert_eq!(error.field, Some("prefix"), "{error}");
            }
        }
    }
}
