//! Processes of a run: each listens on a free port of 127.0.0.1, keeps its files
//! in the folder of the run, and is stopped by its own pid.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
        resident_bytes(self.pid())
    }
}

/// The resident memory of a process in bytes.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kb * 1024)
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

/// Runs a program to its end; fails with its words.
pub fn command(command: &mut Command) -> Outcome<()> {
    let output = command.stdin(Stdio::null()).output();
    let program = command.get_program().display();
    let output = output.map_err(|e| format!("{program} does not start: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let arguments: Vec<_> = command.get_args().take(2).collect();
    Err(format!("{program} {arguments:?} failed ({}): {words}", output.status))
}
