-- Gives an opaque type a new key, from the next slice on, and answers with its
-- row in idgen_types. What is left of the current slice is skipped, in the same
-- transaction, so that no slice ever has two keys. The key goes to no message
-- and to no audit entry.
CREATE PROCEDURE idgen_rotate_key(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_key VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type, v_next, v_max, v_slices, v_slice, v_from, v_version, v_now, v_seq BIGINT;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);
  CALL idgen_check_key(p_key);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT id, next_id, COALESCE(max_position, max_id), JSON_EXTRACT(options, '$.opaque.slices'), version
      INTO v_type, v_next, v_max, v_slices, v_version
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF v_slices IS NULL THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 48), '" is not opaque: it has no key to change');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45125, MESSAGE_TEXT = v_message;
    END IF;
    SET v_slice = v_max DIV v_slices + (v_max MOD v_slices > 0);
    SET v_from = (v_next - 1) DIV v_slice + 1;
    IF v_from >= v_slices THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 32), '" is in the last of its ', v_slices, ' slices: there is none for another key');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45007, MESSAGE_TEXT = v_message;
    END IF;
    SET v_next = 1 + v_from * v_slice;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    INSERT INTO idgen_type_key (type_id, from_slice, key_hex, created_ms)
      VALUES (v_type, v_from, LOWER(p_key), v_now);
    UPDATE idgen_shard SET next_id = v_next WHERE type_id = v_type;
    UPDATE idgen_type SET next_id = v_next, version = version + 1, updated_ms = v_now WHERE id = v_type;
    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    -- + 0: a bare variable is text to MariaDB.
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      VALUES (v_seq, v_now, v_actor, 'rotate_key', 'type', v_name, JSON_OBJECT('version', v_version + 0),
        JSON_OBJECT('from_slice', v_from + 0, 'next_id', v_next + 0, 'version', v_version + 1));
    COMMIT;
  END;

  SELECT * FROM idgen_types WHERE name = v_name;
END
