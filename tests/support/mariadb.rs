//! A private `mariadbd`.

use std::fs::Permissions;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::TempFolder;
use super::namespace::Namespace;
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
        MariaDb(SqlServer::start("mariadb", program, &arguments, None, install))
    }

    /// Starts one whose data is on a disk of its own, of so many megabytes (150
    /// at least). Returns the path of that disk too. Needs root.
    pub fn start_on_small_disk(megabytes: u32) -> (Self, PathBuf, Namespace) {
        let folder = TempFolder::new("mariadb-program");
        let program = folder.path().join("mariadbd");
        let mut made = None;
        let server = SqlServer::start("mariadb", program.clone(), &[], None, |data| {
            install(data);
            let mounts = r#"mv "$1" "$1.new"; mkdir "$1"; mount -t tmpfs -o size="$2"m tmpfs "$1"
                            cp -a "$1.new/." "$1"; rm -r "$1.new""#;
            let path = data.to_str().expect("UTF-8");
            let disk = Namespace::with(mounts, &[path, &megabytes.to_string()]);
            let enter = disk.enter().join(" ");
            let script = format!("#!/bin/sh\nexec {enter} /usr/sbin/mariadbd \"$@\"\n");
            std::fs::write(&program, script).expect("a file");
            std::fs::set_permissions(&program, Permissions::from_mode(0o700)).expect("a program");
            made = Some((disk.outside(data), disk));
        });
        let (data, disk) = made.expect("a disk");
        (MariaDb(server), data, disk)
    }
}

/// New, empty data.
fn install(data: &Path) {
    // A server that starts removes the temporary tables that it finds in its
    // folder for them, whoever made them: so each has its own.
    let temporary = data.with_extension("tmp");
    std::fs::create_dir_all(&temporary).expect("a folder");
    let output = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--user=root", "--skip-test-db"])
        .arg("--auth-root-authentication-method=normal")
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--tmpdir={}", temporary.display()))
        .output()
        .expect("mariadb-server is installed: run `make test-deps`");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "mariadb-install-db: {error}");
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
