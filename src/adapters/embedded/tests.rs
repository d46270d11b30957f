//! The embedded store conforms, and its file is kept well.

use std::sync::Arc;

use rusqlite::Connection;

use super::EmbeddedStore;
use super::rows::sqlite;
use super::store::{MIGRATIONS, migrate};
use crate::adapters::system::SystemEntropy;
use crate::domain::{
    Assignment, History, InstanceId, InstanceSpec, LoadPercentage, Mode, Opaque, OpaqueKey, Seal,
    State, TypeName, TypeOptions, TypeRecord, TypeSpec,
};
use crate::ports::{Entropy, conformance};
use crate::ports::{NextRange, RangeStore, StoreError};

/// A folder that is removed when the test ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("idgen-test-{}", SystemEntropy.token());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn conforms() {
    let folder = Folder::new();
    let store = EmbeddedStore::open(&folder.0).unwrap();
    conformance::range_store(Arc::new(store)).await;
}

#[tokio::test]
async fn accounts_conform() {
    let folder = Folder::new();
    let store = Arc::new(EmbeddedStore::open(&folder.0).unwrap());
    conformance::accounts(store.clone(), store).await;
}

#[tokio::test]
async fn goes_on_where_it_was_after_a_reopen() {
    let folder = Folder::new();
    let name = TypeName::parse("order").unwrap();
    let next = async |store: &EmbeddedStore| {
        let request = NextRange::of(&name, "test");
        store.next_range(request).await.unwrap().range
    };
    let store = EmbeddedStore::open(&folder.0).unwrap();
    store.create_type(&TypeSpec::new(name.clone()), "test").await.unwrap();
    let before = next(&store).await;
    drop(store);
    let store = EmbeddedStore::open(&folder.0).unwrap();
    assert_eq!(next(&store).await.start(), before.end());
    assert_eq!(store.instances().await.unwrap().len(), 1);
}

#[tokio::test]
async fn belongs_to_one_process() {
    let folder = Folder::new();
    let _store = EmbeddedStore::open(&folder.0).unwrap();
    let error = EmbeddedStore::open(&folder.0).err().expect("the folder is taken");
    assert!(error.to_string().contains("--data"), "{error}");
}

#[tokio::test]
async fn refuses_what_a_newer_version_wrote() {
    let folder = Folder::new();
    let store = EmbeddedStore::open(&folder.0).unwrap();
    store
        .write(|t| {
            t.execute(
                "INSERT INTO refinery_schema_history SELECT 99, 'from_the_future', \
                 applied_on, checksum FROM refinery_schema_history WHERE version = 1",
                [],
            )
            .map_err(sqlite)
        })
        .await
        .unwrap();
    drop(store);
    let error = EmbeddedStore::open(&folder.0).err().expect("an unknown schema");
    assert!(error.to_string().contains("from_the_future"), "{error}");
}

#[tokio::test]
async fn keeps_what_the_first_version_wrote() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let mut old = Connection::open(folder.0.join("idgen.sqlite")).unwrap();
    old.pragma_update(None, "foreign_keys", true).unwrap();
    migrate(&mut old, &MIGRATIONS[..1]).unwrap();
    old.execute_batch(
        "INSERT INTO redis_instance VALUES (1, 'embedded', 'memory://');
        INSERT INTO id_type VALUES ('order', 'strict', 'retired', 'ORD-é', 'of the shop', 5, 2005,
            9000, 1000, 100000, 600000, 2500, 10000, 1000, 1700000000000, 1, 'now', 7,
            1600000000000, 1650000000000);
        INSERT INTO type_history VALUES ('order', 'before'), ('order', 'now');
        INSERT INTO range_log (name, start_id, end_id, at_ms, owner, instance_id, history) VALUES
            ('order', 5, 1005, 1690000000000, 'node-1', 1, 'before'),
            ('order', 1005, 2005, 1700000000000, 'node-2', NULL, NULL);
        INSERT INTO change_feed (kind, subject, at_ms, actor, action) VALUES
            ('type', 'order', 1600000000000, 'ann', 'create_type');",
    )
    .unwrap();
    drop(old);

    let store = EmbeddedStore::open(&folder.0).unwrap();
    let name = TypeName::parse("order").unwrap();
    let record = store.find_type(&name).await.unwrap().unwrap();
    let expected = TypeRecord {
        placement: crate::domain::Placement::default(),
        name: name.clone(),
        mode: Mode::Strict,
        state: State::Retired,
        prefix: "ORD-é".into(),
        description: "of the shop".into(),
        options: TypeOptions::default(),
        keys: [].into(),
        first_id: 5,
        next_id: 2_005,
        max_id: 9_000,
        max_position: 9_000,
        min_range: 1_000,
        max_range: 100_000,
        load_interval_ms: 600_000,
        load_percentage: LoadPercentage::from_fraction(0.25).unwrap(),
        lock_ttl_ms: 10_000,
        last_range: Some(1_000),
        last_load_ms: Some(1_700_000_000_000),
        instance: InstanceId(1),
        history: Some(History::new("now")),
        version: 7,
        created_ms: 1_600_000_000_000,
        updated_ms: 1_650_000_000_000,
    };
    assert_eq!(record, expected);
    assert!(store.is_superseded(&name, &History::new("before")).await.unwrap());
    assert!(!store.is_superseded(&name, &History::new("now")).await.unwrap());
    let log = store.range_log(&name, 9).await.unwrap();
    let told: Vec<_> = log
        .iter()
        .map(|e| (e.range.start(), e.range.end(), e.owner.as_str(), e.instance, e.shard))
        .collect();
    let first = (5, 1_005, "node-1", Some(InstanceId(1)), None);
    assert_eq!(told, [(1_005, 2_005, "node-2", None, None), first]);
    assert_eq!(store.find_range(&name, None, 1_004).await.unwrap().as_ref(), Some(&log[1]));
    assert_eq!(store.audit(9).await.unwrap()[0].actor, "ann");
    assert_eq!(store.instances().await.unwrap()[0].types, 1);

    store.set_retired(&name, false, "test").await.unwrap();
    let next = store.next_range(NextRange::of(&name, "test")).await.unwrap().range;
    assert_eq!(next.start(), 2_005, "goes on above what it issued");
    assert!(store.give_back(&name, None, next).await.unwrap());

    // Of its histories the current one was the last of its instance.
    let other = InstanceSpec { name: "other".into(), url: "redis://h".into() };
    let other = store.add_instance(&other, "test").await.unwrap().id;
    let assign = async |generation, target, history: &str| {
        let (seal, history) = (Seal { generation, target }, History::new(history));
        let assignment = Assignment { seal, history: Some(&history), rest_end: None };
        store.assign_type(&name, assignment, "test").await
    };
    assign(1, other, "there").await.unwrap();
    let error = assign(2, InstanceId(1), "before").await.unwrap_err();
    assert!(matches!(error, StoreError::Superseded { .. }), "{error:?}");
    assign(2, InstanceId(1), "now").await.unwrap();
    check_references(&store).await;
}

/// Every reference holds, and one that does not is refused.
async fn check_references(store: &EmbeddedStore) {
    let found = store.write(|t| {
        let count = |sql: &str| t.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(sqlite);
        Ok((
            count("SELECT count(*) FROM pragma_foreign_key_check")?,
            count("SELECT foreign_keys FROM pragma_foreign_keys")?,
            t.execute("INSERT INTO type_history VALUES (9, 'nobody', 'x', 1)", []).is_err(),
        ))
    });
    assert_eq!(found.await.unwrap(), (0, 1, true));
}

#[tokio::test]
async fn shards_and_keys_are_there_after_a_reopen() {
    let folder = Folder::new();
    let store = EmbeddedStore::open(&folder.0).unwrap();
    let mut spec = TypeSpec::new(TypeName::parse("sharded").unwrap());
    spec.mode = Mode::Sharded;
    spec.options.app_id = Some(3);
    spec.options.opaque = Some(Opaque { slices: 2 });
    spec.key = Some(OpaqueKey::new([7; 32]));
    store.create_type(&spec, "test").await.unwrap();
    let of = |shard| NextRange { shard: Some(shard), ..NextRange::of(&spec.name, "test") };
    let before = store.next_range(of(8)).await.unwrap().range;
    let rotated = store.rotate_key(&spec.name, &OpaqueKey::new([9; 32]), "test").await.unwrap();
    assert_eq!(rotated.keys.len(), 2);
    drop(store);
    let store = EmbeddedStore::open(&folder.0).unwrap();
    assert_eq!(store.find_type(&spec.name).await.unwrap(), Some(rotated.clone()));
    for shard in [8, 9] {
        let range = store.next_range(of(shard)).await.unwrap().range;
        assert_eq!(range.start(), rotated.next_id, "shard {shard}");
    }
    let found = store.find_range(&spec.name, Some(8), before.start()).await.unwrap();
    assert_eq!(found.map(|entry| entry.range), Some(before));
    check_references(&store).await;
}

#[tokio::test]
async fn a_range_is_not_logged_twice_from_one_start() {
    let folder = Folder::new();
    let store = EmbeddedStore::open(&folder.0).unwrap();
    let name = TypeName::parse("order").unwrap();
    store.create_type(&TypeSpec::new(name.clone()), "test").await.unwrap();
    store.next_range(NextRange::of(&name, "test")).await.unwrap();
    // As if somebody had edited the file by hand.
    let edit = store.write(|t| t.execute("UPDATE id_type SET next_id = 1", []).map_err(sqlite));
    edit.await.unwrap();
    let error = store.next_range(NextRange::of(&name, "test")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert_eq!(store.find_type(&name).await.unwrap().unwrap().next_id, 1, "nothing happened");
}
