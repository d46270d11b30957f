//! What every store must do about worker ids.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::domain::{Error, ErrorCode};
use crate::ports::{StoreError, Tenure, WorkerIds};

type Store = Arc<dyn WorkerIds>;

/// Long enough not to end while the suite runs.
const TTL: i64 = 600_000;

/// Runs the whole suite on a store in which nobody had a worker id of 1 to 7 or 20
/// bits. Takes a little more than a second: that is the shortest tenure.
pub async fn worker_ids(store: Store) {
    leasing(&store).await;
    the_same_token(&store).await;
    renewing(&store).await;
    releasing(&store).await;
    following(&store).await;
    released_ahead_of_time(&store).await;
    ending(&store).await;
    who_had_it(&store).await;
    bad_arguments(&store).await;
    concurrent_callers(&store).await;
}

async fn lease(store: &Store, bits: u8, token: &str) -> Tenure {
    store.lease_worker(bits, "suite", token, TTL).await.expect("a worker id is free")
}

fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Error {
    match result {
        Err(StoreError::Refused(error)) => error,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn leasing(store: &Store) {
    let first = lease(store, 3, "a").await;
    assert_eq!((first.bits, first.worker, first.token.as_str()), (3, 0, "a"));
    assert_eq!(first.from_ms, 0, "nobody had it before");
    assert_eq!(first.until_ms, first.now_ms + TTL, "it ends a ttl from the store's now");
    assert!(first.now_ms > 1_500_000_000_000, "the store knows the time in milliseconds");
    let second = lease(store, 3, "b").await;
    assert_eq!(second.worker, 1, "the lowest that nobody had");
    assert_eq!(lease(store, 4, "a").await.worker, 0, "each width has a pool of its own");
}

async fn the_same_token(store: &Store) {
    let first = lease(store, 5, "once").await;
    let again = store.lease_worker(5, "suite", "once", 2 * TTL).await.unwrap();
    assert_eq!((again.worker, again.from_ms), (first.worker, first.from_ms));
    assert_eq!(again.until_ms, again.now_ms + 2 * TTL, "it is renewed");
    assert_eq!(lease(store, 5, "other").await.worker, 1, "nothing was leased twice");
}

async fn renewing(store: &Store) {
    let held = lease(store, 3, "a").await; // from `leasing`
    let longer = store.renew_worker(3, held.worker, "a", 3 * TTL).await.unwrap();
    assert_eq!((longer.bits, longer.worker, longer.token.as_str()), (3, held.worker, "a"));
    assert_eq!((longer.from_ms, longer.until_ms), (held.from_ms, longer.now_ms + 3 * TTL));
    let shorter = store.renew_worker(3, held.worker, "a", 1_000).await.unwrap();
    assert_eq!(shorter.until_ms, longer.until_ms, "never earlier than it does already");

    for (worker, token) in [(held.worker, "b"), (held.worker, "A"), (1, "a"), (7, "a"), (99, "a")] {
        let error = refusal(store.renew_worker(3, worker, token, TTL).await);
        assert_eq!(error.code, ErrorCode::Conflict, "worker {worker} under {token}: {error}");
    }
    for ttl in [999, 86_400_001, -1] {
        let error = refusal(store.renew_worker(3, held.worker, "a", ttl).await);
        assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some("ttl_ms")));
    }
}

async fn releasing(store: &Store) {
    let held = lease(store, 4, "a").await; // from `leasing`
    let used = held.now_ms - 5;
    assert!(!store.release_worker(4, held.worker, "b", used).await.unwrap(), "a wrong token");
    assert!(!store.release_worker(4, 9, "a", used).await.unwrap(), "a wrong worker id");
    store.renew_worker(4, held.worker, "a", TTL).await.expect("nothing changed");
    assert!(store.release_worker(4, held.worker, "a", used).await.unwrap());
    assert!(!store.release_worker(4, held.worker, "a", used).await.unwrap(), "only once");
    let error = refusal(store.renew_worker(4, held.worker, "a", TTL).await);
    assert_eq!(error.code, ErrorCode::Conflict, "what was released cannot be renewed");
    let next = lease(store, 4, "a").await;
    assert_eq!(next.worker, 1, "a new tenure, and others are unused yet");
}

/// With one bit there are two worker ids.
async fn following(store: &Store) {
    let first = lease(store, 1, "1").await;
    let second = lease(store, 1, "2").await;
    assert_eq!((first.worker, second.worker), (0, 1));
    let error = refusal(store.lease_worker(1, "suite", "3", TTL).await);
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
    assert!(error.message.contains("all 2 worker ids"), "it says how many: {error}");
    assert!(error.message.contains("free in "), "it says when one becomes free: {error}");

    let (earlier, later) = (first.now_ms - 70, first.now_ms - 50);
    assert!(store.release_worker(1, 0, "1", later).await.unwrap());
    assert!(store.release_worker(1, 1, "2", earlier).await.unwrap());
    let third = lease(store, 1, "3").await;
    assert_eq!((third.worker, third.from_ms), (1, earlier), "free for longest, from its end on");
    let fourth = lease(store, 1, "4").await;
    assert_eq!((fourth.worker, fourth.from_ms), (0, later));

    // Times outside the tenure are taken as its ends.
    assert!(store.release_worker(1, 1, "3", 5).await.unwrap());
    let fifth = lease(store, 1, "5").await;
    assert_eq!((fifth.worker, fifth.from_ms), (1, earlier), "a tenure without use");
    assert!(store.release_worker(1, 1, "5", i64::MAX).await.unwrap());
    let error = refusal(store.lease_worker(1, "suite", "6", TTL).await);
    assert_eq!(error.code, ErrorCode::Unavailable, "all of it may have been used: {error}");
}

/// A clock that was ahead used times that are still to come.
async fn released_ahead_of_time(store: &Store) {
    for token in ["1", "2", "3", "4"] {
        lease(store, 2, token).await;
    }
    let held = lease(store, 2, "2").await;
    assert!(store.release_worker(2, 1, "2", held.now_ms + 60_000).await.unwrap());
    let error = refusal(store.lease_worker(2, "suite", "5", TTL).await);
    assert_eq!(error.code, ErrorCode::Unavailable, "not free before that time: {error}");
    assert!(store.release_worker(2, 3, "4", held.now_ms - 1).await.unwrap());
    assert_eq!(lease(store, 2, "5").await.worker, 3);
}

/// A holder that died: its worker id is free when its tenure has ended.
async fn ending(store: &Store) {
    let mut held = Vec::new();
    for i in 0..64 {
        let ttl = if i == 40 { 1_000 } else { TTL };
        let token = format!("held-{i}");
        held.push(store.lease_worker(6, "dead", &token, ttl).await.unwrap());
    }
    // Not a wait for somebody to get ready: what is tested is time itself.
    let mut tries = 0;
    let heir = loop {
        match store.lease_worker(6, "heir", "heir", TTL).await {
            Ok(tenure) => break tenure,
            Err(error) => {
                assert_eq!(refusal::<()>(Err(error)).code, ErrorCode::Unavailable);
                tries += 1;
                assert!(tries < 1_000, "a tenure of a second ends");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    };
    assert_eq!((heir.worker, heir.from_ms), (40, held[40].until_ms));
    assert!(heir.now_ms >= held[40].until_ms, "not before it has ended");
    let error = refusal(store.renew_worker(6, 40, "held-40", TTL).await);
    assert_eq!(error.code, ErrorCode::Conflict, "somebody else has it");
    assert!(!store.release_worker(6, 40, "held-40", held[40].from_ms).await.unwrap());
    let again = store.renew_worker(6, 40, "heir", TTL).await.unwrap();
    assert_eq!(again.from_ms, heir.from_ms, "the heir is not disturbed");

    // One that ended, and that nobody followed, goes on: also by its token.
    let short = store.lease_worker(7, "slow", "slow", 1_000).await.unwrap();
    let now = async || store.lease_worker(7, "clock", "clock", TTL).await.unwrap().now_ms;
    while now().await < short.until_ms {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let renewed = store.renew_worker(7, short.worker, "slow", TTL).await.unwrap();
    assert_eq!((renewed.from_ms, renewed.until_ms), (short.from_ms, renewed.now_ms + TTL));
    assert_eq!(lease(store, 7, "slow").await.worker, short.worker);
}

async fn who_had_it(store: &Store) {
    // From `ending`: worker id 40 of 6 bits went from one to another.
    let heir = lease(store, 6, "heir").await;
    let holder = async |worker, time| {
        let found = store.tenure_at(6, worker, time).await.unwrap();
        found.map(|t| (t.worker, t.holder, t.from_ms, t.until_ms))
    };
    let dead = Some((40, "dead".to_owned(), 0, heir.from_ms));
    assert_eq!(holder(40, heir.from_ms - 1).await, dead);
    assert_eq!(holder(40, 0).await, dead);
    let alive = Some((40, "heir".to_owned(), heir.from_ms, heir.until_ms));
    assert_eq!(holder(40, heir.from_ms).await, alive);
    assert_eq!(holder(40, heir.until_ms - 1).await, alive);
    assert_eq!(holder(40, heir.until_ms).await, None, "not promised yet");
    assert_eq!(holder(64, 5).await, None);
    // From `following`: a chain of tenures, one of them without use.
    let names = async |worker, time| {
        store.tenure_at(1, worker, time).await.unwrap().map(|t| (t.from_ms, t.until_ms))
    };
    let last = store.tenure_at(1, 0, heir.now_ms).await.unwrap().expect("held by the fourth");
    assert_eq!(names(0, last.from_ms - 1).await, Some((0, last.from_ms)));
    let last = store.tenure_at(1, 1, heir.now_ms).await.unwrap().expect("released by the fifth");
    assert_eq!(names(1, last.from_ms - 1).await, Some((0, last.from_ms)));
    // Released worker ids end at what was used (from `releasing`).
    let used = store.tenure_at(4, 0, 0).await.unwrap().expect("the first one");
    assert!(used.until_ms < heir.now_ms);
    assert_eq!(store.tenure_at(4, 0, used.until_ms).await.unwrap(), None);
}

async fn bad_arguments(store: &Store) {
    let long = "x".repeat(129);
    let cases = [
        ("bits", 0, "h", "t", TTL),
        ("bits", 21, "h", "t", TTL),
        ("holder", 3, "", "t", TTL),
        ("holder", 3, long.as_str(), "t", TTL),
        ("holder", 3, "a\nb", "t", TTL),
        ("token", 3, "h", "", TTL),
        ("token", 3, "h", &long[..65], TTL),
        ("ttl_ms", 3, "h", "t", 999),
        ("ttl_ms", 3, "h", "t", 86_400_001),
        ("ttl_ms", 3, "h", "t", i64::MIN),
    ];
    for (field, bits, holder, token, ttl) in cases {
        let error = refusal(store.lease_worker(bits, holder, token, ttl).await);
        assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some(field)), "{error}");
    }
    let full = store.lease_worker(20, &long[..128], &long[..64], 86_400_000).await.unwrap();
    assert_eq!(full.worker, 0, "the limits themselves are allowed");
    assert!(store.release_worker(20, 0, &long[..64], 0).await.unwrap());
}

async fn concurrent_callers(store: &Store) {
    let tokens: Vec<String> = (0..40).map(|i| format!("at-once-{i}")).collect();
    let calls = tokens.iter().map(|token| store.lease_worker(5, "crowd", token, TTL));
    let mut workers = BTreeSet::new();
    let mut refused = 0;
    for result in join_all(calls).await {
        match result {
            Ok(tenure) => assert!(workers.insert(tenure.worker), "{} twice", tenure.worker),
            Err(error) => {
                assert_eq!(refusal::<()>(Err(error)).code, ErrorCode::Unavailable);
                refused += 1;
            }
        }
    }
    // Two of the 32 are held since `the_same_token`.
    assert_eq!((workers.len(), refused), (30, 10), "each is leased once, and none is lost");
    assert_eq!(workers.first(), Some(&2));
}
