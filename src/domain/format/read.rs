//! From a text back to its number and date.

use super::super::calendar::is_date;
use super::{DIGITS, DateItem, DateParts, Error, Format, Number, Parsed, Part};

/// See [`Format::read`].
pub(super) fn read(format: &Format, prefix: &str, text: &str) -> Result<Parsed, Error> {
    let fixed: usize = format.parts.iter().map(|part| part.fixed_width(prefix)).sum();
    let length = text.chars().count();
    let number_width = length.saturating_sub(fixed);
    if number_width < format.number.width {
        return Err(wrong(&format!(
            "it has {length} characters, but the format writes {} at least",
            fixed + format.number.width
        )));
    }
    let mut reader = Reader { text, at: 0, date: DateParts::default(), year_is_full: false };
    let mut number = 0;
    for part in &format.parts {
        match part {
            Part::Literal(literal) => reader.exactly(literal, "the text of the format")?,
            Part::Prefix => reader.exactly(prefix, "the prefix")?,
            Part::Number => {
                let digits = reader.take(number_width);
                number = format.number.value(digits)?;
            }
            Part::Date(items) => {
                for item in items {
                    reader.date_item(*item)?;
                }
            }
            Part::Check(check) => {
                let expected = check.of(&text[..reader.at]);
                if reader.take(check.width()) != expected {
                    return Err(wrong(&format!(
                        "its check ({}) does not fit: a character is wrong",
                        check.as_str()
                    )));
                }
            }
        }
    }
    if let DateParts { year: Some(year), month: Some(month), day: Some(day), .. } = reader.date
        && !is_date(year, month, day)
    {
        return Err(wrong(&format!("{year:04}-{month:02}-{day:02} is no date")));
    }
    Ok(Parsed { number, date: reader.date })
}

/// Does not repeat the text, which may be long.
fn wrong(what: &str) -> Error {
    Error::invalid("id", format!("id does not follow the format: {what}"))
}

impl Part {
    /// Its width in characters; 0 for the number.
    fn fixed_width(&self, prefix: &str) -> usize {
        match self {
            Part::Literal(literal) => literal.chars().count(),
            Part::Prefix => prefix.chars().count(),
            Part::Number => 0,
            Part::Date(items) => items.iter().map(|item| item.width()).sum(),
            Part::Check(check) => check.width(),
        }
    }
}

impl Number {
    /// The value of `text`, which has `width` characters at least.
    fn value(self, text: &str) -> Result<u64, Error> {
        let length = text.chars().count();
        if length > self.width && text.starts_with('0') {
            return Err(wrong("its number has too many zeros before it"));
        }
        let mut value: i64 = 0;
        for c in text.chars() {
            let digits = &DIGITS[..self.radix as usize];
            let digit = digits.iter().position(|digit| char::from(*digit) == c);
            let Some(digit) = digit else {
                return Err(wrong(&format!("{c:?} is no digit of its number ({})", self.name())));
            };
            value = value
                .checked_mul(self.radix.into())
                .and_then(|value| value.checked_add(digit as i64))
                .ok_or_else(|| wrong(&format!("its number is above {}", i64::MAX)))?;
        }
        Ok(value as u64)
    }
}

struct Reader<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
    date: DateParts,
    /// Whether the year in `date` was written with four digits.
    year_is_full: bool,
}

impl<'a> Reader<'a> {
    /// The next `count` characters, or what is left.
    fn take(&mut self, count: usize) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
        self.at += end;
        &rest[..end]
    }

    fn exactly(&mut self, expected: &str, what: &str) -> Result<(), Error> {
        if self.take(expected.chars().count()) == expected {
            return Ok(());
        }
        Err(wrong(&format!("{what}, {expected:?}, is not where it belongs")))
    }

    fn date_item(&mut self, item: DateItem) -> Result<(), Error> {
        let digits = self.take(item.width());
        if let DateItem::Separator(separator) = item {
            return match digits.chars().eq([separator]) {
                true => Ok(()),
                false => Err(wrong(&format!("{separator:?} is missing in its date"))),
            };
        }
        let not_a_date = || wrong(&format!("{digits:?} is not possible in its date"));
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(not_a_date());
        }
        let value: i16 = digits.parse().map_err(|_| not_a_date())?;
        let date = &mut self.date;
        let (small, low, high) = match item {
            DateItem::Year4 | DateItem::Year2 => {
                let full = item == DateItem::Year4;
                let year = if full { value } else { 2000 + value };
                // Both may stand in one format; the short one then tells less.
                let same = match date.year {
                    Some(known) if full && self.year_is_full => known == year,
                    Some(known) => known % 100 == year % 100,
                    None => true,
                };
                if year < 1970 || !same {
                    return Err(not_a_date());
                }
                if full || !self.year_is_full {
                    date.year = Some(year);
                }
                self.year_is_full |= full;
                return Ok(());
            }
            DateItem::Month => (&mut date.month, 1, 12),
            DateItem::Day => (&mut date.day, 1, 31),
            DateItem::Hour => (&mut date.hour, 0, 23),
            DateItem::Minute => (&mut date.minute, 0, 59),
            DateItem::Second | DateItem::Separator(_) => (&mut date.second, 0, 59),
        };
        let value = value as i8;
        if !(low..=high).contains(&value) || small.is_some_and(|known| known != value) {
            return Err(not_a_date());
        }
        *small = Some(value);
        Ok(())
    }
}
