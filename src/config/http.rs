//! Section `http`: health, metrics and the admin API.

use std::net::SocketAddr;

use super::reader::Reader;
use super::setting::{Kind, Setting};
use super::tls::ClientAuth;
use super::token::Secret;

const ADDR: Setting = Setting {
    key: "http.addr",
    flag: Some("http"),
    env: "IDGEN_HTTP",
    kind: Kind::Address { default: "127.0.0.1:5980" },
    meaning: "Where health, metrics and the admin API listen, without TLS",
};

const TLS_ADDR: Setting = Setting {
    key: "http.tls_addr",
    flag: Some("http-tls"),
    env: "IDGEN_HTTP_TLS",
    kind: Kind::Address { default: "off" },
    meaning: "Where health, metrics and the admin API listen with TLS (docs/tls.md)",
};

const TLS_CLIENT_AUTH: Setting = Setting {
    key: "http.tls_client_auth",
    flag: Some("http-tls-client-auth"),
    env: "IDGEN_HTTP_TLS_CLIENT_AUTH",
    kind: Kind::Choice { default: "off", choices: ClientAuth::CHOICES },
    meaning: "Whether clients of `http.tls_addr` may or must show a certificate that \
              `tls.client_ca_file` signed; probes and browsers, too",
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
    meaning: "Whether browsers may send the cookie of a session over TLS only: `auto` is yes at \
              `http.tls_addr` and no at `http.addr`; `always` is for a proxy with TLS before \
              `http.addr`",
};

pub(super) const SETTINGS: &[&Setting] = &[
    &ADDR,
    &TLS_ADDR,
    &TLS_CLIENT_AUTH,
    &MAX_CONNECTIONS,
    &ADMIN_TOKEN,
    &ADMIN_TOKEN_FILE,
    &SECURE_COOKIES,
];

/// Over what browsers may send the cookie of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecureCookies {
    /// Over what it was given.
    Auto,
    /// Over TLS only.
    Always,
    /// Over anything.
    Never,
}

/// Settings of the HTTP side.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpSettings {
    /// Where it listens without TLS, if it does.
    pub addr: Option<SocketAddr>,
    /// Where it listens with TLS, if it does.
    pub tls_addr: Option<SocketAddr>,
    /// Whether clients with TLS show a certificate.
    pub tls_client_auth: ClientAuth,
    /// Most connections at once.
    pub max_connections: usize,
    /// The token of the admin API, if one was given; see
    /// [`token::resolve`](super::token::resolve) for what holds otherwise.
    pub admin_token: Option<Secret>,
    /// Over what browsers may send the cookie of a session.
    pub secure_cookies: SecureCookies,
}

impl HttpSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        HttpSettings {
            addr: reader.address(&ADDR),
            tls_addr: reader.address(&TLS_ADDR),
            tls_client_auth: ClientAuth::read(reader, &TLS_CLIENT_AUTH),
            max_connections: reader.integer(&MAX_CONNECTIONS) as usize,
            admin_token: read_token(reader),
            secure_cookies: match reader.choice(&SECURE_COOKIES) {
                "always" => SecureCookies::Always,
                "never" => SecureCookies::Never,
                _ => SecureCookies::Auto,
            },
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
