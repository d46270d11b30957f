//! The service's records as the structs of the IDL.

use crate::domain::{IdRange, TypeRecord};
use crate::ports::View;
use crate::service::api::{Decoded, LocalSupply, NodeStatus, PartStatus, RangeLease, TypeStatus};

use super::generated::{self, DecodedId, LiveState, NodeInfo, PartInfo, TypeInfo};

/// A range, by its first id and its length.
fn id_range(range: IdRange) -> generated::IdRange {
    generated::IdRange { first: range.start(), count: count(range.len()) }
}

/// The answer of nextIds and issueIds. In place: the two kinds of range are as
/// long as each other.
pub fn id_ranges(ranges: Vec<IdRange>) -> Vec<generated::IdRange> {
    ranges.into_iter().map(id_range).collect()
}

/// The answer of describeType.
pub fn type_info(status: TypeStatus) -> TypeInfo {
    let unallocated = count(status.record.left());
    let TypeRecord {
        placement,
        name,
        mode,
        state,
        prefix,
        description,
        options,
        keys: _, // Secret.
        first_id,
        next_id,
        max_id,
        max_position,
        min_range,
        max_range,
        load_interval_ms,
        load_percentage,
        lock_ttl_ms,
        last_range,
        last_load_ms,
        instance,
        history,
        version,
        created_ms,
        updated_ms,
    } = status.record;
    TypeInfo {
        name: Some(name.to_string()),
        mode: Some(mode.as_str().to_owned()),
        state: Some(state.as_str().to_owned()),
        prefix: Some(prefix),
        description: Some(description),
        first_id: Some(first_id),
        next_id: Some(next_id),
        max_id: Some(max_id),
        min_range: Some(min_range),
        max_range: Some(max_range),
        load_interval_ms: Some(load_interval_ms),
        load_percentage: Some(load_percentage.as_fraction().into()),
        lock_ttl_ms: Some(lock_ttl_ms),
        last_range,
        last_load_ms,
        instance: Some(instance.0),
        history: history.map(|history| history.to_string()),
        version: Some(version),
        created_ms: Some(created_ms),
        updated_ms: Some(updated_ms),
        unallocated: Some(unallocated),
        live: status.view.as_ref().map(live_state),
        options: Some(options.to_json()),
        max_position: Some(max_position),
        local: status.local.map(local_supply),
        exhausted_at_ms: status.exhausted_at_ms,
        moving_to: placement.moving_to.map(|to| to.0),
        moved_from: placement.moved_from.map(|from| from.0),
        generation: Some(placement.generation),
    }
}

fn live_state(view: &View) -> LiveState {
    LiveState {
        history: Some(view.history.to_string()),
        published_history: view.published_history.as_ref().map(ToString::to_string),
        live: Some(view.is_live()),
        cursor: Some(view.cursor),
        current: view.current.map(id_range),
        update_id: Some(view.update_id),
        second: view.second.map(id_range),
        left: Some(count(view.left())),
        used: Some(count(view.used)),
        age_ms: Some(count(view.age_ms)),
        due: Some(view.is_due()),
    }
}

fn local_supply(local: LocalSupply) -> generated::LocalSupply {
    let LocalSupply { left, ranges, ahead, rate, runway_s, worker } = local;
    generated::LocalSupply {
        left: Some(count(left)),
        ranges: Some(count(ranges)),
        ahead: Some(count(ahead)),
        rate: rate.map(Into::into),
        runway_s: runway_s.map(Into::into),
        worker,
    }
}

/// The answer of leaseRange.
pub fn range_lease(lease: RangeLease) -> generated::RangeLease {
    let RangeLease { first, count, step, ttl_ms } = lease;
    generated::RangeLease { first, count, step, ttl_ms }
}

/// The answer of decodeId.
pub fn decoded_id(decoded: Decoded) -> DecodedId {
    let Decoded {
        id_type,
        mode,
        id,
        text,
        position,
        period,
        shard,
        app_id,
        worker,
        sequence,
        at_ms,
        node,
        range_first,
        range_count,
        issued,
    } = decoded;
    DecodedId {
        id_type: Some(id_type),
        mode: Some(mode.to_owned()),
        id,
        text: Some(text),
        position,
        period,
        shard: shard.map(i32::from),
        app_id,
        worker,
        sequence,
        at_ms,
        node,
        range_first,
        range_count,
        issued: Some(issued),
    }
}

/// The answer of nodeStatus.
pub fn node_info(status: NodeStatus) -> NodeInfo {
    NodeInfo {
        node: Some(status.node),
        version: Some(status.version.to_owned()),
        uptime_s: Some(count(status.uptime_s)),
        ready: Some(status.ready),
        draining: Some(status.draining),
        types_loaded: Some(count(status.types_loaded)),
        parts: Some(status.parts.into_iter().map(part_info).collect()),
    }
}

fn part_info(part: PartStatus) -> PartInfo {
    PartInfo {
        name: Some(part.name),
        kind: Some(part.kind.to_owned()),
        reachable: Some(part.reachable),
        error: part.error,
    }
}

/// Thrift has no unsigned numbers; no count here comes near the end of i64.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
