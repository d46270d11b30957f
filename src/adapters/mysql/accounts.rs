//! Accounts and credentials: each change is one of the procedures, each look a view.

use async_trait::async_trait;
use mysql_async::{Params, Row, Value};

use super::MysqlStore;
use super::rows::{broken, column, only};
use crate::domain::access::{
    Account, AccountChange, Credential, CredentialKind, NewAccount, PasswordHash, Role, SecretHash,
    check_name,
};
use crate::ports::{Accounts, Known, NewCredential, SessionLife, StoreError};

const ACCOUNTS: &str = "SELECT a.name AS name, a.role AS role, a.disabled AS disabled, \
    n.password_hash AS password_hash, a.created_ms AS created_ms, a.updated_ms AS updated_ms, \
    a.last_login_ms AS last_login_ms, a.version AS version \
    FROM idgen_accounts a JOIN idgen_node_accounts n ON n.name = a.name";

const CREDENTIAL: &str = "id, kind, account, name, role, types, quota, certificate, agent, address, created_by, \
    created_ms, expires_ms, last_used_ms, revoked_ms";

/// The server's clock.
const NOW: &str = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)";

fn role(row: &Row, name: &str) -> Result<Role, StoreError> {
    Role::parse(&column::<String>(row, name)?).map_err(|error| broken(&error.message))
}

fn account(row: &Row, password: PasswordHash) -> Result<Account, StoreError> {
    Ok(Account {
        name: column(row, "name")?,
        role: role(row, "role")?,
        disabled: column::<i64>(row, "disabled")? != 0,
        password,
        created_ms: column(row, "created_ms")?,
        updated_ms: column(row, "updated_ms")?,
        last_login_ms: column(row, "last_login_ms")?,
        version: column(row, "version")?,
    })
}

fn whole_account(row: &Row) -> Result<Account, StoreError> {
    account(row, PasswordHash::new(column::<String>(row, "password_hash")?))
}

fn credential(row: &Row) -> Result<Credential, StoreError> {
    let kind: String = column(row, "kind")?;
    let types: String = column(row, "types")?;
    Ok(Credential {
        id: column(row, "id")?,
        kind: CredentialKind::parse(&kind).ok_or_else(|| broken(&format!("kind {kind:?}")))?,
        account: column(row, "account")?,
        name: column(row, "name")?,
        role: role(row, "role")?,
        types: serde_json::from_str(&types).map_err(|_| broken("types that are no list"))?,
        quota: column(row, "quota")?,
        certificate: column::<i64>(row, "certificate")? != 0,
        agent: column(row, "agent")?,
        address: column(row, "address")?,
        created_by: column(row, "created_by")?,
        created_ms: column(row, "created_ms")?,
        expires_ms: column(row, "expires_ms")?,
        last_used_ms: column(row, "last_used_ms")?,
        revoked_ms: column(row, "revoked_ms")?,
    })
}

fn known(row: &Row) -> Result<Known, StoreError> {
    let account_role = match column::<Option<String>>(row, "account_role")? {
        Some(_) => Some(role(row, "account_role")?),
        None => None,
    };
    Ok(Known { credential: credential(row)?, account_role, now_ms: column(row, "now_ms")? })
}

#[async_trait]
impl Accounts for MysqlStore {
    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.list(&format!("{ACCOUNTS} ORDER BY a.name LIMIT 1000"), (), whole_account).await
    }

    async fn find_account(&self, name: &str) -> Result<Option<Account>, StoreError> {
        // Also because other text than ASCII cannot be compared with the column.
        if check_name(name).is_err() {
            return Ok(None);
        }
        let sql = format!("{ACCOUNTS} WHERE a.name = ?");
        Ok(self.list(&sql, (name,), whole_account).await?.into_iter().next())
    }

    async fn add_account(
        &self,
        new: &NewAccount,
        setup: Option<&SecretHash>,
        actor: &str,
    ) -> Result<Account, StoreError> {
        check_name(&new.name).map_err(StoreError::Refused)?;
        let sql = "CALL idgen_add_account(?, ?, ?, ?, ?)";
        let params = (
            new.name.as_str(),
            new.role.as_str(),
            new.password.reveal(),
            setup.map(SecretHash::as_str),
            actor,
        );
        let row = only(self.pool.rows(sql, params).await?)?;
        account(&row, new.password.clone())
    }

    async fn change_account(
        &self,
        name: &str,
        change: &AccountChange,
        actor: &str,
    ) -> Result<Option<Account>, StoreError> {
        if check_name(name).is_err() {
            return Ok(None);
        }
        let sql = "CALL idgen_change_account(?, ?, ?, ?, ?, ?, ?)";
        let params: Vec<Value> = vec![
            name.into(),
            change.expected_version.into(),
            change.role.map(Role::as_str).into(),
            change.disabled.into(),
            change.password.as_ref().map(PasswordHash::reveal).into(),
            change.keep_session.as_deref().into(),
            actor.into(),
        ];
        if self.pool.rows(sql, Params::Positional(params)).await?.is_empty() {
            return Ok(None);
        }
        self.find_account(name).await
    }

    async fn remove_account(&self, name: &str, actor: &str) -> Result<bool, StoreError> {
        if check_name(name).is_err() {
            return Ok(false);
        }
        let sql = "CALL idgen_remove_account(?, ?)";
        let row = only(self.pool.rows(sql, (name, actor)).await?)?;
        Ok(column::<i64>(&row, "removed")? != 0)
    }

    async fn add_credential(
        &self,
        new: &NewCredential,
        actor: &str,
    ) -> Result<Credential, StoreError> {
        let sql = "CALL idgen_add_credential(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let params: Vec<Value> = vec![
            new.id.as_str().into(),
            new.kind.as_str().into(),
            new.secret.as_str().into(),
            new.account.as_deref().into(),
            new.account_version.into(),
            new.name.as_str().into(),
            new.role.as_str().into(),
            serde_json::json!(new.types).to_string().into(),
            new.quota.into(),
            new.certificate.into(),
            new.agent.as_str().into(),
            new.address.as_str().into(),
            new.ttl_ms.into(),
            actor.into(),
        ];
        credential(&only(self.pool.rows(sql, Params::Positional(params)).await?)?)
    }

    async fn find_credential(&self, secret: &SecretHash) -> Result<Option<Known>, StoreError> {
        let sql = format!(
            "SELECT {CREDENTIAL}, account_role, {NOW} AS now_ms FROM idgen_credentials \
             WHERE secret_hash = ? AND revoked_ms IS NULL \
             AND (expires_ms IS NULL OR expires_ms > {NOW}) \
             AND (account IS NULL OR account_disabled = 0)"
        );
        Ok(self.list(&sql, (secret.as_str(),), known).await?.into_iter().next())
    }

    async fn credentials(
        &self,
        kind: CredentialKind,
        account: Option<&str>,
    ) -> Result<Vec<Credential>, StoreError> {
        let sql = format!(
            "SELECT {CREDENTIAL} FROM idgen_credentials WHERE kind = ? \
             AND (? IS NULL OR account = ?) \
             AND (kind = 'token' OR expires_ms > {NOW}) ORDER BY seq DESC LIMIT 1000"
        );
        self.list(&sql, (kind.as_str(), account, account), credential).await
    }

    async fn touch(&self, id: &str, life: SessionLife) -> Result<(), StoreError> {
        let sql = "CALL idgen_touch_credential(?, ?, ?)";
        self.pool.rows(sql, (id, life.idle_ms, life.whole_ms)).await?;
        Ok(())
    }

    async fn end_credential(
        &self,
        kind: CredentialKind,
        id: &str,
        account: Option<&str>,
        actor: &str,
    ) -> Result<bool, StoreError> {
        let sql = "CALL idgen_end_credential(?, ?, ?, ?)";
        let row = only(self.pool.rows(sql, (kind.as_str(), id, account, actor)).await?)?;
        Ok(column::<i64>(&row, "ended")? != 0)
    }

    async fn note_failed_login(&self, name: &str, address: &str) -> Result<(), StoreError> {
        let name = if check_name(name).is_ok() { name } else { "?" };
        self.pool.rows("CALL idgen_note_failed_login(?, ?)", (name, address)).await?;
        Ok(())
    }

    async fn note_refused_call(
        &self,
        name: &str,
        address: &str,
        reason: &str,
    ) -> Result<(), StoreError> {
        let name = if check_name(name).is_ok() { name } else { "?" };
        let sql = "CALL idgen_note_refused_call(?, ?, ?)";
        self.pool.rows(sql, (name, address, reason)).await?;
        Ok(())
    }
}
