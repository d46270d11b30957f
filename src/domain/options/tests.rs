use proptest::prelude::*;

use super::*;

const TOP: i64 = TypeSpec::HIGHEST_ID;

fn options(json: &str) -> TypeOptions {
    TypeOptions::from_json(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn what_is_possible() {
    use Mode::{Segment, Sharded, Snowflake, Strict};
    let cases = [
        (Strict, TOP, "{}"),
        (Segment, TOP, "{}"),
        (Snowflake, TOP, "{}"),
        (Strict, 1, r#"{"at_limit":"cycle"}"#),
        (Strict, TOP, r#"{"on_redis_loss":"segment"}"#),
        (Segment, TOP, r#"{"at_limit":"cycle","sites":{"count":2,"site":1}}"#),
        (Segment, TOP, r#"{"opaque":{"slices":1024},"sites":{"count":1024,"site":1023}}"#),
        (Sharded, TOP, r#"{"app_id":255,"opaque":{},"format":"{seq36:013}"}"#),
        (Sharded, 32_767, r#"{"app_id":0,"at_limit":"cycle"}"#),
        (Strict, 16_000_000, r#"{"opaque":{}}"#),
        (Strict, 1_000_000, r#"{"opaque":{"slices":1}}"#),
        (Strict, 9_999, r#"{"calendar":"daily","format":"{date:yyMMdd}{seq:04}"}"#),
        (
            Segment,
            1_099_511_627_774,
            r#"{"calendar":"yearly","format":"{date:yyyy}{seq}","time_zone":"Asia/Tokyo"}"#,
        ),
        (Strict, TOP, r#"{"format":"{date:HHmmss}{seq}","time_zone":"Europe/Berlin"}"#),
        (Snowflake, TOP, r#"{"format":"{prefix}{seq62:011}"}"#),
        (Snowflake, TOP, r#"{"format":"{date:yyMMdd}-{seq}","time_zone":"UTC"}"#),
    ];
    for (mode, max_id, json) in cases {
        options(json)
            .validate(mode, 1, max_id)
            .unwrap_or_else(|error| panic!("{mode} {max_id} {json}: {error}"));
    }
}

#[test]
fn each_broken_rule_names_its_field() {
    use Mode::{Segment, Sharded, Snowflake, Strict};
    let cases = [
        ("on_redis_loss", Segment, 1, TOP, r#"{"on_redis_loss":"segment"}"#),
        ("on_redis_loss", Snowflake, 1, TOP, r#"{"on_redis_loss":"segment"}"#),
        ("at_limit", Snowflake, 1, TOP, r#"{"at_limit":"cycle"}"#),
        ("opaque", Snowflake, 1, TOP, r#"{"opaque":{}}"#),
        ("calendar", Sharded, 1, TOP, r#"{"app_id":1,"calendar":"daily"}"#),
        ("calendar", Snowflake, 1, TOP, r#"{"calendar":"daily"}"#),
        ("sites", Strict, 1, TOP, r#"{"sites":{"count":2,"site":1}}"#),
        ("sites", Sharded, 1, TOP, r#"{"app_id":1,"sites":{"count":2,"site":1}}"#),
        ("app_id", Strict, 1, TOP, r#"{"app_id":1}"#),
        ("app_id", Sharded, 1, TOP, "{}"),
        ("app_id", Sharded, 1, TOP, r#"{"app_id":256}"#),
        ("app_id", Sharded, 1, TOP, r#"{"app_id":-1}"#),
        ("snowflake", Strict, 1, TOP, r#"{"snowflake":{}}"#),
        ("opaque", Strict, 1, TOP, r#"{"opaque":{},"at_limit":"cycle"}"#),
        ("opaque", Strict, 1, TOP, r#"{"opaque":{},"calendar":"daily"}"#),
        ("at_limit", Strict, 1, TOP, r#"{"at_limit":"cycle","calendar":"daily"}"#),
        ("sites", Segment, 1, TOP, r#"{"sites":{"count":2,"site":1},"calendar":"daily"}"#),
        ("sites.count", Segment, 1, TOP, r#"{"sites":{"count":1,"site":0}}"#),
        ("sites.count", Segment, 1, TOP, r#"{"sites":{"count":1025,"site":0}}"#),
        ("sites.count", Segment, 1, TOP, r#"{"sites":{"count":0,"site":0}}"#),
        ("sites.site", Segment, 1, TOP, r#"{"sites":{"count":4,"site":4}}"#),
        ("time_zone", Strict, 1, TOP, r#"{"time_zone":"Mars/Olympus","format":"{date:yy}{seq}"}"#),
        ("time_zone", Strict, 1, TOP, r#"{"time_zone":"UTC"}"#),
        ("time_zone", Strict, 1, TOP, r#"{"time_zone":"UTC","format":"{seq}"}"#),
        ("format", Strict, 1, TOP, r#"{"format":"{seq"}"#),
        ("format", Strict, 1, TOP, r#"{"format":"{seq:09}"}"#),
        ("format", Snowflake, 1, TOP, r#"{"format":"{seq:018}"}"#),
        ("format", Snowflake, 1, 999, r#"{"format":"{seq:03}"}"#),
        ("format", Strict, 1, 9, r#"{"calendar":"daily"}"#),
        ("format", Strict, 1, 9, r#"{"calendar":"daily","format":"{date:yyMM}{seq}"}"#),
        ("max_id", Snowflake, 1, 9, "{}"),
        ("max_id", Snowflake, 2, TOP, "{}"),
        ("max_id", Sharded, 1, 32_766, r#"{"app_id":1}"#),
        ("max_id", Segment, 1, 6, r#"{"sites":{"count":4,"site":3}}"#),
        ("max_id", Segment, 1, 2, r#"{"sites":{"count":4,"site":3}}"#),
        ("max_id", Strict, 1, 15_999_999, r#"{"opaque":{}}"#),
        ("max_id", Sharded, 1, 1 << 30, r#"{"opaque":{"slices":1},"app_id":1}"#),
        (
            "max_id",
            Strict,
            1,
            1_099_511_627_775,
            r#"{"calendar":"daily","format":"{date:yyMMdd}{seq}"}"#,
        ),
        ("opaque.slices", Strict, 1, TOP, r#"{"opaque":{"slices":0}}"#),
        ("opaque.slices", Strict, 1, TOP, r#"{"opaque":{"slices":1025}}"#),
    ];
    for (field, mode, first_id, max_id, json) in cases {
        let error = options(json).validate(mode, first_id, max_id).unwrap_err();
        assert_eq!(error.field, Some(field), "{mode} {json}: {error}");
        assert!(error.message.contains(field), "{mode} {json}: {error}");
    }
}

#[test]
fn json_is_as_short_as_can_be() {
    assert_eq!(TypeOptions::default().to_json(), "{}");
    let all = r#"{"at_limit":"cycle","on_redis_loss":"segment","format":"\"{seq}\\","calendar":"daily","time_zone":"UTC","opaque":{"slices":16},"app_id":7,"snowflake":{"time_bits":41,"worker_bits":10,"sequence_bits":12,"unit":"ms","epoch_ms":1288834974657},"sites":{"count":4,"site":1}}"#;
    assert_eq!(options(all).to_json(), all);
    let short = r#" {"opaque": {}, "format": null, "snowflake": {"unit": "s"}} "#;
    assert_eq!(options(short).opaque, Some(Opaque { slices: 16 }));
    assert_eq!(options(short).format, None);
}

#[test]
fn json_that_is_refused() {
    let long = format!("{{{}}}", " ".repeat(2_047));
    let cases = [
        ("", "options"),
        ("null", "options"),
        ("[]", "options"),
        (r#"["cycle"]"#, "options must be a JSON object"),
        (r#"{"sites":[2,1]}"#, "without arrays"),
        ("{} {}", "trailing"),
        (r#"{"opaque":{},"opaque":{}}"#, "duplicate field"),
        (r#"{"formt":"{seq}"}"#, "unknown field `formt`"),
        (r#"{"opaque":{"slice":1}}"#, "unknown field `slice`"),
        (r#"{"sites":{"count":2}}"#, "missing field `site`"),
        (r#"{"sites":{"count":2,"site":-1}}"#, "-1"),
        (r#"{"opaque":{"slices":65536}}"#, "65536"),
        (r#"{"opaque":true}"#, "options"),
        (r#"{"at_limit":"wrap"}"#, "unknown variant `wrap`"),
        (r#"{"calendar":"hourly"}"#, "unknown variant `hourly`"),
        (r#"{"app_id":1.5}"#, "1.5"),
        (r#"{"snowflake":{"bits":1}}"#, "unknown field `bits`"),
        (&long, "2049 bytes; the limit is 2048"),
    ];
    for (json, says) in cases {
        let error = TypeOptions::from_json(json).unwrap_err();
        assert_eq!(error.field, Some("options"), "{json}: {error}");
        assert!(error.message.contains(says), "{json}: {error}");
    }
    TypeOptions::from_json(&long[1..].replacen(' ', "{", 1)).unwrap();
}

/// The longest options that are legal fit where they are stored.
#[test]
fn legal_options_fit() {
    for literal in ["😀", "\"", "\\"] {
        let mut options =
            options(r#"{"calendar":"daily","time_zone":"America/Indiana/Petersburg"}"#);
        options.format = Some(format!("{{date:yyMMdd}}{{seq}}{}", literal.repeat(237)));
        options.validate(Mode::Strict, 1, 9).unwrap();
        let json = options.to_json();
        assert!(json.len() < TypeOptions::MAX_JSON, "{}", json.len());
        assert_eq!(TypeOptions::from_json(&json).unwrap(), options);
    }
}

#[test]
fn limits_by_cases() {
    // Mode, max_id, options, highest number, highest position.
    let cases = [
        (Mode::Strict, 9, "{}", 9, 9),
        (Mode::Strict, TOP, "{}", TOP, TOP),
        (Mode::Strict, 9, r#"{"at_limit":"cycle"}"#, 9, TOP),
        (Mode::Sharded, 32_767, r#"{"app_id":1}"#, 1, 1),
        (Mode::Sharded, 32_766, r#"{"app_id":1}"#, 0, 0),
        (Mode::Sharded, 1, r#"{"app_id":1}"#, -1, -1),
        (Mode::Sharded, TOP, r#"{"app_id":1}"#, (1 << 49) - 2, (1 << 49) - 2),
        // Nobody may create it, but it must not end the program.
        (Mode::Sharded, i64::MAX, r#"{"app_id":1}"#, (1 << 49) - 2, (1 << 49) - 2),
        (Mode::Segment, 9, r#"{"sites":{"count":4,"site":1}}"#, 2, 2),
        (Mode::Segment, 8, r#"{"sites":{"count":4,"site":1}}"#, 1, 1),
        (Mode::Segment, 1, r#"{"sites":{"count":4,"site":3}}"#, 0, 0),
        (Mode::Segment, TOP, r#"{"sites":{"count":2,"site":0}}"#, TOP / 2, TOP / 2),
        (Mode::Segment, 9, r#"{"sites":{"count":0,"site":0}}"#, 9, 9),
    ];
    for (mode, max_id, json, number, position) in cases {
        assert_eq!(options(json).highest_number(mode, max_id), number, "{mode} {max_id} {json}");
        assert_eq!(options(json).max_position(mode, max_id), position, "{mode} {max_id} {json}");
    }
}

#[test]
fn default_limits_by_cases() {
    let cases = [
        ("{}", TOP),
        (r#"{"format":"{seq}"}"#, TOP),
        (r#"{"format":"{seq:09}"}"#, 999_999_999),
        (r#"{"format":"{seq:020}"}"#, TOP),
        (r#"{"format":"{seq62:011}"}"#, TOP),
        (r#"{"format":"{seq36:02}"}"#, 1_295),
        (r#"{"format":"{seq"}"#, TOP),
        (r#"{"calendar":"daily"}"#, 1_099_511_627_774),
        (r#"{"calendar":"daily","format":"{date:yyMMdd}{seq:06}"}"#, 999_999),
        (r#"{"calendar":"daily","format":"{date:yyMMdd}{seq:018}"}"#, 1_099_511_627_774),
    ];
    for (json, max_id) in cases {
        assert_eq!(options(json).default_max_id(), max_id, "{json}");
    }
}

#[test]
fn what_may_change() {
    let from = options("{}");
    let to = options(r#"{"on_redis_loss":"segment"}"#);
    from.check_change(&to).unwrap();
    to.check_change(&from).unwrap();
    let cases = [
        ("at_limit", r#"{"at_limit":"cycle"}"#, "{}"),
        ("format", r#"{"format":"{seq}"}"#, r#"{"format":"x{seq}"}"#),
        ("format", r#"{"format":"{seq}"}"#, "{}"),
        ("calendar", r#"{"calendar":"daily"}"#, r#"{"calendar":"monthly"}"#),
        ("time_zone", r#"{"time_zone":"UTC"}"#, "{}"),
        ("opaque", r#"{"opaque":{"slices":16}}"#, r#"{"opaque":{"slices":17}}"#),
        ("opaque", r#"{"opaque":{}}"#, "{}"),
        ("app_id", r#"{"app_id":1}"#, r#"{"app_id":2}"#),
        ("snowflake", r#"{"snowflake":{}}"#, r#"{"snowflake":{"worker_bits":9}}"#),
        ("sites", r#"{"sites":{"count":2,"site":0}}"#, r#"{"sites":{"count":2,"site":1}}"#),
        ("sites", r#"{"sites":{"count":2,"site":0}}"#, r#"{"sites":{"count":4,"site":0}}"#),
    ];
    for (field, a, b) in cases {
        for (from, to) in [(a, b), (b, a)] {
            let error = options(from).check_change(&options(to)).unwrap_err();
            assert_eq!(error.field, Some(field), "{from} {to}: {error}");
            assert!(error.message.contains(field), "{from} {to}: {error}");
        }
    }
}

proptest! {
    #[test]
    fn positions_of_periods_are_ordered(
        a in (0i64..1 << 23, 0..=TypeOptions::MAX_PERIOD_NUMBER),
        b in (0i64..1 << 23, 0..=TypeOptions::MAX_PERIOD_NUMBER),
    ) {
        let (first, second) = (position_in(a.0, a.1), position_in(b.0, b.1));
        prop_assert_eq!(first.cmp(&second), a.cmp(&b));
        prop_assert_eq!((period_of(first), number_of(first)), a);
        prop_assert!((0..i64::MAX).contains(&first));
        let range = IdRange::new(first.max(1), first.max(1) + 1).unwrap();
        prop_assert!(in_one_period(range));
    }

    /// No id passes max_id, and one more number would.
    #[test]
    fn the_highest_number_is_the_highest(
        max_id in prop_oneof![1i64..100_000, 1..=TOP], count in 2i64..=1_024, site in 0i64..1_024,
        app_id in 0i64..256,
    ) {
        let site = site % count;
        let sites = options(&format!(r#"{{"sites":{{"count":{count},"site":{site}}}}}"#));
        let highest = i128::from(sites.highest_number(Mode::Segment, max_id));
        let id = |number: i128| number * i128::from(count) + i128::from(site);
        prop_assert!(highest < 1 || id(highest) <= i128::from(max_id));
        prop_assert!(id(highest + 1) > i128::from(max_id));

        let sharded = options(&format!(r#"{{"app_id":{app_id}}}"#));
        let highest = i128::from(sharded.highest_number(Mode::Sharded, max_id));
        let id = |number: i128| number << 14 | 63 << 8 | 255;
        prop_assert!(highest < 1 || id(highest) <= i128::from(max_id));
        prop_assert!(id(highest + 1) > i128::from(max_id));
    }

    #[test]
    fn no_json_makes_it_panic(text in ".{0,60}", first_id in 1..=TOP, max_id in 1..=TOP) {
        let _ = TypeOptions::from_json(&text);
        let format = TypeOptions { format: Some(text.clone()), time_zone: Some(text), ..TypeOptions::default() };
        let _ = format.validate(Mode::Strict, first_id.min(max_id), max_id);
        prop_assert_eq!(TypeOptions::from_json(&format.to_json()).unwrap(), format);
    }
}
