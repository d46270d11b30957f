-- Worker ids of snowflake types (src/ports/worker_ids.rs).

-- The latest tenure of each worker id; leased from 0 upwards, without gaps.
CREATE TABLE worker (
    bits     INTEGER NOT NULL CHECK (bits BETWEEN 1 AND 20),
    worker   INTEGER NOT NULL CHECK (worker >= 0),
    token    TEXT,  -- null once it was released
    holder   TEXT NOT NULL,
    from_ms  INTEGER NOT NULL,
    until_ms INTEGER NOT NULL CHECK (until_ms >= from_ms),
    PRIMARY KEY (bits, worker)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX worker_by_token ON worker (bits, token) WHERE token IS NOT NULL;
CREATE INDEX worker_by_end ON worker (bits, until_ms, worker);

-- Tenures that were followed by another one, for decoding.
CREATE TABLE past_tenure (
    bits     INTEGER NOT NULL,
    worker   INTEGER NOT NULL,
    from_ms  INTEGER NOT NULL,
    until_ms INTEGER NOT NULL CHECK (until_ms > from_ms),
    holder   TEXT NOT NULL,
    PRIMARY KEY (bits, worker, from_ms)
) STRICT, WITHOUT ROWID;
