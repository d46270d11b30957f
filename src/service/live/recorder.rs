//! What happened here: ids over time, of each type in use and of all together, and
//! how long refills took.
//!
//! Bounds: a type costs about 5.5 KB (three rings, the last view, [`REFILLS`]
//! refills), and at most [`MOST_TYPES`] are kept, 22 MB in all. Beyond that those that
//! nobody used for a minute make room, and where there are none, further types have
//! no rings. So a type that leaves the node's memory keeps its rings for as long as
//! there is room.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::api::{Span, Traffic};
use super::track::{Events, Track};
use crate::domain::{IdRange, TypeName};
use crate::ports::{RangeLogEntry, View};
use crate::service::catalogue::TypeEntry;

/// Most types with rings of their own.
const MOST_TYPES: usize = 4_096;
/// A type that was not looked at for so long makes room where there is none.
const UNUSED_MS: u64 = 60_000;
/// Room is looked for so often at most: to look costs a walk through all types.
const SWEEP_PERIOD_MS: u64 = 10_000;
/// Refills of a type whose duration is kept.
const REFILLS: usize = 64;

/// What is known of a type in use.
struct TypeTrack {
    track: Track,
    seen_ms: u64,
    /// The entry that was counted last: a new one begins at 0 again.
    entry: Weak<TypeEntry>,
    counted: u64,
    view: Option<(u64, View)>,
    latest: Latest,
    /// The first positions of ranges, and how long it took to get them.
    refills: VecDeque<(i64, u32)>,
    last_load_ms: Option<i64>,
}

/// What the look at the supply of a type found.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) runway_s: Option<f64>,
    pub(super) exhausted_at_ms: Option<i64>,
}

/// A type that was looked at lately.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    pub(super) name: TypeName,
    pub(super) rate: Option<f64>,
    pub(super) latest: Latest,
}

#[derive(Default)]
struct Types {
    tracks: HashMap<TypeName, TypeTrack>,
    /// Room is not looked for again before.
    next_sweep_ms: u64,
}

impl Types {
    fn get(&self, name: &TypeName) -> Option<&TypeTrack> {
        self.tracks.get(name)
    }

    /// Whether one more has room.
    fn make_room(&mut self, now_ms: u64) -> bool {
        if self.tracks.len() >= MOST_TYPES && now_ms >= self.next_sweep_ms {
            self.next_sweep_ms = now_ms + SWEEP_PERIOD_MS;
            self.tracks.retain(|_, track| track.seen_ms + UNUSED_MS >= now_ms);
        }
        self.tracks.len() < MOST_TYPES
    }

    /// Changes the track of a type, which is made where there is room for it.
    fn with(&mut self, name: &TypeName, now_ms: u64, change: impl FnOnce(&mut TypeTrack)) {
        if !self.tracks.contains_key(name) {
            if !self.make_room(now_ms) {
                return;
            }
            self.tracks.insert(name.clone(), TypeTrack::new(now_ms));
        }
        if let Some(track) = self.tracks.get_mut(name) {
            track.seen_ms = now_ms;
            change(track);
        }
    }
}

impl TypeTrack {
    fn new(now_ms: u64) -> Self {
        TypeTrack {
            track: Track::new(now_ms),
            seen_ms: now_ms,
            entry: Weak::new(),
            counted: 0,
            view: None,
            latest: Latest::default(),
            refills: VecDeque::new(),
            last_load_ms: None,
        }
    }
}

/// The node as a whole.
struct NodeTrack {
    /// Ids of all nodes.
    cluster: Track,
    ids: Track,
    calls: Track,
    errors: Track,
    last: Traffic,
    failures: Events,
    asked: Events,
    stale: Events,
}

/// What the node measured of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NodeRates {
    pub(super) ids_per_s: f64,
    pub(super) calls_per_s: f64,
    pub(super) errors_per_s: f64,
    pub(super) calls_last_minute: u64,
    pub(super) failures_last_minute: u64,
    pub(super) stale_histories: u64,
}

/// See the module.
pub(super) struct Recorder {
    /// Looks are counted from here; `offset_ms` makes steps begin at full minutes.
    origin: Instant,
    offset_ms: u64,
    types: Mutex<Types>,
    node: Mutex<NodeTrack>,
}

impl Recorder {
    pub(super) fn new(wall_ms: i64) -> Self {
        let longest = Span::Week.step().as_millis() as i64;
        let offset_ms = wall_ms.rem_euclid(longest) as u64;
        let track = || Track::new(offset_ms);
        let node = NodeTrack {
            cluster: track(),
            ids: track(),
            calls: track(),
            errors: track(),
            last: Traffic::default(),
            failures: Events::default(),
            asked: Events::default(),
            stale: Events::default(),
        };
        Recorder { origin: Instant::now(), offset_ms, types: Mutex::default(), node: node.into() }
    }

    /// Milliseconds that never go back.
    fn now(&self) -> u64 {
        self.offset_ms + self.origin.elapsed().as_millis() as u64
    }

    /// Somebody looked at a type: at what its dispatcher holds, if that was asked.
    pub(super) fn look(&self, entry: &Arc<TypeEntry>, view: Option<&View>, latest: Latest) {
        let now = self.now();
        let counted = entry.leased_ids();
        self.types.lock().expect("never poisoned").with(&entry.name, now, |track| {
            let before = match track.entry.upgrade() {
                Some(held) if Arc::ptr_eq(&held, entry) => track.counted,
                _ => 0,
            };
            let leased = counted.saturating_sub(before);
            (track.entry, track.counted) = (Arc::downgrade(entry), counted);
            let known = track.track.since_last(now);
            let taken = view.map_or(0, |view| {
                let last = track.view.as_ref().filter(|_| known.is_some());
                match last {
                    Some((at, last)) => taken_between(last, view, now - at),
                    // Ids that were taken a moment ago were taken just now.
                    None if view.is_live() && view.age_ms < 2_000 => view.used,
                    None => 0,
                }
            });
            track.track.look(now, (leased + taken) as f64);
            track.latest = latest;
            if let Some(view) = view {
                track.view = Some((now, view.clone()));
            }
        });
    }

    /// What the dispatcher of a type held, if somebody looked within `age`.
    pub(super) fn view(&self, name: &TypeName, age: Duration) -> Option<View> {
        let since = self.now().saturating_sub(age.as_millis() as u64);
        let types = self.types.lock().expect("never poisoned");
        let (at, view) = types.get(name)?.view.as_ref()?;
        (*at >= since).then(|| view.clone())
    }

    /// Ids per second of a type, as seen here.
    pub(super) fn rate(&self, name: &TypeName) -> Option<f64> {
        let now = self.now();
        self.types.lock().expect("never poisoned").get(name)?.track.rate(now)
    }

    /// When this node last got a range of a type, by its own clock.
    pub(super) fn last_load_ms(&self, name: &TypeName) -> Option<i64> {
        self.types.lock().expect("never poisoned").get(name)?.last_load_ms
    }

    /// The types that were looked at within the last 5 s.
    pub(super) fn busy(&self) -> Vec<Busy> {
        let now = self.now();
        let types = self.types.lock().expect("never poisoned");
        let lately = types.tracks.iter().filter(|(_, track)| track.track.since_last(now).is_some());
        let busy = lately.map(|(name, track)| Busy {
            name: name.clone(),
            rate: track.track.rate(now),
            latest: track.latest.clone(),
        });
        busy.collect()
    }

    /// This node got a range.
    pub(super) fn got(&self, name: &TypeName, range: IdRange, took: Duration, wall_ms: i64) {
        let now = self.now();
        self.types.lock().expect("never poisoned").with(name, now, |track| {
            if track.refills.len() >= REFILLS {
                track.refills.pop_front();
            }
            let ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
            track.refills.push_back((range.start(), ms));
            track.last_load_ms = Some(wall_ms);
        });
    }

    /// The counters of the node now, and ids per second of its peers.
    pub(super) fn look_at_node(&self, traffic: Traffic, stale: u64, peers_per_s: f64) {
        let now = self.now();
        let mut node = self.node.lock().expect("never poisoned");
        let node = &mut *node;
        let delta = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let ids = delta(traffic.ids, node.last.ids);
        let seconds = node.cluster.since_last(now).unwrap_or(0) as f64 / 1_000.0;
        node.cluster.look(now, ids + peers_per_s * seconds);
        node.ids.look(now, ids);
        node.calls.look(now, delta(traffic.calls, node.last.calls));
        node.errors.look(now, delta(traffic.errors, node.last.errors));
        node.failures.look(now, traffic.failures);
        node.asked.look(now, traffic.calls);
        node.stale.look(now, stale);
        node.last = traffic;
    }

    /// What the node measured of itself lately.
    pub(super) fn rates(&self, stale: u64) -> NodeRates {
        let now = self.now();
        let minute = Duration::from_secs(60);
        let node = self.node.lock().expect("never poisoned");
        NodeRates {
            ids_per_s: rounded(node.ids.rate(now)),
            calls_per_s: rounded(node.calls.rate(now)),
            errors_per_s: rounded(node.errors.rate(now)),
            calls_last_minute: node.asked.within(minute, now, node.last.calls),
            failures_last_minute: node.failures.within(minute, now, node.last.failures),
            stale_histories: node.stale.within(minute * 10, now, stale),
        }
    }

    /// Ids per second of all types: where the span begins, in milliseconds of the
    /// Unix epoch while it is `wall_ms`, and the steps.
    pub(super) fn read_node(&self, span: Span, wall_ms: i64) -> (i64, Vec<Option<f64>>) {
        let now = self.now();
        let (from, means) = self.node.lock().expect("never poisoned").cluster.read(span, now);
        (wall_ms + from - now as i64, means)
    }

    /// The same of one type, and how long its refills took by their first positions.
    pub(super) fn read_type(
        &self,
        name: &TypeName,
        span: Span,
        wall_ms: i64,
    ) -> (i64, Vec<Option<f64>>, HashMap<i64, u64>) {
        let now = self.now();
        let types = self.types.lock().expect("never poisoned");
        let nothing = || Track::new(now).read(span, now);
        let track = types.get(name);
        let (from, means) = track.map_or_else(nothing, |track| track.track.read(span, now));
        let refills = track.iter().flat_map(|track| &track.refills);
        let refills = refills.map(|(start, ms)| (*start, u64::from(*ms))).collect();
        (wall_ms + from - now as i64, means, refills)
    }
}

/// To thousandths: who reads JSON does not want 17 digits.
pub(super) fn rounded(rate: Option<f64>) -> f64 {
    (rate.unwrap_or(0.0) * 1_000.0).round() / 1_000.0
}

/// How many ids were taken between two views `gap_ms` apart. Exact as long as at
/// most one range ended between them; else what is certain.
pub(super) fn taken_between(last: &View, now: &View, gap_ms: u64) -> u64 {
    if !now.is_live() {
        return 0;
    }
    let Some(range) = now.current else { return 0 };
    let in_range = (now.cursor - range.start()).max(0) as u64;
    if last.is_live() && last.history == now.history {
        let rest = last.current.map_or(0, |range| (range.end() - last.cursor).max(0) as u64);
        if last.current.is_some_and(|r| r.end() == range.end()) {
            return (now.cursor - last.cursor).max(0) as u64;
        }
        if last.second.is_some_and(|second| second.end() == range.end()) {
            return rest + in_range;
        }
        if range.start() >= last.least_to_publish() {
            let second = last.second.map_or(0, IdRange::len);
            return rest + second + in_range;
        }
    }
    // Published anew: everything since then, if that was after the last view.
    if now.age_ms <= gap_ms { now.used } else { 0 }
}

/// Fills the steps before the first that was measured from the range log (newest
/// first): a range was used up between its allocation and that of the next one.
/// Steps that nothing is known of stay empty. With `owner`, only its ranges count.
pub(super) fn fill_from_log(
    points: &mut [Option<f64>],
    from_ms: i64,
    step_ms: i64,
    log: &[RangeLogEntry],
    owner: Option<&str>,
) {
    let known = points.iter().position(Option::is_some).unwrap_or(points.len());
    let mut sums = vec![0.0; known];
    let mut covered = vec![false; known];
    let log: Vec<_> =
        log.iter().filter(|entry| owner.is_none_or(|owner| entry.owner == owner)).collect();
    for pair in log.windows(2) {
        let (next, this) = (pair[0], pair[1]);
        let lasted = next.at_ms - this.at_ms;
        if lasted <= 0 {
            continue;
        }
        let per_ms = this.range.len() as f64 / lasted as f64;
        let first = (this.at_ms - from_ms).div_euclid(step_ms).max(0);
        let last = (next.at_ms - 1 - from_ms).div_euclid(step_ms).min(known as i64 - 1);
        for step in first..=last {
            let begin = from_ms + step * step_ms;
            let overlap = next.at_ms.min(begin + step_ms) - this.at_ms.max(begin);
            sums[step as usize] += per_ms * overlap.max(0) as f64;
            covered[step as usize] = true;
        }
    }
    for step in 0..known {
        if covered[step] {
            points[step] = Some(rounded(Some(sums[step] * 1_000.0 / step_ms as f64)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::History;

    fn range(start: i64, end: i64) -> IdRange {
        IdRange::new(start, end).unwrap()
    }

    fn view(history: &str, current: (i64, i64), cursor: i64, second: Option<(i64, i64)>) -> View {
        View {
            history: History::new("h"),
            published_history: Some(History::new(history)),
            cursor,
            current: Some(range(current.0, current.1)),
            update_id: 0,
            second: second.map(|(start, end)| range(start, end)),
            used: 7,
            age_ms: 500,
            leased_end: 0,
            sealed: None,
        }
    }

    #[test]
    fn the_number_of_tracks_is_bounded() {
        let name = |n: usize| TypeName::parse(&format!("type-{n}")).unwrap();
        let mut types = Types::default();
        for n in 0..MOST_TYPES + 500 {
            types.with(&name(n), 1_000, |_| {});
        }
        assert_eq!(types.tracks.len(), MOST_TYPES);
        // Those in use stay, the others make room for new ones.
        types.with(&name(7), 100_000, |_| {});
        types.with(&name(MOST_TYPES + 1), 100_000, |_| {});
        assert!(types.get(&name(7)).is_some() && types.get(&name(MOST_TYPES + 1)).is_some());
        assert_eq!(types.tracks.len(), 2);
    }

    #[test]
    fn ids_between_two_views() {
        let old = view("h", (1, 101), 11, None);
        let with_second = view("h", (1, 101), 11, Some((201, 301)));
        let dead = view("gone", (1, 101), 11, None);
        let cases = [
            (&old, view("h", (1, 101), 31, None), 20),
            (&old, view("h", (1, 101), 31, Some((201, 301))), 20),
            // The current range shrinks to nothing and the reserve takes over.
            (&with_second, view("h", (201, 301), 206, None), 90 + 5),
            // One that was not there yet.
            (&old, view("h", (201, 301), 206, None), 90 + 5),
            (&with_second, view("h", (501, 601), 506, None), 90 + 100 + 5),
            // Nothing is live any more, or nothing was.
            (&old, dead.clone(), 0),
            (&dead, view("h", (201, 301), 208, None), 7),
            // Data that somebody put back by hand.
            (&with_second, view("h", (1, 51), 20, None), 7),
        ];
        for (last, now, expected) in cases {
            assert_eq!(taken_between(last, &now, 1_000), expected, "{last:?}\n{now:?}");
        }
        let long_ago = View { age_ms: 5_000, ..view("h", (201, 301), 208, None) };
        assert_eq!(taken_between(&dead, &long_ago, 1_000), 0, "published before the last view");
        let nothing = View { current: None, ..view("h", (1, 2), 1, None) };
        assert_eq!(taken_between(&old, &nothing, 1_000), 0);
    }

    fn logged(at_ms: i64, start: i64, end: i64, owner: &str) -> RangeLogEntry {
        let (instance, history, shard) = (None, None, None);
        let owner = owner.to_owned();
        RangeLogEntry { range: range(start, end), at_ms, owner, instance, history, shard }
    }

    #[test]
    fn what_was_before_comes_from_the_range_log() {
        // Steps of 10 s from 1 000 000 ms.
        let log = [
            logged(1_045_000, 4_001, 9_001, "a"), // in use still
            logged(1_025_000, 2_001, 4_001, "b"), // 2 000 in 20 s
            logged(1_015_000, 1_001, 2_001, "a"), // 1 000 in 10 s
            logged(1_015_000, 901, 1_001, "a"),   // no time at all
            logged(990_000, 1, 501, "a"),         // 500 in 25 s, before the span too
        ];
        let mut points = vec![None, None, None, None, None, Some(9.0), None];
        fill_from_log(&mut points, 1_000_000, 10_000, &log, None);
        let some = |rate: f64| Some(rate);
        assert_eq!(
            points,
            [some(20.0), some(60.0), some(100.0), some(100.0), some(50.0), some(9.0), None]
        );
        let mut points = vec![None; 4];
        fill_from_log(&mut points, 1_000_000, 10_000, &log, Some("b"));
        assert_eq!(points, [None; 4], "one range has no end");
        fill_from_log(&mut points, 1_000_000, 10_000, &[], None);
        assert_eq!(points, [None; 4]);
        let mut known = vec![Some(1.0), None];
        fill_from_log(&mut known, 1_000_000, 10_000, &log, None);
        assert_eq!(known, [Some(1.0), None], "what was measured stays, gaps too");
    }
}
