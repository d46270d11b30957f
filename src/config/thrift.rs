//! Section `thrift`: the front that clients call at every insert.

use std::net::SocketAddr;
use std::time::Duration;

use super::reader::Reader;
use super::setting::{Kind, Setting};
use super::tls::ClientAuth;

const ADDR: Setting = Setting {
    key: "thrift.addr",
    flag: Some("thrift"),
    env: "IDGEN_THRIFT",
    // The port of the original service, so that its clients find this one.
    kind: Kind::Address { default: "127.0.0.1:5900" },
    meaning: "Where the Thrift front listens without TLS. Unless `clients.tokens` is `required`, \
              listen only where every client is trusted",
};

const TLS_ADDR: Setting = Setting {
    key: "thrift.tls_addr",
    flag: Some("thrift-tls"),
    env: "IDGEN_THRIFT_TLS",
    kind: Kind::Address { default: "off" },
    meaning: "Where the Thrift front listens with TLS (docs/tls.md)",
};

const TLS_CLIENT_AUTH: Setting = Setting {
    key: "thrift.tls_client_auth",
    flag: Some("thrift-tls-client-auth"),
    env: "IDGEN_THRIFT_TLS_CLIENT_AUTH",
    kind: Kind::Choice { default: "off", choices: ClientAuth::CHOICES },
    meaning: "Whether clients of `thrift.tls_addr` may or must show a certificate that \
              `tls.client_ca_file` signed",
};

const MAX_FRAME_BYTES: Setting = Setting {
    key: "thrift.max_frame_bytes",
    flag: Some("thrift-max-frame-bytes"),
    env: "IDGEN_THRIFT_MAX_FRAME_BYTES",
    // A request is a few dozen bytes; the largest is the JSON of `addNewId`.
    kind: Kind::Integer { default: 65_536, low: 1_024, high: 16_777_216 },
    meaning: "Longest message that a client may send, in bytes",
};

const MAX_CONNECTIONS: Setting = Setting {
    key: "thrift.max_connections",
    flag: Some("thrift-max-connections"),
    env: "IDGEN_THRIFT_MAX_CONNECTIONS",
    // Some 5 KB each: 10 000 cost 50 MB, and need as many open files.
    kind: Kind::Integer { default: 10_000, low: 1, high: 1_000_000 },
    meaning: "Most connections at once; a further one is closed at once",
};

const IDLE_TIMEOUT_MS: Setting = Setting {
    key: "thrift.idle_timeout_ms",
    flag: Some("thrift-idle-timeout-ms"),
    env: "IDGEN_THRIFT_IDLE_TIMEOUT_MS",
    // Client pools keep connections for minutes; a dead peer must not keep one for ever.
    kind: Kind::Integer { default: 600_000, low: 1_000, high: 86_400_000 },
    meaning: "How long a connection may be without a request, in milliseconds",
};

const MESSAGE_TIMEOUT_MS: Setting = Setting {
    key: "thrift.message_timeout_ms",
    flag: Some("thrift-message-timeout-ms"),
    env: "IDGEN_THRIFT_MESSAGE_TIMEOUT_MS",
    // Long enough for a bad line, short enough that a client that stops in the
    // middle costs a connection only for so long.
    kind: Kind::Integer { default: 10_000, low: 100, high: 3_600_000 },
    meaning: "How long one message may take from its first byte to its last, in milliseconds",
};

pub(super) const SETTINGS: &[&Setting] = &[
    &ADDR,
    &TLS_ADDR,
    &TLS_CLIENT_AUTH,
    &MAX_FRAME_BYTES,
    &MAX_CONNECTIONS,
    &IDLE_TIMEOUT_MS,
    &MESSAGE_TIMEOUT_MS,
];

/// Settings of the Thrift front.
#[derive(Clone, Debug, PartialEq)]
pub struct ThriftSettings {
    /// Where it listens without TLS, if it does.
    pub addr: Option<SocketAddr>,
    /// Where it listens with TLS, if it does.
    pub tls_addr: Option<SocketAddr>,
    /// Whether clients with TLS show a certificate.
    pub tls_client_auth: ClientAuth,
    /// Longest message from a client, in bytes.
    pub max_frame_bytes: usize,
    /// Most connections at once.
    pub max_connections: usize,
    /// How long a connection may be without a request.
    pub idle_timeout: Duration,
    /// How long one message may take from its first byte to its last.
    pub message_timeout: Duration,
}

impl ThriftSettings {
    /// The port of its first address, for the name of the node.
    pub(super) fn port(&self) -> u16 {
        self.addr.or(self.tls_addr).map_or(0, |addr| addr.port())
    }

    pub(super) fn read(reader: &mut Reader) -> Self {
        ThriftSettings {
            addr: reader.address(&ADDR),
            tls_addr: reader.address(&TLS_ADDR),
            tls_client_auth: ClientAuth::read(reader, &TLS_CLIENT_AUTH),
            max_frame_bytes: reader.integer(&MAX_FRAME_BYTES) as usize,
            max_connections: reader.integer(&MAX_CONNECTIONS) as usize,
            idle_timeout: reader.milliseconds(&IDLE_TIMEOUT_MS),
            message_timeout: reader.milliseconds(&MESSAGE_TIMEOUT_MS),
        }
    }
}
