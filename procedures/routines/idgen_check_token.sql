-- Refuses a token that is not 1 to 64 printable characters. No message repeats
-- it. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_token(
  IN p_token VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  IF p_token IS NULL OR LENGTH(p_token) = 0 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45143,
      MESSAGE_TEXT = 'token is missing: it must have 1 to 64 printable characters, drawn at random';
  END IF;
  CALL idgen_check_text('token', 45143, p_token, 64);
END
