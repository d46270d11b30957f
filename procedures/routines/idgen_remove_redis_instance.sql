-- Removes a Redis instance by name; refused while a type is assigned to it or on
-- its way to it, or another instance is drained to it.
CREATE PROCEDURE idgen_remove_redis_instance(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_before LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_other VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_id, v_types, v_now, v_seq BIGINT;

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

    SELECT id INTO v_id FROM idgen_redis_instance WHERE name = v_name FOR UPDATE;
    IF v_id IS NULL THEN
      SET v_message = CONCAT('no Redis instance is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45002, MESSAGE_TEXT = v_message;
    END IF;
    -- Nobody can assign a type or drain to it now: that takes a lock on its row.
    SELECT COUNT(*) INTO v_types FROM idgen_type WHERE instance_id = v_id;
    IF v_types > 0 THEN
      SET v_message = CONCAT('Redis instance "', LEFT(v_name, 48), '" has ', v_types, ' id types assigned to it');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45010, MESSAGE_TEXT = v_message;
    END IF;
    SELECT COUNT(*) INTO v_types FROM idgen_type WHERE moving_to = v_id;
    IF v_types > 0 THEN
      SET v_message = CONCAT('Redis instance "', LEFT(v_name, 48), '" has ', v_types, ' id types on their way to it');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45010, MESSAGE_TEXT = v_message;
    END IF;
    SELECT MIN(name) INTO v_other FROM idgen_redis_instance WHERE drain_to = v_id;
    IF v_other IS NOT NULL THEN
      SET v_message = CONCAT('Redis instance "', LEFT(v_other, 40), '" is being drained to "', LEFT(v_name, 40), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45010, MESSAGE_TEXT = v_message;
    END IF;
    SELECT JSON_OBJECT('id', id, 'name', name, 'url', url) INTO v_before
      FROM idgen_instances WHERE id = v_id;
    DELETE FROM idgen_redis_instance WHERE id = v_id;

    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      VALUES (v_seq, v_now, v_actor, 'remove_redis_instance', 'instance', v_name, v_before, NULL);
    COMMIT;
  END;

  SELECT v_id AS id, v_name AS name, 'removed' AS state;
END
