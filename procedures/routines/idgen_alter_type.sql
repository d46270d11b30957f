-- Changes settings of an id type and answers with its row in idgen_types. NULL
-- keeps what is there. p_expected_version is the version that the caller has
-- seen; another one is a conflict; NULL changes whatever is there. p_options is a
-- JSON object that replaces all options. What could repeat an id or a text is
-- refused once ids were issued (src/domain/id_type.rs has the same rules).
CREATE PROCEDURE idgen_alter_type(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_expected_version DECIMAL(20, 0),
  IN p_prefix LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_max_id DECIMAL(20, 0),
  IN p_min_range DECIMAL(20, 0),
  IN p_max_range DECIMAL(20, 0),
  IN p_load_interval_ms DECIMAL(20, 0),
  IN p_load_percentage DECIMAL(24, 4),
  IN p_lock_ttl_ms DECIMAL(20, 0),
  IN p_mode VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_options LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type, v_version, v_first, v_next, v_max, v_min_range, v_max_range BIGINT;
  DECLARE v_interval, v_lock_ttl, v_now, v_seq, v_load, v_max_position BIGINT;
  DECLARE v_mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_options, v_stored VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_was, v_is LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_errno, v_at INT;
  DECLARE v_percentage DECIMAL(5, 4);
  DECLARE v_prefix, v_description, v_before LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT id, version, prefix, description, first_id, next_id, max_id, min_range, max_range,
        load_interval_ms, load_percentage, lock_ttl_ms, mode, options, last_load_ms,
        JSON_OBJECT('mode', mode, 'state', state, 'prefix', prefix, 'description', description,
          'first_id', first_id, 'max_id', max_id, 'min_range', min_range, 'max_range', max_range,
          'load_interval_ms', load_interval_ms, 'load_percentage', load_percentage,
          'lock_ttl_ms', lock_ttl_ms, 'instance_id', instance_id, 'version', version,
          'options', JSON_EXTRACT(options, '$'))
      INTO v_type, v_version, v_prefix, v_description, v_first, v_next, v_max, v_min_range, v_max_range,
        v_interval, v_percentage, v_lock_ttl, v_mode, v_options, v_load,
        v_before
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF p_expected_version <> v_version THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 32), '" has version ', v_version, ', not ', p_expected_version, ': read it again');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45006, MESSAGE_TEXT = v_message;
    END IF;
    CALL idgen_check_settings(
      COALESCE(p_prefix, v_prefix), COALESCE(p_description, v_description),
      v_first, COALESCE(p_max_id, v_max),
      COALESCE(p_min_range, v_min_range), COALESCE(p_max_range, v_max_range),
      COALESCE(p_load_interval_ms, v_interval), COALESCE(p_load_percentage, v_percentage),
      COALESCE(p_lock_ttl_ms, v_lock_ttl));
    CALL idgen_check_options(COALESCE(p_mode, v_mode), COALESCE(p_options, v_options),
      v_first, COALESCE(p_max_id, v_max), v_stored, v_max_position);

    IF v_mode = 'snowflake' OR v_load IS NOT NULL OR v_next > v_first THEN
      -- Somebody may have got an id; nobody counts those of a snowflake type.
      IF COALESCE(p_mode, v_mode) <> v_mode THEN
        SET v_message = CONCAT('mode of id type "', LEFT(v_name, 32), '" cannot change from ', v_mode, ': it has issued ids; make a new type');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45102, MESSAGE_TEXT = v_message;
      END IF;
      SET v_at = 1;
      WHILE v_at <= 8 DO
        SET v_field = ELT(v_at, 'at_limit', 'format', 'calendar', 'time_zone', 'opaque', 'app_id', 'snowflake', 'sites');
        SET v_was = JSON_EXTRACT(v_options, CONCAT('$.', v_field));
        SET v_is = JSON_EXTRACT(v_stored, CONCAT('$.', v_field));
        IF NOT v_was <=> v_is THEN
          SET v_message = CONCAT(v_field, ' cannot change once ids were issued, because ids could repeat: make a new type');
          SET v_errno = 45120 + v_at;
          SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = v_errno, MESSAGE_TEXT = v_message;
        END IF;
        SET v_at = v_at + 1;
      END WHILE;
      IF p_max_id <> v_max THEN
        -- The ids of these are computed with the limit.
        IF JSON_CONTAINS_PATH(v_stored, 'one', '$.opaque', '$.at_limit') THEN
          SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45106,
            MESSAGE_TEXT = 'max_id of a type that is opaque or cycles cannot change once ids were issued: make a new type';
        END IF;
        -- A limit below what is allocated already could not be kept.
        IF JSON_CONTAINS_PATH(v_stored, 'one', '$.calendar') THEN
          SET v_next = v_next MOD 1099511627776;
        END IF;
        IF v_max_position < v_next - 1 THEN
          SET v_message = CONCAT('max_id ', p_max_id, ' is too low: positions up to ', v_next - 1, ' are allocated');
          SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45106, MESSAGE_TEXT = v_message;
        END IF;
      END IF;
      -- "A1" and 1 make the same text as "A" and 11.
      IF p_prefix <> v_prefix AND (JSON_CONTAINS_PATH(v_options, 'one', '$.format')
        OR RIGHT(v_prefix, 1) BETWEEN '0' AND '9' OR RIGHT(p_prefix, 1) BETWEEN '0' AND '9')
      THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45103,
          MESSAGE_TEXT = 'prefix of a type with a format, or ending in a digit, cannot change once ids were issued: texts could repeat';
      END IF;
    ELSEIF JSON_CONTAINS_PATH(v_options, 'one', '$.opaque') <> JSON_CONTAINS_PATH(v_stored, 'one', '$.opaque') THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45120,
        MESSAGE_TEXT = 'opaque cannot be added or removed later, because of its key: make a new type';
    END IF;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    UPDATE idgen_type
      SET prefix = COALESCE(p_prefix, prefix), description = COALESCE(p_description, description),
        max_id = COALESCE(p_max_id, max_id), min_range = COALESCE(p_min_range, min_range),
        max_range = COALESCE(p_max_range, max_range),
        load_interval_ms = COALESCE(p_load_interval_ms, load_interval_ms),
        load_percentage = COALESCE(p_load_percentage, load_percentage),
        lock_ttl_ms = COALESCE(p_lock_ttl_ms, lock_ttl_ms),
        mode = COALESCE(p_mode, mode), options = v_stored, max_position = v_max_position,
        version = version + 1, updated_ms = v_now
      WHERE id = v_type;
    -- Only before the first id does a mode change.
    IF COALESCE(p_mode, v_mode) <> v_mode THEN
      DELETE FROM idgen_shard WHERE type_id = v_type;
      SET v_at = 0;
      WHILE p_mode = 'sharded' AND v_at < 64 DO
        INSERT INTO idgen_shard (type_id, shard, next_id) VALUES (v_type, v_at, v_first);
        SET v_at = v_at + 1;
      END WHILE;
    END IF;

    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      SELECT v_seq, v_now, v_actor, 'alter_type', 'type', v_name, v_before,
        JSON_OBJECT('mode', mode, 'state', state, 'prefix', prefix, 'description', description,
          'first_id', first_id, 'max_id', max_id, 'min_range', min_range, 'max_range', max_range,
          'load_interval_ms', load_interval_ms, 'load_percentage', load_percentage,
          'lock_ttl_ms', lock_ttl_ms, 'instance_id', instance_id, 'version', version,
          'options', JSON_EXTRACT(options, '$'))
        FROM idgen_type WHERE id = v_type;
    COMMIT;
  END;

  SELECT * FROM idgen_types WHERE name = v_name;
END
