//! The histories of Redis servers, and the feed of changes.

use super::{Store, create, next, request, spec};
use crate::domain::{History, InstanceId};
use crate::ports::{NextRange, StoreError, Subject};

pub(super) async fn histories(store: &Store, instance: InstanceId) {
    let mut wanted = spec("histories");
    wanted.instance = Some(instance.to_string());
    create(store, &wanted).await;
    let old = History::new("a".repeat(40));
    let new = History::new("b".repeat(40));
    let under = async |instance, history: &History| {
        let target = Some((instance, history));
        store.next_range(NextRange { target, ..request(&wanted.name) }).await
    };
    let first = under(instance, &old).await.unwrap();
    under(instance, &old).await.unwrap();
    let seen = store.latest_change().await.unwrap();
    under(instance, &old).await.unwrap();
    assert_eq!(store.latest_change().await.unwrap(), seen, "an ordinary refill is no change");
    under(instance, &new).await.unwrap();
    let record = store.find_type(&wanted.name).await.unwrap().unwrap();
    assert_eq!(record.history.as_ref(), Some(&new));
    let changes = store.changes_since(seen).await.unwrap();
    assert!(
        changes.iter().any(|c| c.subject == Subject::Type(wanted.name.clone())),
        "a change of the history is in the feed"
    );
    let is_superseded =
        async |history: &History| store.is_superseded(&wanted.name, history).await.unwrap();
    assert!(is_superseded(&old).await);
    assert!(!is_superseded(&new).await, "the current one");
    let unheard = History::new("c".repeat(40));
    assert!(!is_superseded(&unheard).await, "one that the store never saw, or lost");
    match under(instance, &old).await.unwrap_err() {
        StoreError::Superseded { .. } => {}
        other => panic!("an old history gets no range, but: {other:?}"),
    }
    let log = store.range_log(&wanted.name, 10).await.unwrap();
    let last = log.last().unwrap();
    assert_eq!(last.range, first.range);
    assert_eq!(last.instance, Some(instance));
    assert_eq!(last.history.as_deref(), Some(old.as_str()));
    let elsewhere = InstanceId(instance.0 + 1_000);
    match under(elsewhere, &new).await.unwrap_err() {
        StoreError::NotAssigned { .. } => {}
        other => panic!("only the assigned instance gets ranges, but: {other:?}"),
    }
    next(store, &wanted.name).await; // a range for nobody's Redis needs neither
}

pub(super) async fn change_feed(store: &Store) {
    let start = store.latest_change().await.unwrap();
    let writers: Vec<_> = (0..8)
        .map(|i| {
            let store = store.clone();
            tokio::spawn(async move {
                for k in 0..5 {
                    create(&store, &spec(&format!("feed-{i}-{k}"))).await;
                }
            })
        })
        .collect();
    let mut seen = start;
    let mut names = std::collections::HashSet::new();
    loop {
        let done = writers.iter().all(|w| w.is_finished());
        for change in store.changes_since(seen).await.unwrap() {
            assert!(change.seq > seen, "ascending");
            seen = change.seq;
            if let Subject::Type(name) = change.subject {
                names.insert(name);
            }
        }
        if done && store.latest_change().await.unwrap() == seen {
            break;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(names.len(), 40, "a reader that follows the feed misses nothing");
}
