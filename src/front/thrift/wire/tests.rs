//! The scanner against the official crate's writers, against cut and random
//! bytes, and against each trick by name.

use proptest::collection::vec;
use proptest::prelude::*;
use thrift::protocol::{
    TBinaryOutputProtocol, TCompactOutputProtocol, TFieldIdentifier, TListIdentifier,
    TMapIdentifier, TMessageIdentifier, TMessageType, TOutputProtocol, TSetIdentifier,
    TStructIdentifier, TType,
};

use super::*;

/// Any value that Thrift has.
#[derive(Clone, Debug)]
enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    Double(f64),
    Bytes(Vec<u8>),
    Struct(Vec<(i16, Value)>),
    Bools(Vec<bool>),
    Longs(Vec<i64>),
    Texts(Vec<String>),
    Map(Vec<(String, bool)>),
    Structs(Vec<Vec<(i16, Value)>>),
}

impl Value {
    fn kind(&self) -> TType {
        match self {
            Value::Bool(_) => TType::Bool,
            Value::I8(_) => TType::I08,
            Value::I16(_) => TType::I16,
            Value::I32(_) => TType::I32,
            Value::I64(_) => TType::I64,
            Value::Double(_) => TType::Double,
            Value::Bytes(_) => TType::String,
            Value::Struct(_) => TType::Struct,
            Value::Longs(_) => TType::Set,
            Value::Bools(_) | Value::Texts(_) | Value::Structs(_) => TType::List,
            Value::Map(_) => TType::Map,
        }
    }

    fn write(&self, out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
        match self {
            Value::Bool(value) => out.write_bool(*value),
            Value::I8(value) => out.write_i8(*value),
            Value::I16(value) => out.write_i16(*value),
            Value::I32(value) => out.write_i32(*value),
            Value::I64(value) => out.write_i64(*value),
            Value::Double(value) => out.write_double(*value),
            Value::Bytes(value) => out.write_bytes(value),
            Value::Struct(fields) => write_struct(fields, out),
            Value::Bools(values) => {
                out.write_list_begin(&TListIdentifier::new(TType::Bool, values.len() as i32))?;
                values.iter().try_for_each(|v| out.write_bool(*v))
            }
            Value::Longs(values) => {
                out.write_set_begin(&TSetIdentifier::new(TType::I64, values.len() as i32))?;
                values.iter().try_for_each(|v| out.write_i64(*v))
            }
            Value::Texts(values) => {
                out.write_list_begin(&TListIdentifier::new(TType::String, values.len() as i32))?;
                values.iter().try_for_each(|v| out.write_string(v))
            }
            Value::Map(pairs) => {
                let size = pairs.len() as i32;
                out.write_map_begin(&TMapIdentifier::new(TType::String, TType::Bool, size))?;
                pairs.iter().try_for_each(|(key, value)| {
                    out.write_string(key)?;
                    out.write_bool(*value)
                })
            }
            Value::Structs(values) => {
                out.write_list_begin(&TListIdentifier::new(TType::Struct, values.len() as i32))?;
                values.iter().try_for_each(|v| write_struct(v, out))
            }
        }
    }
}

fn write_struct(fields: &[(i16, Value)], out: &mut dyn TOutputProtocol) -> thrift::Result<()> {
    out.write_struct_begin(&TStructIdentifier::new("any"))?;
    for (id, value) in fields {
        out.write_field_begin(&TFieldIdentifier::new("any", value.kind(), *id))?;
        value.write(out)?;
        out.write_field_end()?;
    }
    out.write_field_stop()?;
    out.write_struct_end()
}

/// A call as the official crate writes it; `strict` counts for binary alone.
fn encode(
    protocol: Protocol,
    strict: bool,
    name: &str,
    seqid: i32,
    fields: &[(i16, Value)],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out: Box<dyn TOutputProtocol + '_> = match protocol {
        Protocol::Binary => Box::new(TBinaryOutputProtocol::new(&mut bytes, strict)),
        Protocol::Compact => Box::new(TCompactOutputProtocol::new(&mut bytes)),
    };
    out.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, seqid)).unwrap();
    write_struct(fields, &mut *out).unwrap();
    out.write_message_end().unwrap();
    drop(out);
    bytes
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<f64>().prop_map(Value::Double),
        vec(any::<u8>(), 0..200).prop_map(Value::Bytes),
        vec(any::<bool>(), 0..20).prop_map(Value::Bools),
        vec(any::<i64>(), 0..20).prop_map(Value::Longs),
        vec(any::<String>(), 0..20).prop_map(Value::Texts),
        vec((any::<String>(), any::<bool>()), 0..20).prop_map(Value::Map),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let fields = vec((-40i16..200, inner), 0..4);
        prop_oneof![
            fields.clone().prop_map(Value::Struct),
            vec(fields, 0..4).prop_map(Value::Structs),
        ]
    })
}

fn any_protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![Just(Protocol::Binary), Just(Protocol::Compact)]
}

/// What the scanner must have kept of `fields`.
fn check_args(scanner: &Scanner, message: &[u8], fields: &[(i16, Value)]) {
    for id in 1..=5i16 {
        let last = fields.iter().rev().find(|f| f.0 == id).map(|f| &f.1);
        let (mut flag, mut number, mut long, mut text) = (None, None, None, None);
        match last {
            Some(Value::Bool(value)) => flag = Some(*value),
            Some(Value::I32(value)) => number = Some(*value),
            Some(Value::Bytes(value)) => text = Some(value.as_slice()),
            Some(Value::I64(value)) => long = Some(*value),
            _ => assert_eq!(scanner.args().get(id), Arg::Missing),
        }
        assert_eq!(scanner.args().bool(id), flag);
        assert_eq!(scanner.args().i32(id), number);
        assert_eq!(scanner.args().i64(id), long);
        assert_eq!(scanner.args().bytes(id, message), text);
    }
}

proptest! {
    #[test]
    fn what_the_official_crate_writes_is_read(
        protocol in any_protocol(),
        strict in any::<bool>(),
        name in "[a-zA-Z]{0,20}",
        seqid in any::<i32>(),
        fields in vec((1i16..7, any_value()), 0..6),
    ) {
        let message = encode(protocol, strict, &name, seqid, &fields);
        let mut scanner = Scanner::new(protocol, message.len());
        prop_assert_eq!(scanner.whole(&message), Ok(()));
        let header = scanner.header().unwrap();
        let found = &message[header.name_start..header.name_start + header.name_len];
        prop_assert_eq!(found, name.as_bytes());
        prop_assert_eq!((header.kind, header.seqid), (1, seqid));
        prop_assert_eq!(header.strict, strict || protocol == Protocol::Compact);
        check_args(&scanner, &message, &fields);
    }

    #[test]
    fn a_drip_gives_the_same_and_never_ends_early(
        protocol in any_protocol(),
        fields in vec((1i16..7, any_value()), 0..4),
        after in vec(any::<u8>(), 0..20),
    ) {
        let message = encode(protocol, true, "getId", 7, &fields);
        let mut stream = message.clone();
        stream.extend(after);
        let mut scanner = Scanner::new(protocol, message.len() + 10);
        for cut in 0..message.len() {
            prop_assert_eq!(scanner.advance(&stream[..cut]), Ok(Progress::NeedMore), "at {}", cut);
            // No piece after the header is longer than 16 bytes, so a drip
            // costs no more than that per byte.
            prop_assert!(cut < 40 || scanner.position() + 16 >= cut);
            // A fresh scanner must say the same: cut in a frame is an error.
            if cut % 7 == 0 {
                let mut fresh = Scanner::new(protocol, message.len());
                prop_assert_eq!(fresh.advance(&message[..cut]), Ok(Progress::NeedMore));
                let bad = Scanner::new(protocol, cut).whole(&message[..cut]);
                prop_assert!(matches!(bad, Err(Malformed::Truncated | Malformed::TooLong)));
            }
        }
        prop_assert_eq!(scanner.advance(&stream), Ok(Progress::Done(message.len())));
        check_args(&scanner, &stream, &fields);
    }

    #[test]
    fn random_bytes_neither_panic_nor_loop(
        protocol in any_protocol(),
        mut bytes in vec(any::<u8>(), 0..400),
        start in 0usize..3,
        limit in 0usize..500,
    ) {
        let head: &[u8] = match start {
            0 => b"",
            1 => b"\x80\x01\0\x01\0\0\0\x01a\0\0\0\0",
            _ => b"\x82\x21\x07\x01a",
        };
        bytes.splice(0..0, head.iter().copied());
        let _ = Scanner::new(protocol, bytes.len()).whole(&bytes);
        let mut scanner = Scanner::new(protocol, limit);
        for cut in 0..=bytes.len() {
            match scanner.advance(&bytes[..cut]) {
                Ok(Progress::NeedMore) => prop_assert!(cut < limit),
                Ok(Progress::Done(end)) => {
                    prop_assert!(end <= cut && end <= limit);
                    break;
                }
                Err(_) => break,
            }
        }
        // The slices are in bounds whatever happened.
        for id in 0..6 {
            let _ = scanner.args().bytes(id, &bytes);
        }
    }

    #[test]
    fn a_changed_byte_neither_panics_nor_loops(
        protocol in any_protocol(),
        fields in vec((1i16..7, any_value()), 1..4),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut message = encode(protocol, true, "nextIds", -1, &fields);
        let at = place.index(message.len());
        message[at] = byte;
        let _ = Scanner::new(protocol, message.len()).whole(&message);
        let _ = Scanner::new(protocol, 1 << 16).advance(&message);
    }
}

const BINARY: &[u8] = b"\x80\x01\0\x01\0\0\0\x01a\0\0\0\x05";
const COMPACT: &[u8] = b"\x82\x21\x05\x01a";

/// The answer to a message of `head` and `body` with a limit of 64 KiB.
fn scan(head: &[u8], body: &[u8]) -> Result<Progress, Malformed> {
    let protocol = match head[0] {
        0x82 => Protocol::Compact,
        _ => Protocol::Binary,
    };
    Scanner::new(protocol, 65_536).advance(&[head, body].concat())
}

#[test]
fn each_trick_is_told_by_name() {
    let cases: [(&str, &[u8], &[u8], Malformed); 17] = [
        ("old version", b"\x80\x02\0\x01\0\0\0\0", b"", Malformed::Version),
        ("compact version", b"\x82\x22\0\0", b"", Malformed::Version),
        ("name below 0", b"\x80\x01\0\x01\xff\xff\xff\xff", b"", Malformed::NegativeSize),
        ("name too long", b"\x80\x01\0\x01\x7f\0\0\0", b"", Malformed::TooLong),
        ("compact name too long", b"\x82\x21\0\xff\xff\x7f", b"", Malformed::TooLong),
        ("text below 0", BINARY, b"\x0b\0\x01\xff\xff\xff\xfe", Malformed::NegativeSize),
        ("text too long", BINARY, b"\x0b\0\x01\x7f\xff\xff\xff", Malformed::TooLong),
        ("list below 0", BINARY, b"\x0f\0\x01\x0b\x80\0\0\0", Malformed::NegativeSize),
        ("list too long", BINARY, b"\x0f\0\x01\x0b\0\x01\0\0", Malformed::TooLong),
        ("bools too long", BINARY, b"\x0f\0\x01\x02\0\x02\0\0", Malformed::TooLong),
        ("map too long", BINARY, b"\x0d\0\x01\x0b\x0b\x7f\xff\xff\xff", Malformed::TooLong),
        ("unknown field", BINARY, b"\x11\0\x01", Malformed::Type),
        ("unknown element", BINARY, b"\x0f\0\x01\x05\0\0\0\x01", Malformed::Type),
        ("compact type", COMPACT, b"\x1e", Malformed::Type),
        ("compact size below 0", COMPACT, b"\x18\xff\xff\xff\xff\x0f", Malformed::NegativeSize),
        ("compact list", COMPACT, b"\x19\xf8\xff\xff\x7f", Malformed::TooLong),
        ("long varint", COMPACT, b"\x15\x80\x80\x80\x80\x80", Malformed::Varint),
    ];
    for (what, head, body, expected) in cases {
        assert_eq!(scan(head, body), Err(expected), "{what}");
    }
}

#[test]
fn nesting_has_a_bound() {
    // Field 1, struct, again and again: 15 inside the arguments are 16 in all.
    for (head, open) in [(BINARY, &b"\x0c\0\x01"[..]), (COMPACT, &b"\x1c"[..])] {
        let nested = |levels: usize| [open.repeat(levels), vec![0; levels + 1]].concat();
        let body = nested(MAX_DEPTH - 1);
        let whole = head.len() + body.len();
        assert_eq!(scan(head, &body), Ok(Progress::Done(whole)));
        assert_eq!(scan(head, &nested(MAX_DEPTH)), Err(Malformed::TooDeep));
    }
    // Lists of lists count as well.
    let lists = b"\x0f\0\0\0\x01".repeat(40);
    let body = [&b"\x0f\0\x01"[..], &lists].concat();
    assert_eq!(scan(BINARY, &body), Err(Malformed::TooDeep));
}

#[test]
fn the_limit_holds_where_bytes_follow() {
    // A complete message that is longer than the limit, with all its bytes there.
    let message = [BINARY, b"\x0a\0\x01\0\0\0\0\0\0\0\x01\0"].concat();
    for limit in 0..message.len() {
        let result = Scanner::new(Protocol::Binary, limit).advance(&message);
        assert_eq!(result, Err(Malformed::TooLong), "limit {limit}");
    }
}

#[test]
fn bytes_after_the_message_are_an_error_in_a_frame() {
    let message = [BINARY, b"\0\0"].concat();
    let result = Scanner::new(Protocol::Binary, message.len()).whole(&message);
    assert_eq!(result, Err(Malformed::TrailingBytes));
}

#[test]
fn a_wrong_kind_counts_as_missing_and_the_last_of_a_field_counts() {
    let fields = [
        (1, Value::Bytes(b"x".to_vec())),
        (2, Value::I32(3)),
        (1, Value::I64(5)),
        (2, Value::I32(4)),
        (3, Value::Double(1.0)),
    ];
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let message = encode(protocol, true, "m", 0, &fields);
        let mut scanner = Scanner::new(protocol, message.len());
        scanner.whole(&message).unwrap();
        let args = scanner.args();
        assert_eq!(args.bytes(1, &message), None);
        assert_eq!(args.i32(2), Some(4));
        assert_eq!(args.get(3), Arg::Missing);
        assert_eq!(args.bool(9), None);
    }
}
