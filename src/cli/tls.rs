//! TLS of the commands, as clients of a node: whom they trust, and who they are.
//!
//! Without a file of authorities, those of the operating system are trusted, as browsers
//! and curl do. There is no way to trust everybody: a token would go to anyone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsProvider};

use super::exit::Failure;
use crate::config::CLIENT_TLS_VARIABLES;

/// The files of TLS.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsArgs {
    /// PEM file with the authorities that may have signed the certificate of a node
    /// [env: IDGEN_CA_FILE] [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// PEM file with the certificate to show to a node that asks for one [env: IDGEN_CERT]
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// PEM file with the key of that certificate [env: IDGEN_KEY]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// What a client speaks TLS with.
struct Material {
    authorities: Vec<CertificateDer<'static>>,
    own: Option<(Vec<CertificateDer<'static>>, Vec<u8>)>,
}

impl TlsArgs {
    /// What is not given as a flag comes from `environment`.
    pub fn or_from(mut self, environment: &[(OsString, OsString)]) -> Self {
        let fields = [&mut self.ca_file, &mut self.cert, &mut self.key];
        for (field, name) in fields.into_iter().zip(CLIENT_TLS_VARIABLES) {
            let found = environment.iter().find(|(key, value)| key == name && !value.is_empty());
            if let (None, Some((_, value))) = (&field, found) {
                *field = Some(PathBuf::from(value));
            }
        }
        self
    }

    /// For connections without HTTP.
    pub fn rustls(&self) -> Result<Arc<ClientConfig>, Failure> {
        let material = self.material()?;
        let mut roots = RootCertStore::empty();
        // Systems have some that cannot be used; what is needed and missing shows later.
        roots.add_parsable_certificates(material.authorities);
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Failure::failed)?
            .with_root_certificates(roots);
        let config = match material.own {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| self.no_key())?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| Failure::usage(format_args!("--cert and --key: {error}")))?
            }
        };
        Ok(Arc::new(config))
    }

    /// For HTTP.
    pub fn ureq(&self) -> Result<ureq::tls::TlsConfig, Failure> {
        // It says at once, and of which file, what the library would say later.
        self.rustls()?;
        let material = self.material()?;
        let certificate = |der: &CertificateDer<'static>| Certificate::from_der(der).to_owned();
        let authorities: Vec<_> = material.authorities.iter().map(certificate).collect();
        let own = match material.own {
            None => None,
            Some((chain, key)) => {
                let chain: Vec<_> = chain.iter().map(certificate).collect();
                let key = PrivateKey::from_pem(&key).map_err(|_| self.no_key())?;
                Some(ClientCert::new_with_certs(&chain, key))
            }
        };
        Ok(ureq::tls::TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&authorities))
            .client_cert(own)
            .build())
    }

    fn material(&self) -> Result<Material, Failure> {
        let authorities = match &self.ca_file {
            Some(file) => certificates("--ca-file", file)?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        if authorities.is_empty() {
            return Err(Failure::usage(
                "this system has no authorities that could be trusted: give --ca-file",
            ));
        }
        let own = match (&self.cert, &self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((certificates("--cert", cert)?, read("--key", key)?)),
            _ => {
                return Err(Failure::usage(
                    "--cert and --key (IDGEN_CERT, IDGEN_KEY) belong together: give both",
                ));
            }
        };
        Ok(Material { authorities, own })
    }

    fn no_key(&self) -> Failure {
        let file = self.key.as_deref().unwrap_or(Path::new("")).display();
        Failure::usage(format_args!("--key: {file} holds no private key in PEM"))
    }
}

fn read(flag: &str, file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file)
        .map_err(|error| Failure::usage(format_args!("{flag}: {}: {error}", file.display())))
}

fn certificates(flag: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let content = read(flag, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Failure::usage(format_args!(
            "{flag}: {} holds no certificate in PEM",
            file.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_a_variable() {
        let environment: Vec<(OsString, OsString)> =
            [("IDGEN_CA_FILE", "a"), ("IDGEN_CERT", "b"), ("IDGEN_KEY", "")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        let args = TlsArgs { ca_file: Some("flag".into()), ..TlsArgs::default() };
        let expected = TlsArgs { ca_file: Some("flag".into()), cert: Some("b".into()), key: None };
        assert_eq!(args.or_from(&environment), expected);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let here = PathBuf::from(file!());
        for (args, expected) in [
            (TlsArgs { ca_file: Some("/no/ca".into()), ..TlsArgs::default() }, "--ca-file: /no/ca"),
            (TlsArgs { ca_file: Some(here.clone()), ..TlsArgs::default() }, "no certificate"),
        ] {
            let error = args.rustls().unwrap_err().message;
            assert!(error.contains(expected), "{error}");
            assert!(args.ureq().is_err());
        }
    }
}
