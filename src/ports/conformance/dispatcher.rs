//! What every dispatcher must do.

use std::sync::Arc;
use std::time::Duration;

use super::{assert_disjoint, leases, migration, name};
use crate::domain::{History, IdRange, TypeName};
use crate::ports::{
    Announcement, Dispatcher, LockOutcome, Publication, PublishOutcome, Refusal, TakeOutcome,
    Taken, Witness,
};

type Shared = Arc<dyn Dispatcher>;

const TTL: Duration = Duration::from_secs(30);

/// Runs the whole suite on a dispatcher without types of the suite.
pub async fn dispatcher(dispatcher: Shared) {
    nothing_published(&dispatcher).await;
    publishing_and_taking(&dispatcher).await;
    refusals(&dispatcher).await;
    numbers_above_doubles(&dispatcher).await;
    locking(&dispatcher).await;
    taking_over(&dispatcher).await;
    concurrent_takers(&dispatcher).await;
    announcements(&dispatcher).await;
    leased_ends_are_apart(&dispatcher).await;
    leases::all(&dispatcher).await;
    migration::all(&dispatcher).await;
}

/// After `change_history` the data that survived must be dead: nothing may be
/// taken from it, and nothing may be published for the history before.
pub async fn dispatcher_after_rollback<F>(dispatcher: Shared, change_history: F)
where
    F: AsyncFnOnce(),
{
    let (leased, sealed) = (name("rollback-leased"), name("rollback-sealed"));
    let name = name("rollback");
    let before = history_of(&dispatcher, &name).await;
    publish(&dispatcher, &name, 1, 1_001).await;
    taken(&dispatcher, &name, 10).await;
    leases::note_one(&dispatcher, &leased).await;
    migration::seal_one(&dispatcher, &sealed).await;
    assert_eq!(dispatcher.lock(&name, "sleeper", TTL, None).await.unwrap(), LockOutcome::Acquired);
    change_history().await;
    let after = history_of(&dispatcher, &name).await;
    assert_ne!(before, after, "the test must change the history");
    match dispatcher.take(&name, 1).await.unwrap() {
        TakeOutcome::Stale { history } => assert_eq!(history, after),
        other => panic!("data that may be rolled back was resumed: {other:?}"),
    }
    let view = dispatcher.view(&name).await.unwrap();
    assert!(!view.is_live() && view.is_due() && view.left() == 0);
    leases::still_witnessed(&dispatcher, &leased).await;
    migration::nothing_is_left(&dispatcher, &sealed).await;
    let late = Publication {
        range: range(1_001, 2_001),
        update_id: 1_101,
        history: &before,
        token: "sleeper",
        generation: 0,
        replaces: false,
    };
    assert_eq!(
        dispatcher.publish(&name, late).await.unwrap(),
        PublishOutcome::Refused(Refusal::History),
        "a refill that began before the change must not publish after it"
    );
    dispatcher.unlock(&name, "sleeper").await.unwrap();
    publish(&dispatcher, &name, 2_001, 3_001).await;
    assert_eq!(taken(&dispatcher, &name, 2).await.ranges, [range(2_001, 2_003)]);
}

fn range(start: i64, end: i64) -> IdRange {
    IdRange::new(start, end).unwrap()
}

/// The history under which ranges of the type are published.
async fn history_of(dispatcher: &Shared, name: &TypeName) -> History {
    dispatcher.view(name).await.unwrap().history
}

async fn taken(dispatcher: &Shared, name: &TypeName, count: u64) -> Taken {
    match dispatcher.take(name, count).await.unwrap() {
        TakeOutcome::Taken(taken) => taken,
        other => panic!("expected ids, got {other:?}"),
    }
}

async fn offer(dispatcher: &Shared, name: &TypeName, start: i64, end: i64) -> PublishOutcome {
    let history = history_of(dispatcher, name).await;
    let token = format!("token-{start}");
    assert_eq!(dispatcher.lock(name, &token, TTL, None).await.unwrap(), LockOutcome::Acquired);
    let publication = Publication {
        range: range(start, end),
        update_id: start + (end - start) / 10,
        history: &history,
        token: &token,
        generation: 0,
        replaces: false,
    };
    let outcome = dispatcher.publish(name, publication).await.unwrap();
    assert!(dispatcher.unlock(name, &token).await.unwrap());
    outcome
}

async fn publish(dispatcher: &Shared, name: &TypeName, start: i64, end: i64) {
    assert_eq!(offer(dispatcher, name, start, end).await, PublishOutcome::Published);
}

async fn nothing_published(dispatcher: &Shared) {
    let name = name("nothing");
    let history = history_of(dispatcher, &name).await;
    assert_eq!(dispatcher.take(&name, 1).await.unwrap(), TakeOutcome::Stale { history });
    let view = dispatcher.view(&name).await.unwrap();
    assert_eq!((view.current, view.second, view.highest_end()), (None, None, 0));
    assert!(view.is_due());
}

async fn publishing_and_taking(dispatcher: &Shared) {
    let name = name("flow");
    let history = history_of(dispatcher, &name).await;
    publish(dispatcher, &name, 1, 101).await;
    let first = taken(dispatcher, &name, 1).await;
    assert_eq!(first.ranges, [range(1, 2)]);
    assert_eq!((first.due, first.left, &first.history), (false, 99, &history));
    assert!(!taken(dispatcher, &name, 8).await.due, "10 is the next id, 11 the update id");
    assert!(taken(dispatcher, &name, 1).await.due, "the update id is the next id");
    let view = dispatcher.view(&name).await.unwrap();
    assert_eq!((view.cursor, view.current, view.update_id), (11, Some(range(1, 101)), 11));
    assert_eq!((view.used, view.left()), (10, 90));
    assert!(view.is_live() && view.is_due());

    publish(dispatcher, &name, 201, 301).await;
    let view = dispatcher.view(&name).await.unwrap();
    assert_eq!((view.second, view.used, view.left()), (Some(range(201, 301)), 0, 190));
    assert_eq!(view.highest_end(), 301);
    assert!(!taken(dispatcher, &name, 80).await.due, "a range is in reserve");
    let across = taken(dispatcher, &name, 15).await;
    assert_eq!(across.ranges, [range(91, 101), range(201, 206)], "from both, in order");
    assert_eq!(across.left, 95);
    let rest = taken(dispatcher, &name, 1_000).await;
    assert_eq!(rest.ranges, [range(206, 301)], "fewer than asked for, where there are no more");
    assert!(rest.due);
    assert_eq!(taken(dispatcher, &name, 5).await.ranges, []);
    publish(dispatcher, &name, 301, 401).await;
    assert_eq!(taken(dispatcher, &name, 1).await.ranges, [range(301, 302)]);
}

async fn refusals(dispatcher: &Shared) {
    let name = name("refusals");
    let history = history_of(dispatcher, &name).await;
    let other = History::new("0".repeat(40));
    let offer_as = async |history: &History, token: &str, start| {
        let publication = Publication {
            range: range(start, start + 100),
            update_id: start + 10,
            history,
            token,
            generation: 0,
            replaces: false,
        };
        dispatcher.publish(&name, publication).await.unwrap()
    };
    assert_eq!(
        offer_as(&history, "none", 1).await,
        PublishOutcome::Refused(Refusal::Token),
        "nobody publishes without the lock"
    );
    dispatcher.lock(&name, "mine", TTL, None).await.unwrap();
    assert_eq!(offer_as(&other, "mine", 1).await, PublishOutcome::Refused(Refusal::History));
    assert_eq!(offer_as(&history, "theirs", 1).await, PublishOutcome::Refused(Refusal::Token));
    assert_eq!(offer_as(&history, "mine", 1_001).await, PublishOutcome::Published);
    taken(dispatcher, &name, 1).await;
    assert_eq!(
        offer_as(&history, "mine", 1_100).await,
        PublishOutcome::Refused(Refusal::Order),
        "one below the end is too low"
    );
    assert_eq!(offer_as(&history, "mine", 1_101).await, PublishOutcome::Published);
    assert_eq!(offer_as(&history, "mine", 1_201).await, PublishOutcome::Refused(Refusal::Full));
    taken(dispatcher, &name, 1_000).await;
    assert_eq!(
        offer_as(&history, "mine", 1_101).await,
        PublishOutcome::Refused(Refusal::Order),
        "an old range stays dead when everything is used up"
    );
    assert_eq!(offer_as(&history, "mine", 1_201).await, PublishOutcome::Published);
    assert_eq!(offer_as(&history, "mine", 1_301).await, PublishOutcome::Published);
    let replacing = |start| Publication {
        range: range(start, start + 100),
        update_id: start + 10,
        history: &history,
        token: "mine",
        generation: 0,
        replaces: true,
    };
    assert_eq!(
        dispatcher.publish(&name, replacing(1_400)).await.unwrap(),
        PublishOutcome::Refused(Refusal::Order),
        "a replacement may not go back either"
    );
    let outcome = dispatcher.publish(&name, replacing(1_401)).await.unwrap();
    assert_eq!(outcome, PublishOutcome::Published);
    assert_eq!(taken(dispatcher, &name, 1).await.ranges, [range(1_401, 1_402)]);
    assert!(dispatcher.unlock(&name, "mine").await.unwrap());
    assert_eq!(offer_as(&history, "mine", 1_501).await, PublishOutcome::Refused(Refusal::Token));
}

async fn numbers_above_doubles(dispatcher: &Shared) {
    // Doubles, in which Redis scripts compute, are exact only up to 2^53.
    for (text, start) in [
        ("above-53", (1_i64 << 53) - 5),
        ("above-62", (1_i64 << 62) + 1),
        ("carry", 3_999_999_995),
        ("carry-up", 8_999_999_999_999_999_995),
        ("highest", i64::MAX - 60),
    ] {
        let name = name(text);
        publish(dispatcher, &name, start, start + 20).await;
        publish(dispatcher, &name, start + 21, start + 41).await;
        let mut next = start;
        for count in [1, 6, 7, 5] {
            let taken = taken(dispatcher, &name, count).await;
            assert_eq!(taken.ranges, [range(next, next + count as i64)], "{text}");
            next += count as i64;
        }
        let across = taken(dispatcher, &name, 5).await;
        assert_eq!(across.ranges, [range(start + 19, start + 20), range(start + 21, start + 25)]);
        assert_eq!((across.left, across.due), (16, true), "{text}");
        assert_eq!(
            offer(dispatcher, &name, start + 40, start + 60).await,
            PublishOutcome::Refused(Refusal::Order),
            "{text}"
        );
        publish(dispatcher, &name, start + 41, start + 60).await;
        let view = dispatcher.view(&name).await.unwrap();
        assert_eq!(view.cursor, start + 25);
        assert_eq!(view.highest_end(), start + 60);
        assert_eq!(view.left(), 35);
    }
}

async fn locking(dispatcher: &Shared) {
    let name = name("lock");
    let lock = async |token: &str, grace: Option<Duration>| {
        dispatcher.lock(&name, token, TTL, grace).await.unwrap()
    };
    assert_eq!(lock("a", None).await, LockOutcome::Acquired);
    assert_eq!(lock("b", None).await, LockOutcome::Held);
    assert_eq!(lock("b", Some(TTL)).await, LockOutcome::Held, "not silent for so long");
    assert!(!dispatcher.unlock(&name, "b").await.unwrap(), "only the holder releases");
    assert!(!dispatcher.renew(&name, "b", TTL).await.unwrap());
    assert!(dispatcher.renew(&name, "a", TTL).await.unwrap());
    assert!(dispatcher.unlock(&name, "a").await.unwrap());
    assert_eq!(lock("b", None).await, LockOutcome::Acquired);
    assert!(dispatcher.unlock(&name, "b").await.unwrap());
    assert!(!dispatcher.unlock(&name, "b").await.unwrap());

    // The silence of a holder has nothing to do with the time to live that
    // another one asks for: settings may have changed between them.
    let minute = Some(Duration::from_secs(60));
    for (its_ttl, my_ttl) in [(10, 3_600), (3_600, 10)] {
        let (its_ttl, my_ttl) = (Duration::from_secs(its_ttl), Duration::from_secs(my_ttl));
        dispatcher.lock(&name, "holder", its_ttl, None).await.unwrap();
        let outcome = dispatcher.lock(&name, "other", my_ttl, minute).await.unwrap();
        assert_eq!(outcome, LockOutcome::Held, "the holder was not silent for a minute");
        assert!(dispatcher.renew(&name, "holder", my_ttl).await.unwrap());
        let outcome = dispatcher.lock(&name, "other", its_ttl, minute).await.unwrap();
        assert_eq!(outcome, LockOutcome::Held, "nor after its sign of life");
        assert!(dispatcher.unlock(&name, "holder").await.unwrap());
    }
}

async fn taking_over(dispatcher: &Shared) {
    let name = name("take-over");
    let history = history_of(dispatcher, &name).await;
    dispatcher.lock(&name, "dead", TTL, None).await.unwrap();
    let grace = Duration::from_millis(20);
    // Time has to pass for a holder to be silent; the bound is a safety net.
    let taken_over = async {
        while dispatcher.lock(&name, "heir", TTL, Some(grace)).await.unwrap()
            != LockOutcome::TakenOver
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), taken_over)
        .await
        .expect("a silent holder loses the lock after the grace");
    let publish = async |token: &str| {
        let publication = Publication {
            range: range(1, 101),
            update_id: 11,
            history: &history,
            token,
            generation: 0,
            replaces: false,
        };
        dispatcher.publish(&name, publication).await.unwrap()
    };
    assert_eq!(publish("dead").await, PublishOutcome::Refused(Refusal::Token));
    assert_eq!(publish("heir").await, PublishOutcome::Published);
    assert!(!dispatcher.unlock(&name, "dead").await.unwrap());
    assert!(dispatcher.unlock(&name, "heir").await.unwrap());

    let short = Duration::from_millis(20);
    dispatcher.lock(&name, "short", short, None).await.unwrap();
    let expired = async {
        while dispatcher.lock(&name, "next", TTL, None).await.unwrap() != LockOutcome::Acquired {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), expired)
        .await
        .expect("a lock ends after its time to live");
    dispatcher.unlock(&name, "next").await.unwrap();
}

async fn leased_ends_are_apart(dispatcher: &Shared) {
    let name = name("flow-leased");
    publish(dispatcher, &name, 1, 101).await;
    let leased = range(501, 601);
    assert_eq!(dispatcher.witness(&name, None, leased).await.unwrap(), Witness::Noted);
    let view = dispatcher.view(&name).await.unwrap();
    assert_eq!((view.leased_end, view.highest_end()), (601, 601), "a floor for the next refill");
    assert_eq!((view.current, view.left()), (Some(range(1, 101)), 100));
    assert_eq!(taken(dispatcher, &name, 100).await.ranges, [range(1, 101)]);
    publish(dispatcher, &name, 601, 1_601).await;
    assert_eq!(dispatcher.view(&name).await.unwrap().leased_end, 601, "kept by a publication");
    assert!(dispatcher.withdraw(&name, None, leased).await.unwrap());
    assert_eq!(dispatcher.view(&name).await.unwrap().highest_end(), 1_601);
}

async fn concurrent_takers(dispatcher: &Shared) {
    let name = name("takers");
    publish(dispatcher, &name, 1, 10_001).await;
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let (dispatcher, name) = (dispatcher.clone(), name.clone());
            tokio::spawn(async move {
                let mut ranges: Vec<IdRange> = Vec::new();
                for _ in 0..100 {
                    let got = taken(&dispatcher, &name, 7).await.ranges;
                    if let (Some(last), Some(first)) = (ranges.last(), got.first()) {
                        assert!(last.end() <= first.start(), "a later take gives larger ids");
                    }
                    ranges.extend(got);
                }
                ranges
            })
        })
        .collect();
    let mut ranges = Vec::new();
    for taker in takers {
        ranges.extend(taker.await.unwrap());
    }
    assert_eq!(ranges.iter().map(|r| r.len()).sum::<u64>(), 5_600);
    assert_disjoint(ranges);
}

async fn announcements(dispatcher: &Shared) {
    let name = name("news");
    let mut news = dispatcher.subscribe();
    let hear = async |wanted: Announcement, news: &mut tokio::sync::broadcast::Receiver<_>| {
        let heard = async { while news.recv().await.unwrap() != wanted {} };
        tokio::time::timeout(Duration::from_secs(10), heard)
            .await
            .unwrap_or_else(|_| panic!("{wanted:?} was never heard"));
    };
    // The first message may be lost while the channel connects; the promise is
    // freshness, so the suite repeats what a node would repeat.
    let changed = Announcement::Type(name.clone());
    let mut heard = false;
    for _ in 0..100 {
        dispatcher.announce(&changed).await.unwrap();
        let wait = tokio::time::timeout(Duration::from_millis(100), async {
            while news.recv().await.unwrap() != changed {}
        });
        if wait.await.is_ok() {
            heard = true;
            break;
        }
    }
    assert!(heard, "a change of a type is announced to its own node too");
    publish(dispatcher, &name, 1, 101).await;
    hear(Announcement::Range(name.clone()), &mut news).await;
}
