//! The JSON of accounts, sessions and API tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::access::{Account, AccountChange, Credential, Role};
use crate::domain::{Error, ErrorCode};
use crate::service::access::TokenSpec;

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
    /// `session` or `token`.
    pub how: String,
}

/// An account or a token, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoJson {
    /// As the audit log has it.
    pub name: String,
    /// `view`, `operate` or `administer`.
    pub role: String,
}

/// A login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginJson {
    /// The account.
    pub name: String,
    /// Its password.
    pub password: String,
}

/// The first account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupJson {
    /// What stands after `#` in the set-up link.
    pub token: String,
    /// See [`Account::name`].
    pub name: String,
    /// Its password: 10 characters at least, 1 024 bytes at most.
    pub password: String,
}

/// A change of one's own password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordJson {
    /// The password so far.
    pub old: String,
    /// The new one.
    pub new: String,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountJson {
    /// See [`Account::name`].
    pub name: String,
    /// See [`Account::role`].
    pub role: String,
    /// See [`Account::disabled`].
    pub disabled: bool,
    /// See [`Account::created_ms`].
    pub created_ms: i64,
    /// See [`Account::updated_ms`].
    pub updated_ms: i64,
    /// See [`Account::last_login_ms`].
    pub last_login_ms: Option<i64>,
    /// See [`Account::version`].
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
    /// See [`Account::name`].
    pub name: String,
    /// See [`Account::role`].
    pub role: String,
    /// Its password: 10 characters at least, 1 024 bytes at most.
    pub password: String,
}

/// A change of an account. What is left out stays.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountPatch {
    /// The version that the caller has seen; another one is a `CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// See [`Account::role`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// See [`Account::disabled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// The new password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

impl AccountPatch {
    /// The change but for the password, which is apart.
    pub fn into_change(self) -> Result<(AccountChange, Option<String>), Error> {
        let change = AccountChange {
            expected_version: self.version,
            role: self.role.as_deref().map(Role::parse).transpose()?,
            disabled: self.disabled,
            ..AccountChange::default()
        };
        Ok((change, self.password))
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfoJson {
    /// See [`Credential::id`].
    pub id: String,
    /// Whose it is.
    pub account: String,
    /// See [`Credential::created_ms`].
    pub created_ms: i64,
    /// See [`Credential::last_used_ms`]; the time of the login if it was not used.
    pub last_used_ms: i64,
    /// See [`Credential::expires_ms`].
    pub expires_ms: i64,
    /// See [`Credential::agent`].
    pub agent: String,
    /// See [`Credential::address`].
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
    /// See [`Credential::id`].
    pub id: String,
    /// See [`Credential::name`].
    pub name: String,
    /// What it may do; never more than the account of who made it.
    pub role: String,
    /// Names of types, or their beginnings with `*`; empty for all.
    pub types: Vec<String>,
    /// Who made it.
    pub created_by: String,
    /// See [`Credential::created_ms`].
    pub created_ms: i64,
    /// See [`Credential::expires_ms`].
    pub expires_ms: Option<i64>,
    /// See [`Credential::last_used_ms`].
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
    /// See [`Credential::name`].
    pub name: String,
    /// At most that of who makes it.
    pub role: String,
    /// Names of types, or their beginnings with `*`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// When it ends, in milliseconds of the Unix epoch; never if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
}

impl NewTokenJson {
    /// What to make for somebody who may do `most`.
    pub fn into_spec(self, most: Role) -> Result<TokenSpec, Error> {
        let role = Role::parse(&self.role)?;
        if role > most {
            return Err(Error::new(
                ErrorCode::PermissionDenied,
                format!("a token of the role {role} needs somebody with that role to make it"),
            ));
        }
        Ok(TokenSpec { name: self.name, role, types: self.types, expires_ms: self.expires_ms })
    }
}

/// A token that was made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeTokenJson {
    /// The token.
    pub token: TokenJson,
    /// What goes after `Bearer`. Shown this once.
    pub secret: String,
}
