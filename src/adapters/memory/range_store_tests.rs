//! The memory store conforms, and faults, backups and its clock work.

use super::*;
use crate::domain::{Mode, Opaque, Period, PeriodSpan};
use crate::ports::conformance;
use std::sync::Arc;

#[tokio::test]
async fn conforms() {
    conformance::range_store(Arc::new(MemoryRangeStore::new())).await;
}

fn spec(change: impl FnOnce(&mut TypeSpec)) -> TypeSpec {
    let mut spec = TypeSpec::new(TypeName::parse("order").unwrap());
    change(&mut spec);
    spec
}

fn sharded_and_opaque() -> TypeSpec {
    spec(|spec| {
        spec.mode = Mode::Sharded;
        spec.options.app_id = Some(1);
        spec.options.opaque = Some(Opaque { slices: 4 });
        spec.key = Some(OpaqueKey::new([1; 32]));
    })
}

#[tokio::test]
async fn a_period_begins_and_ends_by_the_clock_of_the_store() {
    let store = MemoryRangeStore::new();
    store.add_instance(&redis(), "test").await.unwrap();
    let daily = spec(|spec| {
        spec.max_id = 999;
        spec.options.calendar = Some(Period::Daily);
        spec.options.format = Some("{date:yyMMdd}{seq:03}".into());
    });
    store.create_type(&daily, "test").await.unwrap();
    for (now_ms, inside) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
        store.set_clock(Some(now_ms));
        assert_eq!(store.ping().await, Ok(now_ms));
        let period = Some(PeriodSpan { number: now_ms, from_ms: 1_000, until_ms: 2_000 });
        let request = NextRange { period, ..NextRange::of(&daily.name, "test") };
        match store.next_range(request).await {
            Ok(allocation) => assert!(inside && allocation.load_ms == now_ms, "{now_ms}"),
            Err(error) => {
                assert!(!inside, "{now_ms}");
                assert_eq!(error, StoreError::WrongPeriod { now_ms });
            }
        }
    }
    store.set_clock(None);
    assert!(store.ping().await.unwrap() > 2_000, "the machine's clock again");
}

#[tokio::test]
async fn faults_and_restores_meet_every_kind() {
    let store = MemoryRangeStore::new();
    store.add_instance(&redis(), "test").await.unwrap();
    let wanted = sharded_and_opaque();
    let name = &wanted.name;
    store.create_type(&wanted, "test").await.unwrap();
    let request = || NextRange { shard: Some(5), ..NextRange::of(name, "test") };
    let range = store.next_range(request()).await.unwrap().range;
    let plain = TypeName::parse("plain").unwrap();
    store.create_type(&TypeSpec::new(plain.clone()), "test").await.unwrap();
    let whole = store.next_range(NextRange::of(&plain, "test")).await.unwrap().range;
    let backup = store.snapshot();
    let key = OpaqueKey::new([2; 32]);
    let record = async || store.find_type(name).await.unwrap().unwrap();

    store.set_fault(StoreFault::Down);
    store.give_back(name, Some(5), range).await.unwrap_err();
    store.rotate_key(name, &key, "test").await.unwrap_err();
    store.find_range(name, Some(5), 1).await.unwrap_err();
    store.set_fault(StoreFault::None);
    assert_eq!((record().await.next_id, record().await.keys.len()), (range.end(), 1));

    store.set_fault(StoreFault::LostAnswer);
    store.give_back(&plain, None, whole).await.unwrap_err();
    assert_eq!(store.find_type(&plain).await.unwrap().unwrap().next_id, 1, "it happened");
    store.rotate_key(name, &key, "test").await.unwrap_err();
    assert_eq!(record().await.keys.len(), 2, "it happened");

    store.set_fault(StoreFault::None);
    store.restore(backup);
    assert_eq!((record().await.next_id, record().await.keys.len()), (range.end(), 1));
    let again = store.next_range(request()).await.unwrap().range;
    assert_eq!(again.start(), range.end(), "the shard is where it was");
}

fn redis() -> InstanceSpec {
    InstanceSpec { name: "main".into(), url: "redis://h:1".into() }
}
