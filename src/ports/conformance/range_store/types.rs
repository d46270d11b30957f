//! Types and Redis instances: made, changed, retired, listed.

use super::{Store, code, create, name, next, request, spec};
use crate::domain::{
    ErrorCode, InstanceId, InstanceSpec, LoadPercentage, State, TypeChange, TypeName,
};
use crate::ports::{StoreError, TypeFilter};

pub(super) async fn instances(store: &Store) -> InstanceId {
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

pub(super) async fn creation(store: &Store, instance: InstanceId) {
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

pub(super) async fn retiring(store: &Store) {
    let wanted = spec("retired");
    create(store, &wanted).await;
    let before = next(store, &wanted.name).await;
    let all = store.count_types().await.unwrap();
    let retired = store.set_retired(&wanted.name, true, "suite").await.unwrap();
    assert_eq!((retired.state, retired.version), (State::Retired, 2));
    let counts = store.count_types().await.unwrap();
    assert_eq!((counts.active + 1, counts.retired), (all.active, all.retired + 1));
    let error = store.next_range(request(&wanted.name)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Retired);
    let error = store.reserve(&wanted.name, 5, 0, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Retired);
    let again = store.set_retired(&wanted.name, true, "suite").await.unwrap();
    assert_eq!(again.version, 2, "retiring twice is retiring once");
    let restored = store.set_retired(&wanted.name, false, "suite").await.unwrap();
    assert_eq!(restored.state, State::Active);
    assert_eq!(store.count_types().await.unwrap(), all);
    assert!(all.active > 0);
    let after = next(store, &wanted.name).await;
    assert_eq!(after.range.start(), before.range.end(), "goes on above what it issued");
    let error = store.set_retired(&name("nobody"), true, "suite").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownType);
}

pub(super) async fn altering(store: &Store) {
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

pub(super) async fn listing(store: &Store) {
    for text in ["list-b", "list-a", "list-c", "list-%"] {
        if TypeName::is_legal(&format!("conform-{text}")) {
            create(store, &spec(text)).await;
        }
    }
    let page = async |after: Option<&str>, limit| {
        let filter = TypeFilter {
            instance: None,
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
    let odd = TypeFilter { contains: Some("list_".into()), limit: 9, ..TypeFilter::default() };
    assert!(store.list_types(&odd).await.unwrap().items.is_empty(), "_ is no wildcard");
}
