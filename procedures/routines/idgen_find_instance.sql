-- The Redis instance called p_wanted, by name or number (a name goes before a
-- number, because it may look like one), refused where there is none. In a
-- transaction the instances are locked until its end, so that none of them is
-- removed or drained meanwhile. For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_find_instance(
  IN p_wanted VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_id BIGINT,
  OUT p_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  OUT p_drain_to BIGINT
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  SET p_id = NULL, p_name = NULL, p_drain_to = NULL;
  -- By the primary key: everybody locks the instances in the same order.
  SELECT id, name, drain_to INTO p_id, p_name, p_drain_to
    FROM idgen_redis_instance FORCE INDEX (PRIMARY)
    WHERE CONVERT(name USING utf8mb4) COLLATE utf8mb4_bin = p_wanted
      OR CONVERT(CAST(id AS CHAR) USING utf8mb4) COLLATE utf8mb4_bin = p_wanted
    ORDER BY CONVERT(name USING utf8mb4) COLLATE utf8mb4_bin = p_wanted DESC LIMIT 1
    LOCK IN SHARE MODE;
  IF p_id IS NULL THEN
    SET v_message = CONCAT('no Redis instance is called "', LEFT(COALESCE(p_wanted, 'NULL'), 64), '"');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45002, MESSAGE_TEXT = v_message;
  END IF;
END
