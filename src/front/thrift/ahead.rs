//! Calls that begin while one before them on their connection waits.
//!
//! Replies go out in the order of the calls, but that is no reason to begin a call
//! only when the one before it has its answer. Where that one has to wait (a strict
//! type asks its dispatcher), the calls for single ids that have arrived behind it
//! begin at once, in their order, and share its way: a client that sends a hundred
//! calls in a row waits as long as for one. What waits for ids of a type is bounded
//! by the service, which refuses more (`OVERLOADED`) at once.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::method::Method;
use super::reply::Answer;
use super::wire::{Dialect, Header};

/// Most calls that one connection has begun behind the one that waits.
pub(super) const MOST: usize = 256;

/// What one that is begun counts for among the buffers, in bytes.
pub(super) const CALL_BYTES: usize = 2 * 1024;

/// A call that has begun.
pub(super) struct Begun<'a> {
    pub(super) method: Method,
    pub(super) header: Header,
    pub(super) dialect: Dialect,
    pub(super) is_oneway: bool,
    pub(super) began: Instant,
    pub(super) state: State<'a>,
}

pub(super) enum State<'a> {
    Waiting(Pin<Box<dyn Future<Output = Answer> + Send + 'a>>),
    Ready(Answer),
}

/// Goes on with `calls`, as far as they can go now.
pub(super) fn poll(calls: &mut VecDeque<Begun<'_>>, context: &mut Context<'_>) {
    for begun in calls {
        if let State::Waiting(call) = &mut begun.state
            && let Poll::Ready(answer) = call.as_mut().poll(context)
        {
            begun.state = State::Ready(answer);
        }
    }
}

/// Whether a call of `method` may begin before its turn: those whose answers are
/// small, because many of them are kept.
pub(super) fn may_begin(method: Method) -> bool {
    use Method::{GetId, GetStrId, NextId, NextShardedId, NextStringId};
    matches!(method, GetId | GetStrId | NextId | NextShardedId | NextStringId)
}
