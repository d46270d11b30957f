-- Refuses text of more than p_limit characters, or with control characters, with
-- the error number p_errno and a message that names the field. NULL passes. For
-- the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_text(
  IN p_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_errno INT,
  IN p_text LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_limit INT
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_at INT DEFAULT 1;
  DECLARE v_code BIGINT;

  IF CHAR_LENGTH(p_text) > p_limit THEN
    SET v_message = CONCAT(p_field, ' has ', CHAR_LENGTH(p_text), ' characters; the limit is ', p_limit);
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
  END IF;
  -- Control characters by their bytes in UTF-8 (U+0000 to U+001F, U+007F, and
  -- U+0080 to U+009F as C2 80 to C2 9F): what [[:cntrl:]] means differs
  -- between servers.
  WHILE v_at <= CHAR_LENGTH(p_text) DO
    SET v_code = ORD(SUBSTRING(p_text, v_at, 1));
    IF v_code < 32 OR v_code = 127 OR v_code BETWEEN 49792 AND 49823 THEN
      SET v_message = CONCAT(p_field, ' must not hold control characters');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = p_errno, MESSAGE_TEXT = v_message;
    END IF;
    SET v_at = v_at + 1;
  END WHILE;
END
