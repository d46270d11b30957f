//! The servers that nodes stand on, each of this run alone.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use crate::process::{Folder, Outcome, Process, accepts, command, free_address};

/// A `redis-server` that keeps nothing.
pub fn redis(folder: &Folder) -> Outcome<(Process, SocketAddr)> {
    let address = free_address().map_err(|e| e.to_string())?;
    let port = address.port().to_string();
    let data = folder.path("redis");
    fs::create_dir(&data).map_err(|e| e.to_string())?;
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--port", &port])
        .args(["--save", "", "--appendonly", "no"])
        .current_dir(&data);
    let mut process = Process::start("redis-server", &mut command, folder)?;
    process.wait_until(|| accepts(address))?;
    Ok((process, address))
}

/// A `mariadbd` with the defaults that matter here (each commit is flushed),
/// an empty database, and the URL of an account that may do anything in it.
pub fn mariadb(folder: &Folder) -> Outcome<(Process, String)> {
    let address = free_address().map_err(|e| e.to_string())?;
    let data = folder.path("mariadb");
    let as_user = user_flag();
    let mut install = Command::new("mariadb-install-db");
    install
        .args(["--no-defaults", "--auth-root-authentication-method=normal"])
        .arg("--skip-test-db")
        .arg(format!("--datadir={}", data.display()))
        .args(as_user);
    let installed =
        install.output().map_err(|e| format!("mariadb-install-db does not start: {e}"))?;
    if !installed.status.success() {
        let words = String::from_utf8_lossy(&installed.stderr).into_owned();
        return Err(format!("mariadb-install-db failed: {words}"));
    }
    let init = folder.path("mariadb-init.sql");
    let statements = "CREATE DATABASE IF NOT EXISTS idgen;\n\
                      CREATE USER IF NOT EXISTS 'bench'@'%' IDENTIFIED BY 'bench';\n\
                      GRANT ALL ON idgen.* TO 'bench'@'%';\n";
    fs::write(&init, statements).map_err(|e| e.to_string())?;
    let mut command = Command::new("mariadbd");
    command
        .args(["--no-defaults", "--bind-address=127.0.0.1"])
        .arg(format!("--port={}", address.port()))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", folder.path("mariadb.sock").display()))
        .arg(format!("--pid-file={}", folder.path("mariadb.pid").display()))
        .arg(format!("--init-file={}", init.display()))
        .args(as_user);
    let mut process = Process::start("mariadbd", &mut command, folder)?;
    process.wait_until(|| accepts(address))?;
    let port = address.port();
    Ok((process, format!("mysql://bench:bench@127.0.0.1:{port}/idgen")))
}

/// MariaDB runs as root only when it is told so by name.
fn user_flag() -> Option<&'static str> {
    let id = Command::new("id").arg("-u").output().ok()?;
    (id.stdout.trim_ascii() == b"0").then_some("--user=root")
}

/// Runs a statement on the database behind `mysql`, as [`mariadb`] gave it.
pub fn sql(mysql: &str, statement: &str) -> Outcome<()> {
    let address = mysql.rsplit_once('@').and_then(|(_, place)| place.split_once('/'));
    let port = address.and_then(|(address, _)| address.rsplit_once(':')).map(|(_, port)| port);
    command(
        Command::new("mariadb")
            .args(["--no-defaults", "--host=127.0.0.1", "--user=bench", "--password=bench"])
            .arg(format!("--port={}", port.unwrap_or_default()))
            .args(["--execute", statement, "idgen"]),
    )
}
