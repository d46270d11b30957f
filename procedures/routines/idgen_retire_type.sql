-- Retires an id type: it keeps its name and its next id, and hands out nothing.
-- Answers with the row of the type in idgen_types. A type that is in that
-- state already is left alone, and nothing is recorded.
CREATE PROCEDURE idgen_retire_type(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_before LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type, v_version, v_now, v_seq BIGINT;

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

    SELECT id, state, version, JSON_OBJECT('state', state, 'version', version)
      INTO v_type, v_state, v_version, v_before
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF v_state <> 'retired' THEN
      SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
      UPDATE idgen_type SET state = 'retired', version = version + 1, updated_ms = v_now WHERE id = v_type;
      UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
      SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
      INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
        VALUES (v_seq, v_now, v_actor, 'retire_type', 'type', v_name,
          v_before,
          JSON_OBJECT('state', 'retired', 'version', v_version + 1));
    END IF;
    COMMIT;
  END;

  SELECT * FROM idgen_types WHERE name = v_name;
END
