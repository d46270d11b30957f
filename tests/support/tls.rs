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

/// An authority that signs what a test wants.
pub struct Authority {
    folder: PathBuf,
    /// Its own certificate.
    pub cert: PathBuf,
}

/// A certificate and its key, as files.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// When a certificate is good.
#[derive(Clone, Copy)]
pub enum Valid {
    /// For a day from now.
    Now,
    /// In the year 2020.
    Once,
}

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

impl Authority {
    /// Makes one in the folder `name`, which it makes in `folder`.
    pub fn create(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let authority = Authority { cert: folder.join("ca.pem"), folder };
        authority.openssl(&format!(
            "req -x509 {KEY} -days 2 -subj /CN={name} -keyout ca.key -out ca.pem \
             -addext basicConstraints=critical,CA:TRUE"
        ));
        let config = "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nnew_certs_dir=.\n\
             default_md=sha256\npolicy=p\nrand_serial=yes\nunique_subject=no\n\
             copy_extensions=copy\n[p]\ncommonName=optional\norganizationName=optional\n";
        std::fs::write(authority.folder.join("ca.cnf"), config).expect("a file");
        std::fs::write(authority.folder.join("index.txt"), "").expect("a file");
        authority
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&self.folder)
            .output()
            .expect("openssl is installed: run `make test-deps`");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {error}");
    }

    /// Signs a new key of `subject`, such as `/CN=orders`, for 127.0.0.1.
    pub fn issue(&self, name: &str, subject: &str, valid: Valid) -> Issued {
        self.openssl(&format!(
            "req {KEY} -subj {subject} -keyout {name}.key -out {name}.csr \
             -addext subjectAltName=IP:127.0.0.1,DNS:localhost -addext basicConstraints=CA:FALSE"
        ));
        let dates = match valid {
            Valid::Now => "-days 1",
            Valid::Once => "-startdate 20200101000000Z -enddate 20201231235959Z",
        };
        self.openssl(&format!(
            "ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key {dates} -in {name}.csr \
             -out {name}.pem"
        ));
        let file = |end: &str| self.folder.join(format!("{name}.{end}"));
        Issued { cert: file("pem"), key: file("key") }
    }
}
