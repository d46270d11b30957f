//! Whose certificate was refused, for the log: rustls says why, and not of whom.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::certificate::Facts;

tokio::task_local! {
    /// The subject of the certificate that was refused in this handshake.
    static REFUSED: RefCell<Option<String>>;
}

/// What `handshake` ends with, and the subject of a certificate that was refused in it.
pub(super) async fn noting<T>(handshake: impl Future<Output = T>) -> (T, Option<String>) {
    let whole = async {
        let result = handshake.await;
        (result, REFUSED.with(RefCell::take))
    };
    REFUSED.scope(RefCell::new(None), whole).await
}

/// Decides nothing itself.
#[derive(Debug)]
pub(super) struct Noting(pub(super) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Noting {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.0.verify_client_cert(end_entity, intermediates, now);
        if verified.is_err() {
            let subject = Facts::of(end_entity).map(|facts| facts.subject);
            // Outside of a handshake of ours there is nobody to tell.
            let _ = REFUSED.try_with(|refused| refused.replace(subject));
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.0.requires_raw_public_keys()
    }
}
