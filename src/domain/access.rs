//! Who may do what: roles, accounts of people, and what these show to be let in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Error, ErrorCode};

/// What somebody may do. `operate` may do all that `issue` and `view` may, which share
/// nothing; `administer` may do everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Take ids, and tell what an id tells; nothing else. For tokens alone.
    Issue,
    /// Look at everything but other people's sessions, tokens and accounts.
    View,
    /// Change id types and hand out ids.
    Operate,
    /// Everything: Redis instances, accounts, everybody's sessions and tokens.
    Administer,
}

impl Role {
    /// Every role, the weakest first.
    pub const ALL: [Role; 4] = [Role::Issue, Role::View, Role::Operate, Role::Administer];

    /// Whether it may do all that `needed` may.
    pub fn includes(self, needed: Role) -> bool {
        match self {
            Role::Issue | Role::View => self == needed,
            Role::Operate => needed != Role::Administer,
            Role::Administer => true,
        }
    }

    /// What it may do of what `most` may; `None` for nothing.
    pub fn within(self, most: Role) -> Option<Role> {
        match (most.includes(self), self.includes(most)) {
            (true, _) => Some(self),
            (false, true) => Some(most),
            (false, false) => None,
        }
    }

    /// `issue`, `view`, `operate` or `administer`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Issue => "issue",
            Role::View => "view",
            Role::Operate => "operate",
            Role::Administer => "administer",
        }
    }

    /// The role of this name. The error names the field `role`.
    pub fn parse(text: &str) -> Result<Role, Error> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(32).collect();
            Error::invalid(
                "role",
                format!(
                    "role {shown:?} is not known: it must be issue, view, operate or administer"
                ),
            )
        })
    }

    /// The role of this name, for an account: one that a person can have. The error
    /// names the field `role`.
    pub fn of_person(text: &str) -> Result<Role, Error> {
        match Role::parse(text)? {
            Role::Issue => Err(Error::invalid(
                "role",
                "role issue is for tokens: that of an account must be view, operate or administer",
            )),
            role => Ok(role),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Most accounts of a cluster.
pub const MAX_ACCOUNTS: usize = 1_000;
/// Most API tokens of a cluster that are neither revoked nor expired.
pub const MAX_TOKENS: usize = 1_000;
/// Most sessions of one account; a further one ends the oldest.
pub const MAX_SESSIONS: usize = 20;
/// Longest name of an account or a token, in characters.
pub const MAX_NAME: usize = 64;
/// What [`check_name`] lets pass, as a regular expression.
pub const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}$";
/// Largest quota of a token, in ids per second.
pub const MAX_QUOTA: i64 = 1_000_000_000;
/// Most types, or beginnings of names of types, that a token may be limited to.
pub const MAX_SCOPES: usize = 50;
/// How long a revoked or expired token is still listed, in milliseconds: 30 days.
pub const TOKEN_MEMORY_MS: i64 = 30 * 86_400_000;

/// Shortest password, in characters: what can be guessed over the network is long
/// exhausted by the limit of attempts, so this is for a stolen table of hashes.
pub const MIN_PASSWORD: usize = 10;
/// Longest password, in bytes: hashing reads all of it.
pub const MAX_PASSWORD: usize = 1_024;

/// Checks the name of an account or a token: 1 to [`MAX_NAME`] letters, digits or
/// `_ . @ + -`, beginning with a letter or digit. No space, so that nobody can be
/// taken for `admin token` or `token NAME` in the audit log. The error names the
/// field `name`.
pub fn check_name(text: &str) -> Result<(), Error> {
    let bytes = text.as_bytes();
    let legal = matches!(bytes.first(), Some(b) if b.is_ascii_alphanumeric())
        && bytes.len() <= MAX_NAME
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"_.@+-".contains(b));
    if legal {
        return Ok(());
    }
    let shown: String = text.chars().take(MAX_NAME).collect();
    Err(Error::invalid(
        "name",
        format!(
            "name {shown:?} is not legal: it must be 1 to {MAX_NAME} letters, digits or _ . @ + - \
             and begin with a letter or digit"
        ),
    ))
}

/// Checks a new password of the account called `name`. The error names the field
/// `password` and never the password.
pub fn check_password(name: &str, password: &str) -> Result<(), Error> {
    let problem = if password.chars().count() < MIN_PASSWORD || password.len() > MAX_PASSWORD {
        format!("must have {MIN_PASSWORD} characters at least and {MAX_PASSWORD} bytes at most")
    } else if password.eq_ignore_ascii_case(name) {
        "must not be the name of the account".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid("password", format!("password {problem}")))
}

/// Checks what a token is limited to: names of types, or beginnings of such names
/// with a `*` at the end. The error names the field `types`.
pub fn check_scopes(types: &[String]) -> Result<(), Error> {
    if types.len() > MAX_SCOPES {
        return Err(Error::invalid(
            "types",
            format!("types has {} entries; the limit is {MAX_SCOPES}", types.len()),
        ));
    }
    let wrong = types.iter().find(|text| {
        let stem = text.strip_suffix('*').unwrap_or(text);
        !super::TypeName::is_legal(stem)
    });
    match wrong {
        None => Ok(()),
        Some(text) => {
            let shown: String = text.chars().take(64).collect();
            Err(Error::invalid(
                "types",
                format!("types: {shown:?} is no name of a type, nor the beginning of one and *"),
            ))
        }
    }
}

/// Checks the quota of a token, in ids per second. The error names the field `quota`.
pub fn check_quota(quota: i64) -> Result<(), Error> {
    if (1..=MAX_QUOTA).contains(&quota) {
        return Ok(());
    }
    let message = format!("quota {quota} is out of range: it must be from 1 to {MAX_QUOTA}");
    Err(Error::invalid("quota", message))
}

/// Whether `types`, as a token holds them, include the type called `name`.
pub fn in_scope(types: &[String], name: &str) -> bool {
    types.is_empty()
        || types.iter().any(|text| match text.strip_suffix('*') {
            Some(stem) => name.starts_with(stem),
            None => name == text,
        })
}

/// The hash of a password in the form of PHC strings (`$argon2id$…`). Its debug form
/// hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// `text` must be what a hasher made.
    pub fn new(text: impl Into<String>) -> Self {
        PasswordHash(text.into())
    }

    /// The text, to be stored or compared, never to be shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(***)")
    }
}

/// The SHA-256 of a secret that was drawn at random, as 64 hexadecimal digits. Only
/// this is stored. Its debug form hides it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// Of 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        SecretHash(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(***)")
    }
}

/// The account of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name; see [`check_name`].
    pub name: String,
    /// What the person may do.
    pub role: Role,
    /// Whether it is closed for now: nobody can log in, and its tokens do not work.
    pub disabled: bool,
    /// Of its password.
    pub password: PasswordHash,
    /// When it was made, in milliseconds of the Unix epoch by the store's clock.
    pub created_ms: i64,
    /// When it was changed last, likewise.
    pub updated_ms: i64,
    /// When somebody logged in last, likewise; `None` if nobody did.
    pub last_login_ms: Option<i64>,
    /// Counts its changes, from 1.
    pub version: i64,
}

/// A new account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// See [`Account::name`].
    pub name: String,
    /// See [`Account::role`].
    pub role: Role,
    /// See [`Account::password`].
    pub password: PasswordHash,
}

impl NewAccount {
    /// The account, made at `now_ms`.
    pub fn into_account(self, now_ms: i64) -> Account {
        Account {
            name: self.name,
            role: self.role,
            disabled: false,
            password: self.password,
            created_ms: now_ms,
            updated_ms: now_ms,
            last_login_ms: None,
            version: 1,
        }
    }
}

/// A change of an account. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// The version that the caller has seen; another one is a `CONFLICT`.
    pub expected_version: Option<i64>,
    /// See [`Account::role`].
    pub role: Option<Role>,
    /// See [`Account::disabled`]. Closing it ends its sessions.
    pub disabled: Option<bool>,
    /// See [`Account::password`]. A new one ends its sessions.
    pub password: Option<PasswordHash>,
    /// The session that a new password does not end: the one that asks for it.
    pub keep_session: Option<String>,
}

impl AccountChange {
    /// Whether it ends the sessions of the account.
    pub fn ends_sessions(&self) -> bool {
        self.password.is_some() || self.disabled == Some(true)
    }

    /// `account` after this change, at `now_ms`. `others` is how many other accounts
    /// are open and administer. Refused: `CONFLICT` for another version, and where
    /// nobody would be left who administers.
    pub fn apply_to(
        &self,
        account: &Account,
        others: usize,
        now_ms: i64,
    ) -> Result<Account, Error> {
        if let Some(expected) = self.expected_version.filter(|v| *v != account.version) {
            return Err(other_version(&account.name, account.version, expected));
        }
        let mut changed = account.clone();
        changed.role = self.role.unwrap_or(changed.role);
        changed.disabled = self.disabled.unwrap_or(changed.disabled);
        if let Some(password) = &self.password {
            changed.password = password.clone();
        }
        if account.administers() && !changed.administers() && others == 0 {
            return Err(last_administrator(&account.name));
        }
        changed.version += 1;
        changed.updated_ms = now_ms;
        Ok(changed)
    }
}

impl Account {
    /// Whether it is open and may do everything.
    pub fn administers(&self) -> bool {
        self.role == Role::Administer && !self.disabled
    }
}

/// The refusal of a change of an account that has another version.
pub fn other_version(name: &str, version: i64, expected: i64) -> Error {
    Error::new(
        ErrorCode::Conflict,
        format!("account {name} has version {version}, not {expected}: read it again"),
    )
}

/// The refusal to leave a cluster without an administrator.
pub fn last_administrator(name: &str) -> Error {
    Error::new(
        ErrorCode::Conflict,
        format!("account {name} is the last one that is open and administers"),
    )
}

/// What somebody shows to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialKind {
    /// The cookie of a person who logged in.
    Session,
    /// A token for programs.
    Token,
    /// The link that makes the first account.
    Setup,
}

impl CredentialKind {
    /// Every kind.
    pub const ALL: [CredentialKind; 3] =
        [CredentialKind::Session, CredentialKind::Token, CredentialKind::Setup];

    /// `session`, `token` or `setup`.
    pub fn as_str(self) -> &'static str {
        match self {
            CredentialKind::Session => "session",
            CredentialKind::Token => "token",
            CredentialKind::Setup => "setup",
        }
    }

    /// The kind of this name, if there is one.
    pub fn parse(text: &str) -> Option<CredentialKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A session, an API token or a set-up link, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// A random public name, 32 hexadecimal digits.
    pub id: String,
    /// What it is.
    pub kind: CredentialKind,
    /// Whose it is; `None` for a set-up link, and for a token that was made with the
    /// admin token of the configuration.
    pub account: Option<String>,
    /// The name of a token; empty for others.
    pub name: String,
    /// What a token may do at most; of others nothing is said here.
    pub role: Role,
    /// What a token is limited to; see [`check_scopes`]. Empty for all types.
    pub types: Vec<String>,
    /// How many ids per second a token may take on each node; `None` for no limit.
    pub quota: Option<i64>,
    /// Whether it is no secret that is shown, but a client's certificate with the name
    /// [`name`](Self::name).
    pub certificate: bool,
    /// The program that logged in, as it calls itself; at most 200 characters.
    pub agent: String,
    /// Where a session was begun from.
    pub address: String,
    /// Who made it.
    pub created_by: String,
    /// When, in milliseconds of the Unix epoch by the store's clock, as all below.
    pub created_ms: i64,
    /// When it ends by itself; `None` for a token without end.
    pub expires_ms: Option<i64>,
    /// When it was used last, to the minute; `None` if never.
    pub last_used_ms: Option<i64>,
    /// When it was revoked, for a token.
    pub revoked_ms: Option<i64>,
}

impl Credential {
    /// Whether it lets in at `now_ms`, as far as it alone can tell.
    pub fn is_live(&self, now_ms: i64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|at| now_ms < at)
    }

    /// Whether it need not be kept any more.
    pub fn is_forgotten(&self, now_ms: i64) -> bool {
        let memory = match self.kind {
            CredentialKind::Token => TOKEN_MEMORY_MS,
            CredentialKind::Session | CredentialKind::Setup => 0,
        };
        let ended = |at: Option<i64>| at.is_some_and(|at| at.saturating_add(memory) <= now_ms);
        ended(self.expires_ms) || ended(self.revoked_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_named() {
        use Role::{Administer, Issue, Operate, View};
        let of = |role: Role| Role::ALL.map(|needed| role.includes(needed));
        assert_eq!(of(Issue), [true, false, false, false]);
        assert_eq!(of(View), [false, true, false, false]);
        assert_eq!(of(Operate), [true, true, true, false]);
        assert_eq!(of(Administer), [true; 4]);
        for (role, most, left) in [
            (Issue, Operate, Some(Issue)),
            (Administer, Operate, Some(Operate)),
            (Operate, View, Some(View)),
            (Issue, View, None),
            (View, View, Some(View)),
        ] {
            assert_eq!(role.within(most), left, "{role} {most}");
        }
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Ok(role));
            assert_eq!(Role::of_person(role.as_str()).is_ok(), role != Issue);
        }
        assert_eq!(Role::parse("root").unwrap_err().field, Some("role"));
    }

    #[test]
    fn names_by_cases() {
        let (longest, longer) = ("a".repeat(64), "a".repeat(65));
        for (name, legal) in [
            ("ann", true),
            ("ann@shop.example", true),
            ("7", true),
            (longest.as_str(), true),
            (longer.as_str(), false),
            ("", false),
            ("admin token", false),
            ("@ann", false),
            ("ann\n", false),
            ("änn", false),
            ("a/b", false),
        ] {
            assert_eq!(check_name(name).is_ok(), legal, "{name:?}");
        }
    }

    #[test]
    fn passwords_by_cases() {
        let (longest, longer) = ("x".repeat(1_024), "x".repeat(1_025));
        for (password, legal) in [
            ("ten chars!", true),
            ("nine char", false),
            ("ääääääääää", true),
            (longest.as_str(), true),
            (longer.as_str(), false),
            ("Ann.Person", false),
        ] {
            let checked = check_password("ann.person", password);
            assert_eq!(checked.is_ok(), legal, "{password:.20}");
            if let Err(error) = checked {
                assert!(!error.message.contains(password), "{error}");
            }
        }
    }

    #[test]
    fn scopes_by_cases() {
        let scope = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        for (types, name, inside) in [
            (&[][..], "order", true),
            (&["order"], "order", true),
            (&["order"], "order2", false),
            (&["shop.*"], "shop.order", true),
            (&["shop.*"], "shop", false),
            (&["a", "b*"], "b", true),
        ] {
            assert_eq!(in_scope(&scope(types), name), inside, "{types:?} {name}");
        }
        for wrong in [&["*"][..], &[""], &["a b"], &["a**"], &["*a"]] {
            let error = check_scopes(&scope(wrong)).unwrap_err();
            assert_eq!(error.field, Some("types"), "{wrong:?}");
        }
        check_scopes(&vec!["a".to_owned(); 50]).unwrap();
        check_scopes(&vec!["a".to_owned(); 51]).unwrap_err();
    }

    #[test]
    fn the_last_administrator_stays() {
        let new = NewAccount {
            name: "ann".into(),
            role: Role::Administer,
            password: PasswordHash::new("x"),
        };
        let ann = new.into_account(5);
        let demoted = AccountChange { role: Some(Role::Operate), ..AccountChange::default() };
        let closed = AccountChange { disabled: Some(true), ..AccountChange::default() };
        for change in [&demoted, &closed] {
            assert_eq!(change.apply_to(&ann, 0, 9).unwrap_err().code, ErrorCode::Conflict);
            let changed = change.apply_to(&ann, 1, 9).unwrap();
            assert_eq!((changed.version, changed.updated_ms), (2, 9));
        }
        let stale = AccountChange { expected_version: Some(2), ..AccountChange::default() };
        assert_eq!(stale.apply_to(&ann, 1, 9).unwrap_err().code, ErrorCode::Conflict);
        assert!(!format!("{ann:?}").contains("\"x\""));
    }
}
