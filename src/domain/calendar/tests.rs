use super::*;
use proptest::prelude::*;

fn zone(name: &str) -> Zone {
    Zone::parse(Some(name)).unwrap()
}

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

#[test]
fn names_of_zones() {
    for name in ["Europe/Berlin", "Asia/Shanghai", "UTC", "Etc/GMT+5", "EST5EDT"] {
        zone(name);
    }
    assert_eq!(Zone::parse(None).unwrap().moment(0).to_string(), "1970-01-01 00:00:00");
    let long = "x".repeat(65);
    let cases = [
        ("", "IANA"),
        ("Berlin", "IANA"),
        ("europe/berlin", "do you mean Europe/Berlin"),
        ("utc", "do you mean UTC"),
        ("Etc/Unknown", "IANA"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "IANA"),
        ("+01:00", "IANA"),
        ("../../etc/passwd", "IANA"),
        ("Europe/Berlin\n", "IANA"),
        (&long, "65 characters; the limit is 64"),
    ];
    for (name, says) in cases {
        let error = Zone::parse(Some(name)).unwrap_err();
        assert_eq!(error.field, Some("time_zone"), "{error}");
        assert!(error.message.contains(says), "{error}");
        assert!(!error.message.contains(&long), "{error}");
    }
}

/// Zone, instant, and the day that holds it: its date, from, until.
#[test]
fn days_by_cases() {
    let cases = [
        ("UTC", "2026-11-21T14:47:00Z", "2026-11-21", "2026-11-21T00:00Z", "2026-11-22T00:00Z"),
        // A day begins before, or after, that of UTC.
        (
            "Asia/Shanghai",
            "2026-11-21T16:00:00Z",
            "2026-11-22",
            "2026-11-21T16:00Z",
            "2026-11-22T16:00Z",
        ),
        (
            "America/New_York",
            "2026-11-21T04:59:59.999Z",
            "2026-11-20",
            "2026-11-20T05:00Z",
            "2026-11-21T05:00Z",
        ),
        (
            "Asia/Kathmandu",
            "2026-01-01T00:00:00Z",
            "2026-01-01",
            "2025-12-31T18:15Z",
            "2026-01-01T18:15Z",
        ),
        // Days of 23 and of 25 hours.
        (
            "Europe/Berlin",
            "2026-03-29T12:00:00Z",
            "2026-03-29",
            "2026-03-28T23:00Z",
            "2026-03-29T22:00Z",
        ),
        (
            "Europe/Berlin",
            "2026-10-25T01:30:00Z",
            "2026-10-25",
            "2026-10-24T22:00Z",
            "2026-10-25T23:00Z",
        ),
        // Midnight does not exist: the clock goes from 24:00 to 01:00.
        (
            "America/Sao_Paulo",
            "2018-11-04T03:00:00Z",
            "2018-11-04",
            "2018-11-04T03:00Z",
            "2018-11-05T02:00Z",
        ),
        (
            "America/Sao_Paulo",
            "2018-11-04T02:59:59.999Z",
            "2018-11-03",
            "2018-11-03T03:00Z",
            "2018-11-04T03:00Z",
        ),
        // The clock is put back at midnight: 23:00 comes twice, on one day.
        (
            "America/Sao_Paulo",
            "2018-02-18T02:30:00Z",
            "2018-02-17",
            "2018-02-17T02:00Z",
            "2018-02-18T03:00Z",
        ),
        // At 00:01 it is put back to 23:01: the new day stays.
        (
            "America/St_Johns",
            "2006-10-29T02:45:00Z",
            "2006-10-29",
            "2006-10-29T02:30Z",
            "2006-10-30T03:30Z",
        ),
        // The day that was left out has no instant.
        (
            "Pacific/Apia",
            "2011-12-30T10:00:00Z",
            "2011-12-31",
            "2011-12-30T10:00Z",
            "2011-12-31T10:00Z",
        ),
    ];
    for (name, at, date, from, until) in cases {
        let span = zone(name).period_at(Period::Daily, ms(at));
        let text = |ms| Timestamp::from_millisecond(ms).unwrap();
        let minute = |text: &str| ms(&text.replace('Z', ":00Z"));
        assert_eq!(Period::Daily.first_day(span.number).date(), date, "{name} {at}");
        assert_eq!(text(span.from_ms), text(minute(from)), "{name} {at}");
        assert_eq!(text(span.until_ms), text(minute(until)), "{name} {at}");
    }
}

/// A rule that is made up: at 23:30 the clock goes to 00:30.
#[test]
fn a_gap_around_midnight() {
    let zone = Zone(TimeZone::posix("AAA0BBB-1,M3.2.0/23:30,M11.1.0/12").unwrap());
    let span = zone.period_at(Period::Daily, ms("2026-03-08T23:30:00Z"));
    assert_eq!(Period::Daily.first_day(span.number).date(), "2026-03-09");
    assert_eq!(span.from_ms, ms("2026-03-08T23:30:00Z"));
    let before = zone.period_at(Period::Daily, ms("2026-03-08T23:29:59.999Z"));
    assert_eq!((before.number, before.until_ms), (span.number - 1, span.from_ms));
}

#[test]
fn months_and_years() {
    let berlin = zone("Europe/Berlin");
    let at = ms("2025-12-31T23:00:00Z");
    for (period, number, first, until) in [
        (Period::Daily, 20_454, "2026-01-01", "2026-01-01T23:00:00Z"),
        (Period::Monthly, 672, "2026-01-01", "2026-01-31T23:00:00Z"),
        (Period::Yearly, 56, "2026-01-01", "2026-12-31T23:00:00Z"),
    ] {
        let span = berlin.period_at(period, at);
        assert_eq!(span, PeriodSpan { number, from_ms: at, until_ms: ms(until) });
        assert_eq!(period.first_day(number).date(), first);
        let before = berlin.period_at(period, at - 1);
        assert_eq!((before.number, before.until_ms), (number - 1, at));
    }
    assert_eq!(Period::Monthly.first_day(673).date(), "2026-02-01");
    assert_eq!(Period::Monthly.first_day(673).to_string(), "2026-02-01 00:00:00");
    assert_eq!(zone("Asia/Tokyo").moment(at).to_string(), "2026-01-01 08:00:00");
}

#[test]
fn the_ends_of_time() {
    for name in ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"] {
        for period in [Period::Daily, Period::Monthly, Period::Yearly] {
            for at in [i64::MIN, -1_000_000_000_000, -90_000_000] {
                let span = zone(name).period_at(period, at);
                assert_eq!((span.number, span.from_ms), (0, i64::MIN), "{name} {at}");
                assert_eq!(zone(name).moment(at).to_string(), "1970-01-01 00:00:00");
            }
            let last = zone(name).period_at(period, i64::MAX);
            assert_eq!(last.until_ms, i64::MAX, "{name}");
            assert!(last.number < 1 << 23, "{name}");
            assert_eq!(zone(name).period_at(period, i64::MAX - 1), last, "{name}");
            assert_eq!(period.first_day(last.number).year, 9999);
            assert_eq!(period.first_day(i64::MAX).year, 9999);
            assert_eq!(period.first_day(i64::MIN).date(), "1970-01-01");
        }
    }
    assert_eq!(Period::Daily.first_day(i64::MAX).date(), "9999-12-31");
    assert_eq!(Period::Monthly.first_day(i64::MAX).date(), "9999-12-01");
}

fn any_zone() -> impl Strategy<Value = Zone> {
    let names: Vec<String> =
        TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect();
    assert!(names.len() > 300, "the database is there");
    prop::sample::select(names).prop_filter_map("a zone", |name| Zone::parse(Some(&name)).ok())
}

fn any_period() -> impl Strategy<Value = Period> {
    prop_oneof![Just(Period::Daily), Just(Period::Monthly), Just(Period::Yearly)]
}

/// Half of them near a change of the clock, where things go wrong.
fn instants(zone: &Zone, at: i64, offset: i64) -> [i64; 2] {
    let timestamp = Timestamp::from_millisecond(at).unwrap();
    let change = zone.0.following(timestamp).next().map_or(at, |c| c.timestamp().as_millisecond());
    [at, change + offset]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn spans_hold_their_instants_and_follow_one_another(
        zone in any_zone(),
        period in any_period(),
        at in 0i64..4_102_444_800_000,
        offset in -90_000_000i64..90_000_000,
    ) {
        for at in instants(&zone, at, offset) {
            let span = zone.period_at(period, at);
            prop_assert!(span.from_ms <= at && at < span.until_ms, "{:?} {}", span, at);
            prop_assert_eq!(zone.period_at(period, span.until_ms - 1), span);
            let next = zone.period_at(period, span.until_ms);
            prop_assert_eq!(next.from_ms, span.until_ms);
            // Two for a day that the zone left out.
            let left_out = period == Period::Daily
                && zone.start_ms(period, span.number + 1) == zone.start_ms(period, span.number + 2);
            prop_assert_eq!(next.number, span.number + 1 + i64::from(left_out));
            // The wall shows the period, but for the hours after a clock was put back.
            let shown = period.number_of(zone.moment(at));
            prop_assert!(shown == span.number || shown == span.number - 1 || span.number == 0);
            if shown != span.number {
                prop_assert!(at - span.from_ms < 86_400_000);
            }
        }
    }

    #[test]
    fn first_days_and_numbers_are_inverse(period in any_period(), number in 0i64..2_932_897) {
        let last = period.number_of(Moment::from(LAST_DATE.at(0, 0, 0, 0)));
        let number = number.min(last);
        prop_assert_eq!(period.number_of(period.first_day(number)), number);
    }
}
