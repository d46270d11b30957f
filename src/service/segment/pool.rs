//! Ranges at hand, and taking from them without a lock.
//!
//! The range in use is behind one atomic pointer, and a counter in it says how
//! much is used. A take adds to the counter: what it got lies between the old
//! and the new value, cut at the end of the range. Only when a range ends does
//! somebody take a lock, to put the next one in its place.
//!
//! Promises. No position is handed out twice: each belongs to one range, and
//! each range to one counter that only grows. Positions go up: ranges are used
//! in the order in which they were added, and one that does not lie above the
//! last is refused; so a take that starts after another one has returned gets
//! higher positions.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::IdRange;
use crate::domain::prefetch::LEAST_AHEAD;

/// A rate is measured over so long at least, once there was so much time.
const SPAN: Duration = Duration::from_secs(10);

/// A leased range, and how much of it is used.
pub(super) struct Segment {
    /// `None` for the one that a pool starts with, which is empty.
    range: Option<IdRange>,
    /// Positions taken; more than there are once it ran out.
    used: AtomicU64,
    /// Reaching it makes the next range due.
    due_at: u64,
    /// From then on its period is over, and what is left is burnt. For calendar
    /// series.
    expires: Option<Instant>,
}

impl Segment {
    /// A whole range. `update_id` is the position whose use makes the next due.
    pub(super) fn new(range: IdRange, update_id: i64, expires: Option<Instant>) -> Self {
        let due_at = (update_id - range.start()).max(0) as u64;
        Segment { range: Some(range), used: AtomicU64::new(0), due_at, expires }
    }

    fn empty() -> Self {
        Segment { range: None, used: AtomicU64::new(0), due_at: 0, expires: None }
    }

    fn len(&self) -> u64 {
        self.range.map_or(0, IdRange::len)
    }

    fn left(&self) -> u64 {
        self.len().saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn has_expired(&self) -> bool {
        self.expires.is_some_and(|at| Instant::now() >= at)
    }

    /// Up to `count` positions, and whether this take reached the point where
    /// the next range is due.
    fn take(&self, count: u64) -> (Option<IdRange>, bool) {
        let Some(range) = self.range else { return (None, true) };
        let before = self.used.fetch_add(count, Ordering::Relaxed);
        if before >= range.len() {
            return (None, true);
        }
        let after = (before + count).min(range.len());
        let start = range.start() + before as i64;
        let taken = IdRange::new(start, range.start() + after as i64).ok();
        (taken, before <= self.due_at && self.due_at < after)
    }
}

/// What a take found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Take {
    /// The positions, fewer than asked for where the range ended; `None` when
    /// nothing is at hand.
    pub(super) range: Option<IdRange>,
    /// Whether somebody should look if ranges must be leased.
    pub(super) look: bool,
}

/// See the module.
pub(super) struct Pool {
    current: ArcSwap<Segment>,
    /// Callers that wait for ids, and the positions that they want.
    waiting: AtomicU64,
    wanted: AtomicU64,
    /// Nothing is taken or added any more: the type leaves the memory.
    closed: AtomicBool,
    /// Rings when ranges came, when leasing them failed, and at the close.
    pub(super) news: Notify,
    ready: Mutex<Ready>,
}

struct Ready {
    queue: VecDeque<Segment>,
    /// The end of the highest range that was added.
    highest_end: i64,
    /// Positions taken from ranges that are gone.
    spent: u64,
    /// Ranges to keep ahead.
    ahead: usize,
    /// When a caller last found nothing, or `ahead` last fell.
    calm_since: Instant,
    /// The node's last lease had so many positions.
    last_length: Option<u64>,
    /// Ends of ranges, and when they were leased: how fast all nodes together go.
    ends: Option<[(Instant, i64); 2]>,
    /// The rate is measured from the first of these: when, and what was taken
    /// before. The second takes its place once it is old enough.
    marks: [(Instant, u64); 2],
}

impl Pool {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Pool {
            current: ArcSwap::from_pointee(Segment::empty()),
            waiting: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            news: Notify::new(),
            ready: Mutex::new(Ready {
                queue: VecDeque::new(),
                highest_end: 0,
                spent: 0,
                ahead: LEAST_AHEAD,
                calm_since: now,
                last_length: None,
                ends: None,
                marks: [(now, 0); 2],
            }),
        }
    }

    /// Up to `count` positions.
    #[inline]
    pub(super) fn take(&self, count: u64) -> Take {
        let segment = self.current.load();
        if !segment.has_expired() {
            let (range, look) = segment.take(count);
            if range.is_some() {
                return Take { range, look };
            }
        }
        drop(segment);
        self.take_slowly(count)
    }

    /// When the range in use is at its end, or may be over.
    #[cold]
    fn take_slowly(&self, count: u64) -> Take {
        let mut ready = self.ready.lock().expect("never poisoned");
        loop {
            let segment = self.current.load_full();
            if !segment.has_expired() {
                let (range, look) = segment.take(count);
                if range.is_some() {
                    return Take { range, look };
                }
            }
            let Some(next) = ready.queue.pop_front() else {
                return Take { range: None, look: true };
            };
            ready.spent += segment.len() - segment.left();
            self.current.store(Arc::new(next));
        }
    }

    /// Adds a range; refused, and false, where it does not lie above the others
    /// or the pool is closed.
    pub(super) fn add(&self, segment: Segment) -> bool {
        let Some(range) = segment.range else { return false };
        let mut ready = self.ready.lock().expect("never poisoned");
        if self.closed.load(Ordering::Relaxed) || range.start() < ready.highest_end {
            return false;
        }
        ready.highest_end = range.end();
        ready.last_length = Some(range.len());
        let end = (Instant::now(), range.end());
        ready.ends.get_or_insert([end; 2])[1] = end;
        ready.queue.push_back(segment);
        drop(ready);
        self.news.notify_waiters();
        true
    }

    /// Whether ranges must be leased, by what is at hand now: the range in use
    /// is past its mark and fewer than planned are behind it. Drops what is over.
    pub(super) fn is_due(&self, load_interval_ms: u64) -> bool {
        let mut ready = self.ready.lock().expect("never poisoned");
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        ready.queue.retain(|segment| !segment.has_expired());
        let calm_ms = ready.calm_since.elapsed().as_millis() as u64;
        let fewer = crate::domain::prefetch::calm(ready.ahead, calm_ms, load_interval_ms);
        if fewer != ready.ahead {
            ready.ahead = fewer;
            ready.calm_since = Instant::now();
        }
        let current = self.current.load();
        let is_low = current.has_expired()
            || current.range.is_none()
            || current.used.load(Ordering::Relaxed) > current.due_at;
        is_low && ready.queue.len() < ready.ahead
    }

    /// A caller found nothing.
    pub(super) fn note_hunger(&self) {
        let mut ready = self.ready.lock().expect("never poisoned");
        // The first range of all is always waited for.
        if ready.last_length.is_some() {
            ready.ahead = crate::domain::prefetch::hungry(ready.ahead);
        }
        ready.calm_since = Instant::now();
    }

    /// Positions taken so far.
    pub(super) fn taken(&self) -> u64 {
        let ready = self.ready.lock().expect("never poisoned");
        let current = self.current.load();
        ready.spent + (current.len() - current.left())
    }

    /// Positions at hand, and in how many ranges.
    pub(super) fn left(&self) -> (u64, u64) {
        let ready = self.ready.lock().expect("never poisoned");
        let mut left = 0;
        let mut ranges = 0;
        let current = self.current.load();
        for segment in std::iter::once(&**current).chain(&ready.queue) {
            if segment.left() > 0 && !segment.has_expired() {
                left += segment.left();
                ranges += 1;
            }
        }
        (left, ranges)
    }

    /// Positions per second that all nodes together lease, over at least `span`;
    /// and the end of the highest range.
    pub(super) fn growth(&self, span: Duration) -> (Option<f64>, i64) {
        let mut ready = self.ready.lock().expect("never poisoned");
        let highest_end = ready.highest_end;
        let Some(ends) = &mut ready.ends else { return (None, highest_end) };
        let [(since, from), (until, to)] = *ends;
        let elapsed = until.duration_since(since);
        if elapsed < span {
            return (None, highest_end);
        }
        if elapsed >= span * 4 {
            // What was long ago says nothing of now.
            ends[0] = ends[1];
        }
        (Some((to - from) as f64 / elapsed.as_secs_f64()), highest_end)
    }

    /// Ranges that are kept ahead now.
    pub(super) fn ahead(&self) -> u64 {
        self.ready.lock().expect("never poisoned").ahead as u64
    }

    /// The node's last lease, in positions; and what was taken lately, in how many
    /// milliseconds: the last ten to twenty seconds, or since the last look where
    /// that is longer.
    pub(super) fn measure(&self) -> (Option<u64>, u64, u64) {
        let taken = self.taken();
        let mut ready = self.ready.lock().expect("never poisoned");
        let (since, before) = ready.marks[0];
        let elapsed_ms = since.elapsed().as_millis() as u64;
        if ready.marks[1].0.elapsed() >= SPAN {
            ready.marks = [ready.marks[1], (Instant::now(), taken)];
        }
        (ready.last_length, taken - before, elapsed_ms)
    }

    /// Burns everything at or below `position`; how many positions that was.
    pub(super) fn burn_to(&self, position: i64) -> u64 {
        let ready = self.ready.lock().expect("never poisoned");
        let current = self.current.load();
        let mut burnt = 0;
        for segment in std::iter::once(&**current).chain(&ready.queue) {
            let Some(range) = segment.range else { continue };
            let offset = (position.saturating_add(1) - range.start()).clamp(0, range.len() as i64);
            let before = segment.used.fetch_max(offset as u64, Ordering::Relaxed);
            burnt += (offset as u64).saturating_sub(before);
        }
        burnt
    }

    /// Nothing is taken or added from now on. Gives the unused ends of the
    /// ranges, the highest first: they belong to the caller alone.
    pub(super) fn close(&self) -> Vec<IdRange> {
        let mut ready = self.ready.lock().expect("never poisoned");
        self.closed.store(true, Ordering::Relaxed);
        let queue = std::mem::take(&mut ready.queue);
        let current = self.current.swap(Arc::new(Segment::empty()));
        let mut tails = Vec::new();
        for segment in std::iter::once(&*current).chain(&queue) {
            // Whoever still holds the segment finds it used up.
            if let (Some(rest), _) = segment.take(segment.len()) {
                tails.push(rest);
            }
        }
        ready.spent += current.len();
        drop(ready);
        self.news.notify_waiters();
        tails.reverse();
        tails
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Counts a caller that waits for `count` positions, unless `most` wait
    /// already. It stops to count when the guard goes.
    pub(super) fn wait_in_line(&self, count: u64, most: u64) -> Option<InLine<'_>> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= most {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.wanted.fetch_add(count, Ordering::Relaxed);
        Some(InLine { pool: self, count })
    }

    /// Positions that callers wait for now.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }
}

/// A caller that waits.
pub(super) struct InLine<'a> {
    pool: &'a Pool,
    count: u64,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.pool.waiting.fetch_sub(1, Ordering::Relaxed);
        self.pool.wanted.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: i64, end: i64) -> Segment {
        let range = IdRange::new(start, end).unwrap();
        Segment::new(range, start + (end - start) / 10, None)
    }

    fn range(start: i64, end: i64) -> Option<IdRange> {
        IdRange::new(start, end).ok()
    }

    #[tokio::test]
    async fn takes_go_up_and_end_with_their_range() {
        let pool = Pool::new();
        assert_eq!(pool.take(1), Take { range: None, look: true });
        assert!(pool.add(segment(1, 101)));
        assert!(pool.add(segment(201, 301)));
        assert!(!pool.add(segment(250, 400)), "overlaps the last one");
        assert!(!pool.add(segment(101, 201)), "below the last one");
        assert_eq!(pool.take(10), Take { range: range(1, 11), look: false });
        assert_eq!(pool.take(1), Take { range: range(11, 12), look: true }, "the tenth is past");
        assert_eq!(pool.take(80).range, range(12, 92));
        assert_eq!(pool.take(80).range, range(92, 101), "what is left");
        assert_eq!(pool.take(80).range, range(201, 281));
        assert_eq!(pool.taken(), 180);
        assert_eq!(pool.left(), (20, 1));
    }

    #[tokio::test]
    async fn a_closed_pool_gives_its_ends_once() {
        let pool = Pool::new();
        pool.add(segment(1, 101));
        pool.add(segment(201, 301));
        pool.take(40);
        let held = pool.current.load_full();
        assert_eq!(pool.close(), [range(201, 301).unwrap(), range(41, 101).unwrap()]);
        assert_eq!(held.take(1).0, None, "a caller that was on its way gets nothing");
        assert_eq!(pool.take(1).range, None);
        assert!(!pool.add(segment(301, 401)));
        assert_eq!(pool.close(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_is_dropped() {
        let pool = Pool::new();
        let soon = Some(Instant::now() + Duration::from_secs(1));
        pool.add(Segment::new(range(1, 101).unwrap(), 11, soon));
        assert_eq!(pool.take(1).range, range(1, 2));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(pool.is_due(600_000));
        assert_eq!(pool.take(1).range, None);
        pool.add(segment(1_001, 1_101));
        assert_eq!(pool.take(1).range, range(1_001, 1_002));
    }

    #[tokio::test(start_paused = true)]
    async fn due_by_what_is_at_hand() {
        let pool = Pool::new();
        assert!(pool.is_due(600_000), "nothing is there");
        pool.add(segment(1, 101));
        pool.take(10);
        assert!(!pool.is_due(600_000), "a tenth is not past yet");
        pool.take(1);
        assert!(pool.is_due(600_000));
        pool.add(segment(101, 201));
        assert!(pool.is_due(600_000), "two ahead are planned");
        pool.add(segment(201, 301));
        assert!(!pool.is_due(600_000));
        pool.note_hunger();
        assert!(pool.is_due(600_000), "more after hunger");
        tokio::time::advance(Duration::from_secs(1_200)).await;
        assert!(!pool.is_due(600_000), "and fewer when it is calm");
        assert_eq!(pool.ahead(), 2);
    }

    #[tokio::test]
    async fn burns_up_to_a_position() {
        let pool = Pool::new();
        for start in [1, 101, 201] {
            pool.add(segment(start, start + 50));
        }
        pool.take(10);
        assert_eq!(pool.burn_to(110), 40 + 10);
        assert_eq!(pool.take(1).range, range(111, 112));
        assert_eq!(pool.burn_to(50), 0, "nothing is left there");
        assert_eq!(pool.take(1).range, range(112, 113));
    }

    #[test]
    fn threads_never_share_a_position() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _guard = runtime.enter();
        let pool = Arc::new(Pool::new());
        let mut all: Vec<i64> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    let pool = pool.clone();
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        while mine.len() < 5_000 {
                            match pool.take(3).range {
                                Some(r) => mine.extend(r.start()..r.end()),
                                None => std::thread::yield_now(),
                            }
                        }
                        assert!(mine.is_sorted(), "positions go up for each caller");
                        mine
                    })
                })
                .collect();
            for n in 0..3_000 {
                assert!(pool.add(segment(1 + n * 10, 8 + n * 10)));
            }
            takers.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
