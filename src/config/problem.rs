//! What is wrong with a configuration, told so that it can be put right.

use std::fmt;
use std::path::PathBuf;

use super::setting::{Kind, Setting};
use crate::domain::instance::redact_url;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A flag, without its dashes.
    Flag(&'static str),
    /// A variable.
    Variable(String),
    /// A key of the file.
    File(PathBuf, String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(flag) => write!(f, "flag --{flag}"),
            Source::Variable(name) => write!(f, "variable {name}"),
            Source::File(path, key) => write!(f, "file {}, key {key}", path.display()),
        }
    }
}

/// One thing that is wrong: where, what was given, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl Problem {
    /// `value` of `setting` from `source` is not what it must be.
    pub(super) fn bad_value(setting: &Setting, source: &Source, value: &str) -> Self {
        Problem(format!(
            "{source}: {} must be {}",
            shown(setting, value),
            setting.limit()
        ))
    }

    /// `value` of `setting` from `source` fails for a reason of its own.
    pub(super) fn because(
        setting: &Setting,
        source: &Source,
        value: &str,
        reason: impl fmt::Display,
    ) -> Self {
        Problem(format!("{source}: {}: {reason}", shown(setting, value)))
    }

    /// Anything else; the text must name the source and hold no secret.
    pub(super) fn other(text: impl Into<String>) -> Self {
        Problem(text.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value as it may be shown: quoted, cut, without secrets.
fn shown(setting: &Setting, value: &str) -> String {
    const MOST: usize = 200;
    let text = match setting.kind {
        Kind::Secret { .. } => return "the secret (not shown)".to_owned(),
        Kind::Url { .. } => redact_url(value),
        _ => value.to_owned(),
    };
    if text.chars().count() > MOST {
        format!("{:?}…", text.chars().take(MOST).collect::<String>())
    } else {
        format!("{text:?}")
    }
}

/// Every problem of a configuration; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<Problem>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(f, "{count} {noun} in the configuration:")?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// `; did you mean …?` for the candidate nearest to `word`, or nothing where
/// none is near.
pub(super) fn suggestion<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        // A third of the letters may be wrong: enough for a slip, too little
        // to propose something unrelated.
        .filter(|(distance, candidate)| distance * 3 <= candidate.len().max(3))
        .min()
        .map(|(_, candidate)| format!("; did you mean {candidate}?"))
        .unwrap_or_default()
}

/// Levenshtein's distance: how many letters must be put in, left out or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_cases() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("thrift.adr", "thrift.addr", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["thrift.addr", "http.addr"];
        assert_eq!(
            suggestion("thrift.adr", known.into_iter()),
            "; did you mean thrift.addr?"
        );
        assert_eq!(suggestion("colour", known.into_iter()), "");
    }
}
