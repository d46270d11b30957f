//! Merges the three layers and collects what is wrong with them.
//!
//! A section asks for its settings one by one; a bad value is noted, the
//! default is answered, and reading goes on, so that one run shows every
//! problem. [`Reader::finish`] then refuses the whole.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::problem::{ConfigErrors, Problem, Source, suggestion};
use super::setting::{Kind, Setting};
use super::{CLIENT_TLS_VARIABLES, CONFIG_VARIABLE, Secret, URL_VARIABLE};

/// What a configuration is read from.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// Keys and values from flags.
    pub flags: Vec<(&'static str, String)>,
    /// The environment; only `IDGEN_*` is looked at. An empty variable counts
    /// as not set.
    pub environment: Vec<(OsString, OsString)>,
    /// The file from `--config`; else `IDGEN_CONFIG` names it.
    pub config: Option<PathBuf>,
}

fn parse_address(text: &str) -> Option<SocketAddr> {
    // The one host name that everybody tries, and that means the same everywhere.
    match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse().ok(),
        None => text.parse().ok(),
    }
}

/// Reads settings and remembers problems.
pub(super) struct Reader {
    flags: BTreeMap<&'static str, String>,
    variables: BTreeMap<String, String>,
    file: BTreeMap<String, toml::Value>,
    path: PathBuf,
    problems: Vec<Problem>,
}

impl Reader {
    /// Reads the layers; what is in them and not in `known` is a problem.
    pub(super) fn new(layers: Layers, known: &[&'static Setting]) -> Self {
        let mut reader = Reader {
            flags: layers.flags.into_iter().collect(),
            variables: BTreeMap::new(),
            file: BTreeMap::new(),
            path: PathBuf::new(),
            problems: Vec::new(),
        };
        reader.read_variables(layers.environment, known);
        let path =
            layers.config.or_else(|| reader.variables.get(CONFIG_VARIABLE).map(PathBuf::from));
        if let Some(path) = path {
            reader.path = path;
            reader.read_file(known);
        }
        reader
    }

    fn read_variables(&mut self, environment: Vec<(OsString, OsString)>, known: &[&Setting]) {
        let names = || {
            let others = [CONFIG_VARIABLE, URL_VARIABLE].into_iter().chain(CLIENT_TLS_VARIABLES);
            known.iter().map(|s| s.env).chain(others)
        };
        let mut environment = environment;
        environment.sort();
        for (name, value) in environment {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with("IDGEN_") {
                continue;
            }
            if !names().any(|known| known == name) {
                let hint = suggestion(&name, names());
                self.problems.push(Problem::other(format!(
                    "variable {name}: there is no such setting{hint}"
                )));
                continue;
            }
            match value.into_string() {
                Ok(text) if text.is_empty() => {}
                Ok(text) => {
                    self.variables.insert(name, text);
                }
                Err(_) => self
                    .problems
                    .push(Problem::other(format!("variable {name}: the value is not UTF-8"))),
            }
        }
    }

    fn read_file(&mut self, known: &[&Setting]) {
        let shown = self.path.display().to_string();
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) => {
                self.problems.push(Problem::other(format!("file {shown}: {error}")));
                return;
            }
        };
        let table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => {
                // Not the error's own text: it quotes the line, which may hold
                // a secret.
                let line = error
                    .span()
                    .and_then(|span| text.get(..span.start))
                    .map_or(1, |before| before.matches('\n').count() + 1);
                self.problems.push(Problem::other(format!(
                    "file {shown}, line {line}: it is not TOML: {}",
                    error.message()
                )));
                return;
            }
        };
        for (name, value) in table {
            match value {
                toml::Value::Table(section) if section.is_empty() => {
                    if !known.iter().any(|s| s.key.split('.').next() == Some(name.as_str())) {
                        self.take_key(name, toml::Value::Boolean(true), known);
                    }
                }
                toml::Value::Table(section) => {
                    for (key, value) in section {
                        self.take_key(format!("{name}.{key}"), value, known);
                    }
                }
                value => self.take_key(name, value, known),
            }
        }
    }

    fn take_key(&mut self, key: String, value: toml::Value, known: &[&Setting]) {
        if known.iter().any(|s| s.key == key) {
            self.file.insert(key, value);
        } else {
            let hint = suggestion(&key, known.iter().map(|s| s.key));
            self.problems.push(Problem::other(format!(
                "file {}, key {key}: there is no such setting{hint}",
                self.path.display()
            )));
        }
    }

    /// The value of `setting` and where it came from, if it is given.
    fn find(&mut self, setting: &Setting) -> Option<(Source, String)> {
        if let (Some(flag), Some(value)) = (setting.flag, self.flags.get(setting.key)) {
            return Some((Source::Flag(flag), value.clone()));
        }
        if let Some(value) = self.variables.get(setting.env) {
            return Some((Source::Variable(setting.env.to_owned()), value.clone()));
        }
        let value = self.file.get(setting.key)?;
        let source = Source::File(self.path.clone(), setting.key.to_owned());
        match (value, &setting.kind) {
            (toml::Value::Integer(number), Kind::Integer { .. }) => {
                Some((source, number.to_string()))
            }
            (toml::Value::String(text), kind) if !matches!(kind, Kind::Integer { .. }) => {
                Some((source, text.clone()))
            }
            (value, _) => {
                // The value is named by its kind only: of a secret in the
                // wrong form, too, nothing is shown.
                self.problems.push(Problem::other(format!(
                    "{source}: a value of the kind {} must be {}",
                    value.type_str(),
                    setting.limit()
                )));
                None
            }
        }
    }

    /// `parse` of the value, or `None` (and a problem, where it is wrong).
    fn parsed<T>(&mut self, setting: &Setting, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let (source, text) = self.find(setting)?;
        let value = parse(&text);
        if value.is_none() {
            self.problems.push(Problem::bad_value(setting, &source, &text));
        }
        value
    }

    /// A [`Kind::Integer`].
    pub(super) fn integer(&mut self, setting: &Setting) -> u64 {
        let Kind::Integer { default, low, high } = setting.kind else {
            unreachable!("{} is no integer", setting.key)
        };
        let legal = |text: &str| text.parse().ok().filter(|n: &u64| (low..=high).contains(n));
        self.parsed(setting, legal).unwrap_or(default)
    }

    /// A [`Kind::Integer`] of milliseconds.
    pub(super) fn milliseconds(&mut self, setting: &Setting) -> std::time::Duration {
        std::time::Duration::from_millis(self.integer(setting))
    }

    /// A [`Kind::Address`]; `None` for off.
    pub(super) fn address(&mut self, setting: &Setting) -> Option<SocketAddr> {
        let Kind::Address { default } = setting.kind else {
            unreachable!("{} is no address", setting.key)
        };
        let parse = |text: &str| match text {
            "off" => Some(None),
            text => parse_address(text).map(Some),
        };
        self.parsed(setting, parse)
            .unwrap_or_else(|| parse(default).expect("a default is an address or off"))
    }

    /// A [`Kind::Folder`].
    pub(super) fn folder(&mut self, setting: &Setting) -> PathBuf {
        let Kind::Folder { default } = setting.kind else {
            unreachable!("{} is no folder", setting.key)
        };
        let legal = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        self.parsed(setting, legal).unwrap_or_else(|| PathBuf::from(default))
    }

    /// The path and the content of a [`Kind::File`].
    pub(super) fn file(&mut self, setting: &Setting) -> Option<(PathBuf, String)> {
        let (source, text) = self.find(setting)?;
        match std::fs::read_to_string(&text) {
            Ok(content) => Some((PathBuf::from(text), content)),
            Err(error) => {
                self.problems.push(Problem::because(setting, &source, &text, error));
                None
            }
        }
    }

    /// A [`Kind::Url`] that `check` has nothing against; `check` must not quote it.
    pub(super) fn url(
        &mut self,
        setting: &Setting,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<String> {
        let Kind::Url { schemes } = setting.kind else { unreachable!("{} is no URL", setting.key) };
        let (source, text) = self.find(setting)?;
        if !schemes.iter().any(|scheme| text.starts_with(scheme)) {
            self.problems.push(Problem::bad_value(setting, &source, &text));
            return None;
        }
        match check(&text) {
            Ok(()) => Some(text),
            Err(reason) => {
                self.problems.push(Problem::because(setting, &source, &text, reason));
                None
            }
        }
    }

    /// A [`Kind::Choice`], as its place in the list of choices.
    pub(super) fn choice(&mut self, setting: &Setting) -> &'static str {
        let Kind::Choice { default, choices } = setting.kind else {
            unreachable!("{} is no choice", setting.key)
        };
        let find = |text: &str| choices.iter().copied().find(|c| *c == text);
        self.parsed(setting, find).unwrap_or(default)
    }

    /// A [`Kind::Word`], if it is given.
    pub(super) fn word(&mut self, setting: &Setting) -> Option<String> {
        let Kind::Word { max, .. } = setting.kind else {
            unreachable!("{} is no word", setting.key)
        };
        self.parsed(setting, |text| {
            let length = text.chars().count();
            let legal = (1..=max).contains(&length)
                && !text.chars().any(|c| c.is_control() || c.is_whitespace());
            legal.then(|| text.to_owned())
        })
    }

    /// A [`Kind::Secret`], if it is given.
    pub(super) fn secret(&mut self, setting: &Setting) -> Option<Secret> {
        self.parsed(setting, |text| Secret::new(text).ok())
    }

    /// How strong the layer is that `setting` comes from: 3 for a flag, 2 for
    /// a variable, 1 for the file, 0 where it is not given.
    pub(super) fn strength(&self, setting: &Setting) -> u8 {
        if setting.flag.is_some() && self.flags.contains_key(setting.key) {
            3
        } else if self.variables.contains_key(setting.env) {
            2
        } else {
            u8::from(self.file.contains_key(setting.key))
        }
    }

    /// Notes a problem that no single value shows.
    pub(super) fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(Problem::other(text));
    }

    /// The verdict.
    pub(super) fn finish(self) -> Result<(), ConfigErrors> {
        if self.problems.is_empty() { Ok(()) } else { Err(ConfigErrors(self.problems)) }
    }
}
