//! Looking at replies: whole ones, parts of them, several at once, wrong ones.

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TFieldIdentifier, TInputProtocol, TListIdentifier,
    TMessageIdentifier, TMessageType, TOutputProtocol, TStructIdentifier, TType,
};

use crate::inbox::{Buffer, Found, Rest};
use crate::redis_csv;
use crate::wire::{Call, Taken, reply_with};

/// A framed message, as a server writes it.
fn message(
    name: &str,
    kind: TMessageType,
    content: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> Vec<u8> {
    let mut body = Vec::new();
    {
        let mut out = TBinaryOutputProtocol::new(&mut body, true);
        out.write_message_begin(&TMessageIdentifier::new(name, kind, 1)).unwrap();
        content(&mut out).unwrap();
        out.write_message_end().unwrap();
    }
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

fn id_reply(id: i64) -> Vec<u8> {
    message("nextId", TMessageType::Reply, |out| {
        out.write_field_begin(&TFieldIdentifier::new("success", TType::I64, 0))?;
        out.write_i64(id)?;
        out.write_field_stop()
    })
}

/// `IdGenException` in its field, with a text.
fn refusal(name: &str) -> Vec<u8> {
    message(name, TMessageType::Reply, |out| {
        out.write_field_begin(&TFieldIdentifier::new("error", TType::Struct, 1))?;
        out.write_struct_begin(&TStructIdentifier::new("IdGenException"))?;
        out.write_field_begin(&TFieldIdentifier::new("message", TType::String, 2))?;
        out.write_string("there is no such type")?;
        out.write_field_stop()?;
        out.write_field_stop()
    })
}

fn ranges_reply(ranges: &[(i64, i64)]) -> Vec<u8> {
    message("nextIds", TMessageType::Reply, |out| {
        out.write_field_begin(&TFieldIdentifier::new("success", TType::List, 0))?;
        out.write_list_begin(&TListIdentifier::new(TType::Struct, ranges.len() as i32))?;
        for (first, count) in ranges {
            for (number, value) in [(1, first), (2, count)] {
                out.write_field_begin(&TFieldIdentifier::new("", TType::I64, number))?;
                out.write_i64(*value)?;
            }
            out.write_field_stop()?;
        }
        out.write_field_stop()
    })
}

#[test]
fn a_request_is_what_a_server_understands() {
    let call = Call::next_ids("orders", 1_000);
    let (length, body) = call.request.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, body.len());
    let mut input = TBinaryInputProtocol::new(body, true);
    let head = input.read_message_begin().unwrap();
    assert_eq!((head.name.as_str(), head.message_type), ("nextIds", TMessageType::Call));
    input.read_struct_begin().unwrap();
    assert_eq!(input.read_field_begin().unwrap().id, Some(1));
    assert_eq!(input.read_string().unwrap(), "orders");
    assert_eq!(input.read_field_begin().unwrap().id, Some(2));
    assert_eq!(input.read_i32().unwrap(), 1_000);
    assert_eq!(Call::incr("key").request, b"*2\r\n$4\r\nINCR\r\n$3\r\nkey\r\n");
}

#[test]
fn the_floor_answers_as_a_node() {
    assert_eq!(reply_with(77), id_reply(77));
}

#[test]
fn a_reply_counts_once_it_is_whole() {
    let cases = [
        (Call::next_id("t"), id_reply(9), 1),
        (Call::next_ids("t", 10), ranges_reply(&[(1, 10)]), 10),
        (Call::next_ids("t", 10), ranges_reply(&[(1, 4), (50, 6)]), 10),
        (Call::incr("t"), b":12345\r\n".to_vec(), 1),
    ];
    for (call, reply, ids) in cases {
        let length = reply.len();
        for cut in 0..length {
            assert_eq!(call.take(&reply[..cut]), Taken::More, "{cut} of {reply:?}");
        }
        for behind in [0, 1, length] {
            let bytes = [&reply[..], &reply[..behind]].concat();
            assert_eq!(call.take(&bytes), Taken::Ids { length, ids }, "{bytes:?}");
        }
    }
}

#[test]
fn a_reply_without_the_ids_is_a_failure() {
    let next_id = Call::next_id("t");
    let next_ids = Call::next_ids("t", 10);
    let unknown = message("nextId", TMessageType::Exception, |out| out.write_field_stop());
    let mut short = id_reply(1);
    short.remove(20);
    short[3] -= 1;
    let mut fewer_than_listed = ranges_reply(&[(1, 10)]);
    let listed = fewer_than_listed.iter().position(|byte| *byte == 12).unwrap() + 4;
    fewer_than_listed[listed] = 2;
    let cases = [
        (&next_ids, fewer_than_listed),
        (&next_id, id_reply(0)),
        (&next_id, id_reply(-5)),
        (&next_id, refusal("nextId")),
        (&next_id, ranges_reply(&[(1, 1)])),
        (&next_id, unknown),
        (&next_id, short),
        (&next_ids, ranges_reply(&[])),
        (&next_ids, ranges_reply(&[(1, 9)])),
        (&next_ids, ranges_reply(&[(1, 11)])),
        (&next_ids, ranges_reply(&[(0, 10)])),
        (&next_ids, ranges_reply(&[(1, 11), (20, -1)])),
        (&next_ids, ranges_reply(&[(1, i64::MAX), (1, i64::MAX), (1, 12)])),
        (&next_ids, refusal("nextIds")),
    ];
    for (call, reply) in cases {
        assert_eq!(call.take(&reply), Taken::Failure { length: reply.len() }, "{reply:?}");
    }
    assert_eq!(Call::incr("t").take(b"-ERR no\r\n:1\r\n"), Taken::Failure { length: 9 });
}

#[test]
fn what_is_no_reply_ends_the_measurement() {
    for bytes in [[0, 0, 0, 0], *b"HTTP"] {
        assert_eq!(Call::next_id("t").take(&bytes), Taken::Nonsense, "{bytes:?}");
    }
    for bytes in ["$1\r\n5\r\n", ":\r\n", ":12\n", ":1x\r\n", "\r\n", ":-1\r\n"] {
        assert_eq!(Call::incr("t").take(bytes.as_bytes()), Taken::Nonsense, "{bytes:?}");
    }
}

/// Brings one piece per read, then nothing more for now.
struct Pieces<'a>(Vec<&'a [u8]>);

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let piece = self.0.remove(0);
        let count = piece.len().min(into.len());
        into[..count].copy_from_slice(&piece[..count]);
        if count < piece.len() {
            self.0.insert(0, &piece[count..]);
        }
        Ok(count)
    }
}

#[test]
fn parts_of_replies_wait_for_the_rest() {
    let call = Call::next_id("t");
    let replies: Vec<u8> = (1..=5).flat_map(id_reply).collect();
    let size = replies.len() / 5;
    for cuts in [[1, 2], [size - 1, size + 1], [3, 2 * size], [size, 4 * size + 5]] {
        let pieces = vec![&replies[..cuts[0]], &replies[cuts[0]..cuts[1]], &replies[cuts[1]..]];
        let mut pieces = Pieces(pieces);
        // Smaller than what comes, so that it has to be asked twice.
        let mut buffer = Buffer::new(2 * size);
        let mut rest = Rest::default();
        let mut taken = 0;
        loop {
            let filled = match buffer.fill(&mut pieces, &rest).unwrap() {
                Found::Bytes { filled, all } => {
                    assert_eq!(all, filled < 2 * size);
                    filled
                }
                Found::Nothing => break,
                Found::End => panic!("it has not ended"),
            };
            let mut bytes = buffer.bytes(filled);
            while let Taken::Ids { length, .. } = call.take(bytes) {
                bytes = &bytes[length..];
                taken += 1;
            }
            rest.keep(bytes, &buffer).unwrap();
        }
        assert_eq!(taken, 5, "cut at {cuts:?}");
    }
    let mut rest = Rest::default();
    assert!(rest.keep(&[0; 8], &Buffer::new(8)).is_err(), "a full buffer could never be read");
    assert_eq!(Buffer::new(8).fill(&mut Pieces(vec![&[]]), &rest).unwrap(), Found::End);
}

#[test]
fn the_csv_of_redis_benchmark() {
    let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
               \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
               \"INCR\",\"158483.36\",\"0.213\",\"0.064\",\"0.207\",\"0.303\",\"0.367\",\"4.231\"\n";
    let line = redis_csv::parse(csv).unwrap();
    assert_eq!((line.requests_per_s, line.p50_ms), (158_483.36, 0.207));
    assert_eq!((line.p99_ms, line.highest_ms), (0.367, 4.231));
    assert_eq!(redis_csv::parse("\"INCR\",\"1\",\"2\"\n"), None);
    assert_eq!(redis_csv::parse(""), None);
}
