//! The token of the admin API: its rule, and where it comes from.
//!
//! A token that was given is used. Else, with the embedded store, a random one
//! is made in `<data>/admin-token`, which only the user of the service can
//! read, and kept for the next start. With MySQL there is no such file to
//! share between nodes: the admin API stays closed and says how to open it.

use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Settings;

/// A secret text: 8 to 1 024 visible ASCII characters. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A text is no legal secret. Says the rule, never the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must have {} to {} visible ASCII characters without spaces",
    Secret::MIN_LEN,
    Secret::MAX_LEN
)]
pub struct NotASecret;

impl Secret {
    /// Fewest characters: fewer can be guessed over the network.
    pub const MIN_LEN: usize = 8;
    /// Most characters: it must fit in a header.
    pub const MAX_LEN: usize = 1_024;

    /// `text` as a secret.
    pub fn new(text: &str) -> Result<Self, NotASecret> {
        let legal = (Self::MIN_LEN..=Self::MAX_LEN).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic());
        if legal { Ok(Secret(text.to_owned())) } else { Err(NotASecret) }
    }

    /// The text, to be compared or sent, never to be shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// What a request to the admin API must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAccess {
    /// This token.
    Token {
        /// The token.
        token: Secret,
        /// The file that it was read from or made in, where it was not given.
        file: Option<PathBuf>,
    },
    /// There is no token, so the admin API is closed; the text says how to open it.
    Closed(&'static str),
}

/// What a closed admin API answers.
pub const HOW_TO_OPEN: &str = "no admin token is set: set \
     IDGEN_ADMIN_TOKEN (or http.admin_token_file) to the same secret of at least 8 characters \
     on every node";

/// The file of the token that is made at the first start.
pub fn token_file(data: &Path) -> PathBuf {
    data.join("admin-token")
}

/// The access rule of a node with `settings`. Makes the token file where it is
/// due and missing. The error names the file and what to do.
pub fn resolve(settings: &Settings) -> io::Result<AdminAccess> {
    if let Some(token) = settings.http.admin_token.clone() {
        return Ok(AdminAccess::Token { token, file: None });
    }
    if settings.store.mysql.is_some() {
        return Ok(AdminAccess::Closed(HOW_TO_OPEN));
    }
    let file = token_file(&settings.data);
    let token = match read(&file)? {
        Some(token) => token,
        None => create(&settings.data, &file)?,
    };
    Ok(AdminAccess::Token { token, file: Some(file) })
}

/// The token in `file`; `None` where there is no such file.
pub fn read(file: &Path) -> io::Result<Option<Secret>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(file, error)),
    };
    match Secret::new(text.trim()) {
        Ok(token) => Ok(Some(token)),
        Err(error) => Err(io::Error::other(format!(
            "the token in {} {error}; remove the file to have a new one made",
            file.display()
        ))),
    }
}

fn create(data: &Path, file: &Path) -> io::Result<Secret> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random)
        .map_err(|error| io::Error::other(format!("no randomness for the admin token: {error}")))?;
    let text = format!("{:032x}", u128::from_be_bytes(random));
    std::fs::create_dir_all(data).map_err(|error| named(data, error))?;
    // Written beside and renamed, so that a crash leaves no half of a token.
    let beside = data.join("admin-token.new");
    let write = || -> io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        // The mode above counts only for a new file, not for a left-over.
        out.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        writeln!(out, "{text}")?;
        out.sync_all()?;
        std::fs::rename(&beside, file)
    };
    write().map_err(|error| named(file, error))?;
    Ok(Secret(text))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
