-- Reads a whole number of a JSON object: the default where it is missing, and
-- refused with p_errno where it is no whole number from p_low to p_high. For the
-- other procedures; harmless on its own.
CREATE PROCEDURE idgen_json_number(
  IN p_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_errno INT,
  IN p_json LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_path VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_default BIGINT,
  IN p_low BIGINT,
  IN p_high BIGINT,
  OUT p_value BIGINT
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_text LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  -- As it is written: 5, but "5" with its quotes and 5.0 with its point.
  SET v_text = JSON_EXTRACT(p_json, p_path);
  IF v_text IS NULL THEN
    SET p_value = p_default;
  ELSE
    IF v_text REGEXP '[^0-9-]' OR v_text NOT REGEXP '^-?[0-9]{1,19}$' THEN
      SET v_message = CONCAT(p_field, ' ', LEFT(v_text, 24), ' must be a whole number from ', p_low, ' to ', p_high);
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
    END IF;
    CALL idgen_check_number(p_field, p_errno, CAST(v_text AS DECIMAL(20, 0)), p_low, p_high);
    SET p_value = v_text;
  END IF;
END
