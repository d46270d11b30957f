//! The processes that are measured: each listens on a free port of 127.0.0.1,
//! keeps its files in the folder of this run, and is stopped by its own pid.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use idgen::cli::load::now;

/// Why something cannot be measured. The others go on without it.
pub type Outcome<T> = Result<T, String>;

/// How long a process may take to be there.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take to stop when it is told to, before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How often to look whether something is there by now.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C and SIGTERM end the run in order, so that nothing stays behind.
pub fn heed_interrupts() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminate) = signal(SignalKind::terminate()) else {
                return;
            };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => (),
                _ = terminate.recv() => (),
            }
            eprintln!("stopping");
            INTERRUPTED.store(true, Ordering::SeqCst);
        });
    });
    Ok(())
}

/// Fails once the user wants the run to end.
pub fn uninterrupted() -> Outcome<()> {
    match INTERRUPTED.load(Ordering::SeqCst) {
        true => Err("interrupted".to_owned()),
        false => Ok(()),
    }
}

/// The folder of this run; removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn create() -> io::Result<Folder> {
        let name = format!("idgen-bench-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays behind: {error}", self.0.display());
        }
    }
}

/// An address that nobody listens on right now.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

/// A child that is stopped when it is dropped.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; its output goes to a file of the folder.
    pub fn start(name: &str, command: &mut Command, folder: &Folder) -> Outcome<Process> {
        let log = folder.path(&format!("{name}.log"));
        let failed = |error: io::Error| format!("{name} does not start: {error}");
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(failed)?;
        let child = command
            // A Ctrl-C is for this program, which then stops its children.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .spawn()
            .map_err(failed)?;
        let name = name.to_owned();
        Ok(Process { name, child, log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `there` says so; fails when the process ends before, or
    /// takes too long.
    pub fn wait_until(&mut self, mut there: impl FnMut() -> bool) -> Outcome<()> {
        let deadline = now() + START_LIMIT;
        while !there() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} ended ({status}): {}", self.name, self.last_words()));
            }
            uninterrupted()?;
            if now() >= deadline {
                return Err(format!("{} is not there after {START_LIMIT:?}", self.name));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join(" / ")
    }

    /// Stops it by SIGTERM and tells how long that took; kills it when it does
    /// not end in time.
    pub fn stop(&mut self) -> Outcome<Duration> {
        if let Ok(Some(_)) = self.child.try_wait() {
            return Ok(Duration::ZERO);
        }
        let begun = now();
        let pid = self.pid().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        while told.is_ok() && now() < begun + STOP_LIMIT {
            if let Ok(Some(_)) = self.child.try_wait() {
                return Ok(now() - begun);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        Err(format!("{} had to be killed", self.name))
    }

    /// Its resident memory in bytes.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
        let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kb * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("{error}");
        }
    }
}

/// Whether something accepts connections there.
pub fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

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

/// Where a node keeps what, and what it talks to.
pub struct NodeSetup {
    pub name: &'static str,
    pub mysql: Option<String>,
    pub redis: Option<SocketAddr>,
}

/// A node: `idgen serve`, with the admin token of this run.
pub struct IdNode {
    pub process: Process,
    pub thrift: SocketAddr,
    http: SocketAddr,
}

/// Not a secret: it guards a node on the loopback for the minutes of a run.
const TOKEN: &str = "token-of-this-benchmark";

/// The program under test, built with the same profile as this benchmark.
fn idgen() -> Command {
    Command::new(Path::new(env!("CARGO_BIN_EXE_idgen")))
}

impl IdNode {
    /// Starts a node; see [`ready`](Self::ready). Returns when it was started.
    pub fn start(setup: &NodeSetup, folder: &Folder) -> Outcome<(IdNode, Instant)> {
        Self::start_with(setup, &[], folder)
    }

    /// The same, with further arguments.
    pub fn start_with(
        setup: &NodeSetup,
        arguments: &[&str],
        folder: &Folder,
    ) -> Outcome<(IdNode, Instant)> {
        let address = || free_address().map_err(|e| e.to_string());
        let (thrift, http) = (address()?, address()?);
        let data = folder.path(setup.name);
        let mut command = idgen();
        command
            .arg("serve")
            .args(["--thrift", &thrift.to_string()])
            .args(["--http", &http.to_string()])
            .arg("--data")
            .arg(&data)
            .args(arguments)
            .env("IDGEN_ADMIN_TOKEN", TOKEN);
        if let Some(url) = &setup.mysql {
            command.args(["--mysql", url]);
        }
        if let Some(redis) = setup.redis {
            command.args(["--redis", &format!("redis://{redis}")]);
        }
        let begun = now();
        let process = Process::start(setup.name, &mut command, folder)?;
        let node = IdNode { process, thrift, http };
        Ok((node, begun))
    }

    /// Waits until `/readyz` says so.
    pub fn ready(&mut self) -> Outcome<()> {
        let url = format!("http://{}/readyz", self.http);
        self.process.wait_until(|| ureq::get(&url).call().is_ok_and(|r| r.status() == 200))
    }

    /// The sum of a metric's values, 0 where it has none.
    pub fn metric(&self, name: &str) -> Outcome<f64> {
        let url = format!("http://{}/metrics", self.http);
        let answer = ureq::get(&url).call().map_err(|e| e.to_string())?;
        let text = answer.into_body().read_to_string().map_err(|e| e.to_string())?;
        let values = text.lines().filter(|line| line.starts_with(name));
        Ok(values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Adds a type, as an operator does.
    pub fn add_type(&self, name: &str, flags: &[&str]) -> Outcome<()> {
        let url = format!("http://{}", self.http);
        command(
            idgen()
                .args(["type", "add", name])
                .args(flags)
                .env("IDGEN_URL", url)
                .env("IDGEN_ADMIN_TOKEN", TOKEN),
        )
    }
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

/// Puts the schema into an empty database.
pub fn apply_schema(mysql: &str) -> Outcome<()> {
    command(idgen().args(["schema", "apply", "--mysql", mysql]))
}

fn command(command: &mut Command) -> Outcome<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("idgen does not start: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let arguments: Vec<_> = command.get_args().take(2).collect();
    Err(format!("idgen {arguments:?} failed ({}): {words}", output.status))
}
