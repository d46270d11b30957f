//! How many ids were handed out, and when: the last hour in steps of 10 s, the last
//! day in steps of 5 min, the last week in steps of 30 min.
//!
//! Pure: whoever looks tells the time, in milliseconds that never go back. A track
//! has a fixed size, about 4 KB.

use std::time::Duration;

use super::api::Span;

/// Between two looks that are further apart nobody knows what happened.
const LONGEST_GAP_MS: u64 = 5_000;
/// A rate is measured over one to two of these.
const RATE_SPAN_MS: u64 = 5_000;
/// Over a shorter span a rate says nothing.
const SHORTEST_MS: u64 = 900;

/// One resolution: the means of the last steps, and the step that runs.
#[derive(Clone, Debug)]
struct Ring {
    step_ms: u64,
    /// Means in ids per second by the number of the step, modulo the length; not a
    /// number where nothing was measured.
    means: Box<[f32]>,
    /// The number of the step that runs.
    step: u64,
    sum: f64,
    covered_ms: u64,
}

impl Ring {
    fn new(span: Span, now_ms: u64) -> Self {
        let step_ms = span.step().as_millis() as u64;
        Ring {
            step_ms,
            means: vec![f32::NAN; span.steps()].into_boxed_slice(),
            step: now_ms / step_ms,
            sum: 0.0,
            covered_ms: 0,
        }
    }

    fn length(&self) -> u64 {
        self.means.len() as u64
    }

    fn running(&self) -> f32 {
        match self.covered_ms {
            0 => f32::NAN,
            covered => (self.sum * 1_000.0 / covered as f64) as f32,
        }
    }

    fn go_to(&mut self, now_ms: u64) {
        let step = now_ms / self.step_ms;
        if step <= self.step {
            return;
        }
        self.means[(self.step % self.length()) as usize] = self.running();
        let skipped = (self.step + 1..step).rev().take(self.means.len());
        for missing in skipped {
            self.means[(missing % self.length()) as usize] = f32::NAN;
        }
        (self.step, self.sum, self.covered_ms) = (step, 0.0, 0);
    }

    fn add(&mut self, now_ms: u64, covered_ms: u64, count: f64) {
        self.go_to(now_ms);
        self.sum += count;
        self.covered_ms += covered_ms;
    }

    /// The number of the first step of the span that ends now, and the means from
    /// there on, the step that runs included.
    fn read(&self, now_ms: u64) -> (i64, Vec<Option<f64>>) {
        let last = (now_ms / self.step_ms).max(self.step) as i64;
        let first = last - self.means.len() as i64 + 1;
        let mean = |step: i64| {
            let held = match step - self.step as i64 {
                0 => self.running(),
                // The place of the step that runs is that of the one that leaves.
                ..0 if step > self.step as i64 - self.length() as i64 && step >= 0 => {
                    self.means[(step as u64 % self.length()) as usize]
                }
                _ => f32::NAN,
            };
            (!held.is_nan()).then(|| (f64::from(held) * 1_000.0).round() / 1_000.0)
        };
        (first, (first..=last).map(mean).collect())
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Track {
    rings: [Ring; 3],
    last_ms: Option<u64>,
    total: f64,
    /// The rate is measured from the first of these; the second takes its place.
    marks: [(u64, f64); 2],
}

impl Track {
    pub(super) fn new(now_ms: u64) -> Self {
        Track {
            rings: Span::ALL.map(|span| Ring::new(span, now_ms)),
            last_ms: None,
            total: 0.0,
            marks: [(now_ms, 0.0); 2],
        }
    }

    /// How long ago the last look was, in milliseconds, if it was not so long ago
    /// that nobody knows what happened between.
    pub(super) fn since_last(&self, now_ms: u64) -> Option<u64> {
        self.last_ms.map(|last| now_ms.saturating_sub(last)).filter(|gap| *gap <= LONGEST_GAP_MS)
    }

    /// Somebody looks: `count` ids were handed out since the last look, of which
    /// nothing is known where there was none lately. A first look that knows of ids
    /// counts them for the second before it.
    pub(super) fn look(&mut self, now_ms: u64, count: f64) {
        let covered = match self.since_last(now_ms) {
            Some(gap) => gap,
            None => {
                let covered = if count > 0.0 { 1_000.min(now_ms) } else { 0 };
                self.marks = [(now_ms - covered, self.total); 2];
                covered
            }
        };
        self.last_ms = Some(now_ms);
        self.total += count;
        for ring in &mut self.rings {
            ring.add(now_ms, covered, count);
        }
        if now_ms.saturating_sub(self.marks[1].0) >= RATE_SPAN_MS {
            self.marks = [self.marks[1], (now_ms, self.total)];
        }
    }

    /// Ids per second over the last 5 to 10 s; `None` where nobody has looked lately,
    /// or for too short a time.
    pub(super) fn rate(&self, now_ms: u64) -> Option<f64> {
        self.since_last(now_ms)?;
        let (since, before) = self.marks[0];
        let span = self.last_ms?.saturating_sub(since);
        (span >= SHORTEST_MS).then(|| (self.total - before) * 1_000.0 / span as f64)
    }

    /// Where the span that ends now begins, in the milliseconds of the looks (it may
    /// lie before 0), and ids per second step after step.
    pub(super) fn read(&self, span: Span, now_ms: u64) -> (i64, Vec<Option<f64>>) {
        let (first, means) = self.rings[span as usize].read(now_ms);
        (first * span.step().as_millis() as i64, means)
    }
}

/// A counter of events, and what it was at looks 10 s apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// When, and the count then; oldest first.
    looks: std::collections::VecDeque<(u64, u64)>,
}

impl Events {
    const STEP_MS: u64 = 10_000;
    const MOST: usize = 61;

    /// The counter is at `count` now.
    pub(super) fn look(&mut self, now_ms: u64, count: u64) {
        let due = self.looks.back().is_none_or(|(at, _)| now_ms >= at + Self::STEP_MS);
        if due {
            self.looks.push_back((now_ms, count));
            if self.looks.len() > Self::MOST {
                self.looks.pop_front();
            }
        }
    }

    /// How many came within `span` (at most 10 min), to 10 s exactly, if the counter
    /// is at `count` now.
    pub(super) fn within(&self, span: Duration, now_ms: u64, count: u64) -> u64 {
        let since = now_ms.saturating_sub(span.as_millis() as u64);
        let before = self.looks.iter().rev().find(|(at, _)| *at <= since);
        let before = before.or(self.looks.front()).map_or(count, |(_, before)| *before);
        count.saturating_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_means_and_gaps_nothing() {
        let mut track = Track::new(0);
        for second in 1..=40 {
            track.look(second * 1_000, if second <= 20 { 5.0 } else { 0.0 });
        }
        // Nobody looks for 60 s; then again.
        for second in 100..=105 {
            track.look(second * 1_000, 7.0);
        }
        let (from, means) = track.read(Span::Hour, 105_000);
        assert_eq!(means.len(), 360);
        assert_eq!(from, 100_000 - 359 * 10_000);
        let known: Vec<_> = means[349..].to_vec();
        let five = Some(5.0);
        assert_eq!(known[..2], [five, five]);
        // The look at 20 s belongs to the step that begins then.
        assert_eq!(known[2], Some(0.5));
        assert_eq!(known[3..5], [Some(0.0), Some(0.0)]);
        assert_eq!(known[5..10], [None; 5]);
        assert_eq!(known[10], Some(7.0));
        assert!(means[..349].iter().all(Option::is_none));
        let (_, day) = track.read(Span::Day, 105_000);
        assert_eq!(day.iter().flatten().count(), 1);
    }

    #[test]
    fn what_is_older_than_the_span_is_gone() {
        let mut track = Track::new(0);
        for second in 1..=4_000 {
            track.look(second * 1_000, second as f64);
        }
        let (from, means) = track.read(Span::Hour, 4_000_000);
        assert_eq!(from, 4_000_000 - 359 * 10_000);
        assert!(means.iter().all(Option::is_some));
        assert_eq!(means[0], Some(414.5), "from 410 to 419");
        // Two hours later nothing of it is left, and the ring is not walked in vain.
        let (_, means) = track.read(Span::Hour, 4_000_000 + 7_200_000);
        assert!(means.iter().all(Option::is_none));
        track.look(4_000_000 + 7_200_000, 0.0);
        let (_, means) = track.read(Span::Hour, 4_000_000 + 7_200_000);
        assert!(means.iter().all(Option::is_none), "{means:?}");
        let (_, day) = track.read(Span::Day, 4_000_000 + 7_200_000);
        assert_eq!(day.iter().flatten().count(), 14);
    }

    #[test]
    fn rates_by_cases() {
        let mut track = Track::new(10_000);
        assert_eq!(track.rate(10_000), None);
        track.look(10_000, 30.0);
        assert_eq!(track.rate(10_000), Some(30.0), "for the second before");
        for second in 11..=60 {
            track.look(second * 1_000, 100.0);
        }
        assert_eq!(track.rate(60_500), Some(100.0));
        for second in 61..=71 {
            track.look(second * 1_000, 0.0);
        }
        assert_eq!(track.rate(71_000), Some(0.0), "an older rate is forgotten");
        assert_eq!(track.rate(80_000), None, "nobody looked");
        track.look(200_000, 0.0);
        assert_eq!(track.rate(200_000), None);
        track.look(201_000, 8.0);
        assert_eq!(track.rate(201_000), Some(8.0));
    }

    #[test]
    fn events_of_a_minute() {
        let minute = Duration::from_secs(60);
        let mut events = Events::default();
        assert_eq!(events.within(minute, 0, 5), 0, "what was before is not known");
        for second in 0..=300 {
            events.look(second * 1_000, second);
        }
        assert_eq!(events.within(minute, 300_000, 300), 60);
        assert_eq!(events.within(minute, 305_000, 307), 67, "to 10 s exactly");
        assert_eq!(events.within(Duration::from_secs(600), 300_000, 300), 300);
        for second in 301..=10_000 {
            events.look(second * 1_000, 300);
        }
        assert_eq!(events.within(minute, 10_000_000, 300), 0);
        assert_eq!(events.looks.len(), Events::MOST);
    }
}
