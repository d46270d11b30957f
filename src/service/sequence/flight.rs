//! Calls to the dispatcher that are on their way: at most two per type and node.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::super::catalogue::TypeEntry;
use super::super::instances::Instance;
use super::Waiter;
use crate::ports::{DispatchError, TakeOutcome};

/// A call leaves behind another one for so many callers at least: it costs Redis and
/// the node about 30 µs of processor time, which few callers do not save by it. Of 8,
/// 16 and 24 this was best, and with 8 connections there was no gain at all.
const LEAST_BEHIND: usize = 16;

/// What a call brought.
pub(super) type Outcome = Result<TakeOutcome, DispatchError>;

/// A call to the dispatcher, and for whom it is.
pub(super) struct Flight {
    pub(super) batch: VecDeque<Waiter>,
    /// How many they were when it left.
    callers: usize,
    pub(super) instance: Arc<Instance>,
    take: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    /// Set once the call is back.
    outcome: Option<Outcome>,
}

impl Flight {
    /// A call for `wanted` ids. It leaves when it is polled first.
    pub(super) fn new(
        batch: VecDeque<Waiter>,
        entry: Arc<TypeEntry>,
        instance: Arc<Instance>,
        wanted: u64,
    ) -> Self {
        let to = instance.clone();
        let take = Box::pin(async move { to.dispatcher.take(&entry.name, wanted).await });
        Flight { callers: batch.len(), batch, instance, take, outcome: None }
    }

    /// For how many callers a second call is worth it.
    pub(super) fn enough_behind(&self) -> usize {
        (self.callers / 2).max(LEAST_BEHIND)
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if self.outcome.is_none()
            && let Poll::Ready(outcome) = self.take.as_mut().poll(context)
        {
            self.outcome = Some(outcome);
        }
    }
}

/// Those on their way, in the order in which they left.
#[derive(Default)]
pub(super) struct Flights {
    first: Option<Flight>,
    second: Option<Flight>,
}

impl Flights {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn has_room(&self) -> bool {
        self.second.is_none()
    }

    /// The one that left first.
    pub(super) fn first(&self) -> Option<&Flight> {
        self.first.as_ref()
    }

    pub(super) fn push(&mut self, flight: Flight) {
        match self.first {
            None => self.first = Some(flight),
            Some(_) => self.second = Some(flight),
        }
    }

    pub(super) fn drop_first(&mut self) {
        self.first = self.second.take();
    }

    /// The first one and what it brought, once it is back. The second one goes on
    /// meanwhile, behind the first.
    pub(super) fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<(Flight, Outcome)> {
        for flight in self.iter_mut() {
            flight.poll(context);
        }
        let Some(outcome) = self.first.as_mut().and_then(|first| first.outcome.take()) else {
            return Poll::Pending;
        };
        match std::mem::replace(&mut self.first, self.second.take()) {
            Some(first) => Poll::Ready((first, outcome)),
            None => Poll::Pending,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.first.iter().chain(&self.second)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flight> {
        self.first.iter_mut().chain(&mut self.second)
    }
}
