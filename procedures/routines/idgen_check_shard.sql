-- Refuses a shard that is missing, out of range, or not wanted by a type of
-- p_mode. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_shard(
  IN p_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  IN p_mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,
  IN p_shard DECIMAL(20, 0)
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  IF p_mode = 'sharded' THEN
    CALL idgen_check_number('shard', 45138, p_shard, 0, 63);
  ELSEIF p_shard IS NOT NULL THEN
    SET v_message = CONCAT('shard is for sharded types only, and "', LEFT(p_name, 48), '" is ', p_mode);
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45138, MESSAGE_TEXT = v_message;
  END IF;
END
