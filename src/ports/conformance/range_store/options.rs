//! Modes and options: kept, changed, audited, and what they mean for ranges.

use super::{
    Store, allocate, code, create, denied, ends, field, find, next, of_shard, request, spec,
};
use crate::domain::{
    AtLimit, ErrorCode, Mode, OnRedisLoss, Opaque, OpaqueKey, Period, Sites, TypeChange,
    TypeOptions, TypeSpec,
};
use crate::ports::TypeFilter;

pub(super) async fn kept_and_audited(store: &Store) {
    let mut wanted = spec("options");
    wanted.max_id = 999_999_999_999;
    wanted.options = TypeOptions {
        on_redis_loss: OnRedisLoss::Segment,
        format: Some("{prefix}-{date:yyMMdd}{seq:012}".into()),
        time_zone: Some("Asia/Tokyo".into()),
        ..TypeOptions::default()
    };
    let record = create(store, &wanted).await;
    assert_eq!((record.mode, &record.options), (Mode::Strict, &wanted.options));
    assert_eq!(find(store, &wanted.name).await, record);
    let filter =
        TypeFilter { contains: Some("conform-options".into()), limit: 10, ..TypeFilter::default() };
    assert_eq!(store.list_types(&filter).await.unwrap().items, [record]);

    let entry = &store.audit(1).await.unwrap()[0];
    let after = entry.after.as_deref().expect("the settings after");
    let after: serde_json::Value = serde_json::from_str(after).expect("JSON");
    assert_eq!(after["mode"], "strict");
    assert_eq!(after["options"]["on_redis_loss"], "segment", "options are an object: {after}");
    let stored: TypeOptions = serde_json::from_value(after["options"].clone()).unwrap();
    assert_eq!(stored, wanted.options);
}

pub(super) async fn broken_rules(store: &Store) {
    type Break = fn(&mut TypeSpec);
    let cases: [(&str, Break); 16] = [
        ("app_id", |s| s.mode = Mode::Sharded),
        ("app_id", |s| {
            s.mode = Mode::Sharded;
            s.options.app_id = Some(256);
        }),
        ("app_id", |s| s.options.app_id = Some(1)),
        ("max_id", |s| {
            s.mode = Mode::Sharded;
            s.options.app_id = Some(1);
            s.max_id = 1 << TypeOptions::SHARD_BITS;
        }),
        ("on_redis_loss", |s| {
            s.mode = Mode::Segment;
            s.options.on_redis_loss = OnRedisLoss::Segment;
        }),
        ("sites", |s| s.options.sites = Some(Sites { count: 2, site: 0 })),
        ("sites.site", |s| {
            s.mode = Mode::Segment;
            s.options.sites = Some(Sites { count: 2, site: 2 });
        }),
        ("calendar", |s| {
            s.mode = Mode::Sharded;
            s.options.app_id = Some(1);
            s.options.calendar = Some(Period::Daily);
        }),
        ("format", |s| {
            s.max_id = 999;
            s.options.calendar = Some(Period::Daily);
        }),
        ("time_zone", |s| s.options.time_zone = Some("Asia/Tokyo".into())),
        ("opaque", |s| {
            s.options.opaque = Some(Opaque::default());
            s.options.at_limit = AtLimit::Cycle;
        }),
        ("opaque.slices", |s| s.options.opaque = Some(Opaque { slices: 0 })),
        ("max_id", |s| {
            s.options.opaque = Some(Opaque { slices: 2 });
            s.max_id = 1_999_999;
        }),
        ("max_id", |s| {
            s.mode = Mode::Snowflake;
            s.max_id = 5_000;
        }),
        ("key", |s| s.options.opaque = Some(Opaque::default())),
        ("key", |s| s.key = Some(OpaqueKey::new([1; 32]))),
    ];
    for (wanted, change) in cases {
        let mut broken = spec("broken-options");
        change(&mut broken);
        let error = store.create_type(&broken, "suite").await.unwrap_err();
        assert_eq!(field(error), wanted);
        assert_eq!(store.find_type(&broken.name).await.unwrap(), None);
    }
}

pub(super) async fn changes(store: &Store) {
    let wanted = spec("altered-options");
    create(store, &wanted).await;
    let alter = async |change: TypeChange| store.alter_type(&wanted.name, &change, "suite").await;
    let to = |mode, options| TypeChange { mode, options, ..TypeChange::default() };

    // Before the first range everything may change.
    let cycle = TypeOptions { at_limit: AtLimit::Cycle, ..TypeOptions::default() };
    let changed = alter(to(Some(Mode::Segment), Some(cycle.clone()))).await.unwrap();
    assert_eq!((changed.mode, &changed.options), (Mode::Segment, &cycle));
    assert_eq!(changed.max_position, TypeSpec::HIGHEST_ID);
    let error = alter(to(Some(Mode::Sharded), None)).await.unwrap_err();
    assert_eq!(field(error), "app_id", "mode and options have to fit together");
    let app = TypeOptions { app_id: Some(9), ..TypeOptions::default() };
    let changed = alter(to(Some(Mode::Sharded), Some(app.clone()))).await.unwrap();
    assert_eq!(changed.max_position, app.max_position(Mode::Sharded, wanted.max_id));
    assert_eq!(find(store, &wanted.name).await, changed);
    assert_eq!(ends(store, of_shard(&wanted.name, 5)).await, (1, 1_001));

    let error = alter(to(Some(Mode::Segment), Some(TypeOptions::default()))).await.unwrap_err();
    assert_eq!(field(error), "mode", "somebody has ids");
    let other = TypeOptions { app_id: Some(8), ..TypeOptions::default() };
    assert_eq!(field(alter(to(None, Some(other))).await.unwrap_err()), "app_id");
    let low = TypeChange { max_id: Some((1_000 << 14) - 1), ..TypeChange::default() };
    assert_eq!(field(alter(low).await.unwrap_err()), "max_id", "999 positions");
    let enough = TypeChange { max_id: Some((1_001 << 14) - 1), ..TypeChange::default() };
    assert_eq!(alter(enough).await.unwrap().max_position, 1_000);
    let error = denied(store, of_shard(&wanted.name, 5)).await;
    assert_eq!(code(error), ErrorCode::Exhausted, "the new limit holds");

    let strict = spec("altered-loss");
    create(store, &strict).await;
    next(store, &strict.name).await;
    let loss = TypeOptions { on_redis_loss: OnRedisLoss::Segment, ..TypeOptions::default() };
    let changed = store.alter_type(&strict.name, &to(None, Some(loss.clone())), "suite").await;
    assert_eq!(changed.unwrap().options, loss, "the one option that may change later");
}

pub(super) async fn limits_of_positions(store: &Store) {
    let mut cycle = spec("cycle");
    cycle.max_id = 100;
    cycle.options.at_limit = AtLimit::Cycle;
    assert_eq!(create(store, &cycle).await.max_position, TypeSpec::HIGHEST_ID);
    assert_eq!(ends(store, request(&cycle.name)).await, (1, 1_001), "positions go on");
    assert_eq!(ends(store, request(&cycle.name)).await, (1_001, 2_001));

    let mut sites = spec("sites");
    sites.mode = Mode::Segment;
    sites.max_id = 6_003;
    sites.options.sites = Some(Sites { count: 4, site: 3 });
    assert_eq!(create(store, &sites).await.max_position, 1_500);
    assert_eq!(ends(store, request(&sites.name)).await, (1, 1_001));
    let error = store.reserve(&sites.name, 501, 0, "dba").await.unwrap_err();
    assert_eq!(code(error), ErrorCode::Exhausted);
    assert_eq!(ends(store, request(&sites.name)).await, (1_001, 1_501), "cut at the limit");
    assert_eq!(code(denied(store, request(&sites.name)).await), ErrorCode::Exhausted);
}

pub(super) async fn snowflake_has_no_ranges(store: &Store) {
    let mut wanted = spec("snowflake");
    wanted.mode = Mode::Snowflake;
    let record = create(store, &wanted).await;
    assert_eq!(record.mode, Mode::Snowflake);
    assert_eq!(field(denied(store, request(&wanted.name)).await), "mode");
    let error = store.reserve(&wanted.name, 5, 0, "dba").await.unwrap_err();
    assert_eq!(field(error), "mode");
    let change = TypeChange { mode: Some(Mode::Segment), ..TypeChange::default() };
    let error = store.alter_type(&wanted.name, &change, "suite").await.unwrap_err();
    assert_eq!(field(error), "mode", "nobody counts its ids, so there may be some");
    assert_eq!(find(store, &wanted.name).await, record);

    let plain = spec("not-snowflake-yet");
    create(store, &plain).await;
    let change = TypeChange { mode: Some(Mode::Snowflake), ..TypeChange::default() };
    store.alter_type(&plain.name, &change, "suite").await.unwrap();
    assert_eq!(field(denied(store, request(&plain.name)).await), "mode");
    let issued = spec("never-snowflake");
    create(store, &issued).await;
    allocate(store, request(&issued.name)).await;
    let error = store.alter_type(&issued.name, &change, "suite").await.unwrap_err();
    assert_eq!(field(error), "mode");
}
