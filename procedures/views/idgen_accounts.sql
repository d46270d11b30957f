-- The accounts of people, without the hashes of their passwords.
CREATE OR REPLACE VIEW idgen_accounts AS
SELECT
  a.name AS name,
  a.role AS role,
  a.disabled AS disabled,
  a.created_ms AS created_ms,
  a.updated_ms AS updated_ms,
  a.last_login_ms AS last_login_ms,
  TIMESTAMPADD(MICROSECOND, a.last_login_ms * 1000, '1970-01-01 00:00:00') AS last_login_utc,
  a.version AS version
FROM idgen_account a
