//! Time zones, periods of a calendar series, and the dates that stand in ids.
//!
//! A period has a number: days, months or years since 1970-01-01, counted in
//! the type's time zone. The number is part of the position, so which period
//! an id belongs to is settled once, by the range store, when its range is
//! allocated; no clock is asked again when the id is written.
//!
//! A period begins at the first instant of its first day: where the clock is
//! put forward over midnight, when it is; where midnight comes twice, at the
//! first. So periods follow one another without a gap, also where the clock on
//! the wall shows the day before once more. A day that a zone left out
//! (2011-12-30 in Apia) has a number, but no instant.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::Error;

/// How often a calendar series restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    /// At midnight.
    Daily,
    /// On the first of the month.
    Monthly,
    /// On the first of January.
    Yearly,
}

/// One period and the time that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodSpan {
    /// Its number.
    pub number: i64,
    /// Its first millisecond, of the Unix epoch; `i64::MIN` for period 0, which
    /// stands for everything before it too.
    pub from_ms: i64,
    /// The first millisecond after it; `i64::MAX` for the last period that can
    /// be told, at the end of the year 9999.
    pub until_ms: i64,
}

/// A time zone of the IANA database that is built into the program, so that all
/// nodes of one version agree. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Year, 1970 to 9999.
    pub year: i16,
    /// Month, 1 to 12.
    pub month: i8,
    /// Day of the month, 1 to 31.
    pub day: i8,
    /// Hour, 0 to 23.
    pub hour: i8,
    /// Minute, 0 to 59.
    pub minute: i8,
    /// Second, 0 to 59.
    pub second: i8,
}

/// The date of period 0.
const FIRST_DATE: Date = Date::constant(1970, 1, 1);
/// The last date that four digits can write.
const LAST_DATE: Date = Date::constant(9999, 12, 31);

/// Zones that were parsed already: the rules of one take several kilobytes, and
/// many types share a zone. At most as many as the database has names.
static PARSED: RwLock<BTreeMap<String, TimeZone>> = RwLock::new(BTreeMap::new());

impl Zone {
    /// Longest name, in characters; the longest of the database has 32.
    pub const MAX_NAME: usize = 64;

    /// The zone of this IANA name, written as the database writes it; UTC for
    /// `None`. The error names `time_zone`.
    pub fn parse(name: Option<&str>) -> Result<Self, Error> {
        let Some(name) = name else { return Ok(Zone(TimeZone::UTC)) };
        let length = name.chars().count();
        if length > Self::MAX_NAME {
            return Err(Error::invalid(
                "time_zone",
                format!("time_zone has {length} characters; the limit is {}", Self::MAX_NAME),
            ));
        }
        if let Some(zone) = PARSED.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Zone(zone.clone()));
        }
        let unknown = |hint: &str| {
            Err(Error::invalid(
                "time_zone",
                format!(
                    "time_zone {name:?} is no name of the IANA time zone database, such as \
                     Europe/Berlin{hint}"
                ),
            ))
        };
        let Ok(zone) = TimeZoneDatabase::bundled().get(name) else { return unknown("") };
        // The database ignores case, and has a name for "unknown", which is no zone.
        match zone.iana_name() {
            Some(exact) if exact == name && !zone.is_unknown() => {}
            Some(exact) if !zone.is_unknown() => {
                return unknown(&format!(": do you mean {exact}?"));
            }
            _ => return unknown(""),
        }
        let mut parsed = PARSED.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Zone(parsed.entry(name.to_owned()).or_insert(zone).clone()))
    }

    /// What the clock on the wall shows at `unix_ms`; what lies before 1970 or
    /// after 9999 there is taken for the first or last second between.
    pub fn moment(&self, unix_ms: i64) -> Moment {
        let first = FIRST_DATE.at(0, 0, 0, 0);
        let last = LAST_DATE.at(23, 59, 59, 0);
        self.wall_clock(unix_ms).clamp(first, last).into()
    }

    /// The period that holds `unix_ms`.
    pub fn period_at(&self, period: Period, unix_ms: i64) -> PeriodSpan {
        let unix_ms = unix_ms.min(i64::MAX - 1);
        let mut number = period.number_of(self.moment(unix_ms));
        let mut from_ms = self.start_ms(period, number);
        // Around a clock that is put back over midnight, the wall shows a day
        // that is over; elsewhere the number is right at once.
        while unix_ms < from_ms {
            number -= 1;
            from_ms = self.start_ms(period, number);
        }
        loop {
            let until_ms = self.start_ms(period, number + 1);
            if unix_ms < until_ms || until_ms == i64::MAX {
                return PeriodSpan { number, from_ms, until_ms };
            }
            number += 1;
            from_ms = until_ms;
        }
    }

    /// The first millisecond of period `number`; the ends of time where there
    /// is none.
    fn start_ms(&self, period: Period, number: i64) -> i64 {
        if number <= 0 {
            return i64::MIN;
        }
        let Some(date) = period.first_date(number) else { return i64::MAX };
        let midnight = self.0.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
        let in_gap = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
        let Ok(start) = midnight.compatible() else { return i64::MAX };
        if !in_gap {
            return start.as_millisecond();
        }
        // `compatible` lies as far behind the gap as midnight lies in it; the
        // day begins where the gap is.
        let after = start.checked_add(SignedDuration::from_millis(1)).unwrap_or(start);
        let gap = self.0.preceding(after).next().map_or(start, |gap| gap.timestamp());
        gap.as_millisecond()
    }

    fn wall_clock(&self, unix_ms: i64) -> DateTime {
        let limits = Timestamp::MIN.as_millisecond()..=Timestamp::MAX.as_millisecond();
        let within = unix_ms.clamp(*limits.start(), *limits.end());
        let timestamp = Timestamp::from_millisecond(within).unwrap_or(Timestamp::UNIX_EPOCH);
        self.0.to_datetime(timestamp)
    }
}

impl Period {
    /// The name in stores and interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Period::Daily => "daily",
            Period::Monthly => "monthly",
            Period::Yearly => "yearly",
        }
    }

    /// The first day of period `number`, at midnight. Pure calendar arithmetic,
    /// without a zone. Numbers before the first and after the last period, the
    /// end of the year 9999, are taken for those.
    pub fn first_day(self, number: i64) -> Moment {
        let last = self.number_of(LAST_DATE.at(0, 0, 0, 0).into());
        let date = self.first_date(number.clamp(0, last)).unwrap_or(LAST_DATE);
        date.at(0, 0, 0, 0).into()
    }

    /// The number of the period that the date of `moment` lies in: the inverse
    /// of [`Period::first_day`].
    pub fn number_of(self, moment: Moment) -> i64 {
        let years = i64::from(moment.year) - 1970;
        match self {
            Period::Daily => {
                let date = Date::new(moment.year, moment.month, moment.day).unwrap_or(FIRST_DATE);
                date.duration_since(FIRST_DATE).as_hours() / 24
            }
            Period::Monthly => years * 12 + i64::from(moment.month) - 1,
            Period::Yearly => years,
        }
    }

    fn first_date(self, number: i64) -> Option<Date> {
        let (year, month) = match self {
            Period::Daily => {
                let days = SignedDuration::try_from_hours(number.checked_mul(24)?)?;
                return FIRST_DATE.checked_add(days).ok();
            }
            Period::Monthly => (number.div_euclid(12), number.rem_euclid(12) + 1),
            Period::Yearly => (number, 1),
        };
        let year = i16::try_from(year.checked_add(1970)?).ok()?;
        Date::new(year, month as i8, 1).ok()
    }
}

/// Whether the calendar has this day.
pub fn is_date(year: i16, month: i8, day: i8) -> bool {
    Date::new(year, month, day).is_ok()
}

impl Moment {
    /// The date as `2026-11-21`.
    pub fn date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl From<DateTime> for Moment {
    fn from(at: DateTime) -> Self {
        Moment {
            year: at.year(),
            month: at.month(),
            day: at.day(),
            hour: at.hour(),
            minute: at.minute(),
            second: at.second(),
        }
    }
}

/// As `2026-11-21 08:05:00`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date(), self.hour, self.minute, self.second)
    }
}

#[cfg(test)]
mod tests {
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
        let change =
            zone.0.following(timestamp).next().map_or(at, |c| c.timestamp().as_millisecond());
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
}
