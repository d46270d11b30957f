//! What every range store must do.

mod calendar;
mod feed;
mod give_back;
mod migration;
mod opaque;
mod options;
mod ranges;
mod sharded;
mod types;

use std::sync::Arc;

use super::{assert_disjoint, name};
use crate::domain::{ErrorCode, TypeName, TypeRecord, TypeSpec};
use crate::ports::{Allocation, NextRange, RangeStore, StoreError};

type Store = Arc<dyn RangeStore>;

/// Runs the whole suite on a store without types; instances may be there.
pub async fn range_store(store: Store) {
    let instance = types::instances(&store).await;
    types::creation(&store, instance).await;
    ranges::first_and_next_range(&store).await;
    ranges::sizing_by_cases(&store).await;
    ranges::floor(&store).await;
    ranges::limit(&store).await;
    ranges::highest_numbers(&store).await;
    types::retiring(&store).await;
    feed::histories(&store, instance).await;
    types::altering(&store).await;
    ranges::reserving(&store).await;
    types::listing(&store).await;
    ranges::concurrent_callers(&store).await;
    feed::change_feed(&store).await;
    options::kept_and_audited(&store).await;
    options::broken_rules(&store).await;
    options::changes(&store).await;
    options::limits_of_positions(&store).await;
    options::snowflake_has_no_ranges(&store).await;
    sharded::each_shard_is_a_sequence(&store).await;
    sharded::what_a_shard_is(&store).await;
    sharded::limit_and_floor(&store).await;
    sharded::concurrent_callers(&store).await;
    calendar::what_a_period_is(&store).await;
    calendar::roll_over(&store).await;
    calendar::end_of_a_period(&store).await;
    calendar::floors(&store).await;
    give_back::the_end_goes_back(&store).await;
    give_back::nothing_else_goes_back(&store).await;
    give_back::ranges_with_a_target_stay(&store, instance).await;
    give_back::by_shard_and_period(&store).await;
    give_back::concurrent_callers(&store).await;
    opaque::keys(&store).await;
    opaque::rotation(&store).await;
    opaque::borders_of_slices(&store).await;
    opaque::lost_keys(&store).await;
    opaque::shards_rotate_together(&store).await;
    opaque::no_key_is_shown(&store).await;
    let world = migration::world(&store).await;
    migration::from_begin_to_end(&world).await;
    migration::refused_beginnings(&world).await;
    migration::undone(&world).await;
    migration::what_is_left(&world).await;
    migration::there_and_back(&world).await;
    migration::a_replaced_server_does_not_come_back(&world).await;
    migration::concurrent_assignments(&world).await;
    migration::types_of_an_instance(&world).await;
    migration::draining(&world).await;
    migration::removing(&world).await;
    store.ping().await.expect("a store that works answers");
}

fn spec(text: &str) -> TypeSpec {
    TypeSpec::new(name(text))
}

async fn create(store: &Store, spec: &TypeSpec) -> TypeRecord {
    store.create_type(spec, "suite").await.unwrap_or_else(|e| panic!("create {}: {e}", spec.name))
}

async fn find(store: &Store, name: &TypeName) -> TypeRecord {
    store.find_type(name).await.unwrap().unwrap_or_else(|| panic!("{name} is gone"))
}

fn request(name: &TypeName) -> NextRange<'_> {
    NextRange::of(name, "suite")
}

fn of_shard(name: &TypeName, shard: u8) -> NextRange<'_> {
    NextRange { shard: Some(shard), ..request(name) }
}

async fn next(store: &Store, name: &TypeName) -> Allocation {
    allocate(store, request(name)).await
}

async fn allocate(store: &Store, request: NextRange<'_>) -> Allocation {
    store.next_range(request.clone()).await.unwrap_or_else(|e| panic!("{request:?}: {e}"))
}

/// Start and end of the range that `request` gets.
async fn ends(store: &Store, request: NextRange<'_>) -> (i64, i64) {
    let range = allocate(store, request).await.range;
    (range.start(), range.end())
}

async fn denied(store: &Store, request: NextRange<'_>) -> StoreError {
    match store.next_range(request.clone()).await {
        Err(error) => error,
        Ok(allocation) => panic!("{request:?} got {}", allocation.range),
    }
}

fn code(error: StoreError) -> ErrorCode {
    match error {
        StoreError::Refused(error) => error.code,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// The field of an `INVALID_ARGUMENT`.
fn field(error: StoreError) -> &'static str {
    match error {
        StoreError::Refused(error) if error.code == ErrorCode::InvalidArgument => {
            error.field.unwrap_or_else(|| panic!("no field: {error}"))
        }
        other => panic!("expected an argument to be refused, got {other:?}"),
    }
}
