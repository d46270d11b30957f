//! From files to what rustls serves with; every fault names the setting and the file,
//! and never what is in it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, RootCertStore, SupportedProtocolVersion, version};
use sha2::{Digest, Sha256};

use super::certificate::Facts;
use super::metrics::Side;
use super::refusal::Noting;

/// Longest file, in bytes: a bundle of every authority of the world is 250 KB.
const MAX_FILE: u64 = 1024 * 1024;

/// Where certificates and keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// `tls.cert_file`.
    pub cert: PathBuf,
    /// `tls.key_file`.
    pub key: PathBuf,
    /// `tls.client_ca_file`.
    pub client_ca: Option<PathBuf>,
}

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

/// Why files cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    setting: &'static str,
    file: PathBuf,
    why: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.setting, self.file.display(), self.why)
    }
}

impl std::error::Error for TlsError {}

fn fault(setting: &'static str, file: &Path, why: impl fmt::Display) -> TlsError {
    TlsError { setting, file: file.to_owned(), why: why.to_string() }
}

const CERT: &str = "tls.cert_file";
const KEY: &str = "tls.key_file";
const CLIENT_CA: &str = "tls.client_ca_file";

/// What the files hold.
pub(super) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    /// Reads all files; blocks.
    pub(super) fn read(files: &TlsFiles) -> Result<Contents, TlsError> {
        Ok(Contents {
            cert: read(CERT, &files.cert)?,
            key: read(KEY, &files.key)?,
            client_ca: files.client_ca.as_deref().map(|path| read(CLIENT_CA, path)).transpose()?,
        })
    }

    /// The same for the same content.
    pub(super) fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            let part = part.map_or(&[][..], Vec::as_slice);
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut content = Vec::new();
    let file = File::open(path).map_err(|error| fault(setting, path, error))?;
    file.take(MAX_FILE + 1)
        .read_to_end(&mut content)
        .map_err(|error| fault(setting, path, error))?;
    match content.len() as u64 {
        0..=MAX_FILE => Ok(content),
        _ => Err(fault(setting, path, format_args!("it is longer than {MAX_FILE} bytes"))),
    }
}

/// Certificates and keys that fit each other.
pub(super) struct Material {
    key: Arc<CertifiedKey>,
    authorities: Option<Arc<RootCertStore>>,
    /// Whose certificate it is.
    pub(super) subject: String,
    /// When the first certificate of the chain ends, in seconds of the epoch.
    pub(super) expires: i64,
    /// The same of the authorities of clients.
    pub(super) authorities_expire: Option<i64>,
}

impl Material {
    /// Checks `contents`, at `now` in seconds of the epoch.
    pub(super) fn of(contents: &Contents, files: &TlsFiles, now: i64) -> Result<Self, TlsError> {
        let (chain, facts) = certificates(CERT, &files.cert, &contents.cert)?;
        for (at, facts) in facts.iter().enumerate() {
            if facts.not_after < now {
                let which = if at == 0 { "the certificate" } else { "a certificate of the chain" };
                let when = jiff::Timestamp::from_second(facts.not_after);
                let when = when.map_or_else(|_| "long ago".to_owned(), |at| format!("at {at}"));
                let why = format!("{which} ({}) expired {when}", facts.subject);
                return Err(fault(CERT, &files.cert, why));
            }
        }
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|_| {
            let why = match contains(&contents.key, b"ENCRYPTED") {
                true => "the key has a passphrase: store it without one",
                false => "it holds no private key in PEM",
            };
            fault(KEY, &files.key, why)
        })?;
        let key =
            CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
                match error {
                    rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => fault(
                        KEY,
                        &files.key,
                        format_args!("the key is not that of {}", files.cert.display()),
                    ),
                    rustls::Error::InvalidCertificate(error) => fault(CERT, &files.cert, error),
                    error => fault(KEY, &files.key, error),
                }
            })?;
        let mut authorities = None;
        let mut authorities_expire = None;
        if let (Some(path), Some(content)) = (&files.client_ca, &contents.client_ca) {
            let (certificates, facts) = certificates(CLIENT_CA, path, content)?;
            let mut store = RootCertStore::empty();
            for certificate in certificates {
                store.add(certificate).map_err(|error| fault(CLIENT_CA, path, error))?;
            }
            authorities = Some(Arc::new(store));
            authorities_expire = facts.iter().map(|facts| facts.not_after).min();
        }
        Ok(Material {
            key: Arc::new(key),
            authorities,
            subject: facts.first().map(|facts| facts.subject.clone()).unwrap_or_default(),
            expires: facts.iter().map(|facts| facts.not_after).min().unwrap_or_default(),
            authorities_expire,
        })
    }

    /// How `side` serves with it.
    pub(super) fn server_config(
        &self,
        side: Side,
        client_auth: ClientAuth,
        only_tls13: bool,
    ) -> Result<ServerConfig, String> {
        const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
        const NEWEST: &[&SupportedProtocolVersion] = &[&version::TLS13];
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(if only_tls13 { NEWEST } else { BOTH })
            .map_err(|error| error.to_string())?;
        let builder = match (client_auth, &self.authorities) {
            (ClientAuth::Off, _) => builder.with_no_client_auth(),
            (_, None) => return Err("there are no authorities of client certificates".to_owned()),
            (_, Some(authorities)) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::clone(authorities), provider);
                let verifier = match client_auth {
                    ClientAuth::Optional => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build().map_err(|error| error.to_string())?;
                builder.with_client_cert_verifier(Arc::new(Noting(verifier)))
            }
        };
        let key = SingleCertAndKey::from(Arc::clone(&self.key));
        let mut config = builder.with_cert_resolver(Arc::new(key));
        // Nothing is resumed: connections last, so little would be gained, and a client
        // whose certificate has ended meanwhile must not come back without it.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        if side == Side::Http {
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        Ok(config)
    }
}

fn certificates(
    setting: &'static str,
    path: &Path,
    content: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, Vec<Facts>), TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(content)
        .collect::<Result<_, _>>()
        .map_err(|_| fault(setting, path, "it is not PEM"))?;
    if chain.is_empty() {
        return Err(fault(setting, path, "it holds no certificate in PEM"));
    }
    let facts = chain.iter().map(|certificate| Facts::of(certificate));
    let facts: Option<Vec<Facts>> = facts.collect();
    let facts = facts.ok_or_else(|| fault(setting, path, "a certificate in it is broken"))?;
    Ok((chain, facts))
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}
