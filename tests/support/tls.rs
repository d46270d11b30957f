//! A certificate authority for one test, made with the `openssl` command.

use std::path::{Path, PathBuf};
use std::process::Command;

/// PEM files of an authority and of a server on 127.0.0.1 and localhost.
pub struct Certificates {
    /// The authority's certificate.
    pub ca_cert: PathBuf,
    /// The server's certificate, signed by the authority.
    pub server_cert: PathBuf,
    /// The server's key.
    pub server_key: PathBuf,
}

impl Certificates {
    /// Makes them in `folder`.
    pub fn create(folder: &Path) -> Self {
        let openssl = |arguments: &str| {
            let output = Command::new("openssl")
                .args(arguments.split(' '))
                .current_dir(folder)
                .output()
                .expect("openssl is installed: run `make test-deps`");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "openssl {arguments}: {error}");
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!(
            "req -x509 {key} -days 2 -subj /CN=idgen-test-ca -keyout ca.key -out ca.pem \
             -addext basicConstraints=critical,CA:TRUE"
        ));
        openssl(&format!("req {key} -subj /CN=localhost -keyout server.key -out server.csr"));
        let extensions = "subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\n";
        std::fs::write(folder.join("server.ext"), extensions).expect("a file");
        openssl(
            "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
             -extfile server.ext -out server.pem",
        );
        Certificates {
            ca_cert: folder.join("ca.pem"),
            server_cert: folder.join("server.pem"),
            server_key: folder.join("server.key"),
        }
    }
}
