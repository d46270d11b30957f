//! A mount namespace: a view of the file system of one's own, for processes
//! that shall see another `/etc/hosts`, or a small disk. Needs root.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Lives until it is dropped, or until the test process ends in any other way.
pub struct Namespace {
    holder: Child,
}

impl Namespace {
    /// Makes one and runs the shell script `mounts` in it, with `arguments` as
    /// `$1` and so on.
    ///
    /// # Panics
    /// With one line that tells what is missing, where that is not permitted.
    pub fn with(mounts: &str, arguments: &[&str]) -> Namespace {
        let script = format!("set -e\n{mounts}\necho ready\ncat >/dev/null");
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "sh"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("unshare is installed (util-linux): run `make test-deps`");
        let mut line = String::new();
        let output = holder.stdout.take().expect("piped");
        let _ = BufReader::new(output).read_line(&mut line);
        if line.trim() != "ready" {
            let output = holder.wait_with_output().expect("it ends");
            let why = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            panic!("a mount namespace is needed (root, or CAP_SYS_ADMIN): {why}");
        }
        Namespace { holder }
    }

    /// What turns into a process in it, when put before that process's program.
    pub fn enter(&self) -> Vec<String> {
        let target = format!("--target={}", self.holder.id());
        ["nsenter", "--mount", &target, "--"].map(str::to_owned).into()
    }

    /// The path by which processes outside see `path` of the inside.
    pub fn outside(&self, path: &std::path::Path) -> std::path::PathBuf {
        format!("/proc/{}/root{}", self.holder.id(), path.display()).into()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
