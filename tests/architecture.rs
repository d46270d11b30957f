//! Dependencies point inwards: what each folder of `src` may name.
//!
//! `docs/architecture.md` draws the picture; this test keeps it true.

use std::fs;
use std::path::{Path, PathBuf};

/// For each folder or file of `src`: the modules of this crate that it may
/// name, besides itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("ports", &["domain"]),
    ("service", &["domain", "ports"]),
    ("adapters", &["domain", "ports"]),
    ("front", &["domain", "ports", "service", "thrift_api"]),
    // Builds without everything else.
    ("client", &["thrift_api"]),
    ("thrift_api.rs", &[]),
    ("config", &["domain"]),
    ("cli", &["domain", "ports", "service", "front", "config"]),
    ("telemetry", &["config"]),
    ("lifecycle.rs", &[]),
    ("reload.rs", &["config", "front", "service", "telemetry"]),
    (
        "app.rs",
        &[
            "adapters",
            "cli",
            "config",
            "domain",
            "front",
            "lifecycle",
            "ports",
            "reload",
            "service",
            "telemetry",
        ],
    ),
    ("lib.rs", &[]),
    ("main.rs", &[]),
];

/// Code of tests alone, which stands on the adapters in memory.
const TESTS: &[&str] =
    &["front/http/fake.rs", "front/http/access_tests.rs", "service/access/tests.rs"];

/// What the rules of allocation must not touch: they are values and pure functions.
const IMPURE: &[&str] = &[
    "tokio",
    "std::fs",
    "std::net",
    "std::thread",
    "SystemTime",
    "Instant",
    "async fn",
    "getrandom",
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of src") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}

/// The modules of this crate that `text` names: `crate::name` and the names in
/// `use crate::{…}`. Comments do not count.
fn names(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !word.is_empty() {
            found.push(word);
        } else if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' => word.clear(),
                    ':' if depth == 0 && !word.is_empty() => {
                        found.push(std::mem::take(&mut word));
                    }
                    c if depth == 0 && (c.is_alphanumeric() || c == '_') => word.push(c),
                    _ => {}
                }
            }
        }
    }
    found
}

fn breaches(file: &str, text: &str) -> Vec<String> {
    let part = file.split('/').next().unwrap_or_default();
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == part) else {
        return vec![format!(
            "{file}: no rule for {part}: add one here and in docs/architecture.md"
        )];
    };
    let modules: Vec<&str> = ALLOWED.iter().map(|(name, _)| name.trim_end_matches(".rs")).collect();
    let mut found = Vec::new();
    for name in names(text) {
        let known = modules.contains(&name.as_str());
        let known = known && !(TESTS.contains(&file) && name == "adapters");
        if known && name != part && !allowed.contains(&name.as_str()) {
            found.push(format!("{file} names crate::{name}"));
        }
    }
    if part == "domain" {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let impure = IMPURE.iter().filter(|word| code.contains(**word));
        found.extend(impure.map(|word| format!("{file} uses {word}")));
    }
    found
}

#[test]
fn dependencies_point_inwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all = files(&src);
    assert!(all.len() > 50, "the sources are found");
    let mut found = Vec::new();
    for path in all {
        let file = path.strip_prefix(&src).expect("below src").to_string_lossy().to_string();
        found.extend(breaches(&file, &fs::read_to_string(&path).expect("text")));
    }
    assert!(found.is_empty(), "forbidden imports:\n{}", found.join("\n"));
}

/// Places where the service chooses among what is ready by chance: a simulation
/// could not repeat its run (docs/simulation.md).
fn chances(file: &str, text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let places = code.split("select!").skip(1).filter(|after| {
        let body = after.trim_start().trim_start_matches(['{', '(', '[']);
        !body.trim_start().starts_with("biased;")
    });
    places.map(|_| format!("{file} has a select! without biased")).collect()
}

#[test]
fn nothing_in_the_service_is_left_to_chance() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for folder in ["service", "adapters/memory"] {
        for path in files(&src.join(folder)) {
            let file = path.strip_prefix(&src).expect("below src").to_string_lossy().to_string();
            found.extend(chances(&file, &fs::read_to_string(&path).expect("text")));
        }
    }
    assert!(found.is_empty(), "random choices:\n{}", found.join("\n"));
    let cases = [
        ("tokio::select! {\n    biased;\n    () = a => {}\n}", 0),
        ("tokio::select! {\n    () = a => {}\n    () = b => {}\n}", 1),
        ("// select! { a }\nselect! { biased; a => {} } select! { a => {} }", 1),
    ];
    for (text, expected) in cases {
        assert_eq!(chances("x.rs", text).len(), expected, "{text}");
    }
}

#[test]
fn the_test_can_fail() {
    let cases = [
        ("domain/range.rs", "use crate::ports::RangeStore;", 1),
        ("service/mod.rs", "use crate::{\n    domain::Error,\n    adapters::redis::X,\n};", 1),
        ("service/mod.rs", "fn f() -> crate::front::http::Access {}", 1),
        ("service/mod.rs", "// crate::front is not named here\nuse crate::domain::Error;", 0),
        ("domain/x.rs", "fn now() { tokio::time::sleep(1) }", 1),
        ("cli/mod.rs", "use crate::adapters::mysql::schema;", 1),
        ("news/mod.rs", "", 1),
    ];
    for (file, text, expected) in cases {
        assert_eq!(breaches(file, text).len(), expected, "{file}: {text}");
    }
}
