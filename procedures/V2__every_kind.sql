-- What the kinds of ids beyond a plain sequence need (docs/dba-guide.md).
--
-- Every statement can be repeated, as in V1. MySQL has no ADD COLUMN IF NOT
-- EXISTS, so a table is altered by one statement, all or nothing, that is put
-- together only where its first new column is missing.

-- options: what a type is beyond a plain sequence, as idgen_check_options
-- writes it. max_position: the highest position that may be allocated, in each
-- period of a calendar series; NULL stands for max_id, which is right for all
-- types that version 1 made. The old limit of next_id was one of ids; it is one
-- of positions now, whose upper bits are the period in a calendar series (2^40
-- is the first position of the first day after 1970-01-01).
-- The old constraint is not there on a MySQL before 8.0.16, and needs another
-- word on a MariaDB.
SET @idgen_step = (SELECT IF(COUNT(*) > 0, 'DO 0', CONCAT(
  'ALTER TABLE idgen_type ',
  'ADD COLUMN options VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''{}'', ',
  'ADD COLUMN max_position BIGINT NULL AFTER max_id, ',
  (SELECT IF(COUNT(*) = 0, '', IF(VERSION() LIKE '%MariaDB%', 'DROP CONSTRAINT idgen_type_ids, ', 'DROP CHECK idgen_type_ids, '))
    FROM information_schema.table_constraints
    WHERE constraint_schema = DATABASE() AND table_name = 'idgen_type' AND constraint_name = 'idgen_type_ids'),
  'ADD CONSTRAINT idgen_type_positions CHECK (first_id >= 1 AND next_id >= first_id ',
  'AND max_id < 9223372036854775807 AND COALESCE(max_position, max_id) < 9223372036854775807 ',
  'AND (next_id - 1 <= COALESCE(max_position, max_id) ',
  'OR (next_id >= 1099511627776 AND next_id % 1099511627776 - 1 <= max_position)))'))
  FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'idgen_type' AND column_name = 'options');
PREPARE idgen_step FROM @idgen_step;
EXECUTE idgen_step;
DEALLOCATE PREPARE idgen_step;

-- shard: of a sharded type; -1 for the others, because a unique key takes NULL
-- for different from NULL. The new key serves give_back and decoding, which ask
-- for the range that holds a position; the other one asks for the newest.
SET @idgen_step = (SELECT IF(COUNT(*) > 0, 'DO 0', CONCAT(
  'ALTER TABLE idgen_range_log ',
  'ADD COLUMN shard SMALLINT NOT NULL DEFAULT -1 AFTER type_id, ',
  'DROP INDEX idgen_range_log_start, ',
  'ADD UNIQUE KEY idgen_range_log_start (type_id, shard, start_id), ',
  'ADD KEY idgen_range_log_newest (type_id, id)'))
  FROM information_schema.columns
  WHERE table_schema = DATABASE() AND table_name = 'idgen_range_log' AND column_name = 'shard');
PREPARE idgen_step FROM @idgen_step;
EXECUTE idgen_step;
DEALLOCATE PREPARE idgen_step;

-- The 64 sub-sequences of each sharded type. The row of the type is locked by
-- everybody who reads or writes them; its next_id is the highest of theirs.
CREATE TABLE IF NOT EXISTS idgen_shard (
  type_id BIGINT NOT NULL,
  shard SMALLINT NOT NULL,
  next_id BIGINT NOT NULL,
  last_range BIGINT NULL,
  last_load_ms BIGINT NULL,
  PRIMARY KEY (type_id, shard),
  CONSTRAINT idgen_shard_number CHECK (shard >= 0 AND shard < 64)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The keys of the opaque types. Secret: whoever has them can tell the volume.
CREATE TABLE IF NOT EXISTS idgen_type_key (
  type_id BIGINT NOT NULL,
  from_slice BIGINT NOT NULL,
  key_hex CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  PRIMARY KEY (type_id, from_slice)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One pool of worker ids for each number of bits; its row is locked by everybody
-- who leases one. next_worker is the lowest that nobody had. No tenure begins
-- before floor_ms, which an administrator raises after a restore.
CREATE TABLE IF NOT EXISTS idgen_worker_pool (
  bits TINYINT NOT NULL,
  next_worker BIGINT NOT NULL,
  floor_ms BIGINT NOT NULL,
  PRIMARY KEY (bits)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO idgen_worker_pool (bits, next_worker, floor_ms) VALUES
  (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 0), (6, 0, 0), (7, 0, 0),
  (8, 0, 0), (9, 0, 0), (10, 0, 0), (11, 0, 0), (12, 0, 0), (13, 0, 0), (14, 0, 0),
  (15, 0, 0), (16, 0, 0), (17, 0, 0), (18, 0, 0), (19, 0, 0), (20, 0, 0);

-- The newest tenure of each worker id: the time values [from_ms, until_ms) are
-- its holder's. token is NULL once it was released. Bytes, because text that
-- differs in spaces at its end is equal to a server.
CREATE TABLE IF NOT EXISTS idgen_worker (
  bits TINYINT NOT NULL,
  worker BIGINT NOT NULL,
  holder VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  token VARBINARY(256) NULL,
  from_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  PRIMARY KEY (bits, worker),
  KEY idgen_worker_until (bits, until_ms, worker),
  KEY idgen_worker_token (bits, token),
  CONSTRAINT idgen_worker_span CHECK (from_ms >= 0 AND from_ms <= until_ms)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The tenures before the newest, for 400 days. The key refuses a second one that
-- begins where an older one began.
CREATE TABLE IF NOT EXISTS idgen_worker_log (
  bits TINYINT NOT NULL,
  worker BIGINT NOT NULL,
  from_ms BIGINT NOT NULL,
  until_ms BIGINT NOT NULL,
  holder VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (bits, worker, from_ms)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
