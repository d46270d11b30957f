-- Accounts of people, and what lets somebody in (src/ports/accounts.rs).

CREATE TABLE account (
    name          TEXT PRIMARY KEY,
    role          TEXT NOT NULL CHECK (role IN ('view', 'operate', 'administer')),
    disabled      INTEGER NOT NULL CHECK (disabled IN (0, 1)),
    password_hash TEXT NOT NULL,
    created_ms    INTEGER NOT NULL,
    updated_ms    INTEGER NOT NULL,
    last_login_ms INTEGER,
    version       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Of a secret only its SHA-256 is here.
CREATE TABLE credential (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    kind         TEXT NOT NULL CHECK (kind IN ('session', 'token', 'setup')),
    secret_hash  TEXT NOT NULL UNIQUE,
    account      TEXT REFERENCES account (name) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    role         TEXT NOT NULL,
    types        TEXT NOT NULL,  -- a JSON list
    agent        TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_by   TEXT NOT NULL,
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER,
    last_used_ms INTEGER,
    revoked_ms   INTEGER
) STRICT;

CREATE INDEX credential_by_account ON credential (account, kind);

-- Made anew, because changes may be about access as well.
CREATE TABLE change_feed_v6 (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT NOT NULL CHECK (kind IN ('type', 'instances', 'access')),
    subject TEXT NOT NULL,
    at_ms   INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT,
    before  TEXT,
    after   TEXT
) STRICT;

INSERT INTO change_feed_v6 SELECT seq, kind, subject, at_ms, actor, action, before, after
    FROM change_feed;

DROP TABLE change_feed;

ALTER TABLE change_feed_v6 RENAME TO change_feed;
