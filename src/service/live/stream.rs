//! Streams: one task samples for all of them, as long as there are any.
//!
//! Each stream takes the newest sample when it asks; older ones are gone. So one that
//! does not ask costs nothing but its names.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::api::{Changed, Event, Events, Overview, STREAM_PERIOD, TypeLive};
use super::collect;
use crate::domain::TypeName;
use crate::service::Parts;

/// Between two samples at least, however many streams begin.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// What was found at one look.
struct Sample {
    /// Streams with a number up to this one are in it.
    newest: u64,
    overview: Arc<Overview>,
    at_ms: i64,
    types: HashMap<TypeName, TypeLive>,
}

/// The streams that are open.
pub(super) struct Streams {
    open: Mutex<Open>,
    samples: watch::Sender<Option<Arc<Sample>>>,
    /// A stream begins or ends.
    news: Notify,
}

#[derive(Default)]
struct Open {
    newest: u64,
    watched: HashMap<u64, Arc<Vec<TypeName>>>,
    /// Whether the task is at work.
    sampled: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Streams { open: Mutex::default(), samples: watch::channel(None).0, news: Notify::new() }
    }
}

/// Samples as long as there are streams.
async fn sample(parts: Arc<Parts>) {
    let Some(live) = parts.live.get() else { return };
    let streams = &live.streams;
    loop {
        let began = Instant::now();
        let (newest, names) = {
            let mut open = streams.open.lock().expect("never poisoned");
            if open.watched.is_empty() || parts.stop.is_cancelled() {
                open.sampled = false;
                streams.samples.send_replace(None);
                return;
            }
            let names: BTreeSet<_> = open.watched.values().flat_map(|n| n.iter()).collect();
            (open.newest, names.into_iter().cloned().collect::<Vec<_>>())
        };
        let look = async {
            // First, because it brings what the peers tell of the types.
            let overview = collect::overview(&parts).await;
            let found = collect::types(&parts, &names).await;
            let types = found.into_iter().map(|live| (live.name.clone(), live)).collect();
            Sample { newest, overview, at_ms: parts.clock.now_ms(), types }
        };
        tokio::select! {
            biased;
            () = parts.stop.cancelled() => continue,
            sample = look => drop(streams.samples.send_replace(Some(Arc::new(sample)))),
        }
        tokio::select! {
            biased;
            () = parts.stop.cancelled() => {}
            () = streams.news.notified() => sleep(SHORTEST_PAUSE).await,
            () = sleep_until(began + STREAM_PERIOD) => {}
        }
    }
}

/// The events of one stream.
pub struct Stream {
    parts: Arc<Parts>,
    number: u64,
    names: Arc<Vec<TypeName>>,
    samples: Option<watch::Receiver<Option<Arc<Sample>>>>,
    changes: Option<broadcast::Receiver<Changed>>,
    /// Events of the newest sample that were not asked for yet: one at most.
    waiting: VecDeque<Event>,
}

impl Stream {
    pub(super) fn begin(parts: Arc<Parts>, names: Vec<TypeName>) -> Self {
        let names = Arc::new(names);
        let mut stream = Stream {
            number: 0,
            names,
            samples: None,
            changes: None,
            waiting: VecDeque::new(),
            parts,
        };
        let Some(live) = stream.parts.live.get() else { return stream };
        stream.changes = Some(live.changes.subscribe());
        let mut samples = live.streams.samples.subscribe();
        samples.mark_unchanged();
        stream.samples = Some(samples);
        let mut open = live.streams.open.lock().expect("never poisoned");
        open.newest += 1;
        stream.number = open.newest;
        open.watched.insert(stream.number, stream.names.clone());
        let is_first = !std::mem::replace(&mut open.sampled, true);
        drop(open);
        match is_first {
            true => drop(stream.parts.tasks.spawn(sample(stream.parts.clone()))),
            false => live.streams.news.notify_one(),
        }
        stream
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(live) = self.parts.live.get() {
            live.streams.open.lock().expect("never poisoned").watched.remove(&self.number);
            live.streams.news.notify_one();
        }
    }
}

impl Events for Stream {
    async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.waiting.pop_front() {
            return Some(event);
        }
        let (samples, changes) = (self.samples.as_mut()?, self.changes.as_mut()?);
        loop {
            tokio::select! {
                biased;
                () = self.parts.stop.cancelled() => return None,
                changed = changes.recv() => return match changed {
                    Ok(changed) => Some(Event::Changed(changed)),
                    Err(RecvError::Lagged(_)) => Some(Event::Changed(Changed {
                        instances: true,
                        all: true,
                        at_ms: self.parts.clock.now_ms(),
                        ..Changed::default()
                    })),
                    Err(RecvError::Closed) => None,
                },
                newer = samples.changed() => {
                    newer.ok()?;
                    let sample = samples.borrow_and_update().clone();
                    // One that began before this stream lacks its types.
                    let Some(sample) = sample.filter(|s| s.newest >= self.number) else { continue };
                    let items = self.names.iter().filter_map(|name| sample.types.get(name));
                    let items = items.cloned().collect();
                    self.waiting.push_back(Event::Types { at_ms: sample.at_ms, items });
                    return Some(Event::Overview(sample.overview.clone()));
                }
            }
        }
    }
}
