//! How much memory the buffers of all connections hold while they wait for
//! their peers: for the rest of a message, or for room for a reply.
//!
//! Each connection is bounded by itself, but thousands of them, each with a long
//! message that does not go on, are not. So what a connection holds beyond its
//! allowance counts, and one that needs more than there is must go. Usual
//! connections stay within the allowance, and never come here.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget of a server.
pub(super) struct Buffers {
    held: AtomicUsize,
    limit: usize,
}

impl Buffers {
    /// For `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Buffers { held: AtomicUsize::new(0), limit }
    }
}

/// What one connection has of it.
pub(super) struct Hold<'a> {
    buffers: &'a Buffers,
    counted: usize,
}

impl<'a> Hold<'a> {
    /// Of each connection, so many bytes do not count.
    pub(super) const ALLOWANCE: usize = 2 * 1024;

    /// Nothing yet.
    pub(super) fn of(buffers: &'a Buffers) -> Self {
        Hold { buffers, counted: 0 }
    }

    /// Counts `bytes` in all from now on; false, and as before, if there is not so much.
    #[inline]
    pub(super) fn set(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(Self::ALLOWANCE);
        wanted == self.counted || self.change(wanted)
    }

    #[cold]
    fn change(&mut self, wanted: usize) -> bool {
        let held = &self.buffers.held;
        if wanted <= self.counted {
            held.fetch_sub(self.counted - wanted, Ordering::Relaxed);
        } else {
            let more = wanted - self.counted;
            if held.fetch_add(more, Ordering::Relaxed) + more > self.buffers.limit {
                held.fetch_sub(more, Ordering::Relaxed);
                return false;
            }
        }
        self.counted = wanted;
        true
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.buffers.held.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_stay_below_the_limit() {
        let buffers = Buffers::new(10_000);
        let (mut one, mut two) = (Hold::of(&buffers), Hold::of(&buffers));
        assert!(one.set(Hold::ALLOWANCE) && one.counted == 0);
        assert!(one.set(Hold::ALLOWANCE + 6_000));
        assert!(!two.set(Hold::ALLOWANCE + 4_001) && two.counted == 0);
        assert!(two.set(Hold::ALLOWANCE + 4_000));
        assert!(one.set(0));
        assert!(two.set(Hold::ALLOWANCE + 10_000));
        drop(two);
        assert_eq!(buffers.held.load(Ordering::Relaxed), 0);
    }
}
