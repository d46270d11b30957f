//! What every dispatcher must do when a type leaves it, and when one comes.

use std::sync::Arc;
use std::time::Duration;

use super::name;
use crate::domain::{IdRange, InstanceId, Seal, TypeName};
use crate::ports::{
    Dispatcher, LockOutcome, Publication, PublishOutcome, Refusal, Remembered, Rest, TakeOutcome,
    Witness, WitnessedEnd,
};

type Shared = Arc<dyn Dispatcher>;

const TTL: Duration = Duration::from_secs(30);

pub(super) async fn all(dispatcher: &Shared) {
    sealing(dispatcher).await;
    sealing_what_is_used_up(dispatcher).await;
    sealing_what_is_not_there(dispatcher).await;
    later_and_earlier_seals(dispatcher).await;
    unsealing(dispatcher).await;
    coming_back(dispatcher).await;
    sealed_leases(dispatcher).await;
    adopting(dispatcher).await;
    sealed_request_keys(dispatcher).await;
}

/// Publishes and seals `name`, so that [`nothing_is_left`] can ask for it later.
pub(super) async fn seal_one(dispatcher: &Shared, name: &TypeName) {
    publish(dispatcher, name, 1, 101, 0).await;
    assert!(!dispatcher.seal(name, seal(1)).await.unwrap().rest.is_empty());
}

/// Panics unless the rest of [`seal_one`] is dead, now that the history changed.
pub(super) async fn nothing_is_left(dispatcher: &Shared, name: &TypeName) {
    let again = dispatcher.seal(name, seal(1)).await.unwrap();
    assert_eq!(again.rest, Rest::default(), "what may be rolled back is not moved");
    assert_eq!(again.published_end, 101, "its end is still a witness");
}

fn range(start: i64, end: i64) -> IdRange {
    IdRange::new(start, end).unwrap()
}

fn seal(generation: i64) -> Seal {
    Seal { generation, target: InstanceId(7) }
}

async fn offer(
    dispatcher: &Shared,
    name: &TypeName,
    (start, end): (i64, i64),
    generation: i64,
) -> PublishOutcome {
    let history = dispatcher.view(name).await.unwrap().history;
    assert_eq!(dispatcher.lock(name, "t", TTL, None).await.unwrap(), LockOutcome::Acquired);
    let publication = Publication {
        range: range(start, end),
        update_id: start + 10,
        history: &history,
        token: "t",
        generation,
        replaces: false,
    };
    let outcome = dispatcher.publish(name, publication).await.unwrap();
    assert!(dispatcher.unlock(name, "t").await.unwrap());
    outcome
}

async fn publish(dispatcher: &Shared, name: &TypeName, start: i64, end: i64, generation: i64) {
    let outcome = offer(dispatcher, name, (start, end), generation).await;
    assert_eq!(outcome, PublishOutcome::Published);
}

async fn take(dispatcher: &Shared, name: &TypeName, count: u64) -> Vec<IdRange> {
    match dispatcher.take(name, count).await.unwrap() {
        TakeOutcome::Taken(taken) => taken.ranges,
        other => panic!("expected ids, got {other:?}"),
    }
}

async fn is_stale(dispatcher: &Shared, name: &TypeName) -> bool {
    matches!(dispatcher.take(name, 1).await.unwrap(), TakeOutcome::Stale { .. })
}

async fn sealing(dispatcher: &Shared) {
    let name = name("seal");
    publish(dispatcher, &name, 1, 101, 0).await;
    publish(dispatcher, &name, 201, 301, 0).await;
    take(dispatcher, &name, 30).await;
    let rest = Rest { current: Some((range(31, 101), 11)), second: Some(range(201, 301)) };
    for _ in 0..2 {
        let sealed = dispatcher.seal(&name, seal(1)).await.unwrap();
        assert_eq!((sealed.seal, &sealed.rest), (seal(1), &rest), "a repetition says the same");
        assert_eq!((sealed.published_end, sealed.leased_ends), (301, vec![]));
    }
    assert_eq!(dispatcher.take(&name, 1).await.unwrap(), TakeOutcome::Moved(seal(1)));
    let view = dispatcher.view(&name).await.unwrap();
    assert_eq!((view.sealed, view.left(), view.next()), (Some(seal(1)), 0, None));
    assert_eq!(view.highest_end(), 301, "its end is still a witness");
    for generation in [0, 1] {
        let late = offer(dispatcher, &name, (301, 401), generation).await;
        assert_eq!(late, PublishOutcome::Refused(Refusal::Moved));
    }
}

async fn sealing_what_is_used_up(dispatcher: &Shared) {
    let name = name("seal-used-up");
    publish(dispatcher, &name, 1, 101, 0).await;
    take(dispatcher, &name, 100).await;
    let sealed = dispatcher.seal(&name, seal(1)).await.unwrap();
    assert_eq!((sealed.rest, sealed.published_end), (Rest::default(), 101));
}

async fn sealing_what_is_not_there(dispatcher: &Shared) {
    let name = name("seal-nothing");
    let sealed = dispatcher.seal(&name, seal(1)).await.unwrap();
    assert_eq!((sealed.rest, sealed.published_end), (Rest::default(), 0));
    assert_eq!(dispatcher.take(&name, 1).await.unwrap(), TakeOutcome::Moved(seal(1)));
    let view = dispatcher.view(&name).await.unwrap();
    assert_eq!((view.current, view.sealed), (None, Some(seal(1))));
}

async fn later_and_earlier_seals(dispatcher: &Shared) {
    let name = name("seal-twice");
    publish(dispatcher, &name, 1, 101, 0).await;
    dispatcher.seal(&name, seal(3)).await.unwrap();
    let elsewhere = Seal { target: InstanceId(8), ..seal(3) };
    for late in [seal(2), elsewhere] {
        let sealed = dispatcher.seal(&name, late).await.unwrap();
        assert_eq!((sealed.seal, sealed.rest), (seal(3), Rest::default()), "{late}");
    }
    assert!(!dispatcher.seal(&name, seal(3)).await.unwrap().rest.is_empty());
    // What an earlier migration left behind is not live for a later one.
    let later = dispatcher.seal(&name, seal(5)).await.unwrap();
    assert_eq!((later.seal, later.rest), (seal(5), Rest::default()));
}

async fn unsealing(dispatcher: &Shared) {
    let name = name("unseal");
    assert!(dispatcher.unseal(&name, 9).await.unwrap(), "there is none");
    publish(dispatcher, &name, 1, 101, 0).await;
    dispatcher.seal(&name, seal(3)).await.unwrap();
    for generation in [2, 3] {
        assert!(!dispatcher.unseal(&name, generation).await.unwrap());
        assert_eq!(dispatcher.take(&name, 1).await.unwrap(), TakeOutcome::Moved(seal(3)));
    }
    assert!(dispatcher.unseal(&name, 4).await.unwrap());
    assert!(is_stale(dispatcher, &name).await, "what was sealed stays dead");
    let sealed = dispatcher.seal(&name, seal(3)).await.unwrap();
    assert_eq!(sealed.rest, Rest::default(), "and is not moved by a seal that comes late");
    assert!(dispatcher.unseal(&name, 4).await.unwrap());
    let low = offer(dispatcher, &name, (50, 60), 4).await;
    assert_eq!(low, PublishOutcome::Refused(Refusal::Order), "its end is still a witness");
    publish(dispatcher, &name, 101, 201, 4).await;
    assert_eq!(take(dispatcher, &name, 1).await, [range(101, 102)]);
}

async fn coming_back(dispatcher: &Shared) {
    let name = name("seal-back");
    publish(dispatcher, &name, 1, 101, 0).await;
    publish(dispatcher, &name, 201, 301, 0).await;
    take(dispatcher, &name, 30).await;
    dispatcher.seal(&name, seal(1)).await.unwrap();
    let taken = offer(dispatcher, &name, (30, 101), 4).await;
    assert_eq!(taken, PublishOutcome::Refused(Refusal::Order));
    // What left with it, and was not taken there, comes back.
    publish(dispatcher, &name, 31, 101, 4).await;
    publish(dispatcher, &name, 201, 301, 4).await;
    assert_eq!(take(dispatcher, &name, 71).await, [range(31, 101), range(201, 202)]);
    assert_eq!(dispatcher.view(&name).await.unwrap().sealed, None);
}

async fn sealed_leases(dispatcher: &Shared) {
    let name = name("seal-leases");
    for (shard, end) in [(Some(0), 101), (Some(5), 501), (Some(63), 301), (Some(64), 901)] {
        let noted = dispatcher.witness(&name, shard, range(end - 100, end)).await.unwrap();
        assert_eq!(noted, Witness::Noted);
    }
    let mut sealed = dispatcher.seal(&name, seal(1)).await.unwrap();
    sealed.leased_ends.sort_unstable();
    assert_eq!(sealed.leased_ends, [(0, 101), (5, 501), (63, 301)]);
    for shard in [None, Some(0), Some(63)] {
        let late = dispatcher.witness(&name, shard, range(901, 1_001)).await.unwrap();
        assert_eq!(late, Witness::Moved(seal(1)));
        assert!(!dispatcher.withdraw(&name, shard, range(250, 301)).await.unwrap());
        let end = dispatcher.witnessed_end(&name, shard).await.unwrap();
        assert_eq!(end, WitnessedEnd::Moved(seal(1)));
    }
    // What is no shard of a type does not move with it.
    let other = dispatcher.witness(&name, Some(64), range(901, 1_001)).await.unwrap();
    assert_eq!(other, Witness::Noted);
    assert!(dispatcher.withdraw(&name, Some(64), range(950, 1_001)).await.unwrap());
}

async fn adopting(dispatcher: &Shared) {
    let name = name("adopt");
    let history = dispatcher.adopt(&name, &[]).await.unwrap();
    assert_eq!(history, dispatcher.view(&name).await.unwrap().history);
    for (start, end) in [(101, 201), (301, 401), (501, 601)] {
        dispatcher.witness(&name, Some(2), range(start, end)).await.unwrap();
    }
    dispatcher.adopt(&name, &[(0, 1_000), (2, 350)]).await.unwrap();
    dispatcher.adopt(&name, &[(0, 900)]).await.unwrap();
    assert_eq!(dispatcher.view(&name).await.unwrap().highest_end(), 1_000, "it lowers nothing");
    let ask = async |shard, start, end| {
        dispatcher.witness(&name, Some(shard), range(start, end)).await.unwrap()
    };
    assert_eq!(ask(0, 999, 1_100).await, Witness::Overlaps { highest_end: 1_000 });
    assert_eq!(ask(0, 1_000, 1_100).await, Witness::Noted);
    // The range that the end cut through counts to its own end.
    assert_eq!(ask(2, 250, 260).await, Witness::Overlaps { highest_end: 601 });
    assert_eq!(ask(2, 399, 450).await, Witness::Overlaps { highest_end: 601 });
    assert_eq!(ask(2, 401, 450).await, Witness::Noted);
    assert_eq!(ask(2, 550, 650).await, Witness::Overlaps { highest_end: 601 });
    dispatcher.adopt(&name, &[(2, i64::MAX - 1)]).await.unwrap();
    let top = ask(2, i64::MAX - 2, i64::MAX).await;
    assert_eq!(top, Witness::Overlaps { highest_end: i64::MAX - 1 });
    // What is published is not touched.
    publish(dispatcher, &name, 1, 101, 1).await;
    assert_eq!(take(dispatcher, &name, 1).await, [range(1, 2)]);
}

async fn sealed_request_keys(dispatcher: &Shared) {
    let name = name("seal-keys");
    dispatcher.remember(&name, "before", "given", TTL).await.unwrap();
    dispatcher.seal(&name, seal(1)).await.unwrap();
    let late = dispatcher.remember(&name, "after", "given", TTL).await.unwrap();
    assert_eq!(late, Remembered::Moved(seal(1)));
    assert_eq!(dispatcher.recall(&name, "before").await.unwrap().as_deref(), Some("given"));
    assert_eq!(dispatcher.recall(&name, "after").await.unwrap(), None);
}
