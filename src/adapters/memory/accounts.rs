//! Accounts and credentials beside the ranges, as in a real store; they meet the
//! faults and the clock of the range store.

use async_trait::async_trait;

use super::MemoryRangeStore;
use super::tables::{Audit, Tables};
use crate::adapters::audit;
use crate::domain::Error;
use crate::domain::access::{
    Account, AccountChange, Credential, CredentialKind, MAX_ACCOUNTS, MAX_SESSIONS, MAX_TOKENS,
    NewAccount, SecretHash, check_name, last_administrator,
};
use crate::ports::accounts::{
    account_changed, account_exists, is_set_up, no_setup, token_exists, too_many,
};
use crate::ports::{Accounts, Known, NewCredential, SessionLife, StoreError};

impl Tables {
    /// How many other accounts are open and administer.
    fn other_administrators(&self, name: &str) -> usize {
        self.accounts.values().filter(|a| a.administers() && a.name != name).count()
    }

    fn check_credential(&self, new: &NewCredential, now_ms: i64) -> Result<(), Error> {
        match new.kind {
            CredentialKind::Setup if !self.accounts.is_empty() => Err(is_set_up()),
            CredentialKind::Setup => Ok(()),
            CredentialKind::Session => {
                let name = new.account.as_deref().unwrap_or_default();
                let account = self.accounts.get(name);
                let same =
                    account.is_some_and(|a| !a.disabled && Some(a.version) == new.account_version);
                if same { Ok(()) } else { Err(account_changed(name)) }
            }
            CredentialKind::Token => {
                let tokens = self.credentials.iter().map(|(_, c)| c);
                let live: Vec<_> = tokens
                    .filter(|c| c.kind == CredentialKind::Token && c.is_live(now_ms))
                    .collect();
                if live.iter().any(|c| c.name == new.name) {
                    return Err(token_exists(&new.name));
                }
                if live.len() >= MAX_TOKENS {
                    return Err(too_many("tokens", MAX_TOKENS));
                }
                Ok(())
            }
        }
    }

    /// Removes what need not be kept, and makes room for `new`.
    fn make_room(&mut self, new: &NewCredential, now_ms: i64) {
        self.credentials.retain(|(_, c)| !c.is_forgotten(now_ms));
        match new.kind {
            CredentialKind::Setup => {
                self.credentials.retain(|(_, c)| c.kind != CredentialKind::Setup);
            }
            CredentialKind::Session => {
                let mut room = MAX_SESSIONS - 1;
                // From the newest on.
                let mut kept: Vec<_> = std::mem::take(&mut self.credentials);
                kept.reverse();
                kept.retain(|(_, c)| {
                    if c.kind != CredentialKind::Session || c.account != new.account {
                        return true;
                    }
                    let stays = room > 0;
                    room = room.saturating_sub(1);
                    stays
                });
                kept.reverse();
                self.credentials = kept;
            }
            // The secret of a certificate is always the same.
            CredentialKind::Token => self
                .credentials
                .retain(|(secret, c)| !c.certificate || *secret != new.secret || c.is_live(now_ms)),
        }
    }
}

#[async_trait]
impl Accounts for MemoryRangeStore {
    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.pass().await?;
        Ok(self.tables().accounts.values().cloned().collect())
    }

    async fn find_account(&self, name: &str) -> Result<Option<Account>, StoreError> {
        self.pass().await?;
        Ok(self.tables().accounts.get(name).cloned())
    }

    async fn add_account(
        &self,
        new: &NewAccount,
        setup: Option<&SecretHash>,
        actor: &str,
    ) -> Result<Account, StoreError> {
        self.pass().await?;
        check_name(&new.name).map_err(StoreError::Refused)?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        if let Some(secret) = setup {
            let shown = tables.credentials.iter().any(|(hash, credential)| {
                hash == secret
                    && credential.kind == CredentialKind::Setup
                    && credential.is_live(at_ms)
            });
            if !shown || !tables.accounts.is_empty() {
                return Err(StoreError::Refused(no_setup()));
            }
        }
        if tables.accounts.contains_key(&new.name) {
            return Err(StoreError::Refused(account_exists(&new.name)));
        }
        if tables.accounts.len() >= MAX_ACCOUNTS {
            return Err(StoreError::Refused(too_many("accounts", MAX_ACCOUNTS)));
        }
        tables.credentials.retain(|(_, c)| c.kind != CredentialKind::Setup);
        let account = new.clone().into_account(at_ms);
        tables.accounts.insert(account.name.clone(), account.clone());
        let audit = Audit { action: "add_account", actor, at_ms };
        let after = Some(audit::account(&account, false));
        tables.audited_access(audit, &account.name, None, after);
        Ok(account)
    }

    async fn change_account(
        &self,
        name: &str,
        change: &AccountChange,
        actor: &str,
    ) -> Result<Option<Account>, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let Some(account) = tables.accounts.get(name).cloned() else { return Ok(None) };
        let others = tables.other_administrators(name);
        let changed = change.apply_to(&account, others, at_ms).map_err(StoreError::Refused)?;
        tables.accounts.insert(name.to_owned(), changed.clone());
        if change.ends_sessions() {
            tables.credentials.retain(|(_, c)| {
                c.kind != CredentialKind::Session
                    || c.account.as_deref() != Some(name)
                    || change.keep_session.as_ref() == Some(&c.id)
            });
        }
        let audit = Audit { action: "change_account", actor, at_ms };
        let before = Some(audit::account(&account, false));
        let after = Some(audit::account(&changed, change.password.is_some()));
        tables.audited_access(audit, name, before, after);
        Ok(Some(changed))
    }

    async fn remove_account(&self, name: &str, actor: &str) -> Result<bool, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let Some(account) = tables.accounts.get(name).cloned() else { return Ok(false) };
        if account.administers() && tables.other_administrators(name) == 0 {
            return Err(StoreError::Refused(last_administrator(name)));
        }
        tables.accounts.remove(name);
        tables.credentials.retain(|(_, c)| c.account.as_deref() != Some(name));
        let audit = Audit { action: "remove_account", actor, at_ms };
        tables.audited_access(audit, name, Some(audit::account(&account, false)), None);
        Ok(true)
    }

    async fn add_credential(
        &self,
        new: &NewCredential,
        actor: &str,
    ) -> Result<Credential, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        tables.check_credential(new, at_ms).map_err(StoreError::Refused)?;
        tables.make_room(new, at_ms);
        let credential = new.clone().into_credential(actor, at_ms);
        tables.credentials.push((new.secret.clone(), credential.clone()));
        let after = Some(audit::credential(&credential));
        match credential.kind {
            CredentialKind::Setup => {}
            CredentialKind::Session => {
                let name = credential.account.as_deref().unwrap_or_default();
                if let Some(account) = tables.accounts.get_mut(name) {
                    account.last_login_ms = Some(at_ms);
                }
                let audit = Audit { action: "log_in", actor, at_ms };
                tables.audited_access(audit, name, None, after);
            }
            CredentialKind::Token => {
                let audit = Audit { action: "add_token", actor, at_ms };
                tables.audited_access(audit, &credential.name, None, after);
            }
        }
        Ok(credential)
    }

    async fn find_credential(&self, secret: &SecretHash) -> Result<Option<Known>, StoreError> {
        self.pass().await?;
        let now_ms = self.now_ms();
        let tables = self.tables();
        let found = tables.credentials.iter().find(|(hash, _)| hash == secret);
        let Some((_, credential)) = found.filter(|(_, c)| c.is_live(now_ms)) else {
            return Ok(None);
        };
        let account_role = match &credential.account {
            None => None,
            Some(name) => match tables.accounts.get(name).filter(|a| !a.disabled) {
                Some(account) => Some(account.role),
                None => return Ok(None),
            },
        };
        Ok(Some(Known { credential: credential.clone(), account_role, now_ms }))
    }

    async fn credentials(
        &self,
        kind: CredentialKind,
        account: Option<&str>,
    ) -> Result<Vec<Credential>, StoreError> {
        self.pass().await?;
        let now_ms = self.now_ms();
        let tables = self.tables();
        let wanted = |c: &&Credential| {
            c.kind == kind
                && (account.is_none() || c.account.as_deref() == account)
                && (kind == CredentialKind::Token || c.is_live(now_ms))
        };
        let all = tables.credentials.iter().rev().map(|(_, c)| c);
        Ok(all.filter(wanted).take(1_000).cloned().collect())
    }

    async fn touch(&self, id: &str, life: SessionLife) -> Result<(), StoreError> {
        self.pass().await?;
        let now_ms = self.now_ms();
        let mut tables = self.tables();
        let found = tables.credentials.iter_mut().map(|(_, c)| c).find(|c| c.id == id);
        if let Some(credential) = found.filter(|c| c.is_live(now_ms)) {
            credential.last_used_ms = Some(now_ms);
            if credential.kind == CredentialKind::Session {
                credential.expires_ms =
                    Some((now_ms + life.idle_ms).min(credential.created_ms + life.whole_ms));
            }
        }
        Ok(())
    }

    async fn end_credential(
        &self,
        kind: CredentialKind,
        id: &str,
        account: Option<&str>,
        actor: &str,
    ) -> Result<bool, StoreError> {
        self.pass().await?;
        let at_ms = self.now_ms();
        let mut tables = self.tables();
        let place = tables.credentials.iter().position(|(_, c)| {
            c.id == id
                && c.kind == kind
                && c.is_live(at_ms)
                && (account.is_none() || c.account.as_deref() == account)
        });
        let Some(place) = place else { return Ok(false) };
        let credential = tables.credentials[place].1.clone();
        match kind {
            CredentialKind::Token => tables.credentials[place].1.revoked_ms = Some(at_ms),
            _ => drop(tables.credentials.remove(place)),
        }
        let (action, subject) = audit::ended(&credential);
        let before = Some(audit::credential(&credential));
        tables.audited_access(Audit { action, actor, at_ms }, subject, before, None);
        Ok(true)
    }

    async fn note_failed_login(&self, name: &str, address: &str) -> Result<(), StoreError> {
        self.pass().await?;
        let audit = Audit { action: "failed_login", actor: address, at_ms: self.now_ms() };
        self.tables().audited_access(audit, audit::failed_name(name), None, None);
        Ok(())
    }

    async fn note_refused_call(
        &self,
        name: &str,
        address: &str,
        reason: &str,
    ) -> Result<(), StoreError> {
        self.pass().await?;
        let audit = Audit { action: "refused_call", actor: address, at_ms: self.now_ms() };
        let after = Some(audit::reason(reason));
        self.tables().audited_access(audit, audit::failed_name(name), None, after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ports::conformance;

    #[tokio::test]
    async fn conforms() {
        let store = Arc::new(MemoryRangeStore::new());
        conformance::accounts(store.clone(), store).await;
    }
}
