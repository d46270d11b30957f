//! A private MySQL 8.0 server, from `scripts/install-mysql8.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::sql_server::SqlServer;

fn home() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target
        .expect("a folder of the target folder")
        .join("mysql8")
}

/// Starts a server on new, empty data.
pub fn start() -> SqlServer {
    let home = home();
    let program = home.join("bin/mysqld");
    let preload = home.join("lib/ecdhe.so");
    assert!(
        program.exists() && preload.exists(),
        "MySQL 8 for the tests is missing: run scripts/install-mysql8.sh"
    );
    let base = format!("--basedir={}", home.display());
    let arguments = [base.clone(), "--mysqlx=OFF".to_owned()];
    SqlServer::start(
        "mysql8",
        program.clone(),
        &arguments,
        Some(preload),
        |data| {
            let output = Command::new(&program)
                .args(["--no-defaults", "--initialize-insecure", "--user=root"])
                .arg(&base)
                .arg(format!("--datadir={}", data.display()))
                .output()
                .expect("mysqld runs");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "mysqld --initialize: {error}");
        },
    )
}

/// One server for all tests of a binary; each makes a database of its own.
pub fn shared() -> &'static SqlServer {
    static SERVER: OnceLock<SqlServer> = OnceLock::new();
    SERVER.get_or_init(start)
}
