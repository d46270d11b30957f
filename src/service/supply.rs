//! What a node remembers of the supply of one type: how high ids have gone,
//! and whether a refill runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{Error, ErrorCode, History, IdRange};

/// After a refill that failed, or that another node does, the next try waits
/// so long, doubling up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Callers that wait must notice within a second that a store is back.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Over a shorter span than this many milliseconds a rate says little.
const MEANINGFUL_MS: u64 = 10_000;

/// See the module.
pub(super) struct Supply {
    /// The highest range end that this node has seen for the type (the floor).
    floor: AtomicI64,
    /// When a driver last asked for ids, in milliseconds since `made`; 0: never.
    last_take_ms: AtomicU64,
    /// How often it did.
    takes: AtomicU64,
    /// What had been taken of the node's own leases at the last look.
    leased_seen: AtomicU64,
    made: Instant,
    /// Whether callers wait for ids that are not there.
    starving: AtomicBool,
    /// The highest id that this node has returned.
    returned: AtomicI64,
    /// Whether the dispatcher gave ids below that: what it holds must go.
    distrusted: AtomicBool,
    /// Whether this node gave ids of a strict type on its own, without the
    /// dispatcher, and the dispatcher does not know yet.
    alone: AtomicBool,
    /// What the store said of the history that was met last.
    known_history: Mutex<Option<KnownHistory>>,
    /// The history that was last counted as stale.
    counted: Mutex<Option<History>>,
    /// Ids per second, as last measured over a span that says something.
    rate: Mutex<Option<f64>>,
    refill: Mutex<RefillState>,
}

struct KnownHistory {
    history: History,
    recorded: Option<History>,
    live: bool,
    ask_again: Option<Instant>,
}

#[derive(Default)]
struct RefillState {
    running: bool,
    not_before: Option<Instant>,
    pause: Duration,
    /// Why the latest refill failed; cleared by one that did not.
    error: Option<Error>,
}

impl Supply {
    pub(super) fn new(floor: i64) -> Self {
        Supply {
            floor: AtomicI64::new(floor),
            last_take_ms: AtomicU64::new(0),
            takes: AtomicU64::new(0),
            leased_seen: AtomicU64::new(0),
            made: Instant::now(),
            starving: AtomicBool::new(false),
            returned: AtomicI64::new(0),
            distrusted: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            known_history: Mutex::default(),
            counted: Mutex::default(),
            rate: Mutex::default(),
            refill: Mutex::default(),
        }
    }

    /// Takes over what `old` knows of the ids that are gone.
    pub(super) fn succeed(&self, old: &Supply) {
        self.raise_floor(old.floor());
        self.returned.fetch_max(old.returned(), Ordering::Relaxed);
    }

    /// The floor for the next range: above every end seen, and above every id
    /// returned.
    pub(super) fn floor(&self) -> i64 {
        let returned = self.returned.load(Ordering::Relaxed);
        self.floor.load(Ordering::Relaxed).max(returned + 1)
    }

    /// The highest id that this node has returned; 0 if none.
    pub(super) fn returned(&self) -> i64 {
        self.returned.load(Ordering::Relaxed)
    }

    pub(super) fn distrust(&self, distrusted: bool) {
        self.distrusted.store(distrusted, Ordering::Relaxed);
    }

    pub(super) fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::Relaxed)
    }

    /// Says whether this node gives ids on its own; whether it did before.
    pub(super) fn set_alone(&self, alone: bool) -> bool {
        self.alone.swap(alone, Ordering::Relaxed)
    }

    pub(super) fn raise_floor(&self, end: i64) {
        self.floor.fetch_max(end, Ordering::Relaxed);
    }

    pub(super) fn is_starving(&self) -> bool {
        self.starving.load(Ordering::Relaxed)
    }

    pub(super) fn set_starving(&self, starving: bool) {
        self.starving.store(starving, Ordering::Relaxed);
    }

    /// Whether `range` lies above everything returned so far; if so it counts
    /// as returned. Called by the one driver of the type.
    pub(super) fn advance(&self, range: IdRange) -> bool {
        if range.start() <= self.returned.load(Ordering::Relaxed) {
            return false;
        }
        self.returned.store(range.last(), Ordering::Relaxed);
        true
    }

    /// Whether ids under `history` may be returned, as far as the store was
    /// asked, and `recorded` is still what it calls current.
    pub(super) fn is_known_live(
        &self,
        history: &History,
        recorded: Option<&History>,
    ) -> Option<bool> {
        let known = self.known_history.lock().expect("never poisoned");
        let known = known.as_ref()?;
        let counts = known.history == *history
            && known.recorded.as_ref() == recorded
            && known.ask_again.is_none_or(|t| Instant::now() < t);
        counts.then_some(known.live)
    }

    /// Keeps what the store said of `history` while `recorded` was what it
    /// called current; for `span` only, where that is given.
    pub(super) fn note_history(
        &self,
        history: &History,
        recorded: Option<&History>,
        live: bool,
        span: Option<Duration>,
    ) {
        let known = KnownHistory {
            history: history.clone(),
            recorded: recorded.cloned(),
            live,
            ask_again: span.map(|s| Instant::now() + s),
        };
        *self.known_history.lock().expect("never poisoned") = Some(known);
    }

    /// Whether a refill may start now; if so it counts as running, and
    /// [`finished`](Self::finished) must follow.
    pub(super) fn try_start(&self) -> bool {
        let mut refill = self.refill.lock().expect("never poisoned");
        let now = Instant::now();
        if refill.running || refill.not_before.is_some_and(|t| t > now) {
            return false;
        }
        refill.running = true;
        true
    }

    /// The refill ended: with ids at hand (`Some(true)`), with a range that was
    /// burnt (`Some(false)`), without a try because another node is at it
    /// (`None`), or with an error.
    pub(super) fn finished(&self, result: Result<Option<bool>, Error>) {
        let mut refill = self.refill.lock().expect("never poisoned");
        refill.running = false;
        match result {
            Ok(Some(true)) => {
                refill.error = None;
                refill.pause = Duration::ZERO;
                refill.not_before = None;
                return;
            }
            Ok(None) => {
                // Soon again, always: when the ids run out meanwhile, callers
                // must not wait for a pause before the holder is looked at.
                refill.not_before = Some(Instant::now() + FIRST_PAUSE);
                return;
            }
            Ok(Some(false)) => {}
            Err(error) => refill.error = Some(error),
        }
        refill.pause = (refill.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        refill.not_before = Some(Instant::now() + refill.pause);
    }

    /// Why the latest refill failed.
    pub(super) fn error(&self) -> Option<Error> {
        self.refill.lock().expect("never poisoned").error.clone()
    }

    /// Until when no refill may start, after one that failed.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.refill.lock().expect("never poisoned").not_before
    }

    /// Whether the latest refill failed for a reason that only a change of the
    /// type can remove.
    pub(super) fn is_final(&self) -> bool {
        self.refill.lock().expect("never poisoned").error.as_ref().is_some_and(is_final)
    }

    /// Why no refill will succeed until somebody changes the type. Holds until
    /// the next try is allowed.
    pub(super) fn verdict(&self) -> Option<Error> {
        let refill = self.refill.lock().expect("never poisoned");
        let holds = refill.not_before.is_some_and(|t| Instant::now() < t);
        refill.error.as_ref().filter(|e| is_final(e)).filter(|_| holds).cloned()
    }

    /// The type was changed: what failed before may succeed now.
    pub(super) fn forgive(&self) {
        let mut refill = self.refill.lock().expect("never poisoned");
        refill.error = None;
        refill.not_before = None;
    }

    /// Whether `history` was not counted as stale yet; from now on it is. So
    /// that metrics count events, not how often a driver looked.
    pub(super) fn is_news(&self, history: &History) -> bool {
        let mut counted = self.counted.lock().expect("never poisoned");
        counted.replace(history.clone()).as_ref() != Some(history)
    }

    /// The rate of use in ids per second, given `used` ids in `age_ms`. Right
    /// after a publication that says little, and the rate before it counts.
    pub(super) fn rate(&self, used: u64, age_ms: u64) -> Option<f64> {
        let mut rate = self.rate.lock().expect("never poisoned");
        let measured = (age_ms > 0).then(|| used as f64 * 1_000.0 / age_ms as f64);
        if age_ms >= MEANINGFUL_MS || rate.is_none() {
            *rate = measured;
        }
        rate.filter(|rate| *rate > 0.0)
    }

    /// How often ids were asked for.
    pub(super) fn takes(&self) -> u64 {
        self.takes.load(Ordering::Relaxed)
    }

    /// Notes that the type is in use, if `taken` is not what it was at the last look.
    pub(super) fn note_use(&self, taken: u64) {
        if self.leased_seen.swap(taken, Ordering::Relaxed) != taken {
            let now = self.made.elapsed().as_millis() as u64;
            self.last_take_ms.store(now.max(1), Ordering::Relaxed);
        }
    }

    /// Notes that the type is in use.
    pub(super) fn touch(&self) {
        self.takes.fetch_add(1, Ordering::Relaxed);
        let now = self.made.elapsed().as_millis() as u64;
        self.last_take_ms.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether the type was in use within `span`.
    pub(super) fn used_within(&self, span: Duration) -> bool {
        let last = self.last_take_ms.load(Ordering::Relaxed);
        let now = self.made.elapsed().as_millis() as u64;
        last > 0 && now.saturating_sub(last) < span.as_millis() as u64
    }
}

fn is_final(error: &Error) -> bool {
    matches!(
        error.code,
        ErrorCode::Exhausted
            | ErrorCode::Retired
            | ErrorCode::UnknownType
            | ErrorCode::InvalidArgument
    )
}
