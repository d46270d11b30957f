//! The reply of nearly every call: one id, written without allocation.
//!
//! The official crate takes the name of the method, of each struct and of each
//! field as a `String` of its own: three to seven allocations for an id of eight
//! bytes. So these replies, whose form never changes, are written here. Their
//! bytes are those of the generated structs; the tests compare them.

use super::generated::{RES_SUCCESS, ResLong};
use super::reply::{Answer, ReplyTo};
use super::wire::Protocol;

/// Message type of a reply.
const REPLY: u8 = 2;
/// What follows the last field of a struct, in both protocols.
const STOP: u8 = 0;

/// A result that is one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OneId {
    /// An i64: of nextId and nextShardedId.
    Plain(i64),
    /// A ResLong with the code of success: of getId.
    ResLong(i64),
}

/// The id of `answer`, if it has one and nothing else.
#[inline]
pub(super) fn of(answer: &Answer) -> Option<OneId> {
    match *answer {
        Answer::NextId(Ok(id)) | Answer::NextShardedId(Ok(id)) => Some(OneId::Plain(id)),
        Answer::GetId(ResLong { res: Some(RES_SUCCESS), value: Some(id), ext: None }) => {
            Some(OneId::ResLong(id))
        }
        _ => None,
    }
}

/// Appends the reply with `result`, with its frame if the connection has frames.
pub(super) fn append(out: &mut Vec<u8>, to: &ReplyTo<'_>, result: OneId) {
    let start = out.len();
    if to.dialect.framed {
        out.extend_from_slice(&[0; 4]);
    }
    match to.dialect.protocol {
        Protocol::Binary => binary(out, to, result),
        Protocol::Compact => compact(out, to, result),
    }
    if to.dialect.framed {
        // A reply is the name of a method and less than 50 bytes.
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn binary(out: &mut Vec<u8>, to: &ReplyTo<'_>, result: OneId) {
    let name_len = (to.name.len() as u32).to_be_bytes();
    if to.strict {
        out.extend_from_slice(&[0x80, 1, 0, REPLY]);
        out.extend_from_slice(&name_len);
        out.extend_from_slice(to.name.as_bytes());
    } else {
        out.extend_from_slice(&name_len);
        out.extend_from_slice(to.name.as_bytes());
        out.push(REPLY);
    }
    out.extend_from_slice(&to.seqid.to_be_bytes());
    // Before each value its type and the id of its field.
    match result {
        OneId::Plain(id) => {
            out.extend_from_slice(&[10, 0, 0]);
            out.extend_from_slice(&id.to_be_bytes());
        }
        OneId::ResLong(id) => {
            out.extend_from_slice(&[12, 0, 0, 8, 0, 1]);
            out.extend_from_slice(&RES_SUCCESS.to_be_bytes());
            out.extend_from_slice(&[10, 0, 2]);
            out.extend_from_slice(&id.to_be_bytes());
            out.push(STOP);
        }
    }
    out.push(STOP);
}

fn compact(out: &mut Vec<u8>, to: &ReplyTo<'_>, result: OneId) {
    out.extend_from_slice(&[0x82, REPLY << 5 | 1]);
    varint(out, u64::from(to.seqid as u32));
    varint(out, to.name.len() as u64);
    out.extend_from_slice(to.name.as_bytes());
    match result {
        // Field 0 does not lie after one before it, so its id stands behind its type.
        OneId::Plain(id) => {
            out.extend_from_slice(&[6, 0]);
            varint(out, zigzag(id));
        }
        OneId::ResLong(id) => {
            out.extend_from_slice(&[12, 0, 1 << 4 | 5]);
            varint(out, zigzag(RES_SUCCESS.into()));
            out.push(1 << 4 | 6);
            varint(out, zigzag(id));
            out.push(STOP);
        }
    }
    out.push(STOP);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::codes;
    use super::super::reply::append_generated;
    use super::super::wire::Dialect;
    use super::*;

    /// The answers that are written here, each with the name of its method.
    fn answers(id: i64) -> [(&'static str, Answer); 3] {
        [
            ("getId", Answer::GetId(codes::res_long(Ok(id), false))),
            ("nextId", Answer::NextId(Ok(id))),
            ("nextShardedId", Answer::NextShardedId(Ok(id))),
        ]
    }

    fn assert_same_bytes(seqid: i32, id: i64) {
        for protocol in [Protocol::Binary, Protocol::Compact] {
            for (framed, strict) in [(true, true), (true, false), (false, true), (false, false)] {
                let dialect = Dialect { framed, protocol };
                for (name, answer) in answers(id) {
                    let to = ReplyTo { dialect, strict, name, seqid };
                    let (mut ours, mut theirs) = (b"before".to_vec(), b"before".to_vec());
                    append(&mut ours, &to, of(&answer).expect("one id"));
                    append_generated(&mut theirs, &to, answer).unwrap();
                    assert_eq!(ours, theirs, "{to:?}, {id}");
                }
            }
        }
    }

    #[test]
    fn ids_of_every_length_are_as_the_generated_structs_write_them() {
        let powers = (0..63).map(|bits| 1_i64 << bits);
        let ids = powers.flat_map(|power| [power - 1, power, -power]).chain([i64::MAX, i64::MIN]);
        for id in ids {
            assert_same_bytes(7, id);
        }
        let powers = (0..31).map(|bits| 1_i32 << bits);
        let seqids = powers.flat_map(|power| [power - 1, power, -power]);
        for seqid in seqids.chain([i32::MAX, i32::MIN]) {
            assert_same_bytes(seqid, 1);
        }
    }

    proptest! {
        #[test]
        fn any_id_is_as_the_generated_structs_write_it(seqid: i32, id: i64) {
            assert_same_bytes(seqid, id);
        }
    }

    #[test]
    fn nothing_else_is_one_id() {
        let failed = || codes::exception(crate::domain::Error::invalid("idType", "no"));
        let res_long = |res, value, ext| Answer::GetId(ResLong { res, value, ext });
        let others = [
            Answer::NextId(Err(failed())),
            Answer::NextShardedId(Err(failed())),
            res_long(Some(553), Some(-1), None),
            res_long(Some(RES_SUCCESS), None, None),
            res_long(None, Some(1), None),
            res_long(Some(RES_SUCCESS), Some(1), Some("why".to_owned())),
            Answer::NextIds(Ok(Vec::new())),
            Answer::NextStringId(Ok("1".to_owned())),
        ];
        for answer in others {
            assert_eq!(of(&answer), None, "{answer:?}");
        }
    }
}
