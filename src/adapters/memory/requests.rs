//! What is remembered under request keys, within bounds.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::TypeName;
use crate::ports::{DispatchError, Remembered};

/// Most keys: what 160 new ones a second make in the ten minutes of their life.
const MOST_KEYS: usize = 100_000;
/// Most bytes of texts: a small share of the memory of a machine. A text has
/// a few dozen bytes as a rule, so that the keys run out first.
const MOST_BYTES: usize = 256 << 20;

type Key = (TypeName, String);

/// Texts by type and request key.
#[derive(Clone)]
pub(super) struct Requests {
    texts: HashMap<Key, Text>,
    /// The same keys, soonest to expire first.
    ends: BTreeSet<(Instant, Key)>,
    bytes: usize,
    most_keys: usize,
    most_bytes: usize,
}

#[derive(Clone)]
struct Text {
    text: String,
    end: Instant,
}

impl Default for Requests {
    fn default() -> Self {
        Self::with_limits(MOST_KEYS, MOST_BYTES)
    }
}

impl Requests {
    fn with_limits(most_keys: usize, most_bytes: usize) -> Self {
        Requests { texts: HashMap::new(), ends: BTreeSet::new(), bytes: 0, most_keys, most_bytes }
    }

    pub(super) fn remember(
        &mut self,
        name: &TypeName,
        key: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<Remembered, DispatchError> {
        let now = Instant::now();
        self.drop_expired(now);
        let key = (name.clone(), key.to_owned());
        if let Some(there) = self.texts.get(&key) {
            return Ok(Remembered::Earlier(there.text.clone()));
        }
        if self.texts.len() >= self.most_keys || self.bytes + text.len() > self.most_bytes {
            return Err(DispatchError::Unavailable(format!(
                "{} request keys with {} bytes are kept; there is room for {} and {} bytes: try \
                 again later",
                self.texts.len(),
                self.bytes,
                self.most_keys,
                self.most_bytes
            )));
        }
        let end = now + ttl;
        self.bytes += text.len();
        self.ends.insert((end, key.clone()));
        self.texts.insert(key, Text { text: text.to_owned(), end });
        Ok(Remembered::Kept)
    }

    pub(super) fn recall(&self, name: &TypeName, key: &str) -> Option<String> {
        let there = self.texts.get(&(name.clone(), key.to_owned()))?;
        (there.end > Instant::now()).then(|| there.text.clone())
    }

    fn drop_expired(&mut self, now: Instant) {
        while let Some((end, _)) = self.ends.first()
            && *end <= now
        {
            let (_, key) = self.ends.pop_first().expect("there is a first one");
            if let Some(gone) = self.texts.remove(&key) {
                self.bytes -= gone.text.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(600);

    fn name() -> TypeName {
        TypeName::parse("order").unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn full_until_the_first_expire() {
        let mut requests = Requests::with_limits(2, 1_000);
        assert_eq!(requests.remember(&name(), "a", "1", LIFE), Ok(Remembered::Kept));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(requests.remember(&name(), "b", "2", LIFE), Ok(Remembered::Kept));
        let full = requests.remember(&name(), "c", "3", LIFE);
        assert!(matches!(full, Err(DispatchError::Unavailable(_))), "{full:?}");
        let there = requests.remember(&name(), "a", "4", LIFE);
        assert_eq!(there, Ok(Remembered::Earlier("1".into())), "what is there needs no room");
        tokio::time::advance(LIFE - Duration::from_secs(1)).await;
        assert_eq!(requests.recall(&name(), "a"), None);
        assert_eq!(requests.recall(&name(), "b"), Some("2".into()));
        assert_eq!(requests.remember(&name(), "c", "3", LIFE), Ok(Remembered::Kept));
    }

    #[tokio::test(start_paused = true)]
    async fn texts_are_bounded_too() {
        let mut requests = Requests::with_limits(1_000, 10);
        assert_eq!(requests.remember(&name(), "a", "123456", LIFE), Ok(Remembered::Kept));
        let full = requests.remember(&name(), "b", "12345", LIFE);
        assert!(matches!(full, Err(DispatchError::Unavailable(_))), "{full:?}");
        assert_eq!(requests.remember(&name(), "b", "1234", LIFE), Ok(Remembered::Kept));
        tokio::time::advance(LIFE).await;
        assert_eq!(requests.remember(&name(), "c", "1234567890", LIFE), Ok(Remembered::Kept));
    }
}
