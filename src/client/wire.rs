//! Calls and answers as bytes, in frames. Peers are not trusted: lengths are held to
//! the frame, and an answer must be to the call.

use thrift::TConfiguration;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
};

use super::Protocol;
use crate::thrift_api::{self as api, IdGenException};

/// The length before a message.
pub(super) const HEADER: usize = 4;

/// A method with its arguments.
pub(super) trait Call {
    /// The name of the method.
    const NAME: &'static str;
    /// What it answers.
    type Answer;

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()>;

    /// Reads the structure of the answer. `None`: neither answer nor exception.
    fn read(
        input: &mut dyn TInputProtocol,
    ) -> thrift::Result<Option<Result<Self::Answer, IdGenException>>>;
}

macro_rules! calls {
    ($($name:literal $args:ident $result:ident $answer:ty;)*) => {$(
        impl Call for api::$args {
            const NAME: &'static str = $name;
            type Answer = $answer;

            fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
                self.write_to_out_protocol(out)
            }

            fn read(
                input: &mut dyn TInputProtocol,
            ) -> thrift::Result<Option<Result<$answer, IdGenException>>> {
                let result = api::$result::read_from_in_protocol(input)?;
                Ok(match result.error {
                    Some(error) => Some(Err(error)),
                    None => result.result_value.map(Ok),
                })
            }
        }
    )*};
}

calls! {
    "nextId" IdGenServiceNextIdArgs IdGenServiceNextIdResult i64;
    "nextIds" IdGenServiceNextIdsArgs IdGenServiceNextIdsResult Vec<api::IdRange>;
    "nextStringId" IdGenServiceNextStringIdArgs IdGenServiceNextStringIdResult String;
    "nextShardedId" IdGenServiceNextShardedIdArgs IdGenServiceNextShardedIdResult i64;
    "issueIds" IdGenServiceIssueIdsArgs IdGenServiceIssueIdsResult Vec<api::IdRange>;
    "issueStringIds" IdGenServiceIssueStringIdsArgs IdGenServiceIssueStringIdsResult Vec<String>;
    "leaseRange" IdGenServiceLeaseRangeArgs IdGenServiceLeaseRangeResult api::RangeLease;
    "decodeId" IdGenServiceDecodeIdArgs IdGenServiceDecodeIdResult api::DecodedId;
    "describeType" IdGenServiceDescribeTypeArgs IdGenServiceDescribeTypeResult api::TypeInfo;
    "nodeStatus" IdGenServiceNodeStatusArgs IdGenServiceNodeStatusResult api::NodeInfo;
}

/// The first call of a connection, where there is a token. Its answer is empty.
impl Call for api::IdGenServiceAuthenticateArgs {
    const NAME: &'static str = "authenticate";
    type Answer = ();

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        self.write_to_out_protocol(out)
    }

    fn read(input: &mut dyn TInputProtocol) -> thrift::Result<Option<Result<(), IdGenException>>> {
        let result = api::IdGenServiceAuthenticateResult::read_from_in_protocol(input)?;
        Ok(Some(result.error.map_or(Ok(()), Err)))
    }
}

/// What an answer says.
#[derive(Debug, PartialEq)]
pub(super) enum Said<A> {
    /// The answer.
    Answer(A),
    /// The node refused.
    Raised(IdGenException),
    /// The node could not make the call.
    Application {
        /// As Thrift numbers them.
        kind: i32,
        /// The node's words.
        message: String,
    },
}

/// Writes `call` as a frame into `out`, whose content is replaced.
pub(super) fn encode<C: Call>(out: &mut Vec<u8>, protocol: Protocol, seqid: i32, call: &C) {
    out.clear();
    out.extend([0; HEADER]);
    let written = match protocol {
        Protocol::Compact => write(&mut TCompactOutputProtocol::new(&mut *out), seqid, call),
        Protocol::Binary => write(&mut TBinaryOutputProtocol::new(&mut *out, true), seqid, call),
    };
    written.expect("memory takes every byte");
    let length = (out.len() - HEADER) as u32;
    out[..HEADER].copy_from_slice(&length.to_be_bytes());
}

fn write<C: Call>(out: &mut dyn TOutputProtocol, seqid: i32, call: &C) -> thrift::Result<()> {
    out.write_message_begin(&TMessageIdentifier::new(C::NAME, TMessageType::Call, seqid))?;
    call.write(out)?;
    out.write_message_end()?;
    out.flush()
}

/// What the message in a frame says to call number `seqid`. An error tells what is
/// wrong with it; then nothing that comes on its connection can be trusted.
pub(super) fn decode<C: Call>(
    message: &[u8],
    protocol: Protocol,
    seqid: i32,
) -> Result<Said<C::Answer>, String> {
    // What a length claims is held to what is there, before memory is taken for it.
    let limit = Some(message.len());
    let limits = TConfiguration::builder()
        .max_message_size(limit)
        .max_frame_size(limit)
        .max_string_size(limit)
        .build()
        .map_err(|e| e.to_string())?;
    let mut rest = message;
    let said = match protocol {
        Protocol::Compact => {
            read::<C>(&mut TCompactInputProtocol::with_config(&mut rest, limits), seqid)
        }
        Protocol::Binary => {
            read::<C>(&mut TBinaryInputProtocol::with_config(&mut rest, true, limits), seqid)
        }
    };
    match said {
        Ok(Ok(_)) if !rest.is_empty() => Err(format!("{} bytes after the message", rest.len())),
        Ok(said) => said,
        // The kind alone, which its own text would be, tells little.
        Err(thrift::Error::Protocol(error)) => Err(error.message),
        Err(thrift::Error::Transport(error)) => Err(error.message),
        Err(error) => Err(error.to_string()),
    }
}

fn read<C: Call>(
    input: &mut dyn TInputProtocol,
    seqid: i32,
) -> thrift::Result<Result<Said<C::Answer>, String>> {
    let begin = input.read_message_begin()?;
    if begin.sequence_number != seqid {
        let other = begin.sequence_number;
        return Ok(Err(format!("it answers call {other} instead of call {seqid}")));
    }
    let said = match begin.message_type {
        TMessageType::Exception => {
            let error = thrift::Error::read_application_error_from_in_protocol(input)?;
            Said::Application { kind: error.kind as i32, message: error.message }
        }
        TMessageType::Reply if begin.name == C::NAME => match C::read(input)? {
            Some(Ok(answer)) => Said::Answer(answer),
            Some(Err(raised)) => Said::Raised(raised),
            None => return Ok(Err("neither answer nor exception".to_owned())),
        },
        _ => {
            let what = (begin.message_type, begin.name);
            return Ok(Err(format!("{what:?} is no reply to {}", C::NAME)));
        }
    };
    input.read_message_end()?;
    Ok(Ok(said))
}
