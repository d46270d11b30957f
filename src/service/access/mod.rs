//! Who asks, and what they may do: accounts, sessions, API tokens, the set-up link.
//!
//! Secrets are 256 random bits, and of each only the SHA-256 is kept; passwords are
//! hashed with argon2id. A look-up counts for a second on a node, and for as long as
//! the store is away: who is logged in then stays so, until the session ends by
//! itself.

mod cache;
pub mod callers;
mod import;
mod limit;
mod password;
mod quota;

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::domain::access::{
    Account, AccountChange, Credential, CredentialKind, NewAccount, Role, SecretHash, check_name,
    check_password, check_quota, check_scopes,
};
use crate::domain::{Error, ErrorCode};
use crate::ports::{Accounts, Clock, Entropy, NewCredential, SessionLife, StoreError};
use cache::{Cache, Entry, FRESH, Found};
use callers::Callers;
pub use import::ImportedToken;
use limit::Limiter;
use password::Hasher;

/// How every API token begins, so that it is found where it does not belong.
pub const TOKEN_PREFIX: &str = "idg_";

/// A session ends after 12 hours without use, and after 7 days.
pub const SESSION_LIFE: SessionLife =
    SessionLife { idle_ms: 12 * 3_600_000, whole_ms: 7 * 86_400_000 };
/// How long a set-up link is valid.
const SETUP_LIFE_MS: i64 = 86_400_000;
/// The longest life of an API token that ends by itself: 10 years.
pub const LONGEST_TOKEN_MS: i64 = 3_650 * 86_400_000;
/// Longest secret of a token that somebody else made, in bytes: that of tinyid's column.
pub const MAX_SECRET: usize = 255;
/// A use is noted no more often, so that a page that asks all the time does not make
/// the store write all the time.
const TOUCH_EVERY_MS: i64 = 60_000;
/// How many secrets that are not known here may be looked up at once: whoever makes
/// them up must not use up the connections of the store.
const STRANGERS_AT_ONCE: usize = 2;
/// Failed logins that this node writes into the audit log at once, and how long until
/// it may write one more.
const NOTED_FAILURES: u32 = 10;
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// Where a request came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The address of the other end of the connection.
    pub address: IpAddr,
    /// The program, as it calls itself. Cut to 200 printable characters.
    pub agent: String,
}

/// Somebody who was let in by a session or an API token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The session or token.
    pub credential: Credential,
    /// What the caller may do: of a token never more than its account may now.
    pub role: Role,
}

impl Caller {
    /// For the audit log: the name of the account, or `token NAME`.
    pub fn actor(&self) -> String {
        match (self.credential.kind, &self.credential.account) {
            (CredentialKind::Session, Some(name)) => name.clone(),
            _ => format!("token {}", self.credential.name),
        }
    }
}

/// A session that was begun.
pub struct Login {
    /// Who logged in.
    pub caller: Caller,
    /// What the cookie must hold. Shown once.
    pub secret: String,
}

/// Why nobody was logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoLogin {
    /// Too many attempts; another one may be made after this time.
    RateLimited(Duration),
    /// No open account has that name and password.
    Wrong,
    /// Something else.
    Failed(Error),
}

impl From<Error> for NoLogin {
    fn from(error: Error) -> Self {
        NoLogin::Failed(error)
    }
}

impl From<StoreError> for NoLogin {
    fn from(error: StoreError) -> Self {
        NoLogin::Failed(error.into())
    }
}

/// An API token to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSpec {
    /// Its name; see [`check_name`].
    pub name: String,
    /// What it may do at most.
    pub role: Role,
    /// What it is limited to; see [`check_scopes`].
    pub types: Vec<String>,
    /// How many ids per second it may take on each node; see [`check_quota`].
    pub quota: Option<i64>,
    /// Whether no secret is shown but a client's certificate for this name. Only with
    /// the role [`Role::Issue`].
    pub certificate: bool,
    /// When it ends, in milliseconds of the Unix epoch; in the future, within
    /// [`LONGEST_TOKEN_MS`]. `None` for never.
    pub expires_ms: Option<i64>,
}

/// Audit entries of failed logins that may still be written.
struct Notes {
    left: u32,
    refilled: Instant,
}

impl Notes {
    fn new() -> Self {
        Notes { left: NOTED_FAILURES, refilled: Instant::now() }
    }

    /// Whether one may be written at `now`.
    fn may(&mut self, now: Instant) -> bool {
        if self.left < NOTED_FAILURES && now >= self.refilled + NOTE_EVERY {
            self.left += 1;
            self.refilled = now;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// What a look-up said.
struct Looked {
    /// Who is let in.
    caller: Option<Caller>,
    /// When the store was asked.
    asked: Instant,
    /// When it ends by itself.
    ends: Option<Instant>,
}

/// See the module. One for a node.
pub struct AccessControl {
    accounts: Arc<dyn Accounts>,
    entropy: Arc<dyn Entropy>,
    clock: Arc<dyn Clock>,
    hasher: Hasher,
    limiter: Mutex<Limiter>,
    notes: Mutex<Notes>,
    cache: Cache,
    callers: Callers,
    strangers: Semaphore,
    /// Whether there was an account once. There always is one from then on, but for
    /// one that somebody removes who has the admin token.
    has_accounts: AtomicBool,
}

impl AccessControl {
    /// Over `accounts`. Takes the time of hashing one password.
    pub fn new(
        accounts: Arc<dyn Accounts>,
        entropy: Arc<dyn Entropy>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        Ok(AccessControl {
            accounts,
            clock,
            hasher: Hasher::new(&*entropy)?,
            entropy,
            limiter: Mutex::default(),
            notes: Mutex::new(Notes::new()),
            cache: Cache::default(),
            callers: Callers::new(),
            strangers: Semaphore::new(STRANGERS_AT_ONCE),
            has_accounts: AtomicBool::new(false),
        })
    }

    /// Whether there is an account.
    pub async fn has_accounts(&self) -> Result<bool, Error> {
        if self.has_accounts.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let _turn = self.strangers.acquire().await.expect("never closed");
        let any = !self.accounts.accounts().await?.is_empty();
        self.has_accounts.store(any, Ordering::Relaxed);
        Ok(any)
    }

    /// Makes a set-up link where there is no account, and answers with its secret. The
    /// one before, of whatever node, is not valid any more.
    pub async fn make_setup(&self) -> Result<Option<String>, Error> {
        if self.has_accounts().await? {
            return Ok(None);
        }
        let secret = self.secret("");
        let new = NewCredential {
            kind: CredentialKind::Setup,
            role: Role::Administer,
            ttl_ms: Some(SETUP_LIFE_MS),
            ..self.credential(&secret)
        };
        match self.accounts.add_credential(&new, "start of a node").await {
            Ok(_) => Ok(Some(secret)),
            // Somebody made an account meanwhile.
            Err(StoreError::Refused(error)) if error.code == ErrorCode::Conflict => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the first account, which administers, with the secret of the set-up link,
    /// and logs it in. Fails with `PERMISSION_DENIED` for a wrong or used one.
    pub async fn set_up(
        &self,
        token: &str,
        name: &str,
        password: &str,
        origin: &Origin,
    ) -> Result<Login, NoLogin> {
        check_name(name)?;
        check_password(name, password)?;
        let secret = hash(token);
        // Not counted for the name, which anybody may put here. A name of an account
        // has no space.
        let counted = format!("set-up from {}", origin.address);
        self.attempt(&counted, origin)?;
        // Before a password is hashed for somebody who made the secret up.
        if self.look_up(&secret, FRESH).await?.caller.is_none() {
            return Err(crate::ports::accounts::no_setup().into());
        }
        let password = self.hasher.hash(password, &*self.entropy).await?;
        let new = NewAccount { name: name.to_owned(), role: Role::Administer, password };
        let account = self.accounts.add_account(&new, Some(&secret), name).await?;
        self.forgive(&counted, origin);
        self.has_accounts.store(true, Ordering::Relaxed);
        self.begin_session(&account, origin).await
    }

    /// Begins a session for who knows the password of the account called `name`. The
    /// time does not tell whether there is such an account.
    pub async fn log_in(
        &self,
        name: &str,
        password: &str,
        origin: &Origin,
    ) -> Result<Login, NoLogin> {
        // A name that is not legal is not worth memory.
        let counted = if check_name(name).is_ok() { name } else { "?" };
        self.attempt(counted, origin)?;
        let looked_up = {
            let _turn = self.strangers.acquire().await.expect("never closed");
            self.accounts.find_account(name).await
        };
        let account = match looked_up {
            Ok(account) => account.filter(|account| !account.disabled),
            Err(error) => {
                self.forgive(counted, origin);
                return Err(error.into());
            }
        };
        let verified = self.hasher.verify(password, account.as_ref().map(|a| &a.password)).await;
        match (verified, account) {
            (Ok(true), Some(account)) => {
                self.forgive(counted, origin);
                self.begin_session(&account, origin).await
            }
            (Ok(_), _) => {
                self.note_failure(name, origin).await;
                Err(NoLogin::Wrong)
            }
            (Err(error), _) => {
                self.forgive(counted, origin);
                Err(error.into())
            }
        }
    }

    /// Who shows `secret`, as a cookie or as a token; `None` if it lets nobody in.
    /// Fails where it is not known here and the store is away.
    pub async fn who(&self, kind: CredentialKind, secret: &str) -> Result<Option<Caller>, Error> {
        let hash = hash(secret);
        let found = self.look_up(&hash, FRESH).await?.caller;
        // A certificate is no secret.
        Ok(found.filter(|caller| caller.credential.kind == kind && !caller.credential.certificate))
    }

    /// What must come with a request that changes something and is authenticated by
    /// the cookie with `secret`. Another page cannot read it.
    pub fn csrf(secret: &str) -> String {
        hash(&format!("csrf {secret}")).as_str()[..32].to_owned()
    }

    /// Ends the session of `caller`.
    pub async fn log_out(&self, caller: &Caller) -> Result<(), Error> {
        let credential = &caller.credential;
        self.end(credential.kind, &credential.id, None, &caller.actor()).await.map(drop)
    }

    /// Gives `caller` another password and ends all other sessions. Failures count as
    /// failed logins.
    pub async fn change_password(
        &self,
        caller: &Caller,
        old: &str,
        new: &str,
        origin: &Origin,
    ) -> Result<(), NoLogin> {
        let name = match &caller.credential.account {
            Some(name) if caller.credential.kind == CredentialKind::Session => name,
            _ => return Err(no_person("has no password").into()),
        };
        check_password(name, new)?;
        self.attempt(name, origin)?;
        let account = self.accounts.find_account(name).await?.ok_or(NoLogin::Wrong)?;
        if !self.hasher.verify(old, Some(&account.password)).await? {
            self.note_failure(name, origin).await;
            return Err(NoLogin::Wrong);
        }
        self.forgive(name, origin);
        let change = AccountChange {
            expected_version: Some(account.version),
            password: Some(self.hasher.hash(new, &*self.entropy).await?),
            keep_session: Some(caller.credential.id.clone()),
            ..AccountChange::default()
        };
        self.change(name, &change, name).await?;
        Ok(())
    }

    /// All accounts by name.
    pub async fn accounts(&self) -> Result<Vec<Account>, Error> {
        Ok(self.accounts.accounts().await?)
    }

    /// Makes an account. Refused: `ALREADY_EXISTS`, `CONFLICT`, `INVALID_ARGUMENT`
    /// (`name`, `password`).
    pub async fn add_account(
        &self,
        name: &str,
        role: Role,
        password: &str,
        actor: &str,
    ) -> Result<Account, Error> {
        check_name(name)?;
        check_password(name, password)?;
        let password = self.hasher.hash(password, &*self.entropy).await?;
        let new = NewAccount { name: name.to_owned(), role, password };
        let account = self.accounts.add_account(&new, None, actor).await?;
        self.has_accounts.store(true, Ordering::Relaxed);
        Ok(account)
    }

    /// Changes an account; `None` if there is none of that name. `change.password` is
    /// not looked at: `password` is what it becomes. Refused: `CONFLICT`,
    /// `INVALID_ARGUMENT` (`password`).
    pub async fn change_account(
        &self,
        name: &str,
        mut change: AccountChange,
        password: Option<&str>,
        actor: &str,
    ) -> Result<Option<Account>, Error> {
        change.password = match password {
            None => None,
            Some(password) => {
                check_password(name, password)?;
                Some(self.hasher.hash(password, &*self.entropy).await?)
            }
        };
        self.change(name, &change, actor).await
    }

    async fn change(
        &self,
        name: &str,
        change: &AccountChange,
        actor: &str,
    ) -> Result<Option<Account>, Error> {
        let changed = self.accounts.change_account(name, change, actor).await;
        // Also after an error: it may have happened.
        self.cache.forget(|credential| credential.account.as_deref() == Some(name));
        Ok(changed?)
    }

    /// Removes an account with its sessions and tokens; false if there is none of that
    /// name. Refused: `CONFLICT` for the last one that administers.
    pub async fn remove_account(&self, name: &str, actor: &str) -> Result<bool, Error> {
        let removed = self.accounts.remove_account(name, actor).await;
        self.cache.forget(|credential| credential.account.as_deref() == Some(name));
        self.has_accounts.store(false, Ordering::Relaxed);
        Ok(removed?)
    }

    /// The live sessions, or all tokens that are remembered, newest first; only those
    /// of `account`, if given.
    pub async fn list(
        &self,
        kind: CredentialKind,
        account: Option<&str>,
    ) -> Result<Vec<Credential>, Error> {
        Ok(self.accounts.credentials(kind, account).await?)
    }

    /// Ends a session or revokes a token; only if it is one of `account`, if given.
    /// False if there is none.
    pub async fn end(
        &self,
        kind: CredentialKind,
        id: &str,
        account: Option<&str>,
        actor: &str,
    ) -> Result<bool, Error> {
        let legal = (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
        if !legal {
            return Ok(false);
        }
        let ended = self.accounts.end_credential(kind, id, account, actor).await;
        self.cache.forget(|credential| credential.id == id);
        Ok(ended?)
    }

    /// Makes an API token of `account`, or of nobody, and answers with its secret, once;
    /// an empty one for a certificate. Refused: `ALREADY_EXISTS`, `CONFLICT`,
    /// `INVALID_ARGUMENT` (`name`, `role`, `types`, `quota`, `expires_ms`).
    pub async fn add_token(
        &self,
        spec: TokenSpec,
        account: Option<&str>,
        actor: &str,
    ) -> Result<(Credential, String), Error> {
        check_name(&spec.name)?;
        check_scopes(&spec.types)?;
        if let Some(quota) = spec.quota {
            check_quota(quota)?;
        }
        if spec.certificate && spec.role != Role::Issue {
            return Err(Error::invalid("role", "role of a certificate must be issue"));
        }
        let ttl_ms = spec.expires_ms.map(|at| at.saturating_sub(self.clock.now_ms()));
        if let Some(ttl_ms) = ttl_ms.filter(|ttl| !(1..=LONGEST_TOKEN_MS).contains(ttl)) {
            return Err(Error::invalid(
                "expires_ms",
                format!(
                    "expires_ms lies {ttl_ms} ms from now: it must be from 1 to \
                     {LONGEST_TOKEN_MS} (10 years)"
                ),
            ));
        }
        let secret = self.secret(TOKEN_PREFIX);
        let (secret, kept) = match spec.certificate {
            true => (String::new(), callers::certificate(&spec.name)),
            false => (secret.clone(), hash(&secret)),
        };
        let new = NewCredential {
            kind: CredentialKind::Token,
            secret: kept,
            quota: spec.quota,
            certificate: spec.certificate,
            account: account.map(str::to_owned),
            name: spec.name,
            role: spec.role,
            types: spec.types,
            ttl_ms,
            ..self.credential(&secret)
        };
        Ok((self.accounts.add_credential(&new, actor).await?, secret))
    }

    async fn begin_session(&self, account: &Account, origin: &Origin) -> Result<Login, NoLogin> {
        let secret = self.secret("");
        let shown = |c: &char| !c.is_control();
        let new = NewCredential {
            kind: CredentialKind::Session,
            account: Some(account.name.clone()),
            account_version: Some(account.version),
            role: account.role,
            agent: origin.agent.chars().filter(shown).take(200).collect(),
            address: origin.address.to_canonical().to_string(),
            ttl_ms: Some(SESSION_LIFE.idle_ms),
            ..self.credential(&secret)
        };
        let credential = self.accounts.add_credential(&new, &account.name).await?;
        Ok(Login { caller: Caller { credential, role: account.role }, secret })
    }

    /// What is known of a credential; of the store, if that is older than `fresh`.
    async fn look_up(&self, secret: &SecretHash, fresh: Duration) -> Result<Looked, Error> {
        let asked = Instant::now();
        let (found, generation) = self.cache.find(secret, asked, fresh);
        let last = match found {
            Found::Fresh(entry) => return Ok(entry.into()),
            Found::Stale(last) => last,
        };
        let answer = match last {
            Some(_) => self.accounts.find_credential(secret).await,
            None => {
                let _turn = self.strangers.acquire().await.expect("never closed");
                self.accounts.find_credential(secret).await
            }
        };
        match (answer, last) {
            (Ok(mut answer), _) => {
                if let Some(known) = &mut answer {
                    self.touch(known).await;
                }
                self.cache.put(secret, answer.as_ref(), asked, generation);
                Ok(match answer {
                    Some(known) => Entry::of(known, asked).into(),
                    None => Looked { caller: None, asked, ends: None },
                })
            }
            (Err(error), Some(_)) => {
                tracing::debug!(%error, "access: the store is away, what is known counts");
                self.keep_up(secret)
            }
            (Err(error), None) => Err(error.into()),
        }
    }

    /// What is known of a credential counts for a moment longer: the store is away.
    fn keep_up(&self, secret: &SecretHash) -> Result<Looked, Error> {
        let now = Instant::now();
        let (Found::Fresh(entry) | Found::Stale(Some(entry)), _) =
            self.cache.find(secret, now, FRESH)
        else {
            let message = "the store is away, and who asks is not known here";
            return Err(Error::new(ErrorCode::Unavailable, message));
        };
        self.cache.keep(secret, now);
        Ok(Entry { asked: now, ..entry }.into())
    }

    /// Notes the use of `known`, where that is due.
    async fn touch(&self, known: &mut crate::ports::Known) {
        let credential = &mut known.credential;
        let since = credential.last_used_ms.unwrap_or(match credential.kind {
            CredentialKind::Session => credential.created_ms,
            CredentialKind::Token | CredentialKind::Setup => 0,
        });
        if known.now_ms - since < TOUCH_EVERY_MS || credential.kind == CredentialKind::Setup {
            return;
        }
        match self.accounts.touch(&credential.id, SESSION_LIFE).await {
            Ok(()) if credential.kind == CredentialKind::Session => {
                let idle = known.now_ms + SESSION_LIFE.idle_ms;
                let whole = credential.created_ms + SESSION_LIFE.whole_ms;
                credential.expires_ms = Some(idle.min(whole));
            }
            Ok(()) => {}
            Err(error) => tracing::debug!(%error, "access: a use was not noted"),
        }
    }

    fn attempt(&self, name: &str, origin: &Origin) -> Result<(), NoLogin> {
        let mut limiter = self.limiter.lock().expect("no one panics while holding it");
        let attempt = limiter.attempt(name, origin.address, Instant::now());
        attempt.map_err(NoLogin::RateLimited)
    }

    fn forgive(&self, name: &str, origin: &Origin) {
        let mut limiter = self.limiter.lock().expect("no one panics while holding it");
        limiter.forgive(name, origin.address, Instant::now());
    }

    /// Writes a failed login into the audit log, unless there were too many lately.
    async fn note_failure(&self, name: &str, origin: &Origin) {
        let may = {
            let mut notes = self.notes.lock().expect("no one panics while holding it");
            notes.may(Instant::now())
        };
        let address = origin.address.to_canonical().to_string();
        tracing::warn!(%address, "a login failed");
        if may && let Err(error) = self.accounts.note_failed_login(name, &address).await {
            tracing::warn!(%error, "a failed login is not in the audit log");
        }
    }

    /// 256 random bits as text.
    fn secret(&self, prefix: &str) -> String {
        format!("{prefix}{}{}", self.entropy.token(), self.entropy.token())
    }

    /// A credential with this secret, and nothing else yet.
    fn credential(&self, secret: &str) -> NewCredential {
        NewCredential {
            id: self.entropy.token(),
            kind: CredentialKind::Setup,
            secret: hash(secret),
            account: None,
            account_version: None,
            name: String::new(),
            role: Role::View,
            types: Vec::new(),
            quota: None,
            certificate: false,
            agent: String::new(),
            address: String::new(),
            ttl_ms: None,
        }
    }
}

impl From<Entry> for Looked {
    fn from(entry: Entry) -> Self {
        let credential = entry.known.credential;
        let role = match (credential.kind, entry.known.account_role) {
            (CredentialKind::Session, Some(role)) => Some(role),
            // What is left of it may be nothing.
            (_, Some(role)) => credential.role.within(role),
            (_, None) => Some(credential.role),
        };
        let caller = role.map(|role| Caller { credential, role });
        Looked { caller, asked: entry.asked, ends: entry.ends }
    }
}

fn hash(secret: &str) -> SecretHash {
    SecretHash::new(Sha256::digest(secret.as_bytes()).into())
}

/// The refusal of what only a person with a session can do.
pub fn no_person(what: &str) -> Error {
    Error::new(ErrorCode::PermissionDenied, format!("who asks shows no session, and {what}"))
}
