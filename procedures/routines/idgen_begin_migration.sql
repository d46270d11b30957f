-- Begins to move a type to another Redis instance, by name or number, and answers
-- with its row in idgen_types. The nodes do the rest (idgen_assign_type). The rules
-- are those of src/domain/migration.rs, as for the other steps.
CREATE PROCEDURE idgen_begin_migration(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_instance VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_target_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_target, v_drain_to, v_type, v_instance, v_moving_to, v_generation, v_version, v_now, v_seq BIGINT;

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

    CALL idgen_find_instance(p_instance, v_target, v_target_name, v_drain_to);
    SELECT id, instance_id, moving_to, generation, version
      INTO v_type, v_instance, v_moving_to, v_generation, v_version
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF v_moving_to IS NOT NULL THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 48), '" is being moved to Redis instance ', v_moving_to, ': let that end, or undo it');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45014, MESSAGE_TEXT = v_message;
    END IF;
    IF v_instance = v_target THEN
      SET v_message = CONCAT('instance "', LEFT(v_target_name, 40), '" has id type "', LEFT(v_name, 40), '" already');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45116, MESSAGE_TEXT = v_message;
    END IF;
    CALL idgen_check_not_drained(v_target_name, v_drain_to);
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    UPDATE idgen_type
      SET moving_to = v_target, generation = generation + 1, version = version + 1, updated_ms = v_now
      WHERE id = v_type;
    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      VALUES (v_seq, v_now, v_actor, 'begin_migration', 'type', v_name,
        JSON_OBJECT('instance', v_instance, 'moving_to', v_moving_to, 'generation', v_generation, 'version', v_version),
        JSON_OBJECT('instance', v_instance, 'moving_to', v_target, 'generation', v_generation + 1, 'version', v_version + 1));
    COMMIT;
  END;

  SELECT * FROM idgen_types WHERE name = v_name;
END
