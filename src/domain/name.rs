//! Names of id types.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::Error;

/// A legal name of an id type: `[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}`.
///
/// Only ASCII, so that a name is the same in MySQL, Redis, a URL and a metric
/// label; no braces, because the Redis key wraps the name in a hash tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeName(Arc<str>);

impl TypeName {
    /// Longest legal name, in characters.
    pub const MAX_LEN: usize = 128;

    /// The rule as a regular expression, for descriptions of interfaces.
    pub const PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$";

    /// Checks `text` against the rule. The error names the field `name`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if Self::is_legal(text) {
            Ok(TypeName(text.into()))
        } else {
            let shown: String = text.chars().take(Self::MAX_LEN).collect();
            Err(Error::invalid(
                "name",
                format!(
                    "name {shown:?} is not legal: it must be 1 to {} letters, digits or _ . : - \
                     and begin with a letter or digit",
                    Self::MAX_LEN
                ),
            ))
        }
    }

    /// Whether `text` follows the rule.
    pub fn is_legal(text: &str) -> bool {
        let bytes = text.as_bytes();
        matches!(bytes.first(), Some(b) if b.is_ascii_alphanumeric())
            && bytes.len() <= Self::MAX_LEN
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"_.:-".contains(b))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TypeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_by_cases() {
        let longest = "a".repeat(128);
        let too_long = "a".repeat(129);
        for (text, legal) in [
            ("order", true),
            ("0", true),
            ("Shop.order:2026-11_x", true),
            (longest.as_str(), true),
            ("", false),
            (too_long.as_str(), false),
            ("_order", false),
            (".order", false),
            ("order ", false),
            ("order\n", false),
            ("or{der", false),
            ("órder", false),
            ("\u{212a}elvin", false),
            ("订单", false),
            ("a/b", false),
        ] {
            assert_eq!(TypeName::parse(text).is_ok(), legal, "{text:?}");
        }
    }
}
