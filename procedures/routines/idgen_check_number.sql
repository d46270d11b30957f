-- Refuses a number outside p_low..p_high with the error number p_errno and a
-- message that names the field. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_number(
  IN p_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_errno INT,
  IN p_value DECIMAL(24, 4),
  IN p_low DECIMAL(20, 0),
  IN p_high DECIMAL(20, 0)
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF p_value IS NULL OR p_value < p_low OR p_value > p_high THEN
    SET v_message = CONCAT(
      p_field, ' ',
      COALESCE(TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(p_value AS CHAR CHARACTER SET utf8mb4))), 'NULL'),
      ' is out of range: it must be from ', p_low, ' to ', p_high);
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
  END IF;
END
