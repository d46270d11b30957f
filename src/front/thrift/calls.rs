//! From a scanned request to an answer: what its method wants of the service,
//! and what the service says.

use tracing::Instrument;

use crate::domain::{Error, ErrorCode, IdRange};
use crate::front::spans;
use crate::service::access::callers::{Pass, Want};
use crate::service::api::{
    IdApi, MAX_COUNT, MAX_LEASE, MAX_LEASE_MS, MAX_TEXTS, MIN_LEASE_MS, Order, RangeLease,
};

use super::calling::Calling;
use super::generated::{DecodedId, TypeInfo};
use super::method::Method;
use super::metrics::ThriftMetrics;
use super::reply::Answer;
use super::request::Request;
use super::{add_new_id, codes, convert};

/// Calls `method`. Every failure becomes an answer, and is counted.
///
/// `draining` is whether the node is shutting down, asked when the service has
/// answered. `who` is who calls.
pub async fn call<A: IdApi>(
    method: Method,
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
    metrics: &ThriftMetrics,
    draining: impl Fn() -> bool,
) -> Answer {
    let span = spans::of_call(method.name());
    answer(method, request, who, api, metrics, draining).instrument(span).await
}

async fn answer<A: IdApi>(
    method: Method,
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
    metrics: &ThriftMetrics,
    draining: impl Fn() -> bool,
) -> Answer {
    match method {
        Method::GetId => {
            let result = counted(get_id(request, who, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::GetId(codes::res_long(result, draining()))
        }
        Method::GetStrId => {
            let result = counted(get_str_id(request, who, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::GetStrId(codes::res_str(result.map(Some), draining()))
        }
        Method::AddNewId => {
            // Boxed: rare and large, it would make every connection larger.
            let result = counted(Box::pin(create(request, who, api)).await, metrics);
            Answer::AddNewId(codes::res_bool(result, draining()))
        }
        Method::Echo => {
            let result = counted(echo(request), metrics);
            Answer::Echo(codes::res_str(result, draining()))
        }
        Method::NextId => {
            let result = counted(next_id(request, who, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::NextId(result.map_err(codes::exception))
        }
        Method::NextIds => {
            let result = counted(next_ids(request, who, api).await, metrics);
            count_ids(metrics, &result, |ranges| ids_in(ranges));
            Answer::NextIds(result.map(convert::id_ranges).map_err(codes::exception))
        }
        Method::NextStringId => {
            let result = counted(next_string_id(request, who, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::NextStringId(result.map_err(codes::exception))
        }
        Method::DescribeType => {
            let result = counted(Box::pin(describe(request, who, api)).await, metrics);
            Answer::DescribeType(result.map_err(codes::exception))
        }
        Method::NodeStatus => {
            let status = Box::pin(api.node_status()).await;
            Answer::NodeStatus(Box::new(convert::node_info(status)))
        }
        Method::NextShardedId => {
            let result = counted(next_sharded_id(request, who, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::NextShardedId(result.map_err(codes::exception))
        }
        Method::IssueIds => {
            let result = counted(issue_ids(request, who, api).await, metrics);
            count_ids(metrics, &result, |ranges| ids_in(ranges));
            Answer::IssueIds(result.map(convert::id_ranges).map_err(codes::exception))
        }
        Method::IssueStringIds => {
            let result = counted(Box::pin(issue_string_ids(request, who, api)).await, metrics);
            count_ids(metrics, &result, |texts| texts.len() as u64);
            Answer::IssueStringIds(result.map_err(codes::exception))
        }
        Method::LeaseRange => {
            let result = counted(Box::pin(lease_range(request, who, api)).await, metrics);
            count_ids(metrics, &result, |lease| lease.count.unsigned_abs());
            Answer::LeaseRange(result.map(convert::range_lease).map_err(codes::exception))
        }
        Method::DecodeId => {
            let result = counted(Box::pin(decode(request, who, api)).await, metrics);
            Answer::DecodeId(result.map_err(codes::exception))
        }
        // The connection does it, which knows who calls.
        Method::Authenticate => authenticated(Ok(()), metrics),
    }
}

/// The answer of authenticate.
pub fn authenticated(result: Result<(), Error>, metrics: &ThriftMetrics) -> Answer {
    Answer::Authenticate(counted(result, metrics).map_err(codes::exception))
}

/// The answer to an order for many ids, of which too many are under way.
pub fn too_many_long_orders(method: Method, metrics: &ThriftMetrics) -> Answer {
    let error = Error::new(
        ErrorCode::Overloaded,
        "too many orders for many ids are under way: try again, or ask for fewer ids at a time",
    );
    metrics.error(error.code);
    let error = codes::exception(error);
    match method {
        Method::NextIds => Answer::NextIds(Err(error)),
        Method::IssueStringIds => Answer::IssueStringIds(Err(error)),
        _ => Answer::IssueIds(Err(error)),
    }
}

fn counted<T>(result: Result<T, Error>, metrics: &ThriftMetrics) -> Result<T, Error> {
    if let Err(error) = &result {
        metrics.error(error.code);
        spans::failed(error.code.as_str());
        if error.code == ErrorCode::Internal {
            tracing::error!(error = %error, "a call failed inside the service");
        }
    }
    result
}

fn count_ids<T>(metrics: &ThriftMetrics, result: &Result<T, Error>, count: impl Fn(&T) -> u64) {
    if let Ok(value) = result {
        metrics.ids.inc_by(count(value));
    }
}

/// What a call that was let pass came to; `count` is how many ids it gave.
fn settled<T>(
    pass: Pass<'_>,
    result: Result<T, Error>,
    count: impl Fn(&T) -> u64,
) -> Result<T, Error> {
    pass.settle(result.as_ref().map_or(0, count));
    result
}

fn ids_in(ranges: &[IdRange]) -> u64 {
    ranges.iter().map(|range| range.len()).sum()
}

/// The service has names of its own for arguments; callers know those of the IDL.
fn rename(mut error: Error) -> Error {
    error.field = error.field.map(|field| match field {
        "name" => "idType",
        "gate_pass" => "gatePass",
        "request_key" => "requestKey",
        "ttl_ms" => "ttlMs",
        other => other,
    });
    error
}

async fn get_id<A: IdApi>(request: Request<'_>, who: &Calling<'_>, api: &A) -> Result<i64, Error> {
    request.text(1, "caller")?;
    let name = request.filled(2, "idName")?;
    let pass = who.pass(name, Want::Ids(1)).await?;
    settled(pass, api.next_id(name).await, |_| 1)
}

async fn get_str_id<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<String, Error> {
    request.text(1, "caller")?;
    let name = request.filled(2, "idName")?;
    let with_prefix = request.args.bool(3).unwrap_or(false);
    let pass = who.pass(name, Want::Ids(1)).await?;
    let texts = api.next_string_ids(name, Order::of(1), with_prefix).await;
    settled(pass, one_text(texts), |_| 1)
}

/// The longest name of a caller that goes into the audit log, in characters.
const MAX_ACTOR: usize = 128;

async fn create<A: IdApi>(request: Request<'_>, who: &Calling<'_>, api: &A) -> Result<(), Error> {
    let caller = request.text(1, "caller")?.unwrap_or_default();
    let spec = add_new_id::parse(request.filled(2, "newIdInfo")?)?;
    // The name is the caller's own claim, so the log says where it came from.
    let actor: String = match (who.name(), caller.trim()) {
        (Some(name), _) => format!("token {name}"),
        (None, "") => "thrift".to_owned(),
        (None, caller) => format!("thrift:{caller}"),
    };
    let actor: String = actor.chars().take(MAX_ACTOR).collect();
    who.pass(spec.name.as_str(), Want::Create).await?.settle(0);
    api.create_type(spec, &actor).await.map(|_| ())
}

/// Gives back what came; the original does so even for a text that is missing.
fn echo(request: Request<'_>) -> Result<Option<String>, Error> {
    request.filled(1, "caller")?;
    Ok(request.text(2, "srcStr")?.map(str::to_owned))
}

async fn next_id<A: IdApi>(request: Request<'_>, who: &Calling<'_>, api: &A) -> Result<i64, Error> {
    let name = request.filled(1, "idType")?;
    let pass = who.pass(name, Want::Ids(1)).await?;
    settled(pass, api.next_id(name).await.map_err(rename), |_| 1)
}

async fn next_ids<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<Vec<IdRange>, Error> {
    let name = request.filled(1, "idType")?;
    let count = request.i32(2, "count", 1..=MAX_COUNT)?;
    let pass = who.pass(name, Want::Ids(count)).await?;
    let ranges = api.next_ids(name, Order::of(count)).await;
    settled(pass, ranges.map_err(rename), |ranges| ids_in(ranges))
}

async fn next_string_id<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<String, Error> {
    let name = request.filled(1, "idType")?;
    let with_prefix = request.args.bool(2).unwrap_or(false);
    let pass = who.pass(name, Want::Ids(1)).await?;
    let texts = api.next_string_ids(name, Order::of(1), with_prefix).await;
    settled(pass, one_text(texts).map_err(rename), |_| 1)
}

/// The text of an order for one.
fn one_text(texts: Result<Vec<String>, Error>) -> Result<String, Error> {
    texts?.pop().ok_or_else(none_came)
}

fn none_came() -> Error {
    Error::new(ErrorCode::Internal, "an order for one id gave none")
}

async fn next_sharded_id<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<i64, Error> {
    let name = request.filled(1, "idType")?;
    let gate_pass = Some(request.filled(2, "gatePass")?);
    let order = Order { gate_pass, ..Order::of(1) };
    let pass = who.pass(name, Want::Ids(1)).await?;
    let ranges = api.next_ids(name, order).await.map_err(rename);
    let ranges = settled(pass, ranges, |ranges| ids_in(ranges))?;
    ranges.first().map(|range| range.start()).ok_or_else(none_came)
}

async fn issue_ids<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<Vec<IdRange>, Error> {
    let name = request.filled(1, "idType")?;
    let order = Order {
        count: request.i32(2, "count", 1..=MAX_COUNT)?,
        request_key: request.given(3, "requestKey")?,
        gate_pass: request.given(4, "gatePass")?,
    };
    let pass = who.pass(name, Want::Ids(order.count)).await?;
    let ranges = api.next_ids(name, order).await;
    settled(pass, ranges.map_err(rename), |ranges| ids_in(ranges))
}

async fn issue_string_ids<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<Vec<String>, Error> {
    let name = request.filled(1, "idType")?;
    let order = Order {
        count: request.i32(2, "count", 1..=MAX_TEXTS)?,
        request_key: request.given(4, "requestKey")?,
        gate_pass: request.given(5, "gatePass")?,
    };
    let with_prefix = request.args.bool(3).unwrap_or(false);
    let pass = who.pass(name, Want::Ids(order.count)).await?;
    let texts = api.next_string_ids(name, order, with_prefix).await;
    settled(pass, texts.map_err(rename), |texts| texts.len() as u64)
}

async fn lease_range<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<RangeLease, Error> {
    let name = request.filled(1, "idType")?;
    let count = request.i64(2, "count", 1..=MAX_LEASE)?;
    let ttl_ms = request.i64(3, "ttlMs", MIN_LEASE_MS..=MAX_LEASE_MS)?;
    let pass = who.pass(name, Want::Ids(count)).await?;
    let lease = api.lease_range(name, count, ttl_ms).await;
    settled(pass, lease.map_err(rename), |lease| lease.count.unsigned_abs())
}

async fn decode<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<Box<DecodedId>, Error> {
    let name = request.filled(1, "idType")?;
    let id = request.filled(2, "id")?;
    who.pass(name, Want::Look).await?.settle(0);
    let decoded = api.decode(name, id).await.map_err(rename)?;
    Ok(Box::new(convert::decoded_id(decoded)))
}

async fn describe<A: IdApi>(
    request: Request<'_>,
    who: &Calling<'_>,
    api: &A,
) -> Result<Box<TypeInfo>, Error> {
    let name = request.filled(1, "idType")?;
    who.pass(name, Want::Look).await?.settle(0);
    let status = api.describe(name).await.map_err(rename)?;
    Ok(Box::new(convert::type_info(status)))
}
