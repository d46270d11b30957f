//! Failed calls: what they are called, and how they are counted.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a failed call says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The node answered: not now. The connection is sound.
    Passing,
    /// The node answered: never so. The connection is sound.
    Refused,
    /// There is no usable connection any more.
    Lost,
}

/// A call without an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct CallError {
    /// In capitals what the node answered (`UNAVAILABLE`; `RES_553` for the
    /// original interface), in small letters what the client saw (`timeout`,
    /// `disconnected`, `connect`, `protocol`, `unknown_method`, `application`,
    /// `cut_at_end`).
    pub kind: String,
    /// The node's or the system's own words.
    pub message: String,
    /// What follows for the next call.
    pub class: ErrorClass,
}

impl CallError {
    /// The longest kind; a longer one from a strange server is cut.
    const LONGEST_KIND: usize = 64;
    /// The longest message that is kept, in characters.
    const LONGEST_MESSAGE: usize = 500;

    /// An error called `kind`. Both texts may come from the wire: control
    /// characters are replaced and long ones are cut.
    pub fn new(class: ErrorClass, kind: &str, message: &str) -> Self {
        CallError {
            kind: printable(kind, Self::LONGEST_KIND),
            message: printable(message, Self::LONGEST_MESSAGE),
            class,
        }
    }
}

fn printable(text: &str, longest: usize) -> String {
    text.chars().take(longest).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// How often each kind of error happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ErrorCounts(BTreeMap<String, u64>);

impl ErrorCounts {
    /// Kinds beyond this many are counted as `other`: a server that makes up
    /// codes must not fill the memory.
    const MOST_KINDS: usize = 64;

    /// Counts one more error of `kind`.
    pub fn add(&mut self, kind: &str) {
        self.add_many(kind, 1);
    }

    fn add_many(&mut self, kind: &str, count: u64) {
        if let Some(known) = self.0.get_mut(kind) {
            *known += count;
        } else {
            let full = self.0.len() >= Self::MOST_KINDS;
            let kind = if full { "other" } else { kind };
            *self.0.entry(kind.to_owned()).or_default() += count;
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &ErrorCounts) {
        for (kind, count) in &other.0 {
            self.add_many(kind, *count);
        }
    }

    /// How many errors there were in all.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// How many errors of `kind` there were.
    pub fn of(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// `12 (UNAVAILABLE 10, timeout 2)`, or `0`.
    pub fn summary(&self) -> String {
        if self.0.is_empty() {
            return "0".to_owned();
        }
        let kinds: Vec<String> = self.0.iter().map(|(k, n)| format!("{k} {n}")).collect();
        format!("{} ({})", self.total(), kinds.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_kind_and_bounds_the_kinds() {
        let mut counts = ErrorCounts::default();
        assert_eq!(counts.summary(), "0");
        counts.add("timeout");
        let mut more = ErrorCounts::default();
        more.add("timeout");
        more.add("UNAVAILABLE");
        counts.merge(&more);
        assert_eq!(counts.summary(), "3 (UNAVAILABLE 1, timeout 2)");
        for i in 0..1_000 {
            counts.add(&format!("MADE_UP_{i}"));
        }
        assert_eq!(counts.total(), 1_003);
        assert!(counts.0.len() <= ErrorCounts::MOST_KINDS + 1);
    }

    #[test]
    fn texts_from_the_wire_are_made_harmless() {
        let error = CallError::new(ErrorClass::Passing, "A\x1b[31m", &"x".repeat(10_000));
        assert_eq!(error.kind, "A\u{fffd}[31m");
        assert_eq!(error.message.len(), CallError::LONGEST_MESSAGE);
    }
}
