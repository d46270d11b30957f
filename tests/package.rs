//! The Debian package: what is in it, and that its program serves.

mod support;

use std::path::Path;
use std::process::Command;

use support::TempFolder;

/// Runs a tool and returns what it says.
fn run(tool: &mut Command) -> String {
    let output = tool.output().unwrap_or_else(|e| panic!("{tool:?}: {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_package_has_all_that_its_unit_names_and_its_program_runs() {
    let folder = TempFolder::new("package");
    let program = env!("CARGO_BIN_EXE_idgen");
    let made = run(Command::new("scripts/build-deb.sh")
        .arg(program)
        .arg(folder.path())
        .env("IDGEN_DEB_COMPRESSION", "none"));
    let package = Path::new(made.trim());
    let field = |name: &str| run(Command::new("dpkg-deb").arg("-f").arg(package).arg(name));
    assert_eq!(field("Version").trim(), env!("CARGO_PKG_VERSION"));
    assert!(field("Depends").contains("libc6 (>="), "{}", field("Depends"));

    let root = folder.path().join("root");
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    let unit = std::fs::read_to_string(root.join("lib/systemd/system/idgen.service")).unwrap();
    assert!(!unit.contains("/usr/local"), "{unit}");
    let named: Vec<&str> = unit
        .split(['=', ':', ' ', '\n'])
        .filter_map(|word| word.strip_prefix("//").or(Some(word)))
        .filter(|word| word.starts_with("/usr/") || word.starts_with("/etc/"))
        .collect();
    assert!(named.len() >= 3, "{named:?}");
    for path in named {
        assert!(root.join(&path[1..]).exists(), "{path} is not in the package");
    }
    let settings = root.join("etc/idgen/idgen.toml");
    let mode = std::os::unix::fs::MetadataExt::mode(&settings.metadata().unwrap());
    assert_eq!(mode & 0o777, 0o600, "it is for secrets");

    let program = root.join("usr/bin/idgen");
    assert_eq!(
        run(Command::new(program).arg("--version")),
        format!("idgen {} (commit unknown)\n", env!("CARGO_PKG_VERSION"))
    );
}
