//! Bounds how often somebody may fail to log in.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Most names and addresses that are remembered.
const MAX_KEYS: usize = 10_000;

/// How many failures are let pass, and how fast they are forgotten.
#[derive(Clone, Copy)]
struct Rule {
    /// Failures in a row.
    burst: u32,
    /// One more after so long.
    every: Duration,
}

/// A person mistypes a password a few times; 10 and then 2 a minute make a year of
/// guessing a million tries.
const OF_ACCOUNT: Rule = Rule { burst: 10, every: Duration::from_secs(30) };
/// Many people may share an address.
const OF_ADDRESS: Rule = Rule { burst: 30, every: Duration::from_secs(5) };

/// What failures are counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Account(String),
    /// Of IPv6 the upper half, because the lower is the client's to choose.
    Address(IpAddr),
}

impl Key {
    fn rule(&self) -> Rule {
        match self {
            Key::Account(_) => OF_ACCOUNT,
            Key::Address(_) => OF_ADDRESS,
        }
    }
}

/// Each failure moves the time at which all is forgotten one step further away; who
/// is further away than the burst has to wait.
#[derive(Default)]
pub(super) struct Limiter {
    forgotten_at: HashMap<Key, Instant>,
}

impl Limiter {
    /// Counts an attempt on `account` from `address` as a failure until
    /// [`forgive`](Self::forgive), so that those that run at once count as well.
    /// `Err` says how long to wait; then nothing is counted.
    pub(super) fn attempt(
        &mut self,
        account: &str,
        address: IpAddr,
        now: Instant,
    ) -> Result<(), Duration> {
        let keys = keys(account, address);
        let wait = keys.iter().map(|key| self.wait(key, now)).max().unwrap_or_default();
        if wait > Duration::ZERO {
            return Err(wait);
        }
        for key in keys {
            self.make_room(&key, now);
            let rule = key.rule();
            let at = self.forgotten_at.entry(key).or_insert(now);
            *at = (*at).max(now) + rule.every;
        }
        Ok(())
    }

    /// The attempt was none that failed.
    pub(super) fn forgive(&mut self, account: &str, address: IpAddr, now: Instant) {
        for key in keys(account, address) {
            let every = key.rule().every;
            if let Some(at) = self.forgotten_at.get_mut(&key) {
                *at = at.checked_sub(every).unwrap_or(now);
            }
        }
    }

    fn wait(&self, key: &Key, now: Instant) -> Duration {
        let rule = key.rule();
        let ahead = self
            .forgotten_at
            .get(key)
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        (ahead + rule.every).saturating_sub(rule.every * rule.burst)
    }

    /// Forgets what is over; where that is not enough, what is nearest to it. So names
    /// made up at random push out each other, and not the one under attack.
    fn make_room(&mut self, key: &Key, now: Instant) {
        if self.forgotten_at.len() < MAX_KEYS || self.forgotten_at.contains_key(key) {
            return;
        }
        self.forgotten_at.retain(|_, at| *at > now);
        if self.forgotten_at.len() < MAX_KEYS {
            return;
        }
        let ahead = |(key, at): &(&Key, &Instant)| {
            let every = key.rule().every.as_millis().max(1);
            at.saturating_duration_since(now).as_millis() * 1_000 / every
        };
        let nearest = self.forgotten_at.iter().min_by_key(ahead).map(|(key, _)| key.clone());
        if let Some(nearest) = nearest {
            self.forgotten_at.remove(&nearest);
        }
    }
}

fn keys(account: &str, address: IpAddr) -> [Key; 2] {
    let address = match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        v4 => v4,
    };
    [Key::Account(account.to_owned()), Key::Address(address)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn an_account_has_ten_tries_and_then_two_a_minute() {
        let mut limiter = Limiter::default();
        let now = at(0);
        for n in 0..10 {
            let from = address(&format!("192.0.2.{n}"));
            assert_eq!(limiter.attempt("ann", from, now), Ok(()), "{n}");
        }
        let elsewhere = address("192.0.2.99");
        assert_eq!(limiter.attempt("ann", elsewhere, now), Err(Duration::from_secs(30)));
        assert_eq!(limiter.attempt("bob", elsewhere, now), Ok(()), "others are free");
        let later = now + Duration::from_secs(30);
        assert_eq!(limiter.attempt("ann", elsewhere, later), Ok(()));
        assert!(limiter.attempt("ann", elsewhere, later).is_err());
    }

    #[test]
    fn an_address_has_thirty_tries_whatever_the_names() {
        let mut limiter = Limiter::default();
        let now = at(0);
        for n in 0..30 {
            // IPv6 clients have the lower half for themselves.
            let from = address(&format!("2001:db8::{n:x}"));
            assert_eq!(limiter.attempt(&format!("name-{n}"), from, now), Ok(()), "{n}");
        }
        let same = address("2001:db8::ffff");
        assert_eq!(limiter.attempt("ann", same, now), Err(Duration::from_secs(5)));
        assert_eq!(limiter.attempt("ann", address("2001:db8:0:1::1"), now), Ok(()));
        let mapped = address("::ffff:192.0.2.1");
        assert_eq!(keys("x", mapped)[1], keys("x", address("192.0.2.1"))[1]);
    }

    #[test]
    fn success_costs_nothing() {
        let mut limiter = Limiter::default();
        let (now, from) = (at(0), address("192.0.2.1"));
        for _ in 0..100 {
            limiter.attempt("ann", from, now).unwrap();
            limiter.forgive("ann", from, now);
        }
        for _ in 0..10 {
            limiter.attempt("ann", from, now).unwrap();
        }
        limiter.attempt("ann", from, now).unwrap_err();
    }

    #[test]
    fn memory_is_bounded_and_a_flood_of_names_does_not_free_the_victim() {
        let mut limiter = Limiter::default();
        let now = at(0);
        for n in 0..10 {
            limiter.attempt("victim", address(&format!("192.0.2.{n}")), now).unwrap();
        }
        for n in 0..12_000_u32 {
            let from = IpAddr::from((0x0a00_0000 + n).to_be_bytes());
            limiter.attempt(&format!("name-{n}"), from, now).unwrap();
        }
        assert!(limiter.forgotten_at.len() <= MAX_KEYS, "{}", limiter.forgotten_at.len());
        limiter.attempt("victim", address("192.0.2.77"), now).unwrap_err();
    }
}
