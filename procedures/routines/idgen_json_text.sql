-- Reads text of a JSON object: NULL where it is missing or null, and refused with
-- p_errno where it is no text. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_json_text(
  IN p_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_errno INT,
  IN p_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_path VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_value LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  SET v_type = COALESCE(JSON_TYPE(JSON_EXTRACT(p_json, p_path)), 'NULL');
  IF v_type NOT IN ('NULL', 'STRING') THEN
    SET v_message = CONCAT(p_field, ' must be text');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
  END IF;
  SET p_value = NULL;
  IF v_type = 'STRING' THEN
    SET p_value = JSON_UNQUOTE(JSON_EXTRACT(p_json, p_path));
  END IF;
END
