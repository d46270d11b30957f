//! How ids are written as text.
//!
//! A format is literal text with parts in braces, parsed once:
//!
//! | part | writes |
//! | --- | --- |
//! | `{prefix}` | the prefix of the type |
//! | `{seq}`, `{seq:09}` | the number, decimal; with at least that many digits |
//! | `{seq36:07}`, `{seq62:011}` | the number in radix 36 (`0-9A-Z`) or 62 (`0-9A-Za-z`) |
//! | `{date:yyMMdd}` | date and time: `yyyy`, `yy`, `MM`, `dd`, `HH`, `mm`, `ss` and `-` `.` `_` `/` |
//! | `{check:luhn}` | a check character over everything before it (see [`super::check_digit`]) |
//! | `{{`, `}}` | a brace |
//!
//! There is exactly one number, and everything else has a fixed width for a
//! type; so different numbers never make the same text.

use super::Error;
use super::calendar::{Moment, Period};

/// A parsed format.
#[derive(Clone, Debug, PartialEq)]
pub struct Format(());

/// What a text was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The number.
    pub number: u64,
    /// The date parts; fields that the format does not write are `None`.
    pub date: DateParts,
}

/// Date parts as found in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateParts {
    /// Year; 2000 to 2099 where the format writes two digits.
    pub year: Option<i16>,
    /// Month.
    pub month: Option<i8>,
    /// Day.
    pub day: Option<i8>,
    /// Hour.
    pub hour: Option<i8>,
    /// Minute.
    pub minute: Option<i8>,
    /// Second.
    pub second: Option<i8>,
}

impl Format {
    /// Parses a format; the error names `format`, the place and what is wrong.
    pub fn parse(_text: &str) -> Result<Self, Error> {
        todo!()
    }

    /// Refuses a format that could repeat a text in a calendar series (its date
    /// does not tell the period), that has hours or less in a calendar series
    /// (whose date is that of the period), or whose padded number is narrower
    /// than `highest` (a width too small for the limit).
    pub fn check(&self, _calendar: Option<Period>, _highest: i64) -> Result<(), Error> {
        todo!()
    }

    /// The highest number that fits in the padding, if there is one.
    pub fn highest_in_width(&self) -> Option<i64> {
        todo!()
    }

    /// Whether it writes a date.
    pub fn has_date(&self) -> bool {
        todo!()
    }

    /// The text of `number`, which is not negative.
    pub fn write(&self, _prefix: &str, _number: i64, _date: Moment) -> String {
        todo!()
    }

    /// The number and the date of a text; the error names `id` and what does
    /// not fit (the prefix, a digit, the check character).
    pub fn read(&self, _prefix: &str, _text: &str) -> Result<Parsed, Error> {
        todo!()
    }
}
