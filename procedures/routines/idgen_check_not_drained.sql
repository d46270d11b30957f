-- Refuses a Redis instance that is being drained: it takes no id types. For the
-- other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_not_drained(
  IN p_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  IN p_drain_to BIGINT
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  IF p_drain_to IS NOT NULL THEN
    SET v_message = CONCAT('instance "', LEFT(p_name, 64), '" is being drained: it takes no id types');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45116, MESSAGE_TEXT = v_message;
  END IF;
END
