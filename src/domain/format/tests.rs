use proptest::prelude::*;

use super::*;

const AT: Moment = Moment { year: 2026, month: 11, day: 21, hour: 8, minute: 5, second: 9 };

#[test]
fn texts_by_cases() {
    let cases = [
        ("{seq}", 42, "42"),
        ("{seq}", 0, "0"),
        ("{seq}", i64::MAX, "9223372036854775807"),
        ("{seq:01}", 42, "42"),
        ("{seq:09}", 42, "000000042"),
        ("{seq:020}", 42, "00000000000000000042"),
        ("{prefix}{seq:03}", 7, "ORD007"),
        ("{prefix}{prefix}-{seq}", 7, "ORDORD-7"),
        ("{prefix}{date:yyMMdd}{seq:09}", 42, "ORD261121000000042"),
        ("{date:yyyy/MM/dd-HH.mm_ss}-{seq}", 1, "2026/11/21-08.05_09-1"),
        ("{date:--yy}{date:MM}{seq}", 1, "--26111"),
        ("{seq36:07}", 1_234_567, "000QGLJ"),
        ("{seq36}", 35, "Z"),
        ("{seq62:011}", i64::MAX, "AzL8n0Y58m7"),
        ("{seq62}", 61, "z"),
        ("{seq62:02}", 36, "0a"),
        ("{{{seq}}}", 5, "{5}"),
        ("a{{b}}c{seq}", 5, "a{b}c5"),
        ("№{seq}号", 5, "№5号"),
        ("{seq}{check:luhn}", 7_992_739_871, "79927398713"),
        ("{prefix}-{seq:04}-{check:mod11-2}.", 794, "ORD-0794-0."),
        // The examples of docs/id-types.md.
        ("4000{seq:08}{check:luhn}", 1, "4000000000014"),
        ("4000{seq:08}{check:luhn}", 2, "4000000000022"),
        ("{seq36:08}-{check:mod37-36}", 1, "00000001-W"),
        ("{seq36:08}-{check:mod37-36}", 2, "00000002-U"),
        ("{prefix}{seq36:04}{check:mod97-10}/x", 46_655, "ORD0ZZZ27/x"),
    ];
    for (format, number, text) in cases {
        let parsed = Format::parse(format).unwrap();
        assert_eq!(parsed.write("ORD", number, AT), text, "{format}");
        assert_eq!(parsed.read("ORD", text).unwrap().number, number as u64, "{format}");
    }
}

#[test]
fn errors_of_a_format_tell_the_place() {
    let long = format!("{}{{seq}}", "x".repeat(251));
    let cases = [
        ("", "character 1: the number is missing"),
        ("abc", "character 4: the number is missing"),
        ("{prefix}{date:yy}", "the number is missing"),
        ("{seq}{seq}", "character 6: there is a number already"),
        ("{seq}-{seq36}", "character 7: there is a number already"),
        ("№号{seq", "character 3: this brace is not closed"),
        ("{seq}{", "character 6: this brace is not closed"),
        ("{se{q}}", "character 1: this brace is not closed"),
        ("{seq}}", "character 6: this brace closes nothing"),
        ("}{seq}", "character 1: this brace closes nothing"),
        ("{{seq}", "character 6: this brace closes nothing"),
        ("a{sequence}", "character 2: \"sequence\" is not known"),
        ("{}", "character 1: \"\" is not known"),
        ("{Seq}", "\"Seq\" is not known"),
        ("{seq }", "\"seq \" is not known"),
        ("{seq\u{7}}", "\"seq\\u{7}\" is not known"),
        ("{seq10}", "\"seq10\" is not known"),
        ("{prefix:3}{seq}", "\"prefix:3\" is not known"),
        ("{date}{seq}", "\"date\" is not known"),
        ("{check}{seq}", "\"check\" is not known"),
        ("{seq:}", "the width \"\""),
        ("{seq:0}", "the width \"0\""),
        ("{seq:00}", "the width \"00\""),
        ("{seq:9}", "the width \"9\""),
        ("{seq:009}", "the width \"009\""),
        ("{seq:0+9}", "the width \"0+9\""),
        ("{seq:0x}", "the width \"0x\""),
        ("x{seq:021}", "character 2: the width \"021\" must be 0 and a number from 1 to 20"),
        ("{seq:099999999999999999999}", "the width \"099999999999999999999\""),
        ("{date:}{seq}", "character 1: the date is empty"),
        ("{date:-}{seq}", "the date is empty"),
        ("{seq}{date:yyyMM}", "character 6: \"yyy\" is no part of a date"),
        ("{date:YYYY}{seq}", "\"YYYY\" is no part of a date"),
        ("{date:MMM}{seq}", "\"MMM\" is no part of a date"),
        ("{date:yy MM}{seq}", "\" \" is no part of a date"),
        ("{date:SSS}{seq}", "\"SSS\" is no part of a date"),
        ("{check:luhn}{seq}", "character 1: a check must stand behind the number"),
        ("{seq}{check:luhn}{prefix}", "character 18: no part may follow {check:luhn}"),
        ("{seq}{check:luhn}{date:yy}", "no part may follow {check:luhn}"),
        ("{seq}{check:luhn}{check:luhn}", "character 18: there is a check already"),
        ("{seq}{check:crc32}", "the check \"crc32\" is not known; there are luhn, mod11-2"),
        ("{seq36}{check:luhn}", "character 8: luhn does not tell the characters of seq36 apart"),
        ("{seq36}{check:mod11-2}", "mod11-2 does not tell the characters of seq36 apart"),
        ("{seq62}{check:mod37-36}", "mod37-36 does not tell the characters of seq62 apart"),
        ("{seq62}{check:mod97-10}", "mod97-10 does not tell the characters of seq62 apart"),
        ("a\n{seq}", "character 2: a control character"),
        ("{seq}\u{85}", "character 6: a control character"),
        (&long, "format has 256 characters; the limit is 255"),
    ];
    for (format, says) in cases {
        let error = Format::parse(format).unwrap_err();
        assert_eq!(error.field, Some("format"), "{format}: {error}");
        assert!(error.message.starts_with("format"), "{format}: {error}");
        assert!(error.message.contains(says), "{format}: {error}");
    }
    Format::parse(&long[1..]).unwrap();
}

#[test]
fn a_format_must_fit_its_type() {
    use Period::{Daily, Monthly, Yearly};
    let cases = [
        ("{seq:09}", None, 999_999_999, None),
        (
            "{seq:09}",
            None,
            4_000_000_000_000,
            Some(
                "format gives the number 9 digits, but max_id 4000000000000 needs 13: widen \
                 {seq:09} or lower max_id",
            ),
        ),
        ("{seq:09}", None, 1_000_000_000, Some("needs 10")),
        ("{seq}", None, i64::MAX, None),
        ("{seq:019}", None, i64::MAX, None),
        ("{seq:018}", None, i64::MAX, Some("needs 19")),
        ("{seq36:013}", None, i64::MAX, None),
        ("{seq36:012}", None, i64::MAX, Some("widen {seq36:012}")),
        ("{seq62:011}", None, i64::MAX, None),
        ("{seq62:010}", None, i64::MAX, Some("needs 11")),
        ("{date:HHmmss}{seq}", None, 9, None),
        ("{date:yyMMdd}{seq}", Some(Daily), 9, None),
        ("{date:yyyy}-{date:MM}-{seq}-{date:dd}", Some(Daily), 9, None),
        ("{date:yyMM}{seq}", Some(Daily), 9, Some("year, month and day")),
        ("{date:MMdd}{seq}", Some(Daily), 9, Some("a daily calendar series")),
        ("{date:yydd}{seq}", Some(Daily), 9, Some("year, month and day")),
        ("{seq}", Some(Daily), 9, Some("year, month and day")),
        ("{date:yyMM}{seq}", Some(Monthly), 9, None),
        ("{date:yyMMdd}{seq}", Some(Monthly), 9, None),
        ("{date:yy}{seq}", Some(Monthly), 9, Some("year and month")),
        ("{date:MM}{seq}", Some(Monthly), 9, Some("year and month")),
        ("{date:yyyy}{seq}", Some(Yearly), 9, None),
        ("{date:MM}{seq}", Some(Yearly), 9, Some("the year")),
        ("{date:yyMMddHH}{seq}", Some(Daily), 9, Some("HH, mm or ss")),
        ("{date:yyMMdd}{date:mm}{seq}", Some(Daily), 9, Some("HH, mm or ss")),
        ("{date:yyMMddss}{seq}", Some(Yearly), 9, Some("HH, mm or ss")),
    ];
    for (format, calendar, highest, says) in cases {
        match (Format::parse(format).unwrap().check(calendar, highest), says) {
            (Ok(()), None) => {}
            (Err(error), Some(says)) => {
                assert_eq!(error.field, Some("format"), "{format}: {error}");
                assert!(error.message.contains(says), "{format}: {error}");
            }
            (result, _) => panic!("{format} {calendar:?} {highest}: {result:?}"),
        }
    }
}

#[test]
fn the_highest_number_of_a_width() {
    let cases = [
        ("{seq}", None),
        ("{seq:01}", None),
        ("{seq:02}", Some(99)),
        ("{seq:09}", Some(999_999_999)),
        ("{seq:018}", Some(999_999_999_999_999_999)),
        ("{seq:019}", Some(i64::MAX)),
        ("{seq:020}", Some(i64::MAX)),
        ("{seq36:04}", Some(36 * 36 * 36 * 36 - 1)),
        ("{seq36:020}", Some(i64::MAX)),
        ("{seq62:010}", Some(839_299_365_868_340_223)),
        ("{seq62:011}", Some(i64::MAX)),
    ];
    for (format, highest) in cases {
        let parsed = Format::parse(format).unwrap();
        assert_eq!(parsed.highest_in_width(), highest, "{format}");
        if let Some(highest) = highest {
            parsed.check(None, highest).unwrap();
            if highest < i64::MAX {
                parsed.check(None, highest + 1).unwrap_err();
            }
        }
    }
}

#[test]
fn texts_that_were_never_written() {
    let format = "{prefix}{date:yyMMdd}-{seq:04}{check:luhn}/x";
    let good = Format::parse(format).unwrap().write("A", 42, AT);
    assert_eq!(good, "A261121-00420/x");
    let daily = "{prefix}{date:yyyyMMddHHmmss}{seq}";
    let cases = [
        (format, "", "it has 0 characters, but the format writes 15 at least"),
        (format, "A261121-0424/x", "it has 14 characters"),
        (format, "B261121-00420/x", "the prefix, \"A\", is not where"),
        (format, "A261121_00420/x", "the text of the format, \"-\""),
        (format, "A261121-00420/y", "the text of the format, \"/x\""),
        (format, "A261121-00421/x", "its check (luhn) does not fit"),
        (format, "A261121-00430/x", "its check (luhn) does not fit"),
        (format, "A261121-000420/x", "too many zeros"),
        (format, "A261121-0a420/x", "'a' is no digit of its number (seq)"),
        (format, "A261121-0٣420/x", "'٣' is no digit"),
        (format, "A261321-00424/x", "\"13\" is not possible in its date"),
        (format, "A260021-00424/x", "\"00\" is not possible"),
        (format, "A261132-00424/x", "\"32\" is not possible"),
        (format, "A26-121-00424/x", "\"-1\" is not possible"),
        (format, "A260230-00420/x", "2026-02-30 is no date"),
        (daily, "A202611212400001", "\"24\" is not possible"),
        (daily, "A202611210060001", "\"60\" is not possible"),
        (daily, "A202611210000601", "\"60\" is not possible"),
        (daily, "A196911210000001", "\"1969\" is not possible"),
        (daily, "A2026112100000001", "too many zeros"),
        ("{seq}", "9223372036854775808", "its number is above 9223372036854775807"),
        ("{seq}", "01", "too many zeros"),
        ("{seq}", "+1", "'+' is no digit"),
        ("{seq}", "-1", "'-' is no digit"),
        ("{seq36}", "aB", "'a' is no digit of its number (seq36)"),
        ("{seq62:011}", "AzL8n0Y58m8", "its number is above"),
        ("{date:yyyy}{date:yyyy}{seq}", "202620251", "\"2025\" is not possible"),
        ("{date:yyyy}{date:yyyy}{seq}", "202621261", "\"2126\" is not possible"),
        ("{date:yy}{date:yyyy}{seq}", "2620251", "\"2025\" is not possible"),
        ("{date:MM}{date:MM}{seq}", "01021", "\"02\" is not possible"),
        ("{date:yy-MM}{seq}", "26/011", "'-' is missing in its date"),
    ];
    for (format, text, says) in cases {
        let error = Format::parse(format).unwrap().read("A", text).unwrap_err();
        assert_eq!(error.field, Some("id"), "{text}: {error}");
        assert!(error.message.contains(says), "{text}: {error}");
    }
    let long = "9".repeat(100_000);
    let error = Format::parse("{seq}").unwrap().read("", &long).unwrap_err();
    assert!(error.message.len() < 200);
}

#[test]
fn dates_are_read() {
    let cases = [
        ("{date:yyyy-MM-dd}-{seq}", "2026-11-21-7", Some(20_778), Some(682), Some(56)),
        ("{date:yyMM}{seq}", "26117", None, Some(682), Some(56)),
        ("{date:MMyy}{date:yyyy}{seq}", "117919797", None, Some(118), Some(9)),
        ("{date:yyyy}{date:MMyy}{seq}", "197911797", None, Some(118), Some(9)),
        ("{date:MMdd}{seq}", "02307", None, None, None),
        ("{seq}", "7", None, None, None),
    ];
    for (format, text, day, month, year) in cases {
        let read = Format::parse(format).unwrap().read("", text).unwrap();
        assert_eq!(read.number, 7, "{format}");
        for (period, number) in
            [(Period::Daily, day), (Period::Monthly, month), (Period::Yearly, year)]
        {
            assert_eq!(read.date.period(period), number, "{format} {period:?}");
        }
    }
}

/// One part of a random format, but for the number and the check.
fn a_part() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 №_/-]{1,4}",
        Just("{{".to_owned()),
        Just("}}".to_owned()),
        Just("{prefix}".to_owned()),
        prop::collection::vec(
            prop::sample::select(vec![
                "yyyy-", "yyyy", "yy.", "yy", "MM", "dd", "HH", "mm", "ss", "_MM", "/dd",
            ]),
            1..4,
        )
        .prop_map(|items| format!("{{date:{}}}", separated(&items))),
    ]
}

/// Equal neighbours would be another item, as `yy` `yy`.
fn separated(items: &[&str]) -> String {
    items.join("-")
}

/// A random format that can be parsed.
fn a_format() -> impl Strategy<Value = String> {
    let number =
        ("(seq|seq36|seq62)", prop::option::of(1..=Format::MAX_WIDTH)).prop_map(|(name, width)| {
            match width {
                Some(width) => format!("{{{name}:0{width}}}"),
                None => format!("{{{name}}}"),
            }
        });
    let check = prop::option::of(prop::sample::select(CheckDigit::ALL.to_vec()));
    (prop::collection::vec(a_part(), 0..4), number, prop::collection::vec(a_part(), 0..4), check)
        .prop_map(|(before, number, after, check)| {
            let mut text = format!("{}{number}{}", before.concat(), after.concat());
            if let Some(check) = check {
                text.push_str(&format!("{{check:{}}}.", check.as_str()));
            }
            text
        })
        .prop_filter("a check that sees the number", |text| Format::parse(text).is_ok())
}

fn a_number() -> impl Strategy<Value = i64> {
    prop_oneof![0i64..100, 0i64..1 << 40, 0i64..=i64::MAX]
}

fn a_moment() -> impl Strategy<Value = Moment> {
    (0i64..2_932_896, 0i8..24, 0i8..60, 0i8..60).prop_map(|(day, hour, minute, second)| Moment {
        hour,
        minute,
        second,
        ..Period::Daily.first_day(day)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        format in a_format(), prefix in "[A-Z0-9é{}-]{0,5}", number in a_number(), at in a_moment(),
    ) {
        let parsed = Format::parse(&format).unwrap();
        let text = parsed.write(&prefix, number, at);
        let read = parsed.read(&prefix, &text).unwrap();
        prop_assert_eq!(read.number, number as u64, "{} {}", format, text);
        for (found, written) in [
            (read.date.month, at.month), (read.date.day, at.day), (read.date.hour, at.hour),
            (read.date.minute, at.minute), (read.date.second, at.second),
        ] {
            prop_assert!(found.is_none_or(|found| found == written), "{} {}", format, text);
        }
        prop_assert!(read.date.year.is_none_or(|year| year % 100 == at.year % 100));
    }

    #[test]
    fn different_numbers_make_different_texts(
        format in a_format(), prefix in "[A-Z0-9-]{0,3}", a in a_number(), b in a_number(),
        at in a_moment(), later in a_moment(),
    ) {
        prop_assume!(a != b);
        let format = Format::parse(&format).unwrap();
        // Whenever they are written.
        prop_assert_ne!(format.write(&prefix, a, at), format.write(&prefix, b, later));
    }

    #[test]
    fn texts_of_a_calendar_series_never_repeat(
        format in a_format(),
        date in prop::sample::select(vec!["{date:yyMMdd}", "{date:yyMM}", "{date:yy}", "{date:dd.MM.yyyy}"]),
        period in prop_oneof![Just(Period::Daily), Just(Period::Monthly), Just(Period::Yearly)],
        a in (0i64..30_000, a_number()), b in (0i64..30_000, a_number()),
    ) {
        let format = Format::parse(&format!("{date}{format}")).unwrap();
        prop_assume!(a != b && format.check(Some(period), 1).is_ok());
        // Years of two digits repeat after a hundred.
        let days = |n: i64| match period {
            Period::Daily => n,
            Period::Monthly => n / 31,
            Period::Yearly => n / 366,
        };
        let (a, b) = ((days(a.0), a.1), (days(b.0), b.1));
        prop_assume!(a != b);
        let write = |(number, seq)| format.write("P", seq, period.first_day(number));
        prop_assert_ne!(write(a), write(b));
        let read = format.read("P", &write(a)).unwrap();
        let found = format.parts.iter().any(|part| matches!(part, Part::Date(items)
            if items.contains(&DateItem::Year4)));
        if found {
            prop_assert_eq!(read.date.period(period), Some(a.0));
        }
        prop_assert_eq!(read.number, a.1 as u64);
    }

    #[test]
    fn padded_texts_sort_as_their_numbers(
        radix in prop::sample::select(vec!["seq:019", "seq36:013", "seq62:011"]),
        a in a_number(), b in a_number(),
    ) {
        let format = Format::parse(&format!("{{{radix}}}")).unwrap();
        let (text_a, text_b) = (format.write("", a, AT), format.write("", b, AT));
        prop_assert_eq!(text_a.cmp(&text_b), a.cmp(&b));
    }

    #[test]
    fn no_input_makes_it_panic(format in ".{0,40}", braces in "[{}a-z:09]{0,30}", prefix in ".{0,4}", text in ".{0,40}") {
        for format in [format, braces, "{prefix}{date:yyMMdd}{seq}{check:mod37-2}".to_owned()] {
            if let Ok(format) = Format::parse(&format) {
                let _ = format.read(&prefix, &text);
            }
        }
    }

    /// Only one text is read as one number and date: what still can be read with
    /// a character exchanged, or one more, is what other parts would have made.
    #[test]
    fn what_is_read_was_written(
        format in a_format(), number in a_number(), at in a_moment(),
        place in any::<prop::sample::Index>(), with in "[0-9A-Za-z-]{1,2}",
    ) {
        let format = Format::parse(&format).unwrap();
        let mut text: Vec<char> = format.write("", number, at).chars().collect();
        let place = place.index(text.len());
        text.splice(place..=place, with.chars());
        let text: String = text.into_iter().collect();
        if let Ok(read) = format.read("", &text) {
            let date = read.date;
            let at = Moment {
                year: date.year.unwrap_or(2026),
                month: date.month.unwrap_or(1),
                day: date.day.unwrap_or(1),
                hour: date.hour.unwrap_or(0),
                minute: date.minute.unwrap_or(0),
                second: date.second.unwrap_or(0),
            };
            prop_assert_eq!(format.write("", read.number as i64, at), text);
        }
    }
}
