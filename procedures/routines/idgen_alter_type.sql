-- Changes settings of an id type and answers with its row in idgen_types. NULL
-- keeps what is there. p_expected_version is the version that the caller has
-- seen; another one is a conflict; NULL changes whatever is there.
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
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type, v_version, v_first, v_next, v_max, v_min_range, v_max_range BIGINT;
  DECLARE v_interval, v_lock_ttl, v_now, v_seq BIGINT;
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
        load_interval_ms, load_percentage, lock_ttl_ms,
        JSON_OBJECT('mode', mode, 'state', state, 'prefix', prefix, 'description', description,
          'first_id', first_id, 'max_id', max_id, 'min_range', min_range, 'max_range', max_range,
          'load_interval_ms', load_interval_ms, 'load_percentage', load_percentage,
          'lock_ttl_ms', lock_ttl_ms, 'instance_id', instance_id, 'version', version)
      INTO v_type, v_version, v_prefix, v_description, v_first, v_next, v_max, v_min_range, v_max_range,
        v_interval, v_percentage, v_lock_ttl, v_before
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF p_expected_version <> v_version THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 32), '" has version ', v_version, ', not ', p_expected_version, ': read it again');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45006, MESSAGE_TEXT = v_message;
    END IF;
    -- A limit below what is allocated already could not be kept.
    CALL idgen_check_settings(
      COALESCE(p_prefix, v_prefix), COALESCE(p_description, v_description),
      v_first, GREATEST(v_next - 1, v_first), COALESCE(p_max_id, v_max),
      COALESCE(p_min_range, v_min_range), COALESCE(p_max_range, v_max_range),
      COALESCE(p_load_interval_ms, v_interval), COALESCE(p_load_percentage, v_percentage),
      COALESCE(p_lock_ttl_ms, v_lock_ttl));
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    UPDATE idgen_type
      SET prefix = COALESCE(p_prefix, prefix), description = COALESCE(p_description, description),
        max_id = COALESCE(p_max_id, max_id), min_range = COALESCE(p_min_range, min_range),
        max_range = COALESCE(p_max_range, max_range),
        load_interval_ms = COALESCE(p_load_interval_ms, load_interval_ms),
        load_percentage = COALESCE(p_load_percentage, load_percentage),
        lock_ttl_ms = COALESCE(p_lock_ttl_ms, lock_ttl_ms),
        version = version + 1, updated_ms = v_now
      WHERE id = v_type;

    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      SELECT v_seq, v_now, v_actor, 'alter_type', 'type', v_name, v_before,
        JSON_OBJECT('mode', mode, 'state', state, 'prefix', prefix, 'description', description,
          'first_id', first_id, 'max_id', max_id, 'min_range', min_range, 'max_range', max_range,
          'load_interval_ms', load_interval_ms, 'load_percentage', load_percentage,
          'lock_ttl_ms', lock_ttl_ms, 'instance_id', instance_id, 'version', version)
        FROM idgen_type WHERE id = v_type;
    COMMIT;
  END;

  SELECT * FROM idgen_types WHERE name = v_name;
END
