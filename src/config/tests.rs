//! Precedence, all problems at once, no secret in a report.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::token::{AdminAccess, HOW_TO_OPEN, resolve, token_file};
use super::*;

/// A folder of its own for a test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).unwrap();
        let name = format!("idgen-config-{:016x}", u64::from_be_bytes(random));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn layers(
    flags: &[(&'static str, &str)],
    variables: &[(&str, &str)],
    config: Option<&Path>,
) -> Layers {
    Layers {
        flags: flags.iter().map(|(k, v)| (*k, (*v).to_owned())).collect(),
        environment: variables.iter().map(|(k, v)| (k.into(), v.into())).collect(),
        config: config.map(Path::to_owned),
    }
}

fn problems(layers: Layers) -> Vec<String> {
    let errors = Settings::load(layers).unwrap_err();
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let settings = Settings::load(Layers::default()).unwrap();
    assert_eq!(settings.thrift.addr.unwrap().to_string(), "127.0.0.1:5900");
    assert_eq!(settings.http.addr.unwrap().to_string(), "127.0.0.1:5980");
    assert_eq!(settings.data, Path::new("./idgen-data"));
    assert_eq!(settings.store.mysql, None);
    assert_eq!(settings.node.deadline, Duration::from_millis(1_500));
    assert!(settings.node.id.ends_with(":5900"), "{}", settings.node.id);
    assert_eq!(settings.log.level, LogLevel::Info);
    // The default of every integer is within its own limits.
    for setting in all_settings() {
        if let Kind::Integer { default, low, high } = setting.kind {
            assert!((low..=high).contains(&default), "{}", setting.key);
        }
    }
}

#[test]
fn a_flag_beats_a_variable_beats_the_file() {
    let folder = Folder::new();
    let file = folder.file(
        "idgen.toml",
        "data = \"/file\"\n[thrift]\naddr = \"127.0.0.1:1\"\nmax_connections = 1\n\
         [node]\ndeadline_ms = 11\n[log]\nformat = \"json\"\n",
    );
    let variables = [
        ("IDGEN_CONFIG", file.to_str().unwrap()),
        ("IDGEN_THRIFT", "127.0.0.1:2"),
        ("IDGEN_THRIFT_MAX_CONNECTIONS", "2"),
        ("IDGEN_DATA", ""),
        ("PATH", "/bin"),
    ];
    let settings = Settings::load(layers(
        &[("thrift.addr", "localhost:3"), ("log.level", "debug")],
        &variables,
        None,
    ))
    .unwrap();
    assert_eq!(settings.thrift.addr.unwrap().to_string(), "127.0.0.1:3");
    assert_eq!(settings.thrift.max_connections, 2);
    assert_eq!(settings.node.deadline, Duration::from_millis(11));
    assert_eq!(settings.log.format, LogFormat::Json);
    assert_eq!(settings.log.level, LogLevel::Debug);
    // An empty variable counts as not set.
    assert_eq!(settings.data, Path::new("/file"));
    assert!(settings.node.id.ends_with(":3"), "{}", settings.node.id);
}

#[test]
fn every_problem_is_reported_with_source_value_and_limit() {
    let folder = Folder::new();
    let file = folder.file(
        "idgen.toml",
        "colour = 1\n[thrift]\nadr = \"x\"\nidle_timeout_ms = 5\nmessage_timeout_ms = \"5\"\n\
         [refill]\njobs = 99999\n[strange]\n",
    );
    let found = problems(layers(
        &[("thrift.addr", "nowhere"), ("node.deadline_ms", "1.5")],
        &[
            ("IDGEN_LOG_LEVEL", "loud"),
            ("IDGEN_THRIFTY", "1"),
            ("IDGEN_REDIS_CA_FILE", "/no/such/file"),
            ("IDGEN_NODE_ID", "a b"),
        ],
        Some(&file),
    ));
    let shown = file.display();
    let expected = [
        "variable IDGEN_THRIFTY: there is no such setting; did you mean IDGEN_THRIFT?".to_owned(),
        format!("file {shown}, key colour: there is no such setting"),
        format!("file {shown}, key strange: there is no such setting"),
        format!(
            "file {shown}, key thrift.adr: there is no such setting; did you mean thrift.addr?"
        ),
        "flag --thrift: \"nowhere\" must be an IP address and a port, such as 127.0.0.1:5900 or \
         [::]:5900, or off"
            .to_owned(),
        format!(
            "file {shown}, key thrift.idle_timeout_ms: \"5\" must be an integer from 1000 to \
             86400000"
        ),
        format!(
            "file {shown}, key thrift.message_timeout_ms: a value of the kind string must be an \
             integer from 100 to 3600000"
        ),
        "variable IDGEN_REDIS_CA_FILE: \"/no/such/file\": No such file or directory (os error 2)"
            .to_owned(),
        "variable IDGEN_NODE_ID: \"a b\" must be 1 to 128 visible characters without spaces"
            .to_owned(),
        "flag --node-deadline-ms: \"1.5\" must be an integer from 10 to 60000".to_owned(),
        format!("file {shown}, key refill.jobs: \"99999\" must be an integer from 1 to 1024"),
        "variable IDGEN_LOG_LEVEL: \"loud\" must be one of error, warn, info, debug, trace"
            .to_owned(),
    ];
    for line in &expected {
        assert!(found.contains(line), "missing: {line}\nin: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn no_secret_is_ever_shown() {
    let folder = Folder::new();
    let cases = [
        folder.file("a.toml", "[http]\nadmin_token = 12345678901\n"),
        folder.file("b.toml", "[http]\nadmin_token = \"s3cr3t x\"\n"),
        folder.file("c.toml", "[http]\nadmin_tokn = \"s3cr3tvalue\"\n"),
        folder.file("d.toml", "[http]\nadmin_token = \"s3cr3tvalue\n"),
        folder.file("e.toml", "[http]\nadmin_token = s3cr3tvalue\n"),
        folder.file("f.toml", "[store]\nmysql = \"mysql://u:s3cr3t@host\"\n"),
        folder.file("g.toml", "[redis]\nurl = \"http://u:s3cr3t@host\"\n"),
        folder.file("h.toml", "[store]\nmysql = [\"mysql://u:s3cr3t@host\"]\n"),
    ];
    for file in cases {
        let found = problems(layers(&[], &[], Some(&file)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].contains("s3cr3t"), "{found:?}");
        assert!(!found[0].contains("12345678901"), "{found:?}");
        assert!(found[0].contains(file.to_str().unwrap()), "{found:?}");
    }
    let found = problems(layers(&[], &[("IDGEN_ADMIN_TOKEN", "s3cr3t")], None));
    assert_eq!(
        found,
        ["variable IDGEN_ADMIN_TOKEN: the secret (not shown) must be 8 to 1024 visible ASCII \
             characters without spaces"]
    );
    let good = Settings::load(layers(
        &[("store.mysql", "mysql://u:s3cr3t@h/db"), ("redis.url", "redis://:s3cr3t@h")],
        &[("IDGEN_ADMIN_TOKEN", "s3cr3tvalue")],
        None,
    ))
    .unwrap();
    assert!(!format!("{good:?}").contains("s3cr3t"), "{good:?}");
}

#[test]
fn a_broken_file_names_its_line_and_the_other_layers_are_still_checked() {
    let folder = Folder::new();
    let file = folder.file("idgen.toml", "[thrift]\naddr = \"127.0.0.1:1\"\nnonsense\n");
    let found = problems(layers(&[("refill.jobs", "0")], &[], Some(&file)));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("line 3"), "{found:?}");
    let found = problems(layers(&[], &[], Some(Path::new("/no/such/idgen.toml"))));
    assert!(found[0].contains("/no/such/idgen.toml"), "{found:?}");
}

#[test]
fn a_ca_file_without_its_url_is_a_problem() {
    let folder = Folder::new();
    let file = folder.file("ca.pem", "");
    let found = problems(layers(&[("store.mysql_ca_file", file.to_str().unwrap())], &[], None));
    assert!(found[0].contains("store.mysql_ca_file"), "{found:?}");
}

#[test]
fn an_address_for_no_routes_is_a_problem() {
    let found = problems(layers(&[("compat.addr", "127.0.0.1:1")], &[], None));
    assert!(
        found[0].contains("compat.addr or compat.tls_addr is given, but no routes are"),
        "{found:?}"
    );
    let on = [("compat.addr", "localhost:1"), ("compat.s0", "on")];
    let compat = Settings::load(layers(&on, &[], None)).unwrap().compat;
    assert_eq!(compat.addr, Some("127.0.0.1:1".parse().unwrap()));
    assert!(compat.s0 && compat.tinyid_tokens && !compat.leaf && !compat.tinyid);
    assert!(!compat.s0_open && !Settings::load(Layers::default()).unwrap().compat.is_any());
}

#[test]
fn the_token_comes_from_the_strongest_layer() {
    let folder = Folder::new();
    let token = folder.file("token", "  from-the-file\n");
    let file = folder.file("idgen.toml", &format!("[http]\nadmin_token_file = {token:?}\n"));
    let load = |variables: &[(&str, &str)]| {
        let settings = Settings::load(layers(&[], variables, Some(&file))).unwrap();
        settings.http.admin_token.unwrap().reveal().to_owned()
    };
    assert_eq!(load(&[]), "from-the-file");
    assert_eq!(load(&[("IDGEN_ADMIN_TOKEN", "from-variable")]), "from-variable");
    let both = [
        ("IDGEN_ADMIN_TOKEN", "from-variable"),
        ("IDGEN_ADMIN_TOKEN_FILE", token.to_str().unwrap()),
    ];
    let found = problems(layers(&[], &both, None));
    assert!(found[0].contains("leave one of them out"), "{found:?}");
    std::fs::write(&token, "short").unwrap();
    let found = problems(layers(&[], &[], Some(&file)));
    assert!(found[0].contains("8 to 1024"), "{found:?}");
    assert!(!found[0].contains("short"), "{found:?}");
}

#[test]
fn a_token_is_made_once_and_only_for_the_embedded_store() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let data = folder.0.join("deep/data");
    let data_text = data.to_str().unwrap();
    let settings = Settings::load(layers(&[("data", data_text)], &[], None)).unwrap();
    let AdminAccess::Token { token, file } = resolve(&settings).unwrap() else {
        panic!("closed");
    };
    let file = file.unwrap();
    assert_eq!(file, token_file(&data));
    assert_eq!(token.reveal().len(), 32);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = resolve(&settings).unwrap();
    assert!(matches!(again, AdminAccess::Token { token: t, .. } if t == token));
    std::fs::write(&file, "").unwrap();
    let error = resolve(&settings).unwrap_err().to_string();
    assert!(error.contains("remove the file"), "{error}");

    let mysql = [("data", data_text), ("store.mysql", "mysql://h/db")];
    let settings = Settings::load(layers(&mysql, &[], None)).unwrap();
    assert_eq!(resolve(&settings).unwrap(), AdminAccess::Closed(HOW_TO_OPEN));
}

#[test]
fn keys_flags_and_variables_are_distinct_and_follow_the_rule() {
    let settings = all_settings();
    let keys: HashSet<_> = settings.iter().map(|s| s.key).collect();
    let flags: HashSet<_> = settings.iter().map(|s| s.flag).collect();
    let variables: HashSet<_> = settings.iter().map(|s| s.env).collect();
    assert_eq!(keys.len(), settings.len());
    assert_eq!(flags.len(), settings.len());
    assert_eq!(variables.len(), settings.len());
    for setting in settings {
        let flag = setting.flag.unwrap_or("admin-token");
        let variable = format!("IDGEN_{}", flag.to_uppercase().replace('-', "_"));
        assert_eq!(setting.env, variable, "{}", setting.key);
    }
}

#[test]
fn the_documentation_lists_exactly_these_settings() {
    let text = include_str!("../../docs/configuration.md");
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("| `")).collect();
    let expected: Vec<String> = all_settings().iter().map(|s| s.documentation_row()).collect();
    assert_eq!(rows, expected, "docs/configuration.md should hold:\n{}", expected.join("\n"));
}

#[test]
fn tls_settings_by_cases() {
    let folder = Folder::new();
    let file = folder.file("any.pem", "");
    let file = file.to_str().unwrap();
    let files = [("tls.cert_file", file), ("tls.key_file", file)];
    let ca = ("tls.client_ca_file", file);
    let tls = ("thrift.tls_addr", "127.0.0.1:5901");
    let asks = ("thrift.tls_client_auth", "required");
    for (flags, expected) in [
        (vec![tls], &["need tls.cert_file", "need tls.key_file"][..]),
        (vec![files[0], files[1]], &["nothing speaks TLS", "nothing speaks TLS"]),
        (vec![tls, files[0], files[1], ca], &["no client is asked"]),
        (vec![tls, files[0], files[1], asks], &["needs tls.client_ca_file"]),
        (vec![asks, ca], &["needs thrift.tls_addr"]),
        (vec![("http.addr", "off")], &["http.addr and http.tls_addr are both off"]),
        (vec![("thrift.addr", "off")], &["thrift.addr and thrift.tls_addr are both off"]),
    ] {
        let found = problems(layers(&flags, &[], None));
        assert_eq!(found.len(), expected.len(), "{flags:?}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{flags:?}: {found}");
        }
    }
    let flags = [tls, files[0], files[1], ca, asks, ("thrift.addr", "off")];
    let settings = Settings::load(layers(&flags, &[("IDGEN_CA_FILE", "/of/a/client")], None));
    let settings = settings.unwrap();
    assert_eq!(settings.thrift.addr, None);
    assert!(settings.node.id.ends_with(":5901"), "{}", settings.node.id);
    assert_eq!(settings.thrift.tls_client_auth, ClientAuth::Required);
    assert_eq!(settings.http.tls_client_auth, ClientAuth::Off);
    assert!(settings.tls.is_some());
    assert_eq!(Settings::load(Layers::default()).unwrap().tls, None);
}
