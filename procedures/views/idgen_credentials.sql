-- Sessions, API tokens and set-up links, and what the accounts that they belong to
-- may do now. Of their secrets only the SHA-256.
CREATE OR REPLACE VIEW idgen_credentials AS
SELECT
  c.seq AS seq,
  c.id AS id,
  c.kind AS kind,
  c.secret_hash AS secret_hash,
  c.account AS account,
  c.name AS name,
  c.role AS role,
  c.types AS types,
  c.quota AS quota,
  c.certificate AS certificate,
  c.agent AS agent,
  c.address AS address,
  c.created_by AS created_by,
  c.created_ms AS created_ms,
  c.expires_ms AS expires_ms,
  c.last_used_ms AS last_used_ms,
  c.revoked_ms AS revoked_ms,
  a.role AS account_role,
  a.disabled AS account_disabled
FROM idgen_credential c
LEFT JOIN idgen_account a ON a.name = c.account
