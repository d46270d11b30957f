//! From a scanned request to an answer: which method, are its arguments there,
//! what does the service say.

use thrift::ApplicationErrorKind;

use crate::domain::{Error, ErrorCode};
use crate::service::api::{IdApi, MAX_COUNT, Order};

use super::metrics::ThriftMetrics;
use super::reply::Answer;
use super::wire::{Args, Header};
use super::{add_new_id, codes, convert};

/// Message type of a call.
const CALL: u8 = 1;
/// Message type of a call that nobody waits for.
pub const ONEWAY: u8 = 4;

/// The methods of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `getId`
    GetId,
    /// `getStrId`
    GetStrId,
    /// `addNewId`
    AddNewId,
    /// `echo`
    Echo,
    /// `nextId`
    NextId,
    /// `nextIds`
    NextIds,
    /// `nextStringId`
    NextStringId,
    /// `describeType`
    DescribeType,
    /// `nodeStatus`
    NodeStatus,
}

impl Method {
    /// Every method, for metrics.
    pub const ALL: [Method; 9] = [
        Method::GetId,
        Method::GetStrId,
        Method::AddNewId,
        Method::Echo,
        Method::NextId,
        Method::NextIds,
        Method::NextStringId,
        Method::DescribeType,
        Method::NodeStatus,
    ];

    /// The name in the IDL.
    pub fn name(self) -> &'static str {
        match self {
            Method::GetId => "getId",
            Method::GetStrId => "getStrId",
            Method::AddNewId => "addNewId",
            Method::Echo => "echo",
            Method::NextId => "nextId",
            Method::NextIds => "nextIds",
            Method::NextStringId => "nextStringId",
            Method::DescribeType => "describeType",
            Method::NodeStatus => "nodeStatus",
        }
    }

    /// The method called `name` on the wire.
    pub fn from_name(name: &[u8]) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name().as_bytes() == name)
    }
}

/// A complete request, still in the bytes that it came in.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// All bytes of the message.
    pub message: &'a [u8],
    /// Its header.
    pub header: Header,
    /// Its arguments.
    pub args: &'a Args,
}

impl<'a> Request<'a> {
    /// The name of the method as sent.
    pub fn name(&self) -> &'a [u8] {
        let start = self.header.name_start;
        &self.message[start..start + self.header.name_len]
    }

    /// The method to call, or why none will be.
    pub fn method(&self) -> Result<Method, Answer> {
        if !matches!(self.header.kind, CALL | ONEWAY) {
            return Err(Answer::Refused(
                ApplicationErrorKind::InvalidMessageType,
                format!("message type {} is not a call", self.header.kind),
            ));
        }
        Method::from_name(self.name()).ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(self.name()).chars().take(128).collect();
            Answer::Refused(
                ApplicationErrorKind::UnknownMethod,
                format!("this service has no method {shown:?}"),
            )
        })
    }

    /// Whether nobody waits for a reply.
    pub fn is_oneway(&self) -> bool {
        self.header.kind == ONEWAY
    }

    fn text(&self, id: i16, field: &'static str) -> Result<Option<&'a str>, Error> {
        let Some(bytes) = self.args.bytes(id, self.message) else {
            return Ok(None);
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(Error::invalid(
                field,
                format!("{field} is not UTF-8 from byte {} on", error.valid_up_to()),
            )),
        }
    }

    /// A text that must be there and not be empty.
    fn filled(&self, id: i16, field: &'static str) -> Result<&'a str, Error> {
        match self.text(id, field)? {
            None => Err(Error::invalid(field, format!("{field} is missing"))),
            Some("") => Err(Error::invalid(field, format!("{field} is empty"))),
            Some(text) => Ok(text),
        }
    }

    fn count(&self, id: i16) -> Result<i64, Error> {
        match self.args.i32(id) {
            None => Err(Error::invalid("count", "count is missing")),
            Some(count) if (1..=MAX_COUNT).contains(&i64::from(count)) => Ok(count.into()),
            Some(count) => Err(Error::invalid(
                "count",
                format!("count {count} is out of range: it must be from 1 to {MAX_COUNT}"),
            )),
        }
    }
}

/// Calls `method`. Every failure becomes an answer, and is counted.
///
/// `draining` is whether the node is shutting down, asked when the service has
/// answered.
pub async fn call<A: IdApi>(
    method: Method,
    request: Request<'_>,
    api: &A,
    metrics: &ThriftMetrics,
    draining: impl Fn() -> bool,
) -> Answer {
    match method {
        Method::GetId => {
            let result = counted(get_id(request, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::GetId(codes::res_long(result, draining()))
        }
        Method::GetStrId => {
            let result = counted(get_str_id(request, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::GetStrId(codes::res_str(result.map(Some), draining()))
        }
        Method::AddNewId => {
            // Boxed: rare and large, it would make every connection larger.
            let result = counted(Box::pin(create(request, api)).await, metrics);
            Answer::AddNewId(codes::res_bool(result, draining()))
        }
        Method::Echo => {
            let result = counted(echo(request), metrics);
            Answer::Echo(codes::res_str(result, draining()))
        }
        Method::NextId => {
            let result = counted(next_id(request, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::NextId(result.map_err(codes::exception))
        }
        Method::NextIds => {
            let result = counted(next_ids(request, api).await, metrics);
            count_ids(metrics, &result, |ranges| ranges.iter().map(|range| range.len()).sum());
            let ranges = result.map(|ranges| ranges.into_iter().map(convert::id_range).collect());
            Answer::NextIds(ranges.map_err(codes::exception))
        }
        Method::NextStringId => {
            let result = counted(next_string_id(request, api).await, metrics);
            count_ids(metrics, &result, |_| 1);
            Answer::NextStringId(result.map_err(codes::exception))
        }
        Method::DescribeType => {
            let result = counted(Box::pin(describe(request, api)).await, metrics);
            Answer::DescribeType(result.map_err(codes::exception))
        }
        Method::NodeStatus => {
            let status = Box::pin(api.node_status()).await;
            Answer::NodeStatus(Box::new(convert::node_info(status)))
        }
    }
}

fn counted<T>(result: Result<T, Error>, metrics: &ThriftMetrics) -> Result<T, Error> {
    if let Err(error) = &result {
        metrics.error(error.code);
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

/// The service speaks of `name`; its callers know the argument under `field`.
fn rename(mut error: Error, field: &'static str) -> Error {
    if error.field == Some("name") {
        error.field = Some(field);
    }
    error
}

async fn get_id<A: IdApi>(request: Request<'_>, api: &A) -> Result<i64, Error> {
    request.text(1, "caller")?;
    let name = request.filled(2, "idName")?;
    api.next_id(name).await
}

async fn get_str_id<A: IdApi>(request: Request<'_>, api: &A) -> Result<String, Error> {
    request.text(1, "caller")?;
    let name = request.filled(2, "idName")?;
    let with_prefix = request.args.bool(3).unwrap_or(false);
    one_text(api.next_string_ids(name, Order::of(1), with_prefix).await)
}

/// The longest name of a caller that goes into the audit log, in characters.
const MAX_ACTOR: usize = 128;

async fn create<A: IdApi>(request: Request<'_>, api: &A) -> Result<(), Error> {
    let caller = request.text(1, "caller")?.unwrap_or_default();
    let spec = add_new_id::parse(request.filled(2, "newIdInfo")?)?;
    // The name is the caller's own claim, so the log says where it came from.
    let actor: String = match caller.trim() {
        "" => "thrift".to_owned(),
        caller => format!("thrift:{caller}"),
    };
    let actor: String = actor.chars().take(MAX_ACTOR).collect();
    api.create_type(spec, &actor).await.map(|_| ())
}

/// Gives back what came; the original does so even for a text that is missing.
fn echo(request: Request<'_>) -> Result<Option<String>, Error> {
    request.filled(1, "caller")?;
    Ok(request.text(2, "srcStr")?.map(str::to_owned))
}

async fn next_id<A: IdApi>(request: Request<'_>, api: &A) -> Result<i64, Error> {
    let name = request.filled(1, "idType")?;
    api.next_id(name).await.map_err(|e| rename(e, "idType"))
}

async fn next_ids<A: IdApi>(
    request: Request<'_>,
    api: &A,
) -> Result<Vec<crate::domain::IdRange>, Error> {
    let name = request.filled(1, "idType")?;
    let count = request.count(2)?;
    api.next_ids(name, Order::of(count)).await.map_err(|e| rename(e, "idType"))
}

async fn next_string_id<A: IdApi>(request: Request<'_>, api: &A) -> Result<String, Error> {
    let name = request.filled(1, "idType")?;
    let with_prefix = request.args.bool(2).unwrap_or(false);
    let texts = api.next_string_ids(name, Order::of(1), with_prefix).await;
    one_text(texts).map_err(|e| rename(e, "idType"))
}

/// The text of an order for one.
fn one_text(texts: Result<Vec<String>, Error>) -> Result<String, Error> {
    texts?.pop().ok_or_else(|| Error::new(ErrorCode::Internal, "an order for one id gave none"))
}

async fn describe<A: IdApi>(
    request: Request<'_>,
    api: &A,
) -> Result<Box<super::generated::TypeInfo>, Error> {
    let name = request.filled(1, "idType")?;
    let status = api.describe(name).await.map_err(|e| rename(e, "idType"))?;
    Ok(Box::new(convert::type_info(status)))
}
