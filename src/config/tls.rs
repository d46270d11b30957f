//! Section `tls`: certificates, for the ports with TLS of both sides.
//!
//! One certificate serves both: they are on the same host. Each side has its own
//! address and its own word on client certificates.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::setting::{Kind, Setting};
use super::{CompatSettings, HttpSettings, ThriftSettings};

const CERT_FILE: Setting = Setting {
    key: "tls.cert_file",
    flag: Some("tls-cert-file"),
    env: "IDGEN_TLS_CERT_FILE",
    kind: Kind::File,
    meaning: "PEM file with the certificate of the node, then those between it and the \
              authority; read again when it changes",
};

const KEY_FILE: Setting = Setting {
    key: "tls.key_file",
    flag: Some("tls-key-file"),
    env: "IDGEN_TLS_KEY_FILE",
    kind: Kind::File,
    meaning: "PEM file with the key of that certificate, without a passphrase",
};

const CLIENT_CA_FILE: Setting = Setting {
    key: "tls.client_ca_file",
    flag: Some("tls-client-ca-file"),
    env: "IDGEN_TLS_CLIENT_CA_FILE",
    kind: Kind::File,
    meaning: "PEM file with the authorities that may sign certificates of clients",
};

const MIN_VERSION: Setting = Setting {
    key: "tls.min_version",
    flag: Some("tls-min-version"),
    env: "IDGEN_TLS_MIN_VERSION",
    kind: Kind::Choice { default: "1.2", choices: &["1.2", "1.3"] },
    meaning: "The oldest version of TLS that is spoken; the newest is 1.3",
};

const HANDSHAKE_TIMEOUT_MS: Setting = Setting {
    key: "tls.handshake_timeout_ms",
    flag: Some("tls-handshake-timeout-ms"),
    env: "IDGEN_TLS_HANDSHAKE_TIMEOUT_MS",
    // Two round trips and a signature; a lost packet costs up to some seconds.
    kind: Kind::Integer { default: 5_000, low: 100, high: 60_000 },
    meaning: "How long a connection may take until TLS is agreed upon, in milliseconds",
};

const RELOAD_INTERVAL_MS: Setting = Setting {
    key: "tls.reload_interval_ms",
    flag: Some("tls-reload-interval-ms"),
    env: "IDGEN_TLS_RELOAD_INTERVAL_MS",
    // Three small files are read each time.
    kind: Kind::Integer { default: 5_000, low: 100, high: 3_600_000 },
    meaning: "How often the files are looked at for changes, in milliseconds; SIGHUP does it at \
              once",
};

pub(super) const SETTINGS: &[&Setting] = &[
    &CERT_FILE,
    &KEY_FILE,
    &CLIENT_CA_FILE,
    &MIN_VERSION,
    &HANDSHAKE_TIMEOUT_MS,
    &RELOAD_INTERVAL_MS,
];

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked for one.
    Off,
    /// They are asked; one that is shown must be good.
    Optional,
    /// Without a good one there is no connection.
    Required,
}

impl ClientAuth {
    pub(super) const CHOICES: &[&str] = &["off", "optional", "required"];

    pub(super) fn read(reader: &mut Reader, setting: &Setting) -> Self {
        match reader.choice(setting) {
            "optional" => ClientAuth::Optional,
            "required" => ClientAuth::Required,
            _ => ClientAuth::Off,
        }
    }
}

/// Settings of TLS; there only if a side speaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// PEM file with the certificate and those above it.
    pub cert_file: PathBuf,
    /// PEM file with its key.
    pub key_file: PathBuf,
    /// PEM file with the authorities of client certificates.
    pub client_ca_file: Option<PathBuf>,
    /// Whether 1.3 is the only version, not 1.2 as well.
    pub only_tls13: bool,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How often the files are looked at.
    pub reload_interval: Duration,
}

impl TlsSettings {
    pub(super) fn read(
        reader: &mut Reader,
        thrift: &ThriftSettings,
        http: &HttpSettings,
        compat: &CompatSettings,
    ) -> Option<Self> {
        // The content is read again, and judged, when the node starts.
        let mut file = |setting| {
            let given = reader.strength(setting) > 0;
            (given, reader.file(setting).map(|(path, _)| path))
        };
        let (cert_given, cert_file) = file(&CERT_FILE);
        let (key_given, key_file) = file(&KEY_FILE);
        let (ca_given, client_ca_file) = file(&CLIENT_CA_FILE);
        let only_tls13 = reader.choice(&MIN_VERSION) == "1.3";
        let handshake_timeout = reader.milliseconds(&HANDSHAKE_TIMEOUT_MS);
        let reload_interval = reader.milliseconds(&RELOAD_INTERVAL_MS);

        let sides = [
            ("thrift", thrift.addr, thrift.tls_addr, thrift.tls_client_auth),
            ("http", http.addr, http.tls_addr, http.tls_client_auth),
        ];
        let mut asks = false;
        for (side, addr, tls_addr, client_auth) in sides {
            if addr.is_none() && tls_addr.is_none() {
                reader.problem(format!("{side}.addr and {side}.tls_addr are both off"));
            }
            if client_auth == ClientAuth::Off {
                continue;
            }
            asks = true;
            // Those of other systems have no word of their own.
            let beside = side == "http" && compat.tls_addr.is_some();
            if tls_addr.is_none() && !beside {
                reader.problem(format!("{side}.tls_client_auth needs {side}.tls_addr"));
            }
            if !ca_given {
                reader.problem(format!("{side}.tls_client_auth needs tls.client_ca_file"));
            }
        }
        if ca_given && !asks {
            // Somebody believes that clients are checked.
            reader.problem(
                "tls.client_ca_file is given, and no client is asked for a certificate: set \
                 thrift.tls_client_auth or http.tls_client_auth",
            );
        }
        let speaks = [thrift.tls_addr, http.tls_addr, compat.tls_addr].iter().any(Option::is_some);
        for (setting, given) in [(&CERT_FILE, cert_given), (&KEY_FILE, key_given)] {
            if speaks && !given {
                reader.problem(format!(
                    "thrift.tls_addr, http.tls_addr and compat.tls_addr need {}",
                    setting.key
                ));
            }
            if given && !speaks {
                reader.problem(format!(
                    "{} is given, and nothing speaks TLS: set thrift.tls_addr or http.tls_addr",
                    setting.key
                ));
            }
        }
        if !speaks {
            return None;
        }
        Some(TlsSettings {
            cert_file: cert_file?,
            key_file: key_file?,
            client_ca_file,
            only_tls13,
            handshake_timeout,
            reload_interval,
        })
    }
}
