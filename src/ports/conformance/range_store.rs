//! What every range store must do.

use std::sync::Arc;

use super::{assert_disjoint, name};
use crate::domain::{
    ErrorCode, History, InstanceId, InstanceSpec, LoadPercentage, State, TypeChange, TypeName,
    TypeSpec, Usage,
};
use crate::ports::{Allocation, NextRange, RangeStore, StoreError, Subject, TypeFilter};

type Store = Arc<dyn RangeStore>;

/// Runs the whole suite on a store without types; instances may be there.
pub async fn range_store(store: Store) {
    let instance = instances(&store).await;
    creation(&store, instance).await;
    first_and_next_range(&store).await;
    sizing_by_cases(&store).await;
    floor(&store).await;
    limit(&store).await;
    highest_numbers(&store).await;
    retiring(&store).await;
    histories(&store, instance).await;
    altering(&store).await;
    reserving(&store).await;
    listing(&store).await;
    concurrent_callers(&store).await;
    change_feed(&store).await;
    store.ping().await.expect("a store that works answers");
}

fn spec(text: &str) -> TypeSpec {
    TypeSpec::new(name(text))
}

async fn create(store: &Store, spec: &TypeSpec) {
    store.create_type(spec, "suite").await.unwrap_or_else(|e| panic!("create {}: {e}", spec.name));
}

fn request(name: &TypeName) -> NextRange<'_> {
    NextRange::of(name, "suite")
}

async fn next(store: &Store, name: &TypeName) -> Allocation {
    store.next_range(request(name)).await.expect("a range")
}

fn code(error: StoreError) -> ErrorCode {
    match error {
        StoreError::Refused(error) => error.code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn instances(store: &Store) -> InstanceId {
    let spec =
        |name: &str| InstanceSpec { name: name.into(), url: "redis://:secret@h:6379".into() };
    let added = store.add_instance(&spec("conform-main"), "suite").await.unwrap();
    let error = store.add_instance(&spec("conform-main"), "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::AlreadyExists);
    let error = store.add_instance(&spec("no good"), "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::InvalidArgument);
    let listed = store.instances().await.unwrap();
    assert!(listed.contains(&added), "an instance is listed as it was added");

    let other = store.add_instance(&spec("conform-other"), "suite").await.unwrap();
    assert_ne!(other.id, added.id);
    let mut busy = self::spec("on-other");
    busy.instance = Some("conform-other".into());
    create(store, &busy).await;
    let error = store.remove_instance("conform-other", "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Conflict, "an instance with types stays");
    let error = store.remove_instance("conform-none", "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownInstance);
    store.add_instance(&spec("conform-third"), "suite").await.unwrap();
    store.remove_instance("conform-third", "suite").await.unwrap();
    assert!(store.instances().await.unwrap().iter().all(|i| i.name != "conform-third"));
    for entry in store.audit(50).await.unwrap() {
        let text = format!("{:?}{:?}", entry.before, entry.after);
        assert!(!text.contains("secret"), "no password in the audit log");
    }
    added.id
}

async fn creation(store: &Store, instance: InstanceId) {
    let mut wanted = spec("created");
    wanted.prefix = "ORD-é".into();
    wanted.description = "orders of the shop, 订单 😀".into();
    wanted.first_id = 42;
    wanted.load_percentage = LoadPercentage::from_fraction(0.25).unwrap();
    wanted.instance = Some("conform-main".into());
    assert_eq!(store.find_type(&wanted.name).await.unwrap(), None);
    let record = store.create_type(&wanted, "suite").await.unwrap();
    assert_eq!(record.prefix, wanted.prefix);
    assert_eq!(record.description, wanted.description);
    assert_eq!((record.first_id, record.next_id), (42, 42));
    assert_eq!(record.load_percentage, wanted.load_percentage);
    assert_eq!((record.state, record.version), (State::Active, 1));
    assert_eq!((record.last_range, record.last_load_ms), (None, None));
    assert_eq!(record.instance, instance);
    assert_eq!(store.find_type(&wanted.name).await.unwrap(), Some(record));

    let error = store.create_type(&wanted, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::AlreadyExists);
    let mut upper = spec("Created");
    upper.first_id = 7;
    create(store, &upper).await; // names differ by case

    let mut stray = spec("stray");
    stray.instance = Some("conform-none".into());
    let error = store.create_type(&stray, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownInstance);
    let mut by_number = spec("by-number");
    by_number.instance = Some(instance.to_string());
    assert_eq!(store.create_type(&by_number, "suite").await.unwrap().instance, instance);
    let mut broken = spec("broken");
    broken.max_range = 1;
    match store.create_type(&broken, "suite").await.unwrap_err() {
        StoreError::Refused(error) => assert_eq!(error.field, Some("max_range")),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.find_type(&broken.name).await.unwrap(), None);
}

async fn first_and_next_range(store: &Store) {
    let mut wanted = spec("first");
    wanted.first_id = 1_001;
    wanted.min_range = 500;
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    assert_eq!((first.range.start(), first.range.end()), (1_001, 1_501));
    assert_eq!(first.update_id, 1_051);
    let record = store.find_type(&wanted.name).await.unwrap().unwrap();
    assert_eq!(record.next_id, 1_501, "durable before it is answered");
    assert_eq!(record.last_range, Some(500));
    assert_eq!(record.last_load_ms, Some(first.load_ms));
    assert_eq!(record.version, 1, "a range is no change of the settings");
    let second = next(store, &wanted.name).await;
    assert_eq!(second.range.start(), first.range.end());
    let log = store.range_log(&wanted.name, 10).await.unwrap();
    let logged: Vec<_> = log.iter().map(|e| e.range).collect();
    assert_eq!(logged, [second.range, first.range], "newest first");
    assert_eq!(log[0].owner, "suite");
    assert_eq!(store.range_log(&wanted.name, 1).await.unwrap().len(), 1);
    let error = store.next_range(request(&name("nobody"))).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownType);
}

async fn sizing_by_cases(store: &Store) {
    let mut wanted = spec("sized");
    wanted.min_range = 1_000;
    wanted.max_range = 100_000_000;
    wanted.load_interval_ms = 600_000;
    create(store, &wanted).await;
    let usage = |consumed, elapsed_ms| Some(Usage { consumed, elapsed_ms });
    for (usage, length, why) in [
        (usage(5_000_000, 10), 1_000, "the first load is the shortest"),
        (usage(1_000, 600_000), 1_000, "as planned"),
        (usage(900, 60_000), 9_000, "ten times as fast"),
        (None, 9_000, "no usage keeps the length"),
        (usage(7, 1_999), 2_101, "rounds down"),
        (usage(900, 600_000), 1_000, "slowed down"),
        (usage(100, 0), 60_000_000, "no time passed"),
        (usage(i64::MAX as u64, 1), 100_000_000, "huge, without overflow"),
        (usage(0, 600_000), 1_000, "not used"),
    ] {
        let request = NextRange { usage, ..request(&wanted.name) };
        let allocation = store.next_range(request).await.unwrap();
        assert_eq!(allocation.range.len(), length, "{why}");
        assert_eq!(allocation.update_id, allocation.range.start() + (length / 10) as i64, "{why}");
    }
}

async fn floor(store: &Store) {
    let wanted = spec("floor");
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    let at = |floor| NextRange { floor, ..request(&wanted.name) };
    let jumped = store.next_range(at(1_000_000)).await.unwrap();
    assert_eq!(jumped.range.start(), 1_000_000, "a higher floor is jumped to");
    let after = store.next_range(at(first.range.end())).await.unwrap();
    assert_eq!(after.range.start(), jumped.range.end(), "a lower floor changes nothing");
    let error = store.next_range(at(-1)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::InvalidArgument);
    let error = store.next_range(at(i64::MAX)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
    let again = next(store, &wanted.name).await;
    assert_eq!(again.range.start(), after.range.end(), "a refusal leaves nothing behind");
}

async fn limit(store: &Store) {
    let mut wanted = spec("limit");
    wanted.min_range = 1_000;
    wanted.max_id = 1_500;
    create(store, &wanted).await;
    assert_eq!(next(store, &wanted.name).await.range.end(), 1_001);
    let last = next(store, &wanted.name).await;
    assert_eq!((last.range.last(), last.range.len()), (1_500, 500), "cut at the limit");
    let error = store.next_range(request(&wanted.name)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
    let record = store.find_type(&wanted.name).await.unwrap().unwrap();
    assert_eq!((record.next_id, record.left()), (1_501, 0));
}

async fn highest_numbers(store: &Store) {
    let mut wanted = spec("highest");
    wanted.first_id = i64::MAX - 1_500;
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    assert_eq!((first.range.start(), first.range.len()), (i64::MAX - 1_500, 1_000));
    let last = next(store, &wanted.name).await;
    assert_eq!(last.range.last(), i64::MAX - 1);
    let error = store.next_range(request(&wanted.name)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
}

async fn retiring(store: &Store) {
    let wanted = spec("retired");
    create(store, &wanted).await;
    let before = next(store, &wanted.name).await;
    let retired = store.set_retired(&wanted.name, true, "suite").await.unwrap();
    assert_eq!((retired.state, retired.version), (State::Retired, 2));
    let error = store.next_range(request(&wanted.name)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Retired);
    let error = store.reserve(&wanted.name, 5, 0, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Retired);
    let again = store.set_retired(&wanted.name, true, "suite").await.unwrap();
    assert_eq!(again.version, 2, "retiring twice is retiring once");
    let restored = store.set_retired(&wanted.name, false, "suite").await.unwrap();
    assert_eq!(restored.state, State::Active);
    let after = next(store, &wanted.name).await;
    assert_eq!(after.range.start(), before.range.end(), "goes on above what it issued");
    let error = store.set_retired(&name("nobody"), true, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownType);
}

async fn histories(store: &Store, instance: InstanceId) {
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

async fn altering(store: &Store) {
    let mut wanted = spec("altered");
    wanted.min_range = 100;
    create(store, &wanted).await;
    next(store, &wanted.name).await;
    let change = TypeChange {
        expected_version: Some(1),
        prefix: Some("X".into()),
        min_range: Some(200),
        ..TypeChange::default()
    };
    let changed = store.alter_type(&wanted.name, &change, "suite").await.unwrap();
    assert_eq!((changed.prefix.as_str(), changed.min_range, changed.version), ("X", 200, 2));
    assert_eq!(changed.max_range, wanted.max_range, "what is not named stays");
    assert_eq!(changed.next_id, 101);
    let error = store.alter_type(&wanted.name, &change, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Conflict, "the second editor is told");
    assert_eq!(next(store, &wanted.name).await.range.len(), 200, "the next range follows");
    let refuse = async |change: TypeChange, field| match store
        .alter_type(&wanted.name, &change, "suite")
        .await
        .unwrap_err()
    {
        StoreError::Refused(error) => assert_eq!(error.field, Some(field)),
        other => panic!("{other:?}"),
    };
    refuse(TypeChange { max_range: Some(199), ..TypeChange::default() }, "max_range").await;
    refuse(TypeChange { max_id: Some(150), ..TypeChange::default() }, "max_id").await;
    refuse(TypeChange { lock_ttl_ms: Some(1), ..TypeChange::default() }, "lock_ttl_ms").await;
    let error = store.alter_type(&name("nobody"), &change, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownType);
    let entry = &store.audit(1).await.unwrap()[0];
    assert_eq!(
        (entry.actor.as_str(), entry.action.as_str(), entry.subject.as_str()),
        ("suite", "alter_type", wanted.name.as_str())
    );
}

async fn reserving(store: &Store) {
    let mut wanted = spec("reserved");
    wanted.max_id = 10_000;
    create(store, &wanted).await;
    let first = next(store, &wanted.name).await;
    let seen = store.latest_change().await.unwrap();
    let block = store.reserve(&wanted.name, 5_000, 0, "dba").await.unwrap();
    let changes = store.changes_since(seen).await.unwrap();
    assert_eq!(
        changes.iter().map(|c| &c.subject).collect::<Vec<_>>(),
        [&Subject::Type(wanted.name.clone())],
        "nodes hear of a block, and become its witness"
    );
    assert_eq!(store.audit(1).await.unwrap()[0].action, "reserve");
    assert_eq!((block.start(), block.len()), (first.range.end(), 5_000));
    assert_eq!(next(store, &wanted.name).await.range.len(), 1_000, "the sizing is not touched");
    let error = store.reserve(&wanted.name, 5_000, 0, "dba").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted, "a block is whole or not at all");
    for count in [0, -1, TypeSpec::LONGEST_RANGE + 1] {
        let error = store.reserve(&wanted.name, count, 0, "dba").await.unwrap_err();
        assert_eq!(code(error), ErrorCode::InvalidArgument, "{count}");
    }
    let block = store.reserve(&wanted.name, 10, 8_000, "dba").await.unwrap();
    assert_eq!(block.start(), 8_000, "the floor counts here too");
}

async fn listing(store: &Store) {
    for text in ["list-b", "list-a", "list-c", "list-%"] {
        if TypeName::is_legal(&format!("conform-{text}")) {
            create(store, &spec(text)).await;
        }
    }
    let page = async |after: Option<&str>, limit| {
        let filter = TypeFilter {
            contains: Some("conform-list-".into()),
            after: after.map(str::to_owned),
            limit,
        };
        let page = store.list_types(&filter).await.unwrap();
        let names: Vec<_> = page.items.iter().map(|t| t.name.to_string()).collect();
        (names.join(" "), page.more)
    };
    assert_eq!(page(None, 2).await, ("conform-list-a conform-list-b".into(), true));
    assert_eq!(page(Some("conform-list-b"), 2).await, ("conform-list-c".into(), false));
    let odd = TypeFilter { contains: Some("list_".into()), after: None, limit: 9 };
    assert!(store.list_types(&odd).await.unwrap().items.is_empty(), "_ is no wildcard");
}

async fn concurrent_callers(store: &Store) {
    let wanted = spec("concurrent");
    create(store, &wanted).await;
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (store, name) = (store.clone(), wanted.name.clone());
            tokio::spawn(async move {
                let mut ranges = Vec::new();
                for _ in 0..25 {
                    ranges.push(next(&store, &name).await.range);
                }
                ranges
            })
        })
        .collect();
    let mut ranges = Vec::new();
    for caller in callers {
        ranges.extend(caller.await.unwrap());
    }
    assert_eq!(ranges.len(), 200);
    let end = ranges.iter().map(|r| r.end()).max().unwrap();
    assert_eq!(end, 1 + 200 * 1_000, "without gaps where nothing failed");
    assert_disjoint(ranges);
}

async fn change_feed(store: &Store) {
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
