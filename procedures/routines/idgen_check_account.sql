-- Refuses the name of an account or a token that breaks
-- [A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}, and a role that is not known; NULL passes for
-- the role. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_account(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_role VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  -- As in idgen_check_name.
  IF p_name IS NULL
    OR LENGTH(p_name) NOT BETWEEN 1 AND 64
    OR LENGTH(p_name) <> CHAR_LENGTH(p_name)
    OR p_name REGEXP '[^A-Za-z0-9_.@+-]'
    OR LEFT(p_name, 1) REGEXP '[^A-Za-z0-9]'
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45101,
      MESSAGE_TEXT = 'name is not legal: it must be 1 to 64 letters, digits or _ . @ + - and begin with a letter or digit';
  END IF;
  IF p_role NOT IN ('view', 'operate', 'administer') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45148,
      MESSAGE_TEXT = 'role is not known: it must be view, operate or administer';
  END IF;
END
