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
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Error;

/// How often a calendar series restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
        let end = if unix_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
        self.0.to_datetime(Timestamp::from_millisecond(unix_ms).unwrap_or(end))
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
mod tests;
