//! Which dialect a connection speaks, from its first bytes.
//!
//! The first byte decides between framed (a frame length below 16 MiB begins
//! with 0), unframed strict binary (0x80) and unframed compact (0x82): the
//! compatibility rule of the Thrift specification. Non-strict binary has no
//! version to tell it by, so it is only taken inside a frame.

use super::Protocol;

/// What a connection speaks, until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Whether each message has its length before it.
    pub framed: bool,
    /// The encoding of every message.
    pub protocol: Protocol,
}

/// A connection that does not speak Thrift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Foreign {
    /// The request line of HTTP.
    Http,
    /// The hello of TLS.
    Tls,
    /// Anything else.
    Unknown,
}

impl Foreign {
    /// Every kind, for metrics.
    pub const ALL: [Foreign; 3] = [Foreign::Http, Foreign::Tls, Foreign::Unknown];

    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Foreign::Http => "http",
            Foreign::Tls => "tls",
            Foreign::Unknown => "unknown_protocol",
        }
    }
}

/// How the request lines of HTTP begin (HTTP/2 included).
const HTTP: [&[u8; 4]; 10] =
    [b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI "];

/// The dialect, or `None` while there are too few bytes to tell (never more
/// than 5 are needed).
pub fn detect(bytes: &[u8]) -> Result<Option<Dialect>, Foreign> {
    let unframed = |protocol| Dialect { framed: false, protocol };
    match *bytes {
        [] | [0x80] | [0x82] | [0x16] => Ok(None),
        [0x80, 0x01, ..] => Ok(Some(unframed(Protocol::Binary))),
        [0x82, version, ..] if version & 0x1f == 1 => Ok(Some(unframed(Protocol::Compact))),
        [0x16, 0x03, ..] => Err(Foreign::Tls),
        [0, _, _, _, 0x80 | 0, ..] => {
            Ok(Some(Dialect { framed: true, protocol: Protocol::Binary }))
        }
        [0, _, _, _, 0x82, ..] => Ok(Some(Dialect { framed: true, protocol: Protocol::Compact })),
        [0, ref rest @ ..] if rest.len() < 4 => Ok(None),
        _ if HTTP.iter().any(|start| bytes.starts_with(*start)) => Err(Foreign::Http),
        _ if HTTP.iter().any(|start| start.starts_with(bytes)) => Ok(None),
        _ => Err(Foreign::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_by_cases() {
        let dialect = |framed, protocol| Ok(Some(Dialect { framed, protocol }));
        let framed_binary = dialect(true, Protocol::Binary);
        let cases: [(&[u8], _); 24] = [
            (b"", Ok(None)),
            (b"\x80", Ok(None)),
            (b"\x80\x01", dialect(false, Protocol::Binary)),
            (b"\x80\x02", Err(Foreign::Unknown)),
            (b"\x82", Ok(None)),
            (b"\x82\x21", dialect(false, Protocol::Compact)),
            (b"\x82\x22", Err(Foreign::Unknown)),
            (b"\0", Ok(None)),
            (b"\0\0\0\x26", Ok(None)),
            (b"\0\0\0\x26\x80", framed_binary),
            (b"\0\0\0\x26\x82", dialect(true, Protocol::Compact)),
            (b"\0\0\0\x26\0", framed_binary),
            (b"\0\0\0\x26\x01", Err(Foreign::Unknown)),
            (b"\0\0\0\x26GET ", Err(Foreign::Unknown)),
            (b"\xff\xff\xff\xff", Err(Foreign::Unknown)),
            (b"G", Ok(None)),
            (b"GET", Ok(None)),
            (b"GET / HTTP/1.1\r\n", Err(Foreign::Http)),
            (b"GETX", Err(Foreign::Unknown)),
            (b"POST /", Err(Foreign::Http)),
            (b"PRI * HTTP/2.0", Err(Foreign::Http)),
            (b"\x16", Ok(None)),
            (b"\x16\x03\x01\0\xf8", Err(Foreign::Tls)),
            (b"\x16\x04", Err(Foreign::Unknown)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(detect(bytes), expected, "{bytes:02x?}");
        }
    }
}
