//! A clock that rings for everyone who waits for a dispatcher.
//!
//! Those who wait must look up now and then, whether somebody's time is over. A
//! timer of each one's own would cost a system call per call to the dispatcher:
//! it ends before all others, so that the runtime has to be woken to hear of it.
//! This clock rings for all of them, and stands still while nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::Parts;

/// So often it rings.
pub(super) const GLANCE: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Default)]
pub(super) struct Glance {
    ticks: AtomicBool,
    wanted: AtomicBool,
    bell: Notify,
}

impl Glance {
    /// Returns after [`GLANCE`] at the latest, but for what a busy node adds.
    pub(super) async fn heard(parts: &Arc<Parts>) {
        let glance = &parts.glance;
        // Hears every ring from here on, also one before it is waited for.
        let ring = glance.bell.notified();
        glance.wanted.store(true, Ordering::SeqCst);
        if parts.stop.is_cancelled() {
            return sleep(GLANCE).await;
        }
        if !glance.ticks.swap(true, Ordering::SeqCst) {
            parts.tasks.spawn(tick(parts.clone()));
        }
        ring.await;
    }
}

/// Rings until nobody has waited between two rings, or the node stops.
async fn tick(parts: Arc<Parts>) {
    let glance = &parts.glance;
    loop {
        tokio::select! {
            biased;
            () = parts.stop.cancelled() => return glance.bell.notify_waiters(),
            () = sleep(GLANCE) => glance.bell.notify_waiters(),
        }
        if glance.wanted.swap(false, Ordering::SeqCst) {
            continue;
        }
        glance.ticks.store(false, Ordering::SeqCst);
        // Somebody may have come in between, and have seen it tick.
        if !glance.wanted.load(Ordering::SeqCst) || glance.ticks.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}
