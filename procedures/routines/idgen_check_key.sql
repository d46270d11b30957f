-- Refuses the key of an opaque type that is not 64 hexadecimal digits. No message
-- repeats it. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_key(
  IN p_key VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  IF p_key IS NULL OR LENGTH(p_key) <> 64 OR p_key REGEXP '[^0-9A-Fa-f]' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45137,
      MESSAGE_TEXT = 'key must be 64 hexadecimal digits, drawn at random: an opaque type needs one';
  END IF;
END
