//! The JSON of accounts, sessions and API tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::access::{
    Account, AccountChange, Credential, MAX_NAME, MAX_PASSWORD, MAX_QUOTA, MAX_SCOPES,
    MIN_PASSWORD, NAME_PATTERN, Role,
};
use crate::domain::{Error, ErrorCode};
use crate::service::access::TokenSpec;
use crate::service::access::callers::CallerUse;

/// Longest secret, in characters, that can be one of ours.
const MAX_SECRET: usize = 128;
/// Name of a type, or the beginning of one and `*`.
const SCOPE_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\\*?$";

/// What a person may do.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "PersonRole")]
#[expect(dead_code, reason = "says in the document what a role of an account is")]
enum PersonRole {
    /// Look at everything but other people's sessions, tokens and accounts.
    View,
    /// Change id types and hand out ids.
    Operate,
    /// Everything: Redis instances, accounts, everybody's sessions and tokens.
    Administer,
}

/// What a page must know before anybody is logged in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessJson {
    /// Whether the set-up link, which a node shows at its start, makes the first account.
    pub setup_needed: bool,
    /// Whether there are accounts.
    pub accounts: bool,
    /// How to set an admin token, where none is set.
    pub closed: Option<String>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionJson {
    /// The account or token.
    pub account: WhoJson,
    /// What goes into the header `X-Idgen-Csrf` of each change; empty with a token.
    pub csrf: String,
    /// When it ends if it is not used, in milliseconds of the Unix epoch; `null` for
    /// never.
    pub expires_ms: Option<i64>,
    /// `session` or `token`: what was shown.
    #[schemars(extend("enum" = ["session", "token"]))]
    pub how: String,
}

/// An account or a token, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoJson {
    /// As the audit log has it.
    pub name: String,
    /// What it may do.
    #[schemars(with = "Role")]
    pub role: String,
}

/// A login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginJson {
    /// The account.
    #[schemars(length(min = 1, max = MAX_NAME), pattern(NAME_PATTERN))]
    pub name: String,
    /// Its password.
    #[schemars(length(min = 1, max = MAX_PASSWORD))]
    pub password: String,
}

/// The first account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupJson {
    /// What stands after `#` in the set-up link.
    #[schemars(length(min = 1, max = MAX_SECRET))]
    pub token: String,
    /// Its name: letters, digits and `_ . @ + -`.
    #[schemars(length(min = 1, max = MAX_NAME), pattern(NAME_PATTERN))]
    pub name: String,
    /// Its password: 10 characters at least, 1 024 bytes at most; not the name.
    #[schemars(length(min = MIN_PASSWORD, max = MAX_PASSWORD))]
    pub password: String,
}

/// A change of one's own password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordJson {
    /// The password so far.
    #[schemars(length(min = 1, max = MAX_PASSWORD))]
    pub old: String,
    /// The new one: 10 characters at least, 1 024 bytes at most; not the name.
    #[schemars(length(min = MIN_PASSWORD, max = MAX_PASSWORD))]
    pub new: String,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountJson {
    /// Its name.
    pub name: String,
    /// What the person may do.
    #[schemars(with = "PersonRole")]
    pub role: String,
    /// Whether it is closed for now: nobody can log in, and its tokens do not work.
    pub disabled: bool,
    /// When it was made, in milliseconds of the Unix epoch by the store's clock.
    pub created_ms: i64,
    /// When it was changed last, likewise.
    pub updated_ms: i64,
    /// When somebody logged in last, likewise; `null` if nobody did.
    pub last_login_ms: Option<i64>,
    /// Counts its changes, from 1.
    pub version: i64,
}

impl From<Account> for AccountJson {
    fn from(account: Account) -> Self {
        AccountJson {
            name: account.name,
            role: account.role.to_string(),
            disabled: account.disabled,
            created_ms: account.created_ms,
            updated_ms: account.updated_ms,
            last_login_ms: account.last_login_ms,
            version: account.version,
        }
    }
}

/// A new account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccountJson {
    /// Its name: letters, digits and `_ . @ + -`.
    #[schemars(length(min = 1, max = MAX_NAME), pattern(NAME_PATTERN))]
    pub name: String,
    /// What the person may do.
    #[schemars(with = "PersonRole")]
    pub role: String,
    /// Its password: 10 characters at least, 1 024 bytes at most; not the name.
    #[schemars(length(min = MIN_PASSWORD, max = MAX_PASSWORD))]
    pub password: String,
}

/// A change of an account. What is left out stays.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountPatch {
    /// The version that the caller has seen; another one is a `CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub version: Option<i64>,
    /// What the person may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PersonRole>")]
    pub role: Option<String>,
    /// Whether it is closed for now: nobody can log in, and its tokens do not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// The new password: 10 characters at least, 1 024 bytes at most; not the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = MIN_PASSWORD, max = MAX_PASSWORD))]
    pub password: Option<String>,
}

impl AccountPatch {
    /// The change but for the password, which is apart.
    pub fn into_change(self) -> Result<(AccountChange, Option<String>), Error> {
        let change = AccountChange {
            expected_version: self.version,
            role: self.role.as_deref().map(Role::of_person).transpose()?,
            disabled: self.disabled,
            ..AccountChange::default()
        };
        Ok((change, self.password))
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfoJson {
    /// A random public name, 32 hexadecimal digits.
    pub id: String,
    /// Whose it is.
    pub account: String,
    /// When it was made, in milliseconds of the Unix epoch by the store's clock.
    pub created_ms: i64,
    /// When it was used last, to the minute; the time of the login if it was not used.
    pub last_used_ms: i64,
    /// When it ends by itself if it is not used.
    pub expires_ms: i64,
    /// The program that logged in, as it calls itself; at most 200 characters.
    pub agent: String,
    /// Where it was begun from.
    pub address: String,
    /// Whether it is the one that asks.
    pub current: bool,
}

impl SessionInfoJson {
    /// `current` is the id of the one that asks.
    pub fn of(session: Credential, current: Option<&str>) -> Self {
        SessionInfoJson {
            current: current == Some(session.id.as_str()),
            id: session.id,
            account: session.account.unwrap_or_default(),
            created_ms: session.created_ms,
            last_used_ms: session.last_used_ms.unwrap_or(session.created_ms),
            expires_ms: session.expires_ms.unwrap_or(i64::MAX),
            agent: session.agent,
            address: session.address,
        }
    }
}

/// An API token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenJson {
    /// A random public name, 32 hexadecimal digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it may do; never more than the account of who made it.
    #[schemars(with = "Role")]
    pub role: String,
    /// Names of types, or their beginnings with `*`; empty for all.
    pub types: Vec<String>,
    /// How many ids per second it may take on each node; `null` for no limit.
    pub quota: Option<i64>,
    /// Whether no secret is shown but a client's certificate for the name.
    pub certificate: bool,
    /// Who made it.
    pub created_by: String,
    /// When it was made, in milliseconds of the Unix epoch by the store's clock.
    pub created_ms: i64,
    /// When it ends by itself; `null` for never.
    pub expires_ms: Option<i64>,
    /// When it was used last, to the minute; `null` if never.
    pub last_used_ms: Option<i64>,
    /// Whether it was revoked.
    pub revoked: bool,
}

impl From<Credential> for TokenJson {
    fn from(token: Credential) -> Self {
        TokenJson {
            revoked: token.revoked_ms.is_some(),
            id: token.id,
            name: token.name,
            role: token.role.to_string(),
            types: token.types,
            quota: token.quota,
            certificate: token.certificate,
            created_by: token.created_by,
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
            last_used_ms: token.last_used_ms,
        }
    }
}

/// A new API token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenJson {
    /// Its name: letters, digits and `_ . @ + -`.
    #[schemars(length(min = 1, max = MAX_NAME), pattern(NAME_PATTERN))]
    pub name: String,
    /// At most that of who makes it.
    #[schemars(with = "Role")]
    pub role: String,
    /// Names of types, or their beginnings with `*`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_SCOPES), inner(pattern(SCOPE_PATTERN)))]
    pub types: Vec<String>,
    /// How many ids per second it may take on each node, and as many at once; no limit
    /// if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_QUOTA))]
    pub quota: Option<i64>,
    /// Whether no secret is shown but a client's certificate for the name; with the role
    /// `issue` only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub certificate: bool,
    /// When it ends, in milliseconds of the Unix epoch; in the future, within 10 years.
    /// Never if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_ms: Option<i64>,
}

impl NewTokenJson {
    /// What to make for somebody who may do `most`.
    pub fn into_spec(self, most: Role) -> Result<TokenSpec, Error> {
        let role = Role::parse(&self.role)?;
        if !most.includes(role) {
            return Err(Error::new(
                ErrorCode::PermissionDenied,
                format!("a token of the role {role} needs somebody with that role to make it"),
            ));
        }
        Ok(TokenSpec {
            name: self.name,
            role,
            types: self.types,
            quota: self.quota,
            certificate: self.certificate,
            expires_ms: self.expires_ms,
        })
    }
}

/// A token that was made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeTokenJson {
    /// The token.
    pub token: TokenJson,
    /// What goes after `Bearer`. Shown this once. Empty for a certificate.
    pub secret: String,
}

/// What a caller took on this node since it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerJson {
    /// The name of its token.
    pub name: String,
    /// The id of its token.
    pub id: String,
    /// How many ids per second it may take on each node; `null` for no limit.
    pub quota: Option<i64>,
    /// How many ids it was given.
    pub taken: u64,
    /// Calls that were let pass.
    pub calls: u64,
    /// Calls that were refused, by reason: `bad_token`, `role`, `type`, `quota`.
    pub refused: std::collections::BTreeMap<String, u64>,
}

impl From<CallerUse> for CallerJson {
    fn from(caller: CallerUse) -> Self {
        let refused = caller.refused.into_iter().filter(|(_, count)| *count > 0);
        CallerJson {
            name: caller.name,
            id: caller.id,
            quota: caller.quota,
            taken: caller.ids,
            calls: caller.calls,
            refused: refused.map(|(reason, count)| (reason.to_owned(), count)).collect(),
        }
    }
}
