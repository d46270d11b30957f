//! A private `mariadbd`.

use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::sync::OnceLock;

use super::sql_server::SqlServer;

/// A MariaDB server of one's own; see [`SqlServer`] for what it can do.
pub struct MariaDb(SqlServer);

impl MariaDb {
    /// Starts one on new, empty data.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with further arguments, such as `["--max-connections=4"]`.
    pub fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|a| a.to_string()).collect();
        let program = "/usr/sbin/mariadbd".into();
        MariaDb(SqlServer::start(
            "mariadb",
            program,
            &arguments,
            None,
            |data| {
                let output = Command::new("mariadb-install-db")
                    .args(["--no-defaults", "--user=root", "--skip-test-db"])
                    .arg("--auth-root-authentication-method=normal")
                    .arg(format!("--datadir={}", data.display()))
                    .output()
                    .expect("mariadb-server is installed: run `make test-deps`");
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "mariadb-install-db: {error}");
            },
        ))
    }
}

impl Deref for MariaDb {
    type Target = SqlServer;

    fn deref(&self) -> &SqlServer {
        &self.0
    }
}

impl DerefMut for MariaDb {
    fn deref_mut(&mut self) -> &mut SqlServer {
        &mut self.0
    }
}

/// One server for all tests of a binary; each makes a database of its own.
pub fn shared() -> &'static SqlServer {
    static SERVER: OnceLock<MariaDb> = OnceLock::new();
    SERVER.get_or_init(MariaDb::start)
}
