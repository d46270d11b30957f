//! Ids as texts: kept in 16 bytes each, and searched for repeats.
//!
//! A text of up to 15 bytes is kept as it is, behind its length. Of a longer
//! one 120 bits of a hash are kept: among a thousand million texts, two
//! different ones look the same with a chance of less than 10^-18.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept([u8; 16]);

impl Kept {
    /// Stands where a length would.
    const HASHED: u8 = u8::MAX;
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept([length, rest @ ..]) = self;
        match rest.get(..usize::from(*length)) {
            Some(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
            None => f.write_str("a text of more than 15 bytes"),
        }
    }
}

/// Makes records of texts; those of one keeper can be compared with each other.
#[derive(Clone, Default)]
pub struct Keeper {
    one: RandomState,
    other: RandomState,
}

impl Keeper {
    /// The record of `text`.
    pub fn keep(&self, text: &str) -> Kept {
        let mut kept = [0; 16];
        if let Some(place) = kept[1..].get_mut(..text.len()) {
            place.copy_from_slice(text.as_bytes());
            kept[0] = text.len() as u8;
            return Kept(kept);
        }
        kept[..8].copy_from_slice(&self.one.hash_one(text).to_le_bytes());
        kept[8..].copy_from_slice(&self.other.hash_one(text).to_le_bytes());
        kept[0] = Kept::HASHED;
        Kept(kept)
    }
}

/// The texts that one client got. Grows by blocks, as
/// [`CallLog`](super::CallLog) does, and for the same reason.
#[derive(Default)]
pub struct TextLog(Vec<Vec<Kept>>);

impl TextLog {
    const TEXTS_PER_BLOCK: usize = 1 << 16;

    /// Adds a text.
    pub fn push(&mut self, text: Kept) {
        match self.0.last_mut() {
            Some(block) if block.len() < Self::TEXTS_PER_BLOCK => block.push(text),
            _ => {
                let mut block = Vec::with_capacity(Self::TEXTS_PER_BLOCK);
                block.push(text);
                self.0.push(block);
            }
        }
    }

    /// All texts of all `logs`, in one vector.
    pub fn merge(logs: Vec<TextLog>) -> Vec<Kept> {
        let blocks = || logs.iter().flat_map(|log| &log.0);
        let mut texts = Vec::with_capacity(blocks().map(Vec::len).sum());
        for block in logs.into_iter().flat_map(|log| log.0) {
            texts.extend_from_slice(&block);
        }
        texts
    }
}

/// How many of `texts`, which are sorted for it, had been there already; and
/// the first few of them.
pub fn find_repeats(texts: &mut [Kept]) -> (u64, Vec<Kept>) {
    const EXAMPLES: usize = super::Report::EXAMPLES;
    texts.sort_unstable();
    let mut repeats = 0;
    let mut examples: Vec<Kept> = Vec::new();
    for pair in texts.windows(2).filter(|pair| pair[0] == pair[1]) {
        repeats += 1;
        if examples.len() < EXAMPLES && examples.last() != Some(&pair[0]) {
            examples.push(pair[0]);
        }
    }
    (repeats, examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(texts: &[&str]) -> (u64, Vec<String>) {
        let keeper = Keeper::default();
        // Two logs, as two clients have them.
        let mut logs = [TextLog::default(), TextLog::default()];
        for (i, text) in texts.iter().enumerate() {
            logs[i % 2].push(keeper.keep(text));
        }
        let mut all = TextLog::merge(logs.into());
        assert_eq!(all.len(), texts.len());
        let (count, examples) = find_repeats(&mut all);
        (count, examples.iter().map(Kept::to_string).collect())
    }

    #[test]
    fn repeats_are_counted_and_shown() {
        assert_eq!(repeats(&[]), (0, vec![]));
        let different = ["", "a", "b", "ab", "a\0", "A", "123456789012345", "1234567890123456"];
        assert_eq!(repeats(&different), (0, vec![]));
        let long = "PAY-2026-11-21-000000000000001";
        assert_eq!(repeats(&[long, "PAY-2026-11-21-000000000000002"]), (0, vec![]));
        assert_eq!(repeats(&["b", "a", "b", "b"]), (2, vec![r#""b""#.to_owned()]));
        assert_eq!(repeats(&[long, "x", long]).0, 1);
        assert_eq!(repeats(&[long, long]).1, ["a text of more than 15 bytes"]);
        assert_eq!(repeats(&["123456789012345"; 2]).1, [r#""123456789012345""#]);
    }

    #[test]
    fn evidence_is_bounded_and_counts_are_not() {
        let texts: Vec<String> = (0..1_000).map(|n| (n / 2).to_string()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (count, examples) = repeats(&texts);
        assert_eq!((count, examples.len()), (500, crate::cli::load::Report::EXAMPLES));
    }

    #[test]
    fn blocks_lose_nothing() {
        let keeper = Keeper::default();
        let mut log = TextLog::default();
        let count = TextLog::TEXTS_PER_BLOCK + 1;
        for n in 0..count {
            log.push(keeper.keep(&n.to_string()));
        }
        let mut all = TextLog::merge(vec![log]);
        assert_eq!(all.len(), count);
        assert_eq!(find_repeats(&mut all).0, 0);
    }
}
