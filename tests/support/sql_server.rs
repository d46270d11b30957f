//! What the private MariaDB and MySQL servers of the tests have in common.

use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idgen::adapters::mysql::sql::ACCOUNT;
use idgen::adapters::mysql::{MysqlOptions, schema};

use super::tls::Certificates;
use super::{TempFolder, free_port, send_signal};
use tokio::time::Instant;

/// A running (or stopped) server on 127.0.0.1, whose `root` has no password.
/// Stopped and removed with its folder on drop, or when the test process ends
/// in any other way.
pub struct SqlServer {
    folder: TempFolder,
    port: u16,
    program: PathBuf,
    arguments: Vec<String>,
    preload: Option<PathBuf>,
    certificates: Certificates,
    child: Option<Child>,
    watchdog: Option<Child>,
}

impl SqlServer {
    /// Starts `program` on the data that `install` has put into the folder
    /// `data`, with the library `preload` put before its own.
    pub fn start(
        label: &str,
        program: PathBuf,
        arguments: &[String],
        preload: Option<PathBuf>,
        install: impl FnOnce(&Path),
    ) -> Self {
        let folder = TempFolder::new(label);
        install(&folder.path().join("data"));
        let mut server = SqlServer {
            certificates: Certificates::create(folder.path()),
            folder,
            port: free_port(),
            program,
            arguments: arguments.to_vec(),
            preload,
            child: None,
            watchdog: None,
        };
        server.start_again();
        server
    }

    /// The port that it listens on, the same after every start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process, while it runs.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// The authority that signed the server's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.certificates.ca_cert.clone()
    }

    /// `mysql://user:password@127.0.0.1:port/database`; names must need no escapes.
    pub fn url(&self, user: &str, password: &str, database: &str) -> String {
        let port = self.port;
        match password {
            "" => format!("mysql://{user}@127.0.0.1:{port}/{database}"),
            _ => format!("mysql://{user}:{password}@127.0.0.1:{port}/{database}"),
        }
    }

    /// Runs statements as `root` with the command-line client, which is what a
    /// DBA does. Never reads a configuration file.
    pub fn client(&self, database: &str, sql: &str, options: &[&str]) -> Output {
        let mut child = Command::new("mariadb")
            .arg("--no-defaults")
            .args(["--host=127.0.0.1", "--user=root", "--protocol=tcp"])
            .arg("--default-character-set=utf8mb4")
            .arg(format!("--port={}", self.port))
            .args(options)
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the mariadb client is installed: run `make test-deps`");
        let mut stdin = child.stdin.take().expect("piped");
        std::io::Write::write_all(&mut stdin, sql.as_bytes()).expect("the client reads");
        drop(stdin);
        child.wait_with_output().expect("the client ends")
    }

    /// As [`client`](Self::client), and panics if a statement fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.client(database, sql, &["--batch", "--skip-column-names"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}\n{error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Sends a signal, such as `"STOP"`, to the server alone.
    pub fn signal(&self, signal: &str) {
        send_signal(self.pid(), signal);
    }

    /// Stops it as an operator does: it writes what it has and ends.
    pub fn stop(&mut self) {
        self.signal("TERM");
        self.reap();
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().expect("the server can be killed");
            self.reap();
        }
    }

    fn reap(&mut self) {
        // First the watchdog, so that it cannot kill another process that gets
        // the same number.
        if let Some(mut watchdog) = self.watchdog.take() {
            watchdog.kill().expect("the watchdog can be killed");
            watchdog.wait().expect("the watchdog ends");
        }
        if let Some(mut child) = self.child.take() {
            child.wait().expect("the server ends");
        }
    }

    /// Starts it on the same port and data, and waits until it answers.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "the server runs already");
        let path = self.folder.path();
        let log = path.join("server.log");
        let open = || {
            let mut options = std::fs::File::options();
            options.create(true).append(true).open(&log).expect("a log")
        };
        let child = Command::new(&self.program)
            .arg("--no-defaults")
            .args(&self.arguments)
            .arg(format!("--datadir={}", path.join("data").display()))
            .arg(format!("--tmpdir={}", path.display()))
            .arg(format!("--socket={}", path.join("s.sock").display()))
            .arg(format!("--pid-file={}", path.join("server.pid").display()))
            .arg(format!("--port={}", self.port))
            .arg(format!("--ssl-ca={}", self.certificates.ca_cert.display()))
            .arg(format!("--ssl-cert={}", self.certificates.server_cert.display()))
            .arg(format!("--ssl-key={}", self.certificates.server_key.display()))
            .args(["--bind-address=127.0.0.1", "--user=root"])
            .args(["--skip-log-bin", "--innodb-buffer-pool-size=32M"])
            .envs(self.preload.iter().map(|library| ("LD_PRELOAD", library)))
            .stdin(Stdio::null())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", self.program.display()));
        self.watchdog = Some(watchdog(child.id(), path));
        self.child = Some(child);
        let bound = Instant::now() + Duration::from_secs(60);
        while !greets(self.port) {
            let exited = self.child.as_mut().and_then(|c| c.try_wait().ok().flatten());
            assert!(
                exited.is_none() && Instant::now() < bound,
                "the server does not answer; its log:\n{}",
                std::fs::read_to_string(&log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for SqlServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends the server when the test process is gone, however it went: a server
/// that tests share lives in a static, which is never dropped. The shell waits
/// for the end of a pipe whose other end only this process holds.
fn watchdog(pid: u32, folder: &Path) -> Child {
    Command::new("sh")
        .args(["-c", r#"cat >/dev/null; kill -9 "$1"; rm -rf "$2""#, "watchdog"])
        .arg(pid.to_string())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}

/// Whether a server sends its greeting (protocol version 10).
fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let mut head = [0; 5];
    let limit = Some(Duration::from_secs(1));
    stream.set_read_timeout(limit).is_ok() && stream.read_exact(&mut head).is_ok() && head[4] == 10
}

/// A database of one test, with the schema and the account of the service.
pub struct TestDb {
    /// Its name, which is the account's too.
    pub name: String,
    /// For the administrator.
    pub admin: MysqlOptions,
    /// For the service: the account of `procedures/account.sql`.
    pub app: MysqlOptions,
}

impl TestDb {
    /// The password of the account of the service.
    pub const PASSWORD: &'static str = "hush-hush";

    /// An empty database, and no account.
    pub fn empty(server: &SqlServer) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("idgen_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        server.sql("mysql", &format!("CREATE DATABASE {name}"));
        TestDb {
            admin: MysqlOptions::new(server.url("root", "", &name)),
            app: MysqlOptions::new(server.url(&name, Self::PASSWORD, &name)),
            name,
        }
    }

    /// A database with the schema and the account.
    pub async fn new(server: &SqlServer) -> Self {
        let db = Self::empty(server);
        schema::apply(&db.admin).await.expect("a schema");
        db.create_account(server);
        db
    }

    /// Makes the account as `procedures/account.sql` does.
    pub fn create_account(&self, server: &SqlServer) {
        let script = ACCOUNT.replace("idgen_app", &self.name).replace("change-me", Self::PASSWORD);
        server.sql(&self.name, &script);
    }
}
