//! Time zones, periods of a calendar series, and the dates that stand in ids.
//!
//! A period has a number: days, months or years since 1970-01-01, counted in
//! the type's time zone. The number is part of the position, so which period
//! an id belongs to is settled once, by the range store, when its range is
//! allocated; no clock is asked again when the id is written.

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
    /// Its first millisecond, of the Unix epoch.
    pub from_ms: i64,
    /// The first millisecond after it.
    pub until_ms: i64,
}

/// A time zone of the IANA database that is built into the program, so that all
/// nodes of one version agree.
#[derive(Clone, Debug)]
pub struct Zone(#[expect(dead_code)] ());

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

impl Zone {
    /// The zone of this IANA name; UTC for `None`. The error names `time_zone`.
    pub fn parse(_name: Option<&str>) -> Result<Self, Error> {
        todo!()
    }

    /// What the clock on the wall shows at `unix_ms`.
    pub fn moment(&self, _unix_ms: i64) -> Moment {
        todo!()
    }

    /// The period that holds `unix_ms`.
    pub fn period_at(&self, _period: Period, _unix_ms: i64) -> PeriodSpan {
        todo!()
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
    /// without a zone.
    pub fn first_day(self, _number: i64) -> Moment {
        todo!()
    }
}
