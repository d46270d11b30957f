//! Writing replies: the generated structs through the official crate's
//! protocols, into the buffer of the connection. What nearly every call is
//! answered, one id, does not go that way: see [`one_id`].

use thrift::protocol::{
    TBinaryOutputProtocol, TCompactOutputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol,
};
use thrift::{ApplicationError, ApplicationErrorKind};

use super::generated::{
    DecodedId, IdGenException, IdGenServiceAddNewIdResult, IdGenServiceAuthenticateResult,
    IdGenServiceDecodeIdResult, IdGenServiceDescribeTypeResult, IdGenServiceEchoResult,
    IdGenServiceGetIdResult, IdGenServiceGetStrIdResult, IdGenServiceIssueIdsResult,
    IdGenServiceIssueStringIdsResult, IdGenServiceLeaseRangeResult, IdGenServiceNextIdResult,
    IdGenServiceNextIdsResult, IdGenServiceNextShardedIdResult, IdGenServiceNextStringIdResult,
    IdGenServiceNodeStatusResult, IdRange, NodeInfo, RangeLease, ResBool, ResLong, ResStr,
    TypeInfo,
};
use super::one_id;
use super::wire::{Dialect, Protocol};

/// What a call answers. The large ones are boxed, so that the answer of the
/// hot path stays small.
#[derive(Debug)]
pub enum Answer {
    /// Of getId.
    GetId(ResLong),
    /// Of getStrId.
    GetStrId(ResStr),
    /// Of addNewId.
    AddNewId(ResBool),
    /// Of echo.
    Echo(ResStr),
    /// Of nextId.
    NextId(Result<i64, IdGenException>),
    /// Of nextIds.
    NextIds(Result<Vec<IdRange>, IdGenException>),
    /// Of nextStringId.
    NextStringId(Result<String, IdGenException>),
    /// Of describeType.
    DescribeType(Result<Box<TypeInfo>, IdGenException>),
    /// Of nodeStatus.
    NodeStatus(Box<NodeInfo>),
    /// Of nextShardedId.
    NextShardedId(Result<i64, IdGenException>),
    /// Of issueIds.
    IssueIds(Result<Vec<IdRange>, IdGenException>),
    /// Of issueStringIds.
    IssueStringIds(Result<Vec<String>, IdGenException>),
    /// Of leaseRange.
    LeaseRange(Result<RangeLease, IdGenException>),
    /// Of decodeId.
    DecodeId(Result<Box<DecodedId>, IdGenException>),
    /// Of authenticate.
    Authenticate(Result<(), IdGenException>),
    /// The call never reached a method.
    Refused(ApplicationErrorKind, String),
}

/// To which call a reply belongs.
#[derive(Clone, Copy, Debug)]
pub struct ReplyTo<'a> {
    /// How the connection speaks.
    pub dialect: Dialect,
    /// Whether a binary reply begins with the version; as in the call.
    pub strict: bool,
    /// The name of the method, as in the call.
    pub name: &'a str,
    /// The sequence number, as in the call.
    pub seqid: i32,
}

/// Appends the reply with `answer` to `out`, with its frame if the connection
/// has frames. On an error (a reply that no frame can hold) `out` is as before.
pub fn append(out: &mut Vec<u8>, to: &ReplyTo<'_>, answer: Answer) -> thrift::Result<()> {
    let start = out.len();
    let result = append_unchecked(out, to, answer);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn append_unchecked(out: &mut Vec<u8>, to: &ReplyTo<'_>, answer: Answer) -> thrift::Result<()> {
    match one_id::of(&answer) {
        Some(result) => {
            one_id::append(out, to, result);
            Ok(())
        }
        None => append_generated(out, to, answer),
    }
}

/// Any answer, through the generated structs.
pub(super) fn append_generated(
    out: &mut Vec<u8>,
    to: &ReplyTo<'_>,
    answer: Answer,
) -> thrift::Result<()> {
    let start = out.len();
    out.reserve(expected_len(&answer));
    if to.dialect.framed {
        out.extend_from_slice(&[0; 4]);
    }
    match to.dialect.protocol {
        Protocol::Binary => {
            let mut protocol = TBinaryOutputProtocol::new(&mut *out, to.strict);
            write(&mut protocol, to, answer)?;
        }
        Protocol::Compact => {
            let mut protocol = TCompactOutputProtocol::new(&mut *out);
            write(&mut protocol, to, answer)?;
        }
    }
    if to.dialect.framed {
        let length = out.len() - start - 4;
        let length = i32::try_from(length).map_err(|_| {
            thrift::new_protocol_error(
                thrift::ProtocolErrorKind::SizeLimit,
                "the reply is longer than a frame can be",
            )
        })?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// The most bytes that a list takes in a reply, in either protocol: a buffer that
/// only doubled would be up to twice as long. 0 for everything short.
fn expected_len(answer: &Answer) -> usize {
    match answer {
        // Two field headers, two numbers of 64 bits, and the end of the struct: 23
        // in the binary protocol, and no more in the compact one.
        Answer::NextIds(Ok(ranges)) | Answer::IssueIds(Ok(ranges)) if ranges.len() > 1 => {
            ranges.len() * 23 + 64
        }
        Answer::IssueStringIds(Ok(texts)) if texts.len() > 1 => {
            texts.iter().map(|text| text.len() + 5).sum::<usize>() + 64
        }
        _ => 0,
    }
}

/// The value and the exception of a result struct, of which one is set.
fn either<T>(result: Result<T, IdGenException>) -> (Option<T>, Option<IdGenException>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    }
}

fn write(out: &mut dyn TOutputProtocol, to: &ReplyTo<'_>, answer: Answer) -> thrift::Result<()> {
    let kind = match answer {
        Answer::Refused(..) => TMessageType::Exception,
        _ => TMessageType::Reply,
    };
    out.write_message_begin(&TMessageIdentifier::new(to.name, kind, to.seqid))?;
    match answer {
        Answer::GetId(value) => {
            IdGenServiceGetIdResult { result_value: Some(value) }.write_to_out_protocol(out)?
        }
        Answer::GetStrId(value) => {
            IdGenServiceGetStrIdResult { result_value: Some(value) }.write_to_out_protocol(out)?
        }
        Answer::AddNewId(value) => {
            IdGenServiceAddNewIdResult { result_value: Some(value) }.write_to_out_protocol(out)?
        }
        Answer::Echo(value) => {
            IdGenServiceEchoResult { result_value: Some(value) }.write_to_out_protocol(out)?
        }
        Answer::NextId(result) => {
            let (result_value, error) = either(result);
            IdGenServiceNextIdResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::NextIds(result) => {
            let (result_value, error) = either(result);
            IdGenServiceNextIdsResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::NextStringId(result) => {
            let (result_value, error) = either(result);
            IdGenServiceNextStringIdResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::DescribeType(result) => {
            let (result_value, error) = either(result.map(|info| *info));
            IdGenServiceDescribeTypeResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::NodeStatus(info) => {
            IdGenServiceNodeStatusResult { result_value: Some(*info), error: None }
                .write_to_out_protocol(out)?
        }
        Answer::NextShardedId(result) => {
            let (result_value, error) = either(result);
            IdGenServiceNextShardedIdResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::IssueIds(result) => {
            let (result_value, error) = either(result);
            IdGenServiceIssueIdsResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::IssueStringIds(result) => {
            let (result_value, error) = either(result);
            IdGenServiceIssueStringIdsResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::LeaseRange(result) => {
            let (result_value, error) = either(result);
            IdGenServiceLeaseRangeResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::DecodeId(result) => {
            let (result_value, error) = either(result.map(|decoded| *decoded));
            IdGenServiceDecodeIdResult { result_value, error }.write_to_out_protocol(out)?;
        }
        Answer::Authenticate(result) => {
            IdGenServiceAuthenticateResult { error: result.err() }.write_to_out_protocol(out)?;
        }
        Answer::Refused(kind, message) => {
            let error = ApplicationError::new(kind, message);
            thrift::Error::write_application_error_to_out_protocol(&error, out)?;
        }
    }
    out.write_message_end()
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    const FRAMED_BINARY: Dialect = Dialect { framed: true, protocol: Protocol::Binary };

    fn to(dialect: Dialect) -> ReplyTo<'static> {
        ReplyTo { dialect, strict: true, name: "getId", seqid: 1 }
    }

    #[test]
    fn the_reply_of_the_original_system_byte_by_byte() {
        let mut out = Vec::new();
        let answer = Answer::GetId(codes::res_long(Ok(0x03e9), false));
        append(&mut out, &to(FRAMED_BINARY), answer).unwrap();
        let expected = b"\0\0\0\x28\x80\x01\0\x02\0\0\0\x05getId\0\0\0\x01\x0c\0\0\
            \x08\0\x01\0\0\0\xc8\x0a\0\x02\0\0\0\0\0\0\x03\xe9\0\0";
        assert_eq!(out, expected);
    }

    #[test]
    fn each_dialect_has_its_form() {
        let unframed = Dialect { framed: false, ..FRAMED_BINARY };
        let mut out = b"before".to_vec();
        append(&mut out, &to(unframed), Answer::NextId(Ok(1))).unwrap();
        assert!(out.starts_with(b"before\x80\x01\0\x02\0\0\0\x05getId"));

        let not_strict = ReplyTo { strict: false, ..to(unframed) };
        out.clear();
        append(&mut out, &not_strict, Answer::NextId(Ok(1))).unwrap();
        assert!(out.starts_with(b"\0\0\0\x05getId\x02\0\0\0\x01"));

        let compact = Dialect { framed: false, protocol: Protocol::Compact };
        out.clear();
        append(&mut out, &to(compact), Answer::NextId(Ok(1))).unwrap();
        assert!(out.starts_with(b"\x82\x41\x01\x05getId"));
    }

    #[test]
    fn a_reply_of_one_id_ranges_fits_what_was_reserved() {
        let ranges: Vec<IdRange> =
            (0..100_000).map(|at| IdRange { first: i64::MAX - at, count: 1 }).collect();
        let texts: Vec<String> = (0..10_000).map(|at| format!("2026-{at}")).collect();
        for protocol in [Protocol::Binary, Protocol::Compact] {
            let to = to(Dialect { framed: true, protocol });
            for answer in
                [Answer::IssueIds(Ok(ranges.clone())), Answer::IssueStringIds(Ok(texts.clone()))]
            {
                let mut out = Vec::new();
                let expected = expected_len(&answer);
                append(&mut out, &to, answer).unwrap();
                assert!(out.len() <= expected, "{} bytes of {expected}", out.len());
                assert!(out.capacity() <= expected + 64, "{} of {expected}", out.capacity());
                assert!(out.len() < 2_400_000, "{} bytes", out.len());
            }
        }
    }

    #[test]
    fn many_ids_are_small_on_the_wire() {
        let mut out = Vec::new();
        let ranges = vec![IdRange { first: i64::MAX - 200_000, count: 100_000 }];
        append(&mut out, &to(FRAMED_BINARY), Answer::NextIds(Ok(ranges))).unwrap();
        assert!(out.len() < 100, "{} bytes", out.len());
    }
}
