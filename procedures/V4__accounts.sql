-- Accounts of people, and what lets somebody in (docs/access.md).
--
-- Every statement can be repeated, as in V1 to V3.

-- password_hash: argon2id, as a PHC string. Secret: for the service's account alone.
CREATE TABLE IF NOT EXISTS idgen_account (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  disabled TINYINT NOT NULL,
  password_hash VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL,
  last_login_ms BIGINT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Sessions, API tokens and the set-up link. Of a secret only the SHA-256 is here,
-- in hexadecimal. live_name: the name of a token as long as no other one may have
-- it. account is NULL for what belongs to nobody.
CREATE TABLE IF NOT EXISTS idgen_credential (
  seq BIGINT NOT NULL AUTO_INCREMENT,
  id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  secret_hash CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  account VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  live_name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  types LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  agent VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  address VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_by VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NULL,
  last_used_ms BIGINT NULL,
  revoked_ms BIGINT NULL,
  PRIMARY KEY (seq),
  UNIQUE KEY idgen_credential_id (id),
  UNIQUE KEY idgen_credential_secret (secret_hash),
  UNIQUE KEY idgen_credential_name (live_name),
  KEY idgen_credential_account (account, kind),
  KEY idgen_credential_expiry (expires_ms)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Everybody who changes accounts, or keeps or ends a credential, locks this row
-- first: they come one after the other, and the order of all further locks does
-- not matter among them.
INSERT IGNORE INTO idgen_counter (name, value) VALUES ('access', 0);
