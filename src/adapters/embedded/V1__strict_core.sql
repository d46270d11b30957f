-- The embedded range store. The same facts as procedures/V1__strict_core.sql
-- holds for MySQL; the rules are in src/domain, not in SQL.

CREATE TABLE redis_instance (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    name  TEXT NOT NULL UNIQUE,
    url   TEXT NOT NULL
) STRICT;

CREATE TABLE id_type (
    name              TEXT PRIMARY KEY,
    mode              TEXT NOT NULL,
    state             TEXT NOT NULL CHECK (state IN ('active', 'retired')),
    prefix            TEXT NOT NULL,
    description       TEXT NOT NULL,
    first_id          INTEGER NOT NULL,
    next_id           INTEGER NOT NULL CHECK (next_id >= first_id),
    max_id            INTEGER NOT NULL CHECK (next_id <= max_id + 1),
    min_range         INTEGER NOT NULL,
    max_range         INTEGER NOT NULL,
    load_interval_ms  INTEGER NOT NULL,
    load_basis_points INTEGER NOT NULL,
    lock_ttl_ms       INTEGER NOT NULL,
    last_range        INTEGER,
    last_load_ms      INTEGER,
    instance_id       INTEGER NOT NULL REFERENCES redis_instance (id),
    history           TEXT,
    version           INTEGER NOT NULL,
    created_ms        INTEGER NOT NULL,
    updated_ms        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX id_type_by_instance ON id_type (instance_id);

CREATE TABLE type_history (
    name    TEXT NOT NULL REFERENCES id_type (name),
    history TEXT NOT NULL,
    PRIMARY KEY (name, history)
) STRICT, WITHOUT ROWID;

CREATE TABLE range_log (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL REFERENCES id_type (name),
    start_id    INTEGER NOT NULL,
    end_id      INTEGER NOT NULL CHECK (end_id > start_id),
    at_ms       INTEGER NOT NULL,
    owner       TEXT NOT NULL,
    instance_id INTEGER,
    history     TEXT
) STRICT;

CREATE INDEX range_log_by_name ON range_log (name, id);

-- The feed of changes. action is null for a change of a type's history,
-- which is no act of a person and so no part of the audit log.
CREATE TABLE change_feed (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT NOT NULL CHECK (kind IN ('type', 'instances')),
    subject TEXT NOT NULL,
    at_ms   INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT,
    before  TEXT,
    after   TEXT
) STRICT;
