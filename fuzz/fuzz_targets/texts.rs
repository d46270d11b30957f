//! Texts that people and clients write: formats, ids in a format, names,
//! options, `addNewId`, keys, addresses of Redis.
//!
//! The lines of the input are a format, a prefix, a number and a text. What a
//! format writes it reads again, and what it reads it writes the same.

#![no_main]

use idgen::domain::calendar::Moment;
use idgen::domain::format::Format;
use idgen::domain::{InstanceSpec, OpaqueKey, TypeName, TypeOptions};
use idgen::front::thrift::add_new_id;
use libfuzzer_sys::fuzz_target;

const AT: Moment = Moment { year: 2026, month: 11, day: 21, hour: 8, minute: 5, second: 9 };

fuzz_target!(|text: &str| {
    let _ = TypeName::parse(text);
    let _ = OpaqueKey::from_hex(text);
    let _ = InstanceSpec { name: "x".to_owned(), url: text.to_owned() }.validate();
    if let Ok(options) = TypeOptions::from_json(text) {
        let again = TypeOptions::from_json(&options.to_json()).expect("what was written");
        assert_eq!(again, options);
    }
    if let Ok(spec) = add_new_id::parse(text) {
        assert!(TypeName::is_legal(spec.name.as_str()));
    }
    let mut lines = text.split('\n');
    let (Some(format), prefix) = (lines.next(), lines.next().unwrap_or_default()) else { return };
    let number: i64 = lines.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let Ok(format) = Format::parse(format) else { return };
    if number >= 0 && prefix.chars().count() <= 16 {
        let written = format.write(prefix, number, AT);
        let read = format.read(prefix, &written).expect("what was written");
        assert_eq!(read.number, number as u64, "{written:?}");
    }
    let Some(id) = lines.next() else { return };
    if let Ok(read) = format.read(prefix, id)
        && let Ok(number) = i64::try_from(read.number)
    {
        let date = read.date;
        let year = match date.year {
            Some(year) => year,
            None => AT.year,
        };
        let at = Moment {
            year,
            month: date.month.unwrap_or(AT.month),
            day: date.day.unwrap_or(AT.day),
            hour: date.hour.unwrap_or(AT.hour),
            minute: date.minute.unwrap_or(AT.minute),
            second: date.second.unwrap_or(AT.second),
        };
        assert_eq!(format.write(prefix, number, at), id);
    }
});
