//! Check characters: one wrong or two swapped characters are noticed.
//!
//! | name | source | adds | notices, in what it sees |
//! | --- | --- | --- | --- |
//! | `luhn` | ISO/IEC 7812-1, annex B | a digit | each wrong digit, each swap of neighbours but 0 and 9 |
//! | `mod11-2` | ISO/IEC 7064 | a digit or `X` | each wrong digit, each swap |
//! | `mod37-2` | ISO/IEC 7064 | a digit, letter or `*` | each wrong character, each swap |
//! | `mod97-10` | ISO/IEC 7064, letters as in ISO 13616 (IBAN) | two digits | each wrong digit, each swap of digits |
//! | `mod37-36` | ISO/IEC 7064, hybrid | a digit or letter | each wrong character, nearly each swap of neighbours |
//!
//! What an algorithm sees: `luhn` and `mod11-2` digits, the others digits and
//! the letters A to Z, small ones taken for capital ones. It passes over all
//! other characters, such as a hyphen or the letters of a prefix under `luhn`.
//! `mod97-10` writes a letter as two digits (A is 10), so of letters it notices
//! each that stands for another, but not each that stands for a digit.

use std::fmt::Write;

/// An algorithm for check characters; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDigit {
    /// `luhn`
    Luhn,
    /// `mod11-2`
    Mod11_2,
    /// `mod37-2`
    Mod37_2,
    /// `mod97-10`
    Mod97_10,
    /// `mod37-36`
    Mod37_36,
}

impl CheckDigit {
    /// Every algorithm.
    pub const ALL: [CheckDigit; 5] = [
        CheckDigit::Luhn,
        CheckDigit::Mod11_2,
        CheckDigit::Mod37_2,
        CheckDigit::Mod97_10,
        CheckDigit::Mod37_36,
    ];

    /// The name in formats.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckDigit::Luhn => "luhn",
            CheckDigit::Mod11_2 => "mod11-2",
            CheckDigit::Mod37_2 => "mod37-2",
            CheckDigit::Mod97_10 => "mod97-10",
            CheckDigit::Mod37_36 => "mod37-36",
        }
    }

    /// The algorithm of this name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.as_str() == name)
    }

    /// How many characters it adds.
    pub fn width(self) -> usize {
        match self {
            CheckDigit::Mod97_10 => 2,
            _ => 1,
        }
    }

    /// Whether it sees every digit of a number written in `radix`, and tells
    /// them apart; 62 has small letters besides capital ones, which none does.
    pub fn sees(self, radix: u32) -> bool {
        match self {
            CheckDigit::Luhn | CheckDigit::Mod11_2 => radix <= 10,
            _ => radix <= 36,
        }
    }

    /// The check characters of `text`.
    pub fn of(self, text: &str) -> String {
        let mut checked = String::with_capacity(self.width());
        self.append(text, &mut checked);
        checked
    }

    /// Appends the check characters of `text` to `to`.
    fn append(self, text: &str, to: &mut String) {
        let digits = text.chars().filter_map(|c| c.to_digit(10));
        let characters = text.chars().filter_map(|c| c.to_digit(36));
        match self {
            CheckDigit::Luhn => to.push(luhn(digits)),
            CheckDigit::Mod11_2 => to.push(pure(digits, 11)),
            CheckDigit::Mod37_2 => to.push(pure(characters, 37)),
            CheckDigit::Mod97_10 => {
                write!(to, "{:02}", mod97(characters)).expect("a String takes all");
            }
            CheckDigit::Mod37_36 => to.push(hybrid(characters)),
        }
    }
}

/// The characters with the values 0 to 36. 10 is `X` where it is the last one.
const ALPHABET: &[u8; 37] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ*";

/// Doubles every second digit, from the last one on, and adds all digits up;
/// the check digit makes the sum a multiple of ten.
fn luhn(digits: impl DoubleEndedIterator<Item = u32>) -> char {
    let sum: u32 = digits
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 => digit * 2 / 10 + digit * 2 % 10,
            _ => digit,
        })
        // Only the last digit counts, and texts may be long.
        .fold(0, |sum, digit| (sum + digit) % 10);
    char::from(ALPHABET[(10 - sum as usize) % 10])
}

/// ISO/IEC 7064 pure systems with radix 2: the weighted sum, the check
/// character included, leaves 1.
fn pure(values: impl Iterator<Item = u32>, modulus: u32) -> char {
    let sum = values.fold(0, |sum, value| (sum + value) * 2 % modulus);
    match (modulus + 1 - sum) % modulus {
        10 if modulus == 11 => 'X',
        check => char::from(ALPHABET[check as usize]),
    }
}

/// ISO/IEC 7064 mod 97-10, with letters as two digits.
fn mod97(values: impl Iterator<Item = u32>) -> u32 {
    let rest = values.fold(0, |rest, value| {
        let shift = if value < 10 { 10 } else { 100 };
        (rest * shift + value) % 97
    });
    98 - rest * 100 % 97
}

/// ISO/IEC 7064 mod 37,36.
fn hybrid(values: impl Iterator<Item = u32>) -> char {
    let product = values.fold(36, |product, value| {
        let sum = match (product + value) % 36 {
            0 => 36,
            sum => sum,
        };
        sum * 2 % 37
    });
    char::from(ALPHABET[(37 - product as usize) % 36])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let cases = [
            // The usual example, and a test number of a card.
            (CheckDigit::Luhn, "7992739871", "3"),
            (CheckDigit::Luhn, "411111111111111", "1"),
            (CheckDigit::Luhn, "", "0"),
            (CheckDigit::Luhn, "ORD-7992739871/", "3"),
            // The example of ISO/IEC 7064, and two ORCID iDs.
            (CheckDigit::Mod11_2, "0794", "0"),
            (CheckDigit::Mod11_2, "0000-0002-1825-009", "7"),
            (CheckDigit::Mod11_2, "0000-0002-1694-233", "X"),
            // Donation numbers of ISBT 128.
            (CheckDigit::Mod37_2, "G123489654321", "Y"),
            (CheckDigit::Mod37_2, "G1234 98654321", "H"),
            (CheckDigit::Mod37_2, "g123498654321", "H"),
            // The example of ISO/IEC 7064, and two IBANs, whose country follows.
            (CheckDigit::Mod97_10, "794", "44"),
            (CheckDigit::Mod97_10, "WEST12345698765432GB", "82"),
            (CheckDigit::Mod97_10, "370400440532013000DE", "89"),
            // A Global Release Identifier.
            (CheckDigit::Mod37_36, "A1-2425G-ABC1234002", "M"),
        ];
        for (check, text, expected) in cases {
            assert_eq!(check.of(text), expected, "{} of {text}", check.as_str());
        }
    }

    #[test]
    fn names() {
        for check in CheckDigit::ALL {
            assert_eq!(CheckDigit::parse(check.as_str()), Some(check));
            assert_eq!(check.of("12345").len(), check.width());
        }
        for name in ["", "Luhn", "mod11", "mod11-2 ", "verhoeff"] {
            assert_eq!(CheckDigit::parse(name), None, "{name}");
        }
        assert!(CheckDigit::Luhn.sees(10) && !CheckDigit::Luhn.sees(36));
        assert!(CheckDigit::Mod97_10.sees(36) && !CheckDigit::Mod97_10.sees(62));
    }

    /// The star is the one character that only a check can be.
    #[test]
    fn every_value_has_its_character() {
        let all: std::collections::BTreeSet<_> =
            (0..2_000).map(|n| CheckDigit::Mod37_2.of(&n.to_string())).collect();
        assert_eq!(all.len(), 37);
        assert!(all.contains("*"));
    }

    /// The characters that the standard promises something about.
    fn alphabet(check: CheckDigit) -> &'static [u8] {
        match check {
            CheckDigit::Mod37_2 | CheckDigit::Mod37_36 => &ALPHABET[..36],
            _ => &ALPHABET[..10],
        }
    }

    /// Whether the swap of these neighbours may go unnoticed.
    fn may_miss(check: CheckDigit, a: u8, b: u8) -> bool {
        match check {
            CheckDigit::Luhn => matches!((a, b), (b'0', b'9') | (b'9', b'0')),
            CheckDigit::Mod37_36 => true,
            _ => false,
        }
    }

    fn a_text() -> impl Strategy<Value = (CheckDigit, String)> {
        prop::sample::select(CheckDigit::ALL.to_vec()).prop_flat_map(|check| {
            prop::collection::vec(prop::sample::select(alphabet(check)), 2..25)
                .prop_map(move |bytes| (check, String::from_utf8(bytes).unwrap()))
        })
    }

    proptest! {
        #[test]
        fn one_wrong_character_is_noticed((check, text) in a_text(), place in any::<prop::sample::Index>()) {
            let place = place.index(text.len());
            for other in alphabet(check) {
                let mut wrong = text.clone().into_bytes();
                if wrong[place] == *other {
                    continue;
                }
                wrong[place] = *other;
                let wrong = String::from_utf8(wrong).unwrap();
                prop_assert_ne!(check.of(&wrong), check.of(&text), "{} {}", &wrong, &text);
            }
        }

        #[test]
        fn two_swapped_neighbours_are_noticed((check, text) in a_text()) {
            for place in 1..text.len() {
                let mut wrong = text.clone().into_bytes();
                let (a, b) = (wrong[place - 1], wrong[place]);
                if a == b || may_miss(check, a, b) {
                    continue;
                }
                wrong.swap(place - 1, place);
                let wrong = String::from_utf8(wrong).unwrap();
                prop_assert_ne!(check.of(&wrong), check.of(&text), "{} {}", &wrong, &text);
            }
        }

        #[test]
        fn any_text_has_a_check(text in ".{0,300}") {
            for check in CheckDigit::ALL {
                prop_assert_eq!(check.of(&text).len(), check.width());
            }
        }
    }

    /// "Nearly each" in the table: what share of swaps the hybrid system misses.
    #[test]
    fn the_hybrid_system_misses_few_swaps() {
        let (mut swaps, mut missed) = (0, 0);
        for a in &ALPHABET[..36] {
            for b in &ALPHABET[..36] {
                for c in &ALPHABET[..36] {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    swaps += i32::from(a != b);
                    let same = CheckDigit::Mod37_36.of(&text(&[*c, *a, *b]))
                        == CheckDigit::Mod37_36.of(&text(&[*c, *b, *a]));
                    missed += i32::from(a != b && same);
                }
            }
        }
        assert!(missed * 500 < swaps, "{missed} of {swaps}");
    }
}
