//! Calls as prepared bytes, and a look at their replies that costs next to
//! nothing: whether there are ids in them, and where they end.

use std::io;

use idgen::front::thrift::generated::{IdGenServiceSyncClient, TIdGenServiceSyncClient};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};

/// No reply to these calls is longer. A length beyond it is no length.
const LONGEST_REPLY: usize = 1024 * 1024;
/// The version and type of a reply in the strict binary protocol.
const REPLY: [u8; 4] = [0x80, 0x01, 0, 2];
/// The result (field 0) of `nextId`: an i64.
const ID: [u8; 3] = [10, 0, 0];
/// The result of `nextIds`: a list of structures.
const RANGES: [u8; 4] = [15, 0, 0, 12];
/// `IdRange`: two i64, each after its type and its number, and the stop.
const RANGE_BYTES: usize = 3 + 8 + 3 + 8 + 1;

/// One call, made again and again.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is sent.
    pub request: Vec<u8>,
    reply: Reply,
}

#[derive(Clone, Debug)]
enum Reply {
    /// A frame that begins with `head`, has an id, and ends.
    Id { head: Vec<u8> },
    /// A frame that begins with `head`, and has `count` ids in ranges.
    Ids { head: Vec<u8>, count: u64 },
    /// An integer of Redis.
    Integer,
}

/// What is at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Not a whole reply yet.
    More,
    /// A reply of `length` bytes with `ids` ids.
    Ids { length: usize, ids: u64 },
    /// A reply of `length` bytes without the ids that were asked for.
    Failure { length: usize },
    /// Nothing that could be a reply.
    Nonsense,
}

impl Call {
    /// `nextId` of a type, framed, in the strict binary protocol.
    pub fn next_id(id_type: &str) -> Call {
        let request = framed(|client| client.next_id(id_type.to_owned()).is_err());
        let head = reply_head(&request, &ID);
        Call { request, reply: Reply::Id { head } }
    }

    /// `nextIds` of a type.
    pub fn next_ids(id_type: &str, count: u32) -> Call {
        let request = framed(|client| client.next_ids(id_type.to_owned(), count as i32).is_err());
        let head = reply_head(&request, &RANGES);
        Call { request, reply: Reply::Ids { head, count: u64::from(count) } }
    }

    /// `INCR` of a key of Redis.
    pub fn incr(key: &str) -> Call {
        let request = format!("*2\r\n$4\r\nINCR\r\n${}\r\n{key}\r\n", key.len()).into_bytes();
        Call { request, reply: Reply::Integer }
    }

    /// The first reply in `bytes`.
    pub fn take(&self, bytes: &[u8]) -> Taken {
        match &self.reply {
            Reply::Id { head } => take_frame(bytes, |frame| one_id(frame, head)),
            Reply::Ids { head, count } => {
                take_frame(bytes, |frame| ranges(frame, head).filter(|ids| ids == count))
            }
            Reply::Integer => take_integer(bytes),
        }
    }
}

/// The whole length of the frame at the beginning of `bytes`, once that is there.
/// Fails where it cannot be one of these calls or replies.
pub fn frame_length(bytes: &[u8]) -> Result<Option<usize>, ()> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if length == 0 || length > LONGEST_REPLY { Err(()) } else { Ok(Some(4 + length)) }
}

/// The reply to `nextId` as a node gives it.
pub fn reply_with(id: i64) -> Vec<u8> {
    let mut reply = reply_head(&Call::next_id("any").request, &ID);
    reply.extend(id.to_be_bytes());
    reply.push(0);
    with_length(&reply)
}

type Writer<'a> =
    IdGenServiceSyncClient<TBinaryInputProtocol<io::Empty>, TBinaryOutputProtocol<&'a mut Vec<u8>>>;

/// What the generated client writes as its first call, in a frame.
fn framed(call: impl FnOnce(&mut Writer<'_>) -> bool) -> Vec<u8> {
    let mut body = Vec::new();
    let input = TBinaryInputProtocol::new(io::empty(), true);
    let output = TBinaryOutputProtocol::new(&mut body, true);
    let failed = call(&mut IdGenServiceSyncClient::new(input, output));
    debug_assert!(failed, "there is no reply to read");
    with_length(&body)
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

/// How a good reply to `request` begins: the same name and number, then `result`.
fn reply_head(request: &[u8], result: &[u8]) -> Vec<u8> {
    let name = request[8..].first_chunk::<4>().map_or(0, |n| u32::from_be_bytes(*n) as usize);
    let name_and_number = &request[8..8 + 4 + name + 4];
    [&REPLY[..], name_and_number, result].concat()
}

fn take_frame(bytes: &[u8], ids: impl FnOnce(&[u8]) -> Option<u64>) -> Taken {
    let length = match frame_length(bytes) {
        Err(()) => return Taken::Nonsense,
        Ok(None) => return Taken::More,
        Ok(Some(length)) => length,
    };
    match bytes.get(4..length) {
        None => Taken::More,
        Some(frame) => match ids(frame) {
            Some(ids) => Taken::Ids { length, ids },
            None => Taken::Failure { length },
        },
    }
}

fn number(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk().map(|bytes| i64::from_be_bytes(*bytes))
}

fn one_id(frame: &[u8], head: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(head)?;
    (rest.len() == 8 + 1 && number(rest)? > 0).then_some(1)
}

/// How many ids the ranges claim to hold.
fn ranges(frame: &[u8], head: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(head)?;
    let (listed, rest) = rest.split_first_chunk::<4>()?;
    let rest = rest.strip_suffix(&[0])?;
    if rest.len() != u32::from_be_bytes(*listed) as usize * RANGE_BYTES {
        return None;
    }
    let mut ids = 0u64;
    for range in rest.chunks_exact(RANGE_BYTES) {
        let (first, count) = (number(&range[3..])?, number(&range[14..])?);
        if first <= 0 || count <= 0 {
            return None;
        }
        ids = ids.checked_add(count as u64)?;
    }
    Some(ids)
}

/// `:123\r\n`, or an error `-…\r\n`.
fn take_integer(bytes: &[u8]) -> Taken {
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
        return if bytes.len() > LONGEST_REPLY { Taken::Nonsense } else { Taken::More };
    };
    let length = end + 1;
    match bytes[..length].strip_suffix(b"\r\n") {
        Some([b':', digits @ ..])
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) =>
        {
            Taken::Ids { length, ids: 1 }
        }
        Some([b'-', ..]) => Taken::Failure { length },
        _ => Taken::Nonsense,
    }
}
