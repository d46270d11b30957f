//! Times in which nobody got an answer, as clients see them.
//!
//! Clients report each answer as it comes; the gap between two that follow each
//! other is a stall, where it is long enough to matter.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A time without an answer, in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The answer before it, or the start of the run.
    pub from_ns: u64,
    /// The answer after it, or the end of the run.
    pub until_ns: u64,
}

impl Stall {
    /// How long it was.
    pub fn length_ns(&self) -> u64 {
        self.until_ns - self.from_ns
    }
}

/// Watches the answers of some clients. A client that is held up between its
/// answer and its report makes a stall look longer, never shorter.
#[derive(Debug, Default)]
pub struct Stalls {
    last_ns: AtomicU64,
    found: Mutex<Vec<Stall>>,
}

impl Stalls {
    /// The shortest gap that is kept: 20 ms.
    pub const LEAST_NS: u64 = 20_000_000;
    /// How many are kept: the longest ones.
    pub const MOST: usize = 64;

    /// An answer came at `at_ns`. Reports may come in any order.
    pub fn answered(&self, at_ns: u64) {
        let from_ns = self.last_ns.fetch_max(at_ns, Ordering::Relaxed);
        if at_ns.saturating_sub(from_ns) < Self::LEAST_NS {
            return;
        }
        let mut found = self.found.lock().expect("no holder panics");
        found.push(Stall { from_ns, until_ns: at_ns });
        if found.len() > 2 * Self::MOST {
            keep_longest(&mut found);
        }
    }

    /// All that were found, up to `end_ns`, the end of the run: the longest
    /// [`MOST`](Self::MOST) of them, in the order of time.
    pub fn until(&self, end_ns: u64) -> Vec<Stall> {
        self.answered(end_ns);
        let mut found = self.found.lock().expect("no holder panics").clone();
        keep_longest(&mut found);
        found.sort_unstable_by_key(|stall| stall.from_ns);
        found
    }
}

fn keep_longest(stalls: &mut Vec<Stall>) {
    stalls.sort_unstable_by_key(|stall| std::cmp::Reverse(stall.length_ns()));
    stalls.truncate(Stalls::MOST);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn found(answers: &[u64], end: u64) -> Vec<(u64, u64)> {
        let stalls = Stalls::default();
        answers.iter().for_each(|at| stalls.answered(at * MS));
        let found = stalls.until(end * MS);
        found.iter().map(|s| (s.from_ns / MS, s.until_ns / MS)).collect()
    }

    #[test]
    fn gaps_between_answers_and_at_both_ends_are_found() {
        assert_eq!(found(&[], 5), []);
        assert_eq!(found(&[], 900), [(0, 900)], "not one answer");
        assert_eq!(found(&[5, 10, 29, 40], 45), [], "all are short");
        assert_eq!(found(&[300, 301, 501], 502), [(0, 300), (301, 501)]);
        assert_eq!(found(&[1, 2], 100), [(2, 100)]);
        // Reports of two clients that overtook each other.
        assert_eq!(found(&[10, 12, 11, 90, 89], 91), [(12, 90)]);
    }

    #[test]
    fn the_longest_are_kept() {
        let mut answers = vec![1_000];
        for _ in 0..10_000 {
            answers.push(answers.last().unwrap() + 20);
        }
        let before = *answers.last().unwrap();
        answers.push(before + 700);
        let found = found(&answers, before + 701);
        assert_eq!(found.len(), Stalls::MOST);
        assert_eq!(found[0], (0, 1_000));
        assert_eq!(found[found.len() - 1], (before, before + 700));
    }
}
