//! What operators see of TLS.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// A side of the node that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The Thrift front.
    Thrift,
    /// Health, metrics and the admin API.
    Http,
}

impl Side {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Side::Thrift => "thrift",
            Side::Http => "http",
        }
    }
}

/// Why a handshake came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It took too long.
    Timeout,
    /// The peer closed the connection or broke it, as probes of a port do.
    Closed,
    /// The peer does not speak TLS.
    NotTls,
    /// There is no version or cipher that both sides know.
    Incompatible,
    /// The peer did not take the node's certificate, or something else of it.
    Alert,
    /// The peer showed no certificate, and must.
    NoCertificate,
    /// That of the peer has expired, or is not valid yet.
    Expired,
    /// That of the peer was not signed by an authority that is known here.
    UnknownAuthority,
    /// That of the peer is not good for another reason.
    BadCertificate,
    /// The peer broke the rules of TLS.
    Protocol,
}

impl Failure {
    const ALL: [Failure; 10] = [
        Failure::Timeout,
        Failure::Closed,
        Failure::NotTls,
        Failure::Incompatible,
        Failure::Alert,
        Failure::NoCertificate,
        Failure::Expired,
        Failure::UnknownAuthority,
        Failure::BadCertificate,
        Failure::Protocol,
    ];

    /// The name in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Failure::Timeout => "timeout",
            Failure::Closed => "closed",
            Failure::NotTls => "not_tls",
            Failure::Incompatible => "incompatible",
            Failure::Alert => "alert",
            Failure::NoCertificate => "no_certificate",
            Failure::Expired => "expired",
            Failure::UnknownAuthority => "unknown_authority",
            Failure::BadCertificate => "bad_certificate",
            Failure::Protocol => "protocol",
        }
    }

    /// Whether it is about who the peer is: somebody was not let in.
    pub fn is_refusal(self) -> bool {
        matches!(
            self,
            Failure::NoCertificate
                | Failure::Expired
                | Failure::UnknownAuthority
                | Failure::BadCertificate
        )
    }
}

/// The metrics of TLS.
pub(super) struct TlsMetrics {
    handshakes: IntCounterVec,
    failures: IntCounterVec,
    expires: IntGaugeVec,
    reloads: IntCounterVec,
    /// 1 while the files are not what is in use.
    pub(super) reload_failed: IntGauge,
}

/// Those of one side.
pub(super) struct SideMetrics {
    pub(super) handshakes: IntCounter,
    failures: [IntCounter; Failure::ALL.len()],
}

impl TlsMetrics {
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let vector = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(vector.clone()))?;
            prometheus::Result::Ok(vector)
        };
        let handshakes = counters(
            "idgen_tls_handshakes_total",
            "TLS connections that were agreed upon, by side",
            &["side"],
        )?;
        let failures = counters(
            "idgen_tls_handshake_failures_total",
            "TLS connections that came to nothing, by side and reason",
            &["side", "reason"],
        )?;
        let reloads = counters(
            "idgen_tls_reloads_total",
            "Times that changed certificate files were read, by result",
            &["result"],
        )?;
        let expires = IntGaugeVec::new(
            Opts::new(
                "idgen_tls_certificate_expires_seconds",
                "When the first of the certificates in use ends, in seconds of the Unix epoch",
            ),
            &["certificate"],
        )?;
        let reload_failed = IntGauge::new(
            "idgen_tls_reload_failed",
            "1 while the certificate files cannot be used and older ones are in use",
        )?;
        registry.register(Box::new(expires.clone()))?;
        registry.register(Box::new(reload_failed.clone()))?;
        for result in ["ok", "failed"] {
            reloads.with_label_values(&[result]);
        }
        Ok(TlsMetrics { handshakes, failures, expires, reloads, reload_failed })
    }

    pub(super) fn side(&self, side: Side) -> SideMetrics {
        let failure =
            |reason: Failure| self.failures.with_label_values(&[side.as_str(), reason.as_str()]);
        SideMetrics {
            handshakes: self.handshakes.with_label_values(&[side.as_str()]),
            failures: Failure::ALL.map(failure),
        }
    }

    /// `certificate` is `server` or `client_ca`; the time is in seconds of the epoch.
    pub(super) fn expires(&self, certificate: &str, at: i64) {
        self.expires.with_label_values(&[certificate]).set(at);
    }

    pub(super) fn reloaded(&self, ok: bool) {
        self.reloads.with_label_values(&[if ok { "ok" } else { "failed" }]).inc();
        self.reload_failed.set(i64::from(!ok));
    }
}

impl SideMetrics {
    pub(super) fn failed(&self, reason: Failure) {
        self.failures[reason as usize].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_is_the_place_in_its_table() {
        for (at, reason) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
