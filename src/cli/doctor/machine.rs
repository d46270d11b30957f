//! Checks of this machine.

use super::{Check, Verdict};
use crate::config::Settings;

const PART: &str = "machine";

/// Files of the node beside its connections: logs, the store, Redis, MySQL, HTTP.
const SPARE_FILES: u64 = 1_024;

pub(super) fn checks(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Ok((_, hard)) = rlimit::getrlimit(rlimit::Resource::NOFILE) {
        checks.push(open_files(hard, settings.thrift.max_connections as u64));
    }
    if settings.store.mysql.is_none() {
        checks.push(data(settings));
    }
    checks
}

fn open_files(limit: u64, connections: u64) -> Check {
    let wanted = connections + SPARE_FILES;
    let found = format!("{limit} allowed, {wanted} wanted for {connections} connections");
    Check::ok(PART, "open files", found).unless(
        limit >= wanted,
        Verdict::Warn,
        "raise the limit of open files (LimitNOFILE= of the systemd unit, or ulimit -n), or lower \
         thrift.max_connections",
    )
}

/// The folder of the embedded store.
fn data(settings: &Settings) -> Check {
    use std::os::unix::fs::PermissionsExt;
    let path = &settings.data;
    let check = |found: String| Check::ok(PART, "data folder", found);
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_dir() => check(format!("{} is no folder", path.display()))
            .with(Verdict::Fail, "name another folder with --data"),
        Ok(meta) => {
            let open = meta.permissions().mode() & 0o022 != 0;
            check(path.display().to_string()).unless(
                !open,
                Verdict::Warn,
                "other users can write to it and so change which ids are free: chmod go-w",
            )
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => check(format!(
            "{} is not there yet; serve makes it",
            path.display()
        )),
        Err(error) => check(format!("{}: {error}", path.display())).with(
            Verdict::Fail,
            "run this as the user of the service, or name another folder with --data",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_by_cases() {
        assert_eq!(open_files(65_536, 10_000).verdict, Verdict::Ok);
        assert_eq!(open_files(1_024, 10_000).verdict, Verdict::Warn);
    }
}
