-- Refuses a history that is not 1 to 64 letters, digits or _ . : -; NULL passes. For
-- the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_history(
  IN p_history VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  IF LENGTH(p_history) NOT BETWEEN 1 AND 64
    OR LENGTH(p_history) <> CHAR_LENGTH(p_history)
    OR p_history REGEXP '[^A-Za-z0-9_.:-]'
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45117,
      MESSAGE_TEXT = 'history is not legal: it must be 1 to 64 letters, digits or _ . : -';
  END IF;
END
