//! Keys of opaque types, and slices that have one key for ever.

use super::sharded::sharded;
use super::{Store, allocate, code, create, ends, field, find, of_shard, request, spec};
use crate::domain::{
    ErrorCode, IdRange, Opaque, OpaqueKey, SliceKey, TypeChange, TypeName, TypeOptions, TypeRecord,
    TypeSpec,
};
use crate::ports::{NextRange, StoreError, Subject, TypeFilter};

/// Four slices of a million ids, and a key that is easy to recognise.
fn opaque(text: &str) -> TypeSpec {
    let mut spec = spec(text);
    spec.max_id = 4_000_000;
    spec.options.opaque = Some(Opaque { slices: 4 });
    spec.key = Some(key(0));
    spec
}

fn key(number: u8) -> OpaqueKey {
    OpaqueKey::new([0xb0 + number; 32])
}

fn slices(record: &TypeRecord) -> Vec<i64> {
    record.keys.iter().map(|key| key.from_slice).collect()
}

async fn rotate(store: &Store, name: &TypeName, number: u8) -> Result<TypeRecord, StoreError> {
    store.rotate_key(name, &key(number), "suite").await
}

pub(super) async fn keys(store: &Store) {
    let wanted = opaque("opaque");
    let record = create(store, &wanted).await;
    assert_eq!(*record.keys, [SliceKey { from_slice: 0, key: key(0) }]);
    assert_eq!(find(store, &wanted.name).await, record);
    let other = OpaqueKey::new(std::array::from_fn(|i| i as u8 * 7));
    let second = TypeSpec { key: Some(other.clone()), ..opaque("opaque-too") };
    assert_eq!(create(store, &second).await.keys[0].key, other, "each type has its own");
    let change = TypeChange { prefix: Some("K".into()), ..TypeChange::default() };
    let changed = store.alter_type(&wanted.name, &change, "suite").await.unwrap();
    assert_eq!(changed.keys, record.keys);
    let filter =
        TypeFilter { contains: Some("conform-opaque".into()), limit: 9, ..TypeFilter::default() };
    let listed = store.list_types(&filter).await.unwrap().items;
    assert_eq!(listed, [changed, find(store, &second.name).await]);
    assert!(create(store, &spec("not-opaque")).await.keys.is_empty());
}

pub(super) async fn rotation(store: &Store) {
    let wanted = opaque("rotated");
    create(store, &wanted).await;
    let name = &wanted.name;
    assert_eq!(ends(store, request(name)).await, (1, 1_001));
    let before = find(store, name).await;
    let seen = store.latest_change().await.unwrap();
    let rotated = rotate(store, name, 1).await.unwrap();
    assert_eq!(
        *rotated.keys,
        [SliceKey { from_slice: 0, key: key(0) }, SliceKey { from_slice: 1, key: key(1) }]
    );
    assert_eq!((rotated.next_id, rotated.version), (1_000_001, before.version + 1));
    assert_eq!(rotated.last_range, before.last_range);
    assert_eq!(find(store, name).await, rotated, "in one transaction");
    let changes = store.changes_since(seen).await.unwrap();
    let subjects: Vec<_> = changes.into_iter().map(|change| change.subject).collect();
    assert_eq!(subjects, [Subject::Type(name.clone())], "nodes hear of it");
    let entry = &store.audit(1).await.unwrap()[0];
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("suite", "rotate_key"));
    assert_eq!(entry.subject, name.as_str());
    assert_eq!(ends(store, request(name)).await, (1_000_001, 1_001_001), "the rest is skipped");

    // A slice whose key nobody used yet has its key all the same: somebody may know it.
    assert_eq!(slices(&rotate(store, name, 2).await.unwrap()), [0, 1, 2]);
    let last = rotate(store, name, 3).await.unwrap();
    assert_eq!((slices(&last), last.next_id), (vec![0, 1, 2, 3], 3_000_001));
    let error = rotate(store, name, 4).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted, "there is no further slice");
    assert_eq!(find(store, name).await, last, "a refusal leaves nothing behind");

    let plain = spec("never-rotated");
    create(store, &plain).await;
    assert_eq!(field(rotate(store, &plain.name, 1).await.unwrap_err()), "opaque");
    let error = rotate(store, &super::name("nobody"), 1).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::UnknownType);

    // One slice of all ids: what comes after it is no number any more.
    let widest = TypeSpec {
        max_id: TypeSpec::HIGHEST_ID,
        options: TypeOptions { opaque: Some(Opaque { slices: 1 }), ..TypeOptions::default() },
        ..opaque("rotated-widest")
    };
    create(store, &widest).await;
    allocate(store, request(&widest.name)).await;
    let error = rotate(store, &widest.name, 1).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted, "without overflow");
}

pub(super) async fn borders_of_slices(store: &Store) {
    let wanted = opaque("slices");
    create(store, &wanted).await;
    let name = &wanted.name;
    store.reserve(name, 999_499, 0, "suite").await.unwrap();
    assert_eq!(ends(store, request(name)).await, (999_500, 1_000_500));
    let tail = IdRange::new(1_000_001, 1_000_500).unwrap();
    let back = store.give_back(name, None, tail).await.unwrap();
    assert!(!back, "an opaque type takes nothing back: a floor above the next id has a meaning");
    let rotated = rotate(store, name, 1).await.unwrap();
    assert_eq!((slices(&rotated), rotated.next_id), (vec![0, 2], 2_000_001));

    let exact = opaque("slice-ends");
    create(store, &exact).await;
    store.reserve(&exact.name, 999_000, 0, "suite").await.unwrap();
    assert_eq!(ends(store, request(&exact.name)).await, (999_001, 1_000_001));
    // The next position is in slice 1 already, so its key may be known.
    assert_eq!(slices(&rotate(store, &exact.name, 1).await.unwrap()), [0, 2]);
}

/// A floor above the next position tells of a store that lost its latest writes,
/// perhaps a key among them: nobody may use the rest of that slice.
pub(super) async fn lost_keys(store: &Store) {
    let lost = opaque("slice-lost");
    create(store, &lost).await;
    let at = |floor| NextRange { floor, ..request(&lost.name) };
    assert_eq!(ends(store, at(1_500_000)).await, (2_000_001, 2_001_001));
    assert_eq!(ends(store, at(2_001_001)).await, (2_001_001, 2_002_001), "nothing was lost");
    let block = store.reserve(&lost.name, 10, 2_002_001, "suite").await.unwrap();
    assert_eq!(block.start(), 2_002_001);
    let block = store.reserve(&lost.name, 10, 2_500_000, "suite").await.unwrap();
    assert_eq!(block.start(), 3_000_001, "the slice of the floor may have had another key");
    let error = store.next_range(at(3_500_000)).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted, "there is no slice after the last");
    // One that was given anew after the loss: the slice had another one before.
    let anew = opaque("slice-anew");
    create(store, &anew).await;
    assert_eq!(rotate(store, &anew.name, 1).await.unwrap().next_id, 1_000_001);
    let at = NextRange { floor: 1_300_000, ..request(&anew.name) };
    assert_eq!(ends(store, at).await, (2_000_001, 2_001_001));
}

pub(super) async fn shards_rotate_together(store: &Store) {
    let mut wanted = sharded("rotated-shards", 4_000_000);
    wanted.options.opaque = Some(Opaque { slices: 4 });
    wanted.key = Some(key(0));
    assert_eq!(create(store, &wanted).await.max_position, 4_000_000);
    let name = &wanted.name;
    assert_eq!(ends(store, of_shard(name, 3)).await, (1, 1_001));
    assert_eq!(ends(store, of_shard(name, 5)).await, (1, 1_001));
    let rotated = rotate(store, name, 1).await.unwrap();
    assert_eq!((slices(&rotated), rotated.next_id), (vec![0, 1], 1_000_001));
    assert_eq!(find(store, name).await, rotated);
    for shard in [3, 5, 60] {
        let start = ends(store, of_shard(name, shard)).await.0;
        assert_eq!(start, 1_000_001, "shard {shard} has the new key, too");
    }
}

pub(super) async fn no_key_is_shown(store: &Store) {
    let entries = store.audit(200).await.unwrap();
    assert!(entries.iter().any(|entry| entry.action == "rotate_key"));
    for entry in entries {
        let text = format!("{entry:?}").to_lowercase();
        for number in 0..8 {
            let shown = &key(number).to_hex()[..16];
            assert!(!text.contains(shown), "a key in the audit log: {}", entry.action);
        }
    }
}
