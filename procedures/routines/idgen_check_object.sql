-- Refuses JSON that is no object, or that has a field which p_known does not
-- name (as ',a,b,'), with the error number p_errno. NULL passes. For the other
-- procedures; harmless on its own.
CREATE PROCEDURE idgen_check_object(
  IN p_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_errno INT,
  IN p_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_known VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_keys, v_key LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_at INT DEFAULT 0;

  IF p_json IS NOT NULL THEN
    -- A server that is asked about text which is no JSON raises errors of its own.
    IF NOT JSON_VALID(p_json) THEN
      SET v_message = CONCAT(p_field, ' is not JSON');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
    END IF;
    IF JSON_TYPE(p_json) <> 'OBJECT' THEN
      SET v_message = CONCAT(p_field, ' must be a JSON object');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
    END IF;
    SET v_keys = JSON_KEYS(p_json);
    WHILE v_at < JSON_LENGTH(v_keys) DO
      SET v_key = JSON_UNQUOTE(JSON_EXTRACT(v_keys, CONCAT('$[', v_at, ']')));
      -- The commas are part of what is looked for, so no key may hold one.
      IF LOCATE(',', v_key) > 0 OR LOCATE(CONCAT(',', v_key, ','), p_known) = 0 THEN
        SET v_message = CONCAT(p_field, ' has no field "', LEFT(v_key, 48), '"');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
      END IF;
      SET v_at = v_at + 1;
    END WHILE;
  END IF;
END
