-- Creates an id type and answers with its row in idgen_types. NULL for a
-- setting takes its default; NULL for p_instance takes the Redis instance with
-- the lowest number that is not being drained; p_instance is a name or a number. p_options is a JSON object
-- (docs/dba-guide.md), p_key the key of an opaque type, and NULL for the others:
-- it goes to no message and to no audit entry.
CREATE PROCEDURE idgen_create_type(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_mode VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_prefix LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_first_id DECIMAL(20, 0),
  IN p_max_id DECIMAL(20, 0),
  IN p_min_range DECIMAL(20, 0),
  IN p_max_range DECIMAL(20, 0),
  IN p_load_interval_ms DECIMAL(20, 0),
  IN p_load_percentage DECIMAL(24, 4),
  IN p_lock_ttl_ms DECIMAL(20, 0),
  IN p_instance VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_options LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_key VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_stored VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_mode VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT COALESCE(p_mode, 'strict');
  DECLARE v_instance_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_instance, v_drain_to, v_now, v_seq, v_type, v_max_position BIGINT;
  DECLARE v_shard INT DEFAULT 0;
  DECLARE v_first DECIMAL(20, 0) DEFAULT COALESCE(p_first_id, 1);
  DECLARE v_max DECIMAL(20, 0) DEFAULT p_max_id;
  DECLARE v_min_range DECIMAL(20, 0) DEFAULT COALESCE(p_min_range, 1000);
  DECLARE v_max_range DECIMAL(20, 0) DEFAULT COALESCE(p_max_range, 100000000);
  DECLARE v_interval DECIMAL(20, 0) DEFAULT COALESCE(p_load_interval_ms, 600000);
  DECLARE v_percentage DECIMAL(24, 4) DEFAULT COALESCE(p_load_percentage, 0.1);
  DECLARE v_lock_ttl DECIMAL(20, 0) DEFAULT COALESCE(p_lock_ttl_ms, 10000);

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);
  IF v_max IS NULL THEN
    CALL idgen_default_max_id(p_options, v_max);
  END IF;
  CALL idgen_check_settings(COALESCE(p_prefix, ''), COALESCE(p_description, ''),
    v_first, v_max, v_min_range, v_max_range, v_interval, v_percentage, v_lock_ttl);
  CALL idgen_check_options(v_mode, p_options, v_first, v_max, v_stored, v_max_position);
  IF JSON_EXTRACT(v_stored, '$.opaque') IS NOT NULL THEN
    CALL idgen_check_key(p_key);
  ELSEIF p_key IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45137, MESSAGE_TEXT = 'key is for opaque types only';
  END IF;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    -- The instance is locked, so that it is neither removed nor drained meanwhile.
    IF p_instance IS NOT NULL THEN
      CALL idgen_find_instance(p_instance, v_instance, v_instance_name, v_drain_to);
      CALL idgen_check_not_drained(v_instance_name, v_drain_to);
    ELSE
      SELECT id INTO v_instance FROM idgen_redis_instance FORCE INDEX (PRIMARY)
        WHERE drain_to IS NULL ORDER BY id LIMIT 1 LOCK IN SHARE MODE;
    END IF;
    IF v_instance IS NULL THEN
      SET v_message = IF(EXISTS (SELECT 1 FROM idgen_redis_instance), 'every Redis instance is being drained',
        'no Redis instance is registered: add one with idgen_add_redis_instance');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45002, MESSAGE_TEXT = v_message;
    END IF;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    BEGIN
      DECLARE EXIT HANDLER FOR 1062
      BEGIN
        SET v_message = CONCAT('an id type called "', LEFT(v_name, 64), '" exists already');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45005, MESSAGE_TEXT = v_message;
      END;
      INSERT INTO idgen_type
          (name, mode, state, prefix, description, first_id, next_id, max_id, max_position, min_range, max_range,
           load_interval_ms, load_percentage, lock_ttl_ms, instance_id, version, created_ms, updated_ms, options)
        VALUES
          (v_name, v_mode, 'active', COALESCE(p_prefix, ''), COALESCE(p_description, ''), v_first, v_first,
           v_max, v_max_position, v_min_range, v_max_range, v_interval, v_percentage, v_lock_ttl, v_instance, 1,
           v_now, v_now, v_stored);
    END;
    SET v_type = LAST_INSERT_ID();
    IF p_key IS NOT NULL THEN
      INSERT INTO idgen_type_key (type_id, from_slice, key_hex, created_ms) VALUES (v_type, 0, LOWER(p_key), v_now);
    END IF;
    WHILE v_mode = 'sharded' AND v_shard < 64 DO
      INSERT INTO idgen_shard (type_id, shard, next_id) VALUES (v_type, v_shard, v_first);
      SET v_shard = v_shard + 1;
    END WHILE;

    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      SELECT v_seq, v_now, v_actor, 'create_type', 'type', v_name, NULL,
        JSON_OBJECT('mode', mode, 'state', state, 'prefix', prefix, 'description', description,
          'first_id', first_id, 'max_id', max_id, 'min_range', min_range, 'max_range', max_range,
          'load_interval_ms', load_interval_ms, 'load_percentage', load_percentage,
          'lock_ttl_ms', lock_ttl_ms, 'instance_id', instance_id, 'version', version,
          'options', JSON_EXTRACT(options, '$'))
        FROM idgen_type WHERE name = v_name;
    COMMIT;
  END;

  SELECT * FROM idgen_types WHERE name = v_name;
END
