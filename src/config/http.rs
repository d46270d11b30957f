//! Section `http`: health, metrics and the admin API.

use std::net::SocketAddr;

use super::reader::Reader;
use super::setting::{Kind, Setting};
use super::token::Secret;

const ADDR: Setting = Setting {
    key: "http.addr",
    flag: Some("http"),
    env: "IDGEN_HTTP",
    kind: Kind::Address { default: "127.0.0.1:5980" },
    meaning: "Where health, metrics and the admin API listen, without TLS",
};

const MAX_CONNECTIONS: Setting = Setting {
    key: "http.max_connections",
    flag: Some("http-max-connections"),
    env: "IDGEN_HTTP_MAX_CONNECTIONS",
    // People, probes and scrapers: a few dozen. The rest is room for their restarts.
    kind: Kind::Integer { default: 256, low: 1, high: 65_536 },
    meaning: "Most HTTP connections at once; a further one is answered 503 and closed",
};

const ADMIN_TOKEN: Setting = Setting {
    key: "http.admin_token",
    flag: None,
    env: "IDGEN_ADMIN_TOKEN",
    kind: Kind::Secret { min: Secret::MIN_LEN, max: Secret::MAX_LEN },
    meaning: "The token of the admin API",
};

const ADMIN_TOKEN_FILE: Setting = Setting {
    key: "http.admin_token_file",
    flag: Some("admin-token-file"),
    env: "IDGEN_ADMIN_TOKEN_FILE",
    kind: Kind::File,
    meaning: "A file with the token of the admin API; space around it does not count",
};

const SECURE_COOKIES: Setting = Setting {
    key: "http.secure_cookies",
    flag: Some("http-secure-cookies"),
    env: "IDGEN_HTTP_SECURE_COOKIES",
    kind: Kind::Choice { default: "auto", choices: &["auto", "always", "never"] },
    meaning: "Whether browsers may send the cookie of a session over TLS only: `always` behind a \
              proxy with TLS; `auto` is `never` as long as this side speaks no TLS itself",
};

pub(super) const SETTINGS: &[&Setting] =
    &[&ADDR, &MAX_CONNECTIONS, &ADMIN_TOKEN, &ADMIN_TOKEN_FILE, &SECURE_COOKIES];

/// Settings of the HTTP side.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpSettings {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Most connections at once.
    pub max_connections: usize,
    /// The token of the admin API, if one was given; see
    /// [`token::resolve`](super::token::resolve) for what holds otherwise.
    pub admin_token: Option<Secret>,
    /// Whether browsers may send the cookie of a session over TLS only.
    pub secure_cookies: bool,
}

impl HttpSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        HttpSettings {
            addr: reader.address(&ADDR),
            max_connections: reader.integer(&MAX_CONNECTIONS) as usize,
            admin_token: read_token(reader),
            // `auto` is for the day on which this side speaks TLS.
            secure_cookies: reader.choice(&SECURE_COOKIES) == "always",
        }
    }
}

/// The token itself or the file with it, whichever comes from the stronger layer.
fn read_token(reader: &mut Reader) -> Option<Secret> {
    let direct = reader.secret(&ADMIN_TOKEN);
    let strength = (reader.strength(&ADMIN_TOKEN), reader.strength(&ADMIN_TOKEN_FILE));
    if strength.0 == strength.1 && strength.0 > 0 {
        reader.problem(
            "http.admin_token and http.admin_token_file are both given in the same place: leave \
             one of them out",
        );
    }
    if strength.0 >= strength.1 {
        return direct;
    }
    let (path, content) = reader.file(&ADMIN_TOKEN_FILE)?;
    match Secret::new(content.trim()) {
        Ok(secret) => Some(secret),
        Err(error) => {
            reader
                .problem(format!("http.admin_token_file: the token in {} {error}", path.display()));
            None
        }
    }
}
