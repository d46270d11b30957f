//! How ids are written as text.
//!
//! A format is literal text with parts in braces, parsed once:
//!
//! | part | writes |
//! | --- | --- |
//! | `{prefix}` | the prefix of the type |
//! | `{seq}`, `{seq:09}` | the number, decimal; with at least that many digits, 1 to 20 |
//! | `{seq36:07}`, `{seq62:011}` | the number in radix 36 (`0-9A-Z`) or 62 (`0-9A-Za-z`) |
//! | `{date:yyMMdd}` | date and time: `yyyy`, `yy`, `MM`, `dd`, `HH`, `mm`, `ss` and `-` `.` `_` `/` |
//! | `{check:luhn}` | check characters over everything before it (see [`super::check_digit`]) |
//! | `{{`, `}}` | a brace |
//!
//! There is exactly one number, and everything else has a fixed width for a
//! type; so different numbers never make the same text. The digits of each
//! radix are in the order of ASCII, so texts of one width sort as their numbers
//! do. A check stands behind the number and every other part; only literal text
//! may follow, which it does not cover.

use super::Error;
use super::calendar::{Moment, Period};
use super::check_digit::CheckDigit;
use super::options::TypeOptions;

mod parse;
mod read;

/// A parsed format.
#[derive(Clone, Debug, PartialEq)]
pub struct Format {
    parts: Vec<Part>,
    number: Number,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    Prefix,
    Number,
    Date(Vec<DateItem>),
    Check(CheckDigit),
}

/// How the number is written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    radix: u32,
    /// 1 where it is not padded.
    width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum DateItem {
    Year4,
    Year2,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Separator(char),
}

/// What a text was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The number; at most `i64::MAX`.
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

impl DateParts {
    /// The number of the period that they tell; `None` where they lack a part.
    pub fn period(self, period: Period) -> Option<i64> {
        let (month, day) = match period {
            Period::Daily => (self.month?, self.day?),
            Period::Monthly => (self.month?, 1),
            Period::Yearly => (1, 1),
        };
        let midnight = Moment { year: self.year?, month, day, hour: 0, minute: 0, second: 0 };
        Some(period.number_of(midnight))
    }
}

/// The digits of every radix, in the order of ASCII.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Format {
    /// Longest padding of a number, in digits: what the highest id has in
    /// decimal, and one to spare.
    pub const MAX_WIDTH: usize = 20;

    /// Parses a format; the error names `format`, the place and what is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::parse(text)
    }

    /// Refuses a format that could repeat a text in a calendar series (its date
    /// does not tell the period), that has hours or less in a calendar series
    /// (whose date is that of the period), or whose padded number is narrower
    /// than `highest` (a width too small for the limit). A year of two digits
    /// tells the period for a hundred years.
    pub fn check(&self, calendar: Option<Period>, highest: i64) -> Result<(), Error> {
        if let Some(period) = calendar {
            self.check_period(period)?;
        }
        let Number { radix, width } = self.number;
        let digits = digits_of(highest.max(0) as u64, radix);
        if width > 1 && digits > width {
            let name = self.number.name();
            return Err(Error::invalid(
                "format",
                format!(
                    "format gives the number {width} digits, but max_id {highest} needs {digits}: \
                     widen {{{name}:0{width}}} or lower max_id"
                ),
            ));
        }
        Ok(())
    }

    fn check_period(&self, period: Period) -> Result<(), Error> {
        use DateItem::{Day, Hour, Minute, Month, Second, Year2, Year4};
        if [Hour, Minute, Second].iter().any(|item| self.writes(*item)) {
            return Err(Error::invalid(
                "format",
                "format has HH, mm or ss, but the date of a calendar series is the first day of \
                 its period: leave them out",
            ));
        }
        let year = self.writes(Year4) || self.writes(Year2);
        let month = year && self.writes(Month);
        let (complete, needed) = match period {
            Period::Daily => (month && self.writes(Day), "year, month and day, as {date:yyMMdd}"),
            Period::Monthly => (month, "year and month, as {date:yyMM}"),
            Period::Yearly => (year, "the year, as {date:yyyy}"),
        };
        if complete {
            return Ok(());
        }
        Err(Error::invalid(
            "format",
            format!(
                "format of a {} calendar series must hold {needed}: without it its ids would \
                 repeat",
                period.as_str()
            ),
        ))
    }

    /// The highest number that fits in the padding, if there is one.
    pub fn highest_in_width(&self) -> Option<i64> {
        let Number { radix, width } = self.number;
        let above = u64::from(radix).checked_pow(width as u32);
        let highest = above.map_or(i64::MAX, |above| i64::try_from(above - 1).unwrap_or(i64::MAX));
        (width > 1).then_some(highest)
    }

    /// Whether it writes a check character.
    pub fn has_check(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Check(_)))
    }

    /// Whether it writes a date.
    pub fn has_date(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Date(_)))
    }

    fn writes(&self, item: DateItem) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Date(items) if items.contains(&item)))
    }

    /// The text of `number`, which is not negative.
    pub fn write(&self, prefix: &str, number: i64, date: Moment) -> String {
        let mut text = String::with_capacity(prefix.len() + 32);
        for part in &self.parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Prefix => text.push_str(prefix),
                Part::Number => self.number.append(number.max(0) as u64, &mut text),
                Part::Date(items) => items.iter().for_each(|item| item.append(date, &mut text)),
                Part::Check(check) => {
                    let characters = check.of(&text);
                    text.push_str(&characters);
                }
            }
        }
        text
    }

    /// The number and the date of a text; the error names `id` and what does
    /// not fit (the prefix, a digit, the check character). Reads exactly what
    /// [`Format::write`] writes, so a number has no other zeros before it than
    /// its padding.
    pub fn read(&self, prefix: &str, text: &str) -> Result<Parsed, Error> {
        read::read(self, prefix, text)
    }
}

impl Number {
    fn name(self) -> &'static str {
        match self.radix {
            36 => "seq36",
            62 => "seq62",
            _ => "seq",
        }
    }

    fn append(self, number: u64, to: &mut String) {
        let radix = u64::from(self.radix);
        // The lowest radix is 10, in which the highest number has 20 digits.
        let mut digits = [b'0'; Format::MAX_WIDTH];
        let mut first = digits.len();
        let mut rest = number;
        while rest > 0 {
            first -= 1;
            digits[first] = DIGITS[(rest % radix) as usize];
            rest /= radix;
        }
        let first = first.min(digits.len() - self.width);
        to.extend(digits[first..].iter().copied().map(char::from));
    }
}

fn digits_of(mut number: u64, radix: u32) -> usize {
    let mut digits = 1;
    while number >= u64::from(radix) {
        number /= u64::from(radix);
        digits += 1;
    }
    digits
}

impl DateItem {
    fn width(self) -> usize {
        match self {
            DateItem::Year4 => 4,
            DateItem::Separator(_) => 1,
            _ => 2,
        }
    }

    fn append(self, date: Moment, to: &mut String) {
        let value = match self {
            DateItem::Separator(separator) => return to.push(separator),
            DateItem::Year4 => date.year,
            DateItem::Year2 => date.year % 100,
            DateItem::Month => date.month.into(),
            DateItem::Day => date.day.into(),
            DateItem::Hour => date.hour.into(),
            DateItem::Minute => date.minute.into(),
            DateItem::Second => date.second.into(),
        };
        let width = self.width();
        to.push_str(&format!("{value:0width$}"));
    }
}

#[cfg(test)]
mod tests;
