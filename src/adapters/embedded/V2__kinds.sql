-- Types beyond a plain sequence: options, shards and keys.

-- Made anew, because positions may lie above max_id now (a type that cycles, a
-- calendar series), and SQLite cannot drop a CHECK. Foreign keys are off while
-- migrations run; those that refer to this table refer to it by name.
CREATE TABLE id_type_v2 (
    name              TEXT PRIMARY KEY,
    mode              TEXT NOT NULL,
    state             TEXT NOT NULL CHECK (state IN ('active', 'retired')),
    prefix            TEXT NOT NULL,
    description       TEXT NOT NULL,
    -- What it is beyond a plain sequence, as src/domain/options.rs writes it.
    options           TEXT NOT NULL,
    first_id          INTEGER NOT NULL,
    -- The next position; of a sharded type, the highest of its shards.
    next_id           INTEGER NOT NULL CHECK (next_id >= first_id),
    max_id            INTEGER NOT NULL CHECK (max_id >= first_id),
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

INSERT INTO id_type_v2
    SELECT name, mode, state, prefix, description, '{}', first_id, next_id, max_id, min_range,
        max_range, load_interval_ms, load_basis_points, lock_ttl_ms, last_range, last_load_ms,
        instance_id, history, version, created_ms, updated_ms
    FROM id_type;

DROP TABLE id_type;

ALTER TABLE id_type_v2 RENAME TO id_type;

CREATE INDEX id_type_by_instance ON id_type (instance_id);

-- Where the shards of a sharded type stand; one without a range so far is not here.
CREATE TABLE type_shard (
    name       TEXT NOT NULL REFERENCES id_type (name),
    shard      INTEGER NOT NULL CHECK (shard BETWEEN 0 AND 63),
    next_id    INTEGER NOT NULL,
    last_range INTEGER,
    PRIMARY KEY (name, shard)
) STRICT, WITHOUT ROWID;

-- The keys of opaque types. Secret: in no log, no audit entry and no error.
CREATE TABLE type_key (
    name       TEXT NOT NULL REFERENCES id_type (name),
    from_slice INTEGER NOT NULL CHECK (from_slice >= 0),
    key        BLOB NOT NULL CHECK (length(key) = 32),
    PRIMARY KEY (name, from_slice)
) STRICT, WITHOUT ROWID;

ALTER TABLE range_log ADD COLUMN shard INTEGER;

-- Finds the range of a position, and stops a position from being allocated twice
-- from the same start, whatever else goes wrong.
CREATE UNIQUE INDEX range_log_by_start ON range_log (name, coalesce(shard, -1), start_id);
