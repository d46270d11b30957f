-- Assigns a type to the Redis instance with the number p_instance, and answers with
-- its row in idgen_types and keeps_rest. For nodes, which have sealed the type on
-- the instance that it leaves; by hand it would let two instances hand out ids at
-- once, out of order.
--
-- p_generation  that of the seal
-- p_history     the line of writes of the new instance, for a strict type, or NULL
-- p_rest_end    the end of what is left on the old instance, NULL where nothing is
--
-- keeps_rest 1: the caller, and nobody else ever, may publish on the new instance
-- what was left. Only in the migration that this database knows of, and only if
-- nothing above it was allocated for a Redis instance since.
CREATE PROCEDURE idgen_assign_type(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_instance DECIMAL(20, 0),
  IN p_generation DECIMAL(20, 0),
  IN p_history VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_rest_end DECIMAL(20, 0),
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_new_history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_last_history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_target, v_type, v_instance, v_moving_to, v_generation, v_version, v_now, v_seq BIGINT;
  DECLARE v_seal, v_rest_end, v_known, v_seen, v_above BIGINT;
  DECLARE v_keeps BOOLEAN;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);
  CALL idgen_check_number('instance', 45116, p_instance, 1, 9223372036854775807);
  CALL idgen_check_number('generation', 45146, p_generation, 0, 9223372036854775806);
  CALL idgen_check_history(p_history);
  IF p_rest_end IS NOT NULL THEN
    CALL idgen_check_number('rest_end', 45147, p_rest_end, 1, 9223372036854775807);
  END IF;
  SET v_seal = p_generation, v_new_history = p_history, v_rest_end = p_rest_end;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT id INTO v_target FROM idgen_redis_instance WHERE id = p_instance LOCK IN SHARE MODE;
    IF v_target IS NULL THEN
      SET v_message = CONCAT('no Redis instance has the number ', p_instance);
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45002, MESSAGE_TEXT = v_message;
    END IF;
    SELECT id, instance_id, moving_to, generation, version
      INTO v_type, v_instance, v_moving_to, v_generation, v_version
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF v_seal < v_generation THEN
      SET v_message = CONCAT('this migration of id type "', LEFT(v_name, 48), '" was finished or undone already');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45014, MESSAGE_TEXT = v_message;
    END IF;
    -- The reads below lock, so they see what was committed while this waited for the
    -- row of the type.
    IF v_new_history IS NOT NULL THEN
      SELECT COALESCE(MAX(first_seen_ms) + 1, 0), COUNT(IF(history = v_new_history, 1, NULL))
        INTO v_seen, v_known
        FROM idgen_type_history WHERE type_id = v_type LOCK IN SHARE MODE;
      SELECT history INTO v_last_history
        FROM idgen_type_history WHERE type_id = v_type AND instance_id = v_target
        ORDER BY first_seen_ms DESC LIMIT 1 LOCK IN SHARE MODE;
      IF v_known > 0 AND NOT v_last_history <=> v_new_history THEN
        SET v_message = CONCAT('history of id type "', LEFT(v_name, 32), '" was succeeded by another one: the Redis server was replaced');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45009, MESSAGE_TEXT = v_message;
      END IF;
    END IF;
    -- Only a strict type has something left, and no shards.
    SELECT COUNT(*) INTO v_above FROM idgen_range_log
      WHERE type_id = v_type AND shard = -1 AND start_id >= v_rest_end AND instance_id IS NOT NULL
      LOCK IN SHARE MODE;
    SET v_keeps = v_rest_end IS NOT NULL AND v_seal = v_generation AND v_moving_to <=> v_target AND v_above = 0;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    UPDATE idgen_type
      SET moved_from = IF(v_instance <> v_target, v_instance, moved_from),
        moved_ms = IF(v_instance <> v_target, v_now, moved_ms),
        instance_id = v_target, moving_to = NULL, history = COALESCE(v_new_history, history),
        generation = v_seal + 1, version = version + 1, updated_ms = v_now
      WHERE id = v_type;
    IF v_known = 0 THEN
      -- Ascends whatever the clock does: it tells which history of an instance is the last.
      INSERT INTO idgen_type_history (type_id, history, instance_id, first_seen_ms)
        VALUES (v_type, v_new_history, v_target, GREATEST(v_now, v_seen));
    END IF;
    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      VALUES (v_seq, v_now, v_actor, 'assign_type', 'type', v_name,
        JSON_OBJECT('instance', v_instance, 'moving_to', v_moving_to, 'generation', v_generation, 'version', v_version),
        JSON_OBJECT('instance', v_target, 'moving_to', NULL, 'generation', v_seal + 1, 'version', v_version + 1));
    COMMIT;
  END;

  -- Whoever reads that the type has gone on already must not publish here any more.
  SELECT t.*, v_keeps AND t.generation = v_seal + 1 AS keeps_rest FROM idgen_types t WHERE t.name = v_name;
END
