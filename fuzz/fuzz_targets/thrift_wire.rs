//! Bytes that arrive in any pieces, through detection, scanner and replies.
//!
//! The first byte of the input says how the rest is cut into pieces. Whatever
//! the pieces, the same messages are found and the same replies made; the
//! memory stays below what the longest message explains; and every reply is
//! what the official crate reads as a reply to that call.

#![no_main]

use idgen::front::thrift::fuzzing::{Cut, cut};
use idgen::front::thrift::wire::Protocol;
use libfuzzer_sys::fuzz_target;
use thrift::protocol::{TBinaryInputProtocol, TCompactInputProtocol, TInputProtocol, TMessageType};

const LIMIT: usize = 2_048;
/// What one read may bring beyond an incomplete message, in `messages`.
const READ: usize = 32 * 1024;

fuzz_target!(|data: &[u8]| {
    let Some((&how, bytes)) = data.split_first() else { return };
    let size = match how {
        0 => usize::MAX,
        n => usize::from(n),
    };
    let (pieces, most) = cut(bytes.chunks(size), LIMIT);
    let (single, _) = cut(bytes.chunks(1), LIMIT);
    assert_eq!(pieces, single, "pieces of {size} bytes");
    assert!(most <= 2 * (LIMIT + 4 + READ), "{most} bytes of memory");
    check(&pieces);
});

fn check(cut: &Cut) {
    let mut rest = &cut.replies[..];
    for (dialect, header, name) in &cut.addressees {
        let mut frame = rest;
        if dialect.framed {
            let (length, after) = rest.split_first_chunk::<4>().expect("a frame");
            let (inside, after) = after.split_at(u32::from_be_bytes(*length) as usize);
            (frame, rest) = (inside, after);
        }
        match dialect.protocol {
            Protocol::Binary => {
                read(&mut TBinaryInputProtocol::new(&mut frame, header.strict), header.seqid, name)
            }
            Protocol::Compact => {
                read(&mut TCompactInputProtocol::new(&mut frame), header.seqid, name)
            }
        }
        if dialect.framed {
            assert!(frame.is_empty(), "{} bytes behind the reply", frame.len());
        } else {
            rest = frame;
        }
    }
    assert!(rest.is_empty(), "{} bytes behind the replies", rest.len());
}

fn read(protocol: &mut dyn TInputProtocol, seqid: i32, name: &str) {
    let header = protocol.read_message_begin().expect("a header");
    assert_eq!(header.message_type, TMessageType::Exception);
    assert_eq!((header.sequence_number, header.name.as_str()), (seqid, name));
    let error = thrift::Error::read_application_error_from_in_protocol(protocol);
    assert!(!error.expect("an exception").message.is_empty());
}
