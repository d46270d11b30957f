//! Accounts and credentials in the SQLite file, beside the ranges.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::EmbeddedStore;
use super::rows::sqlite;
use super::store::record_change;
use crate::adapters::audit;
use crate::adapters::system::unix_ms;
use crate::domain::access::{
    Account, AccountChange, Credential, CredentialKind, MAX_ACCOUNTS, MAX_SESSIONS, MAX_TOKENS,
    NewAccount, PasswordHash, Role, SecretHash, TOKEN_MEMORY_MS, check_name, last_administrator,
};
use crate::ports::accounts::{
    account_changed, account_exists, is_set_up, no_setup, token_exists, too_many,
};
use crate::ports::{Accounts, Known, NewCredential, SessionLife, StoreError};

const CREDENTIAL: &str = "id, kind, account, name, role, types, quota, certificate, agent, address, created_by, \
    created_ms, expires_ms, last_used_ms, revoked_ms";

/// Whether a row lets in at `?1`, as far as it alone can tell.
const LIVE: &str = "revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > ?1)";

fn conversion(what: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what.into())
}

fn role(text: &str) -> rusqlite::Result<Role> {
    Role::parse(text).map_err(|error| conversion(error.message))
}

fn account(row: &Row<'_>) -> rusqlite::Result<Account> {
    Ok(Account {
        name: row.get("name")?,
        role: role(&row.get::<_, String>("role")?)?,
        disabled: row.get("disabled")?,
        password: PasswordHash::new(row.get::<_, String>("password_hash")?),
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
        last_login_ms: row.get("last_login_ms")?,
        version: row.get("version")?,
    })
}

fn credential(row: &Row<'_>) -> rusqlite::Result<Credential> {
    let kind: String = row.get("kind")?;
    let types: String = row.get("types")?;
    Ok(Credential {
        id: row.get("id")?,
        kind: CredentialKind::parse(&kind).ok_or_else(|| conversion(format!("kind {kind}")))?,
        account: row.get("account")?,
        name: row.get("name")?,
        role: role(&row.get::<_, String>("role")?)?,
        types: serde_json::from_str(&types).map_err(|error| conversion(error.to_string()))?,
        quota: row.get("quota")?,
        certificate: row.get("certificate")?,
        agent: row.get("agent")?,
        address: row.get("address")?,
        created_by: row.get("created_by")?,
        created_ms: row.get("created_ms")?,
        expires_ms: row.get("expires_ms")?,
        last_used_ms: row.get("last_used_ms")?,
        revoked_ms: row.get("revoked_ms")?,
    })
}

fn find(connection: &Connection, name: &str) -> Result<Option<Account>, StoreError> {
    connection
        .prepare_cached("SELECT * FROM account WHERE name = ?1")
        .and_then(|mut s| s.query_row([name], account).optional())
        .map_err(sqlite)
}

fn put(transaction: &Transaction<'_>, account: &Account) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT INTO account VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
             ON CONFLICT (name) DO UPDATE SET role = excluded.role, \
             disabled = excluded.disabled, password_hash = excluded.password_hash, \
             updated_ms = excluded.updated_ms, last_login_ms = excluded.last_login_ms, \
             version = excluded.version",
            params![
                account.name,
                account.role.as_str(),
                account.disabled,
                account.password.reveal(),
                account.created_ms,
                account.updated_ms,
                account.last_login_ms,
                account.version,
            ],
        )
        .map(drop)
        .map_err(sqlite)
}

fn count(
    transaction: &Transaction<'_>,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<usize, StoreError> {
    transaction.query_row(sql, values, |row| row.get(0)).map(|n: i64| n as usize).map_err(sqlite)
}

fn accounts_known(transaction: &Transaction<'_>) -> Result<usize, StoreError> {
    count(transaction, "SELECT count(*) FROM account", [])
}

/// How many other accounts are open and administer.
fn other_administrators(transaction: &Transaction<'_>, name: &str) -> Result<usize, StoreError> {
    let sql = "SELECT count(*) FROM account \
               WHERE role = 'administer' AND NOT disabled AND name <> ?1";
    count(transaction, sql, [name])
}

/// Refuses what the port refuses, and makes room.
fn admit(
    transaction: &Transaction<'_>,
    new: &NewCredential,
    now_ms: i64,
) -> Result<(), StoreError> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        transaction.execute(sql, values).map(drop).map_err(sqlite)
    };
    match new.kind {
        CredentialKind::Setup => {
            if accounts_known(transaction)? > 0 {
                return Err(StoreError::Refused(is_set_up()));
            }
            run("DELETE FROM credential WHERE kind = 'setup'", &[])?;
        }
        CredentialKind::Session => {
            let name = new.account.as_deref().unwrap_or_default();
            let account = find(transaction, name)?;
            let same = account.filter(|a| !a.disabled && Some(a.version) == new.account_version);
            let Some(account) = same else {
                return Err(StoreError::Refused(account_changed(name)));
            };
            put(transaction, &Account { last_login_ms: Some(now_ms), ..account })?;
            run(
                "DELETE FROM credential WHERE seq IN (SELECT seq FROM credential \
                 WHERE kind = 'session' AND account = ?1 ORDER BY seq DESC LIMIT -1 OFFSET ?2)",
                &[&name, &(MAX_SESSIONS as i64 - 1)],
            )?;
        }
        CredentialKind::Token => {
            let sql = format!("SELECT count(*) FROM credential WHERE {LIVE} AND kind = 'token'");
            let named = format!("{sql} AND name = ?2");
            if count(transaction, &named, params![now_ms, new.name])? > 0 {
                return Err(StoreError::Refused(token_exists(&new.name)));
            }
            if count(transaction, &sql, [now_ms])? >= MAX_TOKENS {
                return Err(StoreError::Refused(too_many("tokens", MAX_TOKENS)));
            }
            // The secret of a certificate is always the same.
            let ended = format!(
                "DELETE FROM credential WHERE secret_hash = ?2 AND certificate AND NOT ({LIVE})"
            );
            run(&ended, &[&now_ms, &new.secret.as_str()])?;
        }
    }
    run(
        "DELETE FROM credential WHERE min(coalesce(expires_ms, revoked_ms), \
         coalesce(revoked_ms, expires_ms)) + iif(kind = 'token', ?2, 0) <= ?1",
        &[&now_ms, &TOKEN_MEMORY_MS],
    )
}

/// An act of a person on what lets somebody in.
fn record(
    transaction: &Transaction<'_>,
    (action, actor, subject): (&str, &str, &str),
    before: Option<String>,
    after: Option<String>,
) -> Result<(), StoreError> {
    record_change(transaction, "access", subject, actor, Some(action), before, after)
}

#[async_trait]
impl Accounts for EmbeddedStore {
    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.blocking(|connection| {
            connection
                .prepare_cached("SELECT * FROM account ORDER BY name LIMIT 1000")
                .and_then(|mut s| s.query_map([], account)?.collect())
                .map_err(sqlite)
        })
        .await
    }

    async fn find_account(&self, name: &str) -> Result<Option<Account>, StoreError> {
        let name = name.to_owned();
        self.blocking(move |connection| find(connection, &name)).await
    }

    async fn add_account(
        &self,
        new: &NewAccount,
        setup: Option<&SecretHash>,
        actor: &str,
    ) -> Result<Account, StoreError> {
        check_name(&new.name).map_err(StoreError::Refused)?;
        let (new, setup, actor) = (new.clone(), setup.cloned(), actor.to_owned());
        self.write(move |transaction| {
            let now_ms = unix_ms();
            let known = accounts_known(transaction)?;
            if let Some(secret) = setup {
                let sql = format!(
                    "SELECT count(*) FROM credential \
                     WHERE {LIVE} AND kind = 'setup' AND secret_hash = ?2"
                );
                let shown = count(transaction, &sql, params![now_ms, secret.as_str()])?;
                if shown == 0 || known > 0 {
                    return Err(StoreError::Refused(no_setup()));
                }
            }
            if find(transaction, &new.name)?.is_some() {
                return Err(StoreError::Refused(account_exists(&new.name)));
            }
            if known >= MAX_ACCOUNTS {
                return Err(StoreError::Refused(too_many("accounts", MAX_ACCOUNTS)));
            }
            transaction
                .execute("DELETE FROM credential WHERE kind = 'setup'", [])
                .map_err(sqlite)?;
            let account = new.into_account(now_ms);
            put(transaction, &account)?;
            let after = Some(audit::account(&account, false));
            record(transaction, ("add_account", &actor, &account.name), None, after)?;
            Ok(account)
        })
        .await
    }

    async fn change_account(
        &self,
        name: &str,
        change: &AccountChange,
        actor: &str,
    ) -> Result<Option<Account>, StoreError> {
        let (name, change, actor) = (name.to_owned(), change.clone(), actor.to_owned());
        self.write(move |transaction| {
            let Some(account) = find(transaction, &name)? else { return Ok(None) };
            let others = other_administrators(transaction, &name)?;
            let changed = change.apply_to(&account, others, unix_ms());
            let changed = changed.map_err(StoreError::Refused)?;
            put(transaction, &changed)?;
            if change.ends_sessions() {
                transaction
                    .execute(
                        "DELETE FROM credential \
                         WHERE kind = 'session' AND account = ?1 AND id IS NOT ?2",
                        params![name, change.keep_session],
                    )
                    .map_err(sqlite)?;
            }
            let before = Some(audit::account(&account, false));
            let after = Some(audit::account(&changed, change.password.is_some()));
            record(transaction, ("change_account", &actor, &name), before, after)?;
            Ok(Some(changed))
        })
        .await
    }

    async fn remove_account(&self, name: &str, actor: &str) -> Result<bool, StoreError> {
        let (name, actor) = (name.to_owned(), actor.to_owned());
        self.write(move |transaction| {
            let Some(account) = find(transaction, &name)? else { return Ok(false) };
            if account.administers() && other_administrators(transaction, &name)? == 0 {
                return Err(StoreError::Refused(last_administrator(&name)));
            }
            // Its sessions and tokens go with it.
            transaction.execute("DELETE FROM account WHERE name = ?1", [&name]).map_err(sqlite)?;
            let before = Some(audit::account(&account, false));
            record(transaction, ("remove_account", &actor, &name), before, None)?;
            Ok(true)
        })
        .await
    }

    async fn add_credential(
        &self,
        new: &NewCredential,
        actor: &str,
    ) -> Result<Credential, StoreError> {
        let (new, actor) = (new.clone(), actor.to_owned());
        self.write(move |transaction| {
            let now_ms = unix_ms();
            admit(transaction, &new, now_ms)?;
            let secret = new.secret.clone();
            let kept = new.into_credential(&actor, now_ms);
            let types = serde_json::json!(kept.types).to_string();
            transaction
                .execute(
                    "INSERT INTO credential (id, kind, secret_hash, account, name, role, types, \
                     agent, address, created_by, created_ms, expires_ms, quota, certificate) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                    params![
                        kept.id,
                        kept.kind.as_str(),
                        secret.as_str(),
                        kept.account,
                        kept.name,
                        kept.role.as_str(),
                        types,
                        kept.agent,
                        kept.address,
                        kept.created_by,
                        kept.created_ms,
                        kept.expires_ms,
                        kept.quota,
                        kept.certificate,
                    ],
                )
                .map_err(sqlite)?;
            let after = Some(audit::credential(&kept));
            match (kept.kind, &kept.account) {
                (CredentialKind::Session, Some(name)) => {
                    record(transaction, ("log_in", &actor, name), None, after)?;
                }
                (CredentialKind::Token, _) => {
                    record(transaction, ("add_token", &actor, &kept.name), None, after)?;
                }
                _ => {}
            }
            Ok(kept)
        })
        .await
    }

    async fn find_credential(&self, secret: &SecretHash) -> Result<Option<Known>, StoreError> {
        let secret = secret.clone();
        self.blocking(move |connection| {
            let now_ms = unix_ms();
            let sql =
                format!("SELECT {CREDENTIAL} FROM credential WHERE {LIVE} AND secret_hash = ?2");
            let found = connection
                .prepare_cached(&sql)
                .and_then(|mut s| {
                    s.query_row(params![now_ms, secret.as_str()], credential).optional()
                })
                .map_err(sqlite)?;
            let Some(credential) = found else { return Ok(None) };
            let account_role = match &credential.account {
                None => None,
                Some(name) => match find(connection, name)?.filter(|a| !a.disabled) {
                    Some(account) => Some(account.role),
                    None => return Ok(None),
                },
            };
            Ok(Some(Known { credential, account_role, now_ms }))
        })
        .await
    }

    async fn credentials(
        &self,
        kind: CredentialKind,
        account: Option<&str>,
    ) -> Result<Vec<Credential>, StoreError> {
        let account = account.map(str::to_owned);
        self.blocking(move |connection| {
            let sql = format!(
                "SELECT {CREDENTIAL} FROM credential \
                 WHERE kind = ?2 AND (?3 IS NULL OR account = ?3) \
                 AND (kind = 'token' OR ({LIVE})) ORDER BY seq DESC LIMIT 1000"
            );
            connection
                .prepare_cached(&sql)
                .and_then(|mut s| {
                    s.query_map(params![unix_ms(), kind.as_str(), account], credential)?.collect()
                })
                .map_err(sqlite)
        })
        .await
    }

    async fn touch(&self, id: &str, life: SessionLife) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.write(move |transaction| {
            let sql = format!(
                "UPDATE credential SET last_used_ms = ?1, expires_ms = \
                 iif(kind = 'session', min(?1 + ?3, created_ms + ?4), expires_ms) \
                 WHERE id = ?2 AND {LIVE}"
            );
            let values = params![unix_ms(), id, life.idle_ms, life.whole_ms];
            transaction.execute(&sql, values).map(drop).map_err(sqlite)
        })
        .await
    }

    async fn end_credential(
        &self,
        kind: CredentialKind,
        id: &str,
        account: Option<&str>,
        actor: &str,
    ) -> Result<bool, StoreError> {
        let (id, account, actor) = (id.to_owned(), account.map(str::to_owned), actor.to_owned());
        self.write(move |transaction| {
            let now_ms = unix_ms();
            let sql = format!(
                "SELECT {CREDENTIAL} FROM credential WHERE {LIVE} AND kind = ?2 AND id = ?3 \
                 AND (?4 IS NULL OR account = ?4)"
            );
            let values = params![now_ms, kind.as_str(), id, account];
            let found = transaction.query_row(&sql, values, credential).optional();
            let Some(found) = found.map_err(sqlite)? else { return Ok(false) };
            let done = match kind {
                CredentialKind::Token => transaction.execute(
                    "UPDATE credential SET revoked_ms = ?2 WHERE id = ?1",
                    params![id, now_ms],
                ),
                _ => transaction.execute("DELETE FROM credential WHERE id = ?1", [&id]),
            };
            done.map_err(sqlite)?;
            let (action, subject) = audit::ended(&found);
            let before = Some(audit::credential(&found));
            record(transaction, (action, &actor, subject), before, None)?;
            Ok(true)
        })
        .await
    }

    async fn note_failed_login(&self, name: &str, address: &str) -> Result<(), StoreError> {
        let (name, address) = (audit::failed_name(name).to_owned(), address.to_owned());
        self.write(move |transaction| {
            record(transaction, ("failed_login", &address, &name), None, None)
        })
        .await
    }

    async fn note_refused_call(
        &self,
        name: &str,
        address: &str,
        reason: &str,
    ) -> Result<(), StoreError> {
        let (name, address) = (audit::failed_name(name).to_owned(), address.to_owned());
        let after = Some(audit::reason(reason));
        self.write(move |transaction| {
            record(transaction, ("refused_call", &address, &name), None, after)
        })
        .await
    }
}
