//! Section `compat`: the HTTP routes of other systems, for the clients that call them.
//!
//! Everything is off until somebody turns it on, system by system: each of these routes
//! hands out ids to whoever reaches it, and none of their clients is wanted where
//! nothing is migrated.

use std::net::SocketAddr;

use super::reader::Reader;
use super::setting::{Kind, Setting};

const SWITCH: &[&str] = &["off", "on"];

const ADDR: Setting = Setting {
    key: "compat.addr",
    flag: Some("compat-addr"),
    env: "IDGEN_COMPAT_ADDR",
    kind: Kind::Address { default: "off" },
    meaning: "Where the routes of other systems listen, without TLS and without the admin API; \
              if this and `compat.tls_addr` are off, they are served on `http.addr` and \
              `http.tls_addr`, within their limits",
};

const TLS_ADDR: Setting = Setting {
    key: "compat.tls_addr",
    flag: Some("compat-tls"),
    env: "IDGEN_COMPAT_TLS",
    kind: Kind::Address { default: "off" },
    meaning: "The same with TLS, and with `http.tls_client_auth` (docs/tls.md)",
};

const MAX_CONNECTIONS: Setting = Setting {
    key: "compat.max_connections",
    flag: Some("compat-max-connections"),
    env: "IDGEN_COMPAT_MAX_CONNECTIONS",
    // As many as Thrift takes: applications keep pools of them.
    kind: Kind::Integer { default: 10_000, low: 1, high: 1_000_000 },
    meaning: "Most connections at once on `compat.addr`; a further one is answered 503 and closed",
};

const LEAF: Setting = Setting {
    key: "compat.leaf",
    flag: Some("compat-leaf"),
    env: "IDGEN_COMPAT_LEAF",
    kind: Kind::Choice { default: "off", choices: SWITCH },
    meaning: "The routes of Leaf: `/api/segment/get/KEY`, `/api/snowflake/get/KEY`, \
              `/decodeSnowflakeId`",
};

const TINYID: Setting = Setting {
    key: "compat.tinyid",
    flag: Some("compat-tinyid"),
    env: "IDGEN_COMPAT_TINYID",
    kind: Kind::Choice { default: "off", choices: SWITCH },
    meaning: "The routes of tinyid: `/tinyid/id/nextId` and its three sisters",
};

const TINYID_TOKENS: Setting = Setting {
    key: "compat.tinyid_tokens",
    flag: Some("compat-tinyid-tokens"),
    env: "IDGEN_COMPAT_TINYID_TOKENS",
    kind: Kind::Choice { default: "on", choices: SWITCH },
    meaning: "Whether `token` must be that of an API token which may issue ids of the type",
};

const S0: Setting = Setting {
    key: "compat.s0",
    flag: Some("compat-s0"),
    env: "IDGEN_COMPAT_S0",
    kind: Kind::Choice { default: "off", choices: SWITCH },
    meaning: "The routes of the Leaf-segment service in Go: `/api/leaf`, `/api/leaf/step`, \
              `/api/leaf/init/cache`",
};

const S0_OPEN: Setting = Setting {
    key: "compat.s0_open",
    flag: Some("compat-s0-open"),
    env: "IDGEN_COMPAT_S0_OPEN",
    kind: Kind::Choice { default: "off", choices: SWITCH },
    meaning: "Whether whoever reaches these routes may create types and change steps without a \
              token, as there",
};

pub(super) const SETTINGS: &[&Setting] =
    &[&ADDR, &TLS_ADDR, &MAX_CONNECTIONS, &LEAF, &TINYID, &TINYID_TOKENS, &S0, &S0_OPEN];

/// Settings of the routes of other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompatSettings {
    /// Where they listen without TLS, if not beside the admin API.
    pub addr: Option<SocketAddr>,
    /// Where they listen with TLS, likewise.
    pub tls_addr: Option<SocketAddr>,
    /// Most connections at once there.
    pub max_connections: usize,
    /// Whether the routes of Leaf are served.
    pub leaf: bool,
    /// Whether the routes of tinyid are served.
    pub tinyid: bool,
    /// Whether their tokens are checked.
    pub tinyid_tokens: bool,
    /// Whether the routes of S0 are served.
    pub s0: bool,
    /// Whether those that change types need no token.
    pub s0_open: bool,
}

impl CompatSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mut is_on = |setting| reader.choice(setting) == "on";
        let [leaf, tinyid, tinyid_tokens, s0, s0_open] =
            [&LEAF, &TINYID, &TINYID_TOKENS, &S0, &S0_OPEN].map(&mut is_on);
        let settings = CompatSettings {
            addr: reader.address(&ADDR),
            tls_addr: reader.address(&TLS_ADDR),
            max_connections: reader.integer(&MAX_CONNECTIONS) as usize,
            leaf,
            tinyid,
            tinyid_tokens,
            s0,
            s0_open,
        };
        if settings.is_apart() && !settings.is_any() {
            reader.problem(
                "compat.addr or compat.tls_addr is given, but no routes are: set compat.leaf, compat.tinyid or \
                 compat.s0 to on",
            );
        }
        settings
    }

    /// Whether they have a port of their own.
    pub fn is_apart(&self) -> bool {
        self.addr.is_some() || self.tls_addr.is_some()
    }

    /// Whether any of the routes is served.
    pub fn is_any(&self) -> bool {
        self.leaf || self.tinyid || self.s0
    }
}
