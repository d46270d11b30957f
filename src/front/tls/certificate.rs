//! What a certificate says of itself: whose it is, and until when.
//!
//! rustls judges certificates and keeps what is in them to itself, so this reads the few
//! fields that people and metrics want, of RFC 5280. Nothing is decided by it but a name:
//! what a peer shows was judged by rustls before, or is shown in a log as what was refused.

use jiff::civil::DateTime;
use sha2::{Digest, Sha256};

/// Most characters of a caller's name.
const MAX_NAME: usize = 128;
/// Most characters of a subject in a log.
const MAX_SUBJECT: usize = 256;

/// What is known of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The whole subject, such as `CN=orders,O=Example`: cut, and without control characters.
    pub subject: String,
    /// When it ends, in seconds of the Unix epoch.
    pub not_after: i64,
    /// When it begins, in the same.
    pub not_before: i64,
    common_name: Option<String>,
    /// The first DNS name or URI of the subject's alternative names.
    alternative: Option<String>,
}

impl Facts {
    /// Reads a certificate in DER; `None` where it is none.
    pub fn of(der: &[u8]) -> Option<Facts> {
        let mut outer = Der(der);
        let mut certificate = Der(outer.expect(SEQUENCE)?);
        let mut tbs = Der(certificate.expect(SEQUENCE)?);
        if tbs.next()?.0 == VERSION {
            // What was read was not the serial number yet.
            tbs.next()?;
        }
        // The algorithm and the issuer.
        tbs.expect(SEQUENCE)?;
        tbs.expect(SEQUENCE)?;
        let mut validity = Der(tbs.expect(SEQUENCE)?);
        let not_before = time(validity.next()?)?;
        let not_after = time(validity.next()?)?;
        let (subject, common_name) = subject(tbs.expect(SEQUENCE)?)?;
        let mut alternative = None;
        while let Some((tag, content)) = tbs.next() {
            if tag == EXTENSIONS {
                alternative = alternative_name(content);
            }
        }
        Some(Facts { subject, not_after, not_before, common_name, alternative })
    }

    /// The name of who shows it: the common name, else the first DNS name or URI; a
    /// longer one than 128 characters, or one with control characters, does not count.
    pub fn name(&self) -> Option<&str> {
        let usable = |name: &&str| {
            (1..=MAX_NAME).contains(&name.chars().count())
                && name.trim() == *name
                && !name.chars().any(char::is_control)
        };
        [&self.common_name, &self.alternative]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .find(usable)
    }
}

/// A name for a certificate that has none: the beginning of its SHA-256.
pub fn fingerprint(der: &[u8]) -> String {
    let hash = Sha256::digest(der);
    let hexadecimal: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hexadecimal}")
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const URI: u8 = 0x86;
const BMP_STRING: u8 = 0x1e;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// 2.5.29.17
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// The parts of a subject that are shown, by their object ids.
const PARTS: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
];

/// The values that are still to be read, one after another.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The tag and the content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // No certificate is longer than two to the 24.
            0x81..=0x83 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next value, which must have this tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

/// The subject as a text, and its first common name.
fn subject(name: &[u8]) -> Option<(String, Option<String>)> {
    let mut shown: Vec<String> = Vec::new();
    let mut common_name = None;
    let mut sets = Der(name);
    while !sets.0.is_empty() {
        let mut set = Der(sets.expect(SET)?);
        while !set.0.is_empty() {
            let mut pair = Der(set.expect(SEQUENCE)?);
            let id = pair.expect(OBJECT_ID)?;
            let value = text(pair.next()?);
            let Some((_, label)) = PARTS.iter().find(|(known, _)| *known == id) else { continue };
            shown.push(format!("{label}={}", harmless(&value)));
            if *label == "CN" && common_name.is_none() {
                common_name = Some(value);
            }
        }
    }
    let shown = shown.join(",").chars().take(MAX_SUBJECT).collect();
    Some((shown, common_name))
}

fn text((tag, content): (u8, &[u8])) -> String {
    match tag {
        BMP_STRING => {
            let units: Vec<u16> = content
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        _ => String::from_utf8_lossy(content).into_owned(),
    }
}

/// For a log: a value cannot look like further parts of a subject.
fn harmless(value: &str) -> String {
    let mut shown = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            ',' | '=' | '+' | '\\' | '"' => shown.extend(['\\', c]),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

/// Seconds of the Unix epoch of `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn time((tag, content): (u8, &[u8])) -> Option<i64> {
    let digits = content.strip_suffix(b"Z").filter(|d| d.iter().all(u8::is_ascii_digit))?;
    let number = |at: std::ops::Range<usize>| -> Option<i16> {
        std::str::from_utf8(digits.get(at)?).ok()?.parse().ok()
    };
    let (year, rest) = match (tag, digits.len()) {
        // RFC 5280, 4.1.2.5.1.
        (UTC_TIME, 12) => match number(0..2)? {
            year @ 50.. => (1900 + year, 2),
            year => (2000 + year, 2),
        },
        (GENERALIZED_TIME, 14) => (number(0..4)?, 4),
        _ => return None,
    };
    let part = |n: usize| number(rest + 2 * n..rest + 2 * n + 2)?.try_into().ok();
    let at = DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
    // Not by a time zone, whose range ends before the 99991231235959Z of certificates that
    // are to last for ever.
    Some(at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs())
}

/// The first DNS name or URI in the extensions.
fn alternative_name(extensions: &[u8]) -> Option<String> {
    let mut all = Der(Der(extensions).expect(SEQUENCE)?);
    while let Some((SEQUENCE, extension)) = all.next() {
        let mut extension = Der(extension);
        if extension.expect(OBJECT_ID)? != ALTERNATIVE_NAMES {
            continue;
        }
        let (mut tag, mut content) = extension.next()?;
        if tag != OCTETS {
            // Whether it is critical.
            (tag, content) = extension.next()?;
        }
        let mut names = Der(Der((tag == OCTETS).then_some(content)?).expect(SEQUENCE)?);
        while let Some((tag, name)) = names.next() {
            if matches!(tag, DNS_NAME | URI) {
                return Some(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut all = vec![tag];
        match u8::try_from(content.len()) {
            Ok(short @ 0..=0x7f) => all.push(short),
            Ok(long) => all.extend([0x81, long]),
            Err(_) => all.extend([&[0x82][..], &(content.len() as u16).to_be_bytes()].concat()),
        }
        [all, content].concat()
    }

    fn part(id: u8, tag: u8, value: &[u8]) -> Vec<u8> {
        let pair = der(SEQUENCE, &[&der(OBJECT_ID, &[&[0x55, 4, id]]), &der(tag, &[value])]);
        der(SET, &[&pair])
    }

    fn certificate(subject: &[Vec<u8>], names: &[(u8, &str)], not_after: (u8, &str)) -> Vec<u8> {
        let empty = der(SEQUENCE, &[]);
        let serial = der(2, &[&[1]]);
        let begin = der(UTC_TIME, &[b"260101000000Z"]);
        let end = der(not_after.0, &[not_after.1.as_bytes()]);
        let subject: Vec<&[u8]> = subject.iter().map(Vec::as_slice).collect();
        let names: Vec<u8> =
            names.iter().flat_map(|(tag, name)| der(*tag, &[name.as_bytes()])).collect();
        let extension = der(
            SEQUENCE,
            &[
                &der(OBJECT_ID, &[ALTERNATIVE_NAMES]),
                &der(1, &[&[0xff]]),
                &der(OCTETS, &[&der(SEQUENCE, &[&names])]),
            ],
        );
        let tbs = der(
            SEQUENCE,
            &[
                &der(VERSION, &[&der(2, &[&[2]])]),
                &serial,
                &empty,
                &empty,
                &der(SEQUENCE, &[&begin, &end]),
                &der(SEQUENCE, &subject),
                &empty,
                &der(EXTENSIONS, &[&der(SEQUENCE, &[&extension])]),
            ],
        );
        der(SEQUENCE, &[&tbs, &empty])
    }

    #[test]
    fn names_by_cases() {
        let end = (UTC_TIME, "271231235959Z");
        let cn = |name: &str| part(3, 0x0c, name.as_bytes());
        let long = "x".repeat(129);
        for (subject, names, shown, name) in [
            (
                vec![part(10, 0x13, b"Shop"), cn("orders")],
                &[][..],
                "O=Shop,CN=orders",
                Some("orders"),
            ),
            (vec![cn("a"), cn("b")], &[], "CN=a,CN=b", Some("a")),
            (vec![part(3, BMP_STRING, b"\0Z\0o\0\xeb")], &[], "CN=Zoë", Some("Zoë")),
            (
                vec![],
                &[(0x81, "a@b"), (URI, "spiffe://x/y"), (DNS_NAME, "h")],
                "",
                Some("spiffe://x/y"),
            ),
            (vec![cn("")], &[(DNS_NAME, "host.example")], "CN=", Some("host.example")),
            (vec![cn("a\nb")], &[(DNS_NAME, "h")], "CN=a\u{fffd}b", Some("h")),
            (vec![cn("x,O=Bank")], &[], "CN=x\\,O\\=Bank", Some("x,O=Bank")),
            (vec![cn(&long)], &[], &format!("CN={long}"), None),
            (vec![], &[], "", None),
        ] {
            let facts = Facts::of(&certificate(&subject, names, end)).unwrap();
            assert_eq!((facts.subject.as_str(), facts.name()), (shown, name));
            assert_eq!((facts.not_before, facts.not_after), (1_767_225_600, 1_830_297_599));
        }
    }

    #[test]
    fn times_by_cases() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "20500101000000Z", None),
            (UTC_TIME, "261301000000Z", None),
            (UTC_TIME, "2601010000Z", None),
            (UTC_TIME, "260101000000+0100", None),
            (UTC_TIME, "26010100000\u{661}Z", None),
        ] {
            assert_eq!(time((tag, text.as_bytes())), expected, "{text}");
        }
    }

    /// Cut or changed anywhere, it is read or not, and nothing else happens.
    #[test]
    fn broken_ones_are_refused() {
        let whole =
            certificate(&[part(3, 0x0c, b"x")], &[(DNS_NAME, "h")], (UTC_TIME, "271231235959Z"));
        assert!(Facts::of(&whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(Facts::of(&whole[..end]), None);
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0x80, 0x83, 0x84, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = Facts::of(&changed);
            }
        }
    }

    #[test]
    fn a_fingerprint_is_that_of_sha_256() {
        assert_eq!(fingerprint(b"abc"), "sha256:ba7816bf8f01cfea414140de5dae2223");
    }
}
