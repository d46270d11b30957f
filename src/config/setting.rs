//! What is known about one setting.

/// One setting: where it can be given, what it may be, what it means.
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file, such as `thrift.addr`; a key without a dot stands
    /// above the first section.
    pub key: &'static str,
    /// Its flag without the dashes; `None` for a secret, because the flags of a
    /// process can be read by every user of the machine.
    pub flag: Option<&'static str>,
    /// Its variable.
    pub env: &'static str,
    /// What it may be, and what it is when it is not given.
    pub kind: Kind,
    /// What it means, in one sentence for a person.
    pub meaning: &'static str,
}

/// What a setting may be.
#[derive(Debug)]
pub enum Kind {
    /// A whole number within limits that are both allowed.
    Integer {
        /// When it is not given.
        default: u64,
        /// The lowest.
        low: u64,
        /// The highest.
        high: u64,
    },
    /// An IP address and a port to listen on, or `off`.
    Address {
        /// When it is not given.
        default: &'static str,
    },
    /// A folder, made where it is missing.
    Folder {
        /// When it is not given.
        default: &'static str,
    },
    /// A file that must be there.
    File,
    /// A URL that begins with one of these. May hold a password: shown redacted.
    Url {
        /// The legal beginnings.
        schemes: &'static [&'static str],
    },
    /// One of some words.
    Choice {
        /// When it is not given.
        default: &'static str,
        /// The words.
        choices: &'static [&'static str],
    },
    /// Visible characters without spaces.
    Word {
        /// What it is when it is not given, for a person.
        default: &'static str,
        /// Most characters.
        max: usize,
    },
    /// Visible ASCII characters without spaces, never shown.
    Secret {
        /// Fewest characters.
        min: usize,
        /// Most characters.
        max: usize,
    },
}

impl Setting {
    /// Whether its value must never be shown.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret { .. })
    }

    /// What it may be, for a person: the end of "must be …".
    pub fn limit(&self) -> String {
        match &self.kind {
            Kind::Integer { low, high, .. } => format!("an integer from {low} to {high}"),
            Kind::Address { .. } => {
                "an IP address and a port, such as 127.0.0.1:5900 or [::]:5900, or off".to_owned()
            }
            Kind::Folder { .. } => "the path of a folder".to_owned(),
            Kind::File => "the path of a readable file".to_owned(),
            Kind::Url { schemes } => format!("a URL that begins with {}", schemes.join(" or ")),
            Kind::Choice { choices, .. } => format!("one of {}", choices.join(", ")),
            Kind::Word { max, .. } => format!("1 to {max} visible characters without spaces"),
            Kind::Secret { min, max } => {
                format!("{min} to {max} visible ASCII characters without spaces")
            }
        }
    }

    /// What it is when it is not given, for a person.
    pub fn default_text(&self) -> String {
        match &self.kind {
            Kind::Integer { default, .. } => default.to_string(),
            Kind::Address { default }
            | Kind::Folder { default }
            | Kind::Choice { default, .. }
            | Kind::Word { default, .. } => (*default).to_owned(),
            Kind::File | Kind::Url { .. } | Kind::Secret { .. } => "not set".to_owned(),
        }
    }

    /// Its row in the table of `docs/configuration.md`.
    pub fn documentation_row(&self) -> String {
        let flag = match self.flag {
            Some(flag) => format!("`--{flag}`"),
            None => "none".to_owned(),
        };
        format!(
            "| `{}` | {flag} | `{}` | {} | {} | {} |",
            self.key,
            self.env,
            self.default_text(),
            self.limit(),
            self.meaning
        )
    }
}
