//! Checks of the certificates, before a node starts or reads them again.

use std::os::unix::fs::PermissionsExt;

use super::{Check, Verdict, now_ms};
use crate::config::TlsSettings;
use crate::front::tls::{TlsFiles, inspect};

const PART: &str = "tls";

/// Fewer days than this are worth a word: as in the alert IdgenCertificateExpires.
const FEW_DAYS: i64 = 7;

pub(super) fn checks(settings: &TlsSettings) -> Vec<Check> {
    let files = TlsFiles {
        cert: settings.cert_file.clone(),
        key: settings.key_file.clone(),
        client_ca: settings.client_ca_file.clone(),
    };
    let mut checks = vec![match inspect(&files, now_ms() / 1_000) {
        Ok((subject, left)) => certificate(&subject, left / 86_400),
        Err(error) => Check::ok(PART, "certificate", error.to_string())
            .with(Verdict::Fail, "a node does not start with it, or goes on with what it has"),
    }];
    if let Ok(meta) = std::fs::metadata(&settings.key_file) {
        let found =
            format!("{}, mode {:o}", files.key.display(), meta.permissions().mode() & 0o777);
        checks.push(Check::ok(PART, "key file", found).unless(
            meta.permissions().mode() & 0o007 == 0,
            Verdict::Warn,
            "every user of this machine can read or change the key: chmod o=",
        ));
    }
    checks
}

fn certificate(subject: &str, days: i64) -> Check {
    Check::ok(PART, "certificate", format!("{subject}, for {days} more days")).unless(
        days >= FEW_DAYS,
        Verdict::Warn,
        "renew it; nodes take the new files without a restart (docs/tls.md)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_by_cases() {
        assert_eq!(certificate("CN=a", 7).verdict, Verdict::Ok);
        assert_eq!(certificate("CN=a", 6).verdict, Verdict::Warn);
    }
}
