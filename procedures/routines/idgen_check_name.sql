-- Refuses a name that breaks [A-Za-z0-9][A-Za-z0-9_.:-]{0,127}. For the other
-- procedures; harmless on its own.
CREATE PROCEDURE idgen_check_name(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  -- Asks for characters that are not allowed, in text that was found to be
  -- ASCII: an anchored pattern lets a trailing newline pass, and a class that
  -- ignores case lets U+212A (Kelvin) pass for k.
  IF p_name IS NULL
    OR LENGTH(p_name) NOT BETWEEN 1 AND 128
    OR LENGTH(p_name) <> CHAR_LENGTH(p_name)
    OR p_name REGEXP '[^A-Za-z0-9_.:-]'
    OR LEFT(p_name, 1) REGEXP '[^A-Za-z0-9]'
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45101,
      MESSAGE_TEXT = 'name is not legal: it must be 1 to 128 letters, digits or _ . : - and begin with a letter or digit';
  END IF;
END
