//! How results look: tables for people, JSON for programs.

use std::io::{self, Write};

use comfy_table::{Cell, Table, presets};
use serde::Serialize;

/// Prints `value` as one JSON document.
pub fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    writeln!(out, "{text}")
}

/// Prints rows under a header; nothing but the header where there are none.
pub fn table(out: &mut dyn Write, header: &[&str], rows: Vec<Vec<String>>) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().map(|name| Cell::new(name.to_uppercase())));
    for row in rows {
        table.add_row(row.into_iter().map(|text| Cell::new(one_line(&text))));
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// Prints names and values, one pair a line.
pub fn pairs(out: &mut dyn Write, pairs: &[(&str, String)]) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in pairs {
        let line = format!("{name:width$}  {}", one_line(value));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// `text` without what would break a table or steer a terminal: names and
/// descriptions come from other people.
fn one_line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).collect()
}

/// Milliseconds of the Unix epoch as UTC text.
pub fn time(at_ms: i64) -> String {
    let (seconds, millis) = (at_ms.div_euclid(1_000), at_ms.rem_euclid(1_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days to a date of the Gregorian calendar, with years that begin in
    // March so that the leap day comes last (Howard Hinnant's `civil_from_days`).
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{millis:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_by_cases() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00.000Z"),
            (-1, "1969-12-31 23:59:59.999Z"),
            (951_782_400_000, "2000-02-29 00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14 22:13:20.123Z"),
            (4_107_542_399_999, "2100-02-28 23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000Z"),
        ] {
            assert_eq!(time(ms), expected);
        }
    }

    #[test]
    fn a_table_has_a_line_per_row_whatever_the_text_is() {
        let mut out = Vec::new();
        let rows = vec![vec!["a\nb\u{1b}[31m".to_owned(), "2".to_owned()]];
        table(&mut out, &["name", "n"], rows).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with(" NAME"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
