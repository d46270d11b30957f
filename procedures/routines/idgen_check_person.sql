-- Fills in who asks: p_given, or the account of the session. Refuses more than
-- 128 characters. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_person(
  IN p_field VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_given VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_person VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF CHAR_LENGTH(p_given) > 128 THEN
    SET v_message = CONCAT(p_field, ' has ', CHAR_LENGTH(p_given), ' characters; the limit is 128');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45113, MESSAGE_TEXT = v_message;
  END IF;
  SET p_person = COALESCE(p_given, LEFT(USER(), 128));
END
