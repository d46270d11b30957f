//! From the text of a format to its parts.

use super::{CheckDigit, DateItem, Error, Format, Number, Part, TypeOptions};

/// See [`Format::parse`].
pub(super) fn parse(text: &str) -> Result<Format, Error> {
    let length = text.chars().count();
    if length > TypeOptions::MAX_FORMAT {
        return Err(Error::invalid(
            "format",
            format!("format has {length} characters; the limit is {}", TypeOptions::MAX_FORMAT),
        ));
    }
    let mut parser =
        Parser { parts: Vec::new(), literal: String::new(), number: None, check: None };
    let mut rest = text.chars().enumerate().map(|(at, c)| (at + 1, c)).peekable();
    while let Some((at, c)) = rest.next() {
        let doubled = rest.peek().is_some_and(|(_, next)| *next == c);
        match c {
            '{' | '}' if doubled => {
                rest.next();
                parser.literal.push(c);
            }
            '}' => return Err(wrong(at, "this brace closes nothing; write }} for a brace")),
            '{' => {
                let mut inside = String::new();
                loop {
                    match rest.next() {
                        Some((_, '}')) => break,
                        Some((_, c)) if c != '{' => inside.push(c),
                        _ => {
                            return Err(wrong(
                                at,
                                "this brace is not closed; write {{ for a brace",
                            ));
                        }
                    }
                }
                parser.part(at, &inside)?;
            }
            c if c.is_control() => return Err(wrong(at, "a control character is not allowed")),
            c => parser.literal.push(c),
        }
    }
    parser.finish(length)
}

/// `at` is the number of a character, from 1.
fn wrong(at: usize, what: &str) -> Error {
    Error::invalid("format", format!("format, character {at}: {what}"))
}

struct Parser {
    parts: Vec<Part>,
    /// What came since the last part.
    literal: String,
    number: Option<Number>,
    /// The check, and where it stands.
    check: Option<(CheckDigit, usize)>,
}

impl Parser {
    fn part(&mut self, at: usize, inside: &str) -> Result<(), Error> {
        let (name, argument) = match inside.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (inside, None),
        };
        let part = match (name, argument) {
            ("prefix", None) => Part::Prefix,
            ("seq", width) => self.number(at, 10, width)?,
            ("seq36", width) => self.number(at, 36, width)?,
            ("seq62", width) => self.number(at, 62, width)?,
            ("date", Some(pattern)) => Part::Date(date(at, pattern)?),
            ("check", Some(name)) => self.check(at, name)?,
            _ => {
                return Err(wrong(
                    at,
                    &format!(
                        "{inside:?} is not known; there are prefix, seq, seq:09, seq36, seq62, \
                         date:yyMMdd and check:luhn"
                    ),
                ));
            }
        };
        if let (Some((check, _)), false) = (self.check, matches!(part, Part::Check(_))) {
            return Err(wrong(
                at,
                &format!(
                    "no part may follow {{check:{}}}, which covers what is before it",
                    check.as_str()
                ),
            ));
        }
        self.end_literal();
        self.parts.push(part);
        Ok(())
    }

    fn end_literal(&mut self) {
        if !self.literal.is_empty() {
            self.parts.push(Part::Literal(std::mem::take(&mut self.literal)));
        }
    }

    fn number(&mut self, at: usize, radix: u32, width: Option<&str>) -> Result<Part, Error> {
        if self.number.is_some() {
            return Err(wrong(at, "there is a number already; a format holds exactly one"));
        }
        let width = match width {
            None => 1,
            Some(text) => {
                let digits = text.strip_prefix('0').filter(|digits| {
                    // Not 007, nor +7, which is a number for `parse`.
                    !digits.starts_with('0') && digits.chars().all(|c| c.is_ascii_digit())
                });
                let width = digits.and_then(|digits| digits.parse::<u64>().ok());
                match width {
                    Some(width) if (1..=Format::MAX_WIDTH as u64).contains(&width) => {
                        width as usize
                    }
                    _ => {
                        return Err(wrong(
                            at,
                            &format!(
                                "the width {text:?} must be 0 and a number from 1 to {}, as in \
                                 seq:09",
                                Format::MAX_WIDTH
                            ),
                        ));
                    }
                }
            }
        };
        self.number = Some(Number { radix, width });
        Ok(Part::Number)
    }

    fn check(&mut self, at: usize, name: &str) -> Result<Part, Error> {
        let Some(check) = CheckDigit::parse(name) else {
            let names = CheckDigit::ALL.map(CheckDigit::as_str).join(", ");
            return Err(wrong(at, &format!("the check {name:?} is not known; there are {names}")));
        };
        if self.check.is_some() {
            return Err(wrong(at, "there is a check already; a format holds at most one"));
        }
        let Some(number) = self.number else {
            return Err(wrong(at, "a check must stand behind the number, which it is for"));
        };
        if !check.sees(number.radix) {
            return Err(wrong(
                at,
                &format!(
                    "{name} does not tell the characters of {} apart; take {}",
                    number.name(),
                    if number.radix == 36 { "mod37-36 or mod37-2" } else { "seq or seq36" }
                ),
            ));
        }
        self.check = Some((check, at));
        Ok(Part::Check(check))
    }

    fn finish(mut self, length: usize) -> Result<Format, Error> {
        self.end_literal();
        match self.number {
            Some(number) => Ok(Format { parts: self.parts, number }),
            None => Err(wrong(
                length + 1,
                "the number is missing; a format holds exactly one, as {seq} or {seq:09}",
            )),
        }
    }
}

fn date(at: usize, pattern: &str) -> Result<Vec<DateItem>, Error> {
    let mut items = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let run = &rest[..rest.len() - rest.trim_start_matches(first).len()];
        rest = &rest[run.len()..];
        let item = match run {
            "yyyy" => DateItem::Year4,
            "yy" => DateItem::Year2,
            "MM" => DateItem::Month,
            "dd" => DateItem::Day,
            "HH" => DateItem::Hour,
            "mm" => DateItem::Minute,
            "ss" => DateItem::Second,
            _ if matches!(first, '-' | '.' | '_' | '/') => {
                items.extend(run.chars().map(DateItem::Separator));
                continue;
            }
            _ => {
                return Err(wrong(
                    at,
                    &format!(
                        "{run:?} is no part of a date; there are yyyy, yy, MM, dd, HH, mm, ss \
                         and - . _ /"
                    ),
                ));
            }
        };
        items.push(item);
    }
    if items.iter().all(|item| matches!(item, DateItem::Separator(_))) {
        return Err(wrong(at, "the date is empty; write it as date:yyMMdd"));
    }
    Ok(items)
}
