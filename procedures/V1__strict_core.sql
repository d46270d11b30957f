-- The tables of the range store (docs/dba-guide.md tells what each is for).
--
-- DDL is not transactional on MySQL: every statement here can be repeated, so
-- that an applier that died in the middle is simply started again. Statements
-- end with a semicolon at the end of a line, and hold none elsewhere.
--
-- Names, histories and modes are ASCII and compared byte by byte. Times are
-- milliseconds of the Unix epoch by this server's clock, so that no session's
-- time zone has a say.

CREATE TABLE IF NOT EXISTS idgen_redis_instance (
  id BIGINT NOT NULL AUTO_INCREMENT,
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  url VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_ms BIGINT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY idgen_redis_instance_name (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS idgen_type (
  id BIGINT NOT NULL AUTO_INCREMENT,
  name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  prefix VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  description TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  first_id BIGINT NOT NULL,
  next_id BIGINT NOT NULL,
  max_id BIGINT NOT NULL,
  min_range BIGINT NOT NULL,
  max_range BIGINT NOT NULL,
  load_interval_ms BIGINT NOT NULL,
  load_percentage DECIMAL(5, 4) NOT NULL,
  lock_ttl_ms BIGINT NOT NULL,
  last_range BIGINT NULL,
  last_load_ms BIGINT NULL,
  instance_id BIGINT NOT NULL,
  history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  version BIGINT NOT NULL,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY idgen_type_name (name),
  KEY idgen_type_instance (instance_id),
  CONSTRAINT idgen_type_instance FOREIGN KEY (instance_id) REFERENCES idgen_redis_instance (id),
  CONSTRAINT idgen_type_ids CHECK (first_id >= 1 AND next_id >= first_id AND next_id - 1 <= max_id AND max_id < 9223372036854775807)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every history under which a range of a type was ever allocated. One that is
-- here and is not idgen_type.history was succeeded, and gets nothing any more.
CREATE TABLE IF NOT EXISTS idgen_type_history (
  type_id BIGINT NOT NULL,
  history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  instance_id BIGINT NOT NULL,
  first_seen_ms BIGINT NOT NULL,
  PRIMARY KEY (type_id, history)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every range that was ever given away. The unique key is the last line of
-- defence: a type whose next_id was set back by hand cannot repeat a start.
CREATE TABLE IF NOT EXISTS idgen_range_log (
  id BIGINT NOT NULL AUTO_INCREMENT,
  type_id BIGINT NOT NULL,
  start_id BIGINT NOT NULL,
  end_id BIGINT NOT NULL,
  at_ms BIGINT NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  owner VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  instance_id BIGINT NULL,
  history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  consumed DECIMAL(20, 0) NULL,
  elapsed_ms DECIMAL(20, 0) NULL,
  floor_id BIGINT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY idgen_range_log_start (type_id, start_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The feed of changes, which is the audit log too. Its numbers come from
-- idgen_counter, not from AUTO_INCREMENT: that one numbers at the insert, so a
-- reader could see 8 before 7 is committed, and miss 7 for ever.
CREATE TABLE IF NOT EXISTS idgen_change (
  seq BIGINT NOT NULL,
  at_ms BIGINT NOT NULL,
  actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  action VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  subject_kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  subject VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  before_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  after_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The row `change` is locked from numbering to commit, so changes become
-- visible in the order of their numbers. Always locked last (after instances
-- and types), so it closes no circle of waiting.
CREATE TABLE IF NOT EXISTS idgen_counter (
  name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value BIGINT NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO idgen_counter (name, value) VALUES ('change', 0);

-- What `idgen schema apply` made: the text that it sent and the text that the
-- server makes of it. `idgen schema check` compares both with what is there.
CREATE TABLE IF NOT EXISTS idgen_schema_object (
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  source LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  live LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (kind, name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
