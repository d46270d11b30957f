//! Accounts of people, and what lets somebody in: sessions, API tokens, set-up links.
//!
//! Secrets never get here: of a password there is an argon2id hash, of everything
//! else the SHA-256.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::access::{
    Account, AccountChange, Credential, CredentialKind, NewAccount, Role, SecretHash,
};
use crate::domain::{Error, ErrorCode};

/// A session, a token or a set-up link to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCredential {
    /// See [`Credential::id`]; drawn at random.
    pub id: String,
    /// What it is.
    pub kind: CredentialKind,
    /// Of its secret.
    pub secret: SecretHash,
    /// See [`Credential::account`].
    pub account: Option<String>,
    /// For a session: the version of the account whose password was checked. So a
    /// password that is changed meanwhile lets nobody in.
    pub account_version: Option<i64>,
    /// See [`Credential::name`].
    pub name: String,
    /// See [`Credential::role`].
    pub role: Role,
    /// See [`Credential::types`].
    pub types: Vec<String>,
    /// See [`Credential::quota`].
    pub quota: Option<i64>,
    /// See [`Credential::certificate`].
    pub certificate: bool,
    /// See [`Credential::agent`].
    pub agent: String,
    /// See [`Credential::address`]; at most 64 characters.
    pub address: String,
    /// How long it lives, in milliseconds from now by the store's clock; `None` for
    /// ever. At least 1.
    pub ttl_ms: Option<i64>,
}

impl NewCredential {
    /// The credential, made by `actor` at `now_ms`.
    pub fn into_credential(self, actor: &str, now_ms: i64) -> Credential {
        Credential {
            id: self.id,
            kind: self.kind,
            account: self.account,
            name: self.name,
            role: self.role,
            types: self.types,
            quota: self.quota,
            certificate: self.certificate,
            agent: self.agent,
            address: self.address,
            created_by: actor.to_owned(),
            created_ms: now_ms,
            expires_ms: self.ttl_ms.map(|ttl_ms| now_ms.saturating_add(ttl_ms)),
            last_used_ms: None,
            revoked_ms: None,
        }
    }
}

/// A credential that was found by its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The credential.
    pub credential: Credential,
    /// The role of the account that it belongs to; `None` if it belongs to none.
    pub account_role: Option<Role>,
    /// The store's clock, in milliseconds of the Unix epoch.
    pub now_ms: i64,
}

/// How long sessions live, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLife {
    /// Without use.
    pub idle_ms: i64,
    /// At all.
    pub whole_ms: i64,
}

/// Keeps accounts and credentials.
///
/// Every method is one durable transaction and returns within the adapter's own time
/// limit. Every change but [`touch`](Self::touch) and the keeping of a set-up link
/// is an audited one, with `actor` as who asked: at most 128 characters. What
/// [`Credential::is_forgotten`] is removed whenever a credential is added.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// All accounts by name, at most 1 000.
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;

    /// The account called `name`.
    async fn find_account(&self, name: &str) -> Result<Option<Account>, StoreError>;

    /// Makes an account, and removes the set-up links. With `setup`, only if there is
    /// no account yet and that is the secret of the live set-up link; refused with
    /// `PERMISSION_DENIED` otherwise. Refused: `ALREADY_EXISTS`, `CONFLICT` where
    /// there are [`MAX_ACCOUNTS`](crate::domain::access::MAX_ACCOUNTS),
    /// `INVALID_ARGUMENT` (`name`).
    async fn add_account(
        &self,
        new: &NewAccount,
        setup: Option<&SecretHash>,
        actor: &str,
    ) -> Result<Account, StoreError>;

    /// Changes an account; `None` if there is none of that name. Refused: what
    /// [`AccountChange::apply_to`] refuses.
    async fn change_account(
        &self,
        name: &str,
        change: &AccountChange,
        actor: &str,
    ) -> Result<Option<Account>, StoreError>;

    /// Removes an account with its sessions and tokens; false if there is none of that
    /// name. Refused: `CONFLICT` for the last one that is open and administers.
    async fn remove_account(&self, name: &str, actor: &str) -> Result<bool, StoreError>;

    /// Keeps a credential.
    ///
    /// - A session: refused with `CONFLICT` unless its account is there, open and of
    ///   that version. Notes the login. The oldest sessions of the account above
    ///   [`MAX_SESSIONS`](crate::domain::access::MAX_SESSIONS) end.
    /// - A token: refused with `ALREADY_EXISTS` where a live one has that name, and
    ///   with `CONFLICT` where there are
    ///   [`MAX_TOKENS`](crate::domain::access::MAX_TOKENS) live ones. That of a
    ///   certificate takes the place of an ended one with the same secret.
    /// - A set-up link: replaces the one before. Refused with `CONFLICT` where there
    ///   is an account.
    async fn add_credential(
        &self,
        new: &NewCredential,
        actor: &str,
    ) -> Result<Credential, StoreError>;

    /// The credential with that secret, if it lets in now: live, and its account, if
    /// it has one, there and open.
    async fn find_credential(&self, secret: &SecretHash) -> Result<Option<Known>, StoreError>;

    /// Those of `kind`, newest first, at most 1 000; only those of `account`, if
    /// given. Sessions only while they are live.
    async fn credentials(
        &self,
        kind: CredentialKind,
        account: Option<&str>,
    ) -> Result<Vec<Credential>, StoreError>;

    /// Notes that a credential was used now. A session lives on for `idle_ms` from
    /// now, and at most until `whole_ms` after it began.
    async fn touch(&self, id: &str, life: SessionLife) -> Result<(), StoreError>;

    /// Ends a session, or revokes a token; only if it belongs to `account`, where that
    /// is given. False if there is no live one.
    async fn end_credential(
        &self,
        kind: CredentialKind,
        id: &str,
        account: Option<&str>,
        actor: &str,
    ) -> Result<bool, StoreError>;

    /// Writes into the audit log that somebody at `address` did not know the password
    /// of the account called `name`, which need not exist. The caller bounds how
    /// often.
    async fn note_failed_login(&self, name: &str, address: &str) -> Result<(), StoreError>;

    /// Writes into the audit log that a call from `address` of the token called `name`,
    /// which need not exist, was refused for `reason`, at most 128 characters. The
    /// caller bounds how often.
    async fn note_refused_call(
        &self,
        name: &str,
        address: &str,
        reason: &str,
    ) -> Result<(), StoreError>;
}

/// The refusal of a session for an account that is not what it was.
pub fn account_changed(name: &str) -> Error {
    Error::new(ErrorCode::Conflict, format!("account {name} was changed meanwhile: log in again"))
}

/// The refusal of a set-up link that was used, replaced or never was.
pub fn no_setup() -> Error {
    Error::new(
        ErrorCode::PermissionDenied,
        "this set-up link is not valid: it was used, is older than a day, or a node that was \
         started later shows another one",
    )
}

/// The refusal of a set-up link where there are accounts.
pub fn is_set_up() -> Error {
    Error::new(ErrorCode::Conflict, "there are accounts already")
}

/// The refusal of a second account of that name.
pub fn account_exists(name: &str) -> Error {
    Error::new(ErrorCode::AlreadyExists, format!("an account called {name} exists already"))
}

/// The refusal of a second live token of that name.
pub fn token_exists(name: &str) -> Error {
    Error::new(ErrorCode::AlreadyExists, format!("a token called {name} exists already"))
}

/// The refusal of one more where there are as many as may be.
pub fn too_many(what: &str, most: usize) -> Error {
    Error::new(ErrorCode::Conflict, format!("there are {most} {what}, which is the most"))
}
