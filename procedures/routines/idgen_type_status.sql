-- How an id type is doing, for people: times in UTC, what is left, and where
-- its newest range went. Changes nothing.
CREATE PROCEDURE idgen_type_status(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    READS SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  IF NOT EXISTS (SELECT 1 FROM idgen_type WHERE name = v_name) THEN
    SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
  END IF;
  SELECT t.name AS name, t.state AS state, t.mode AS mode, t.next_id AS next_id, t.max_id AS max_id,
      t.max_id - t.next_id + 1 AS ids_left,
      ROUND(100.0 * (t.next_id - t.first_id) / (1.0 + t.max_id - t.first_id), 4) AS percent_allocated,
      t.last_range AS last_range,
      TIMESTAMPADD(MICROSECOND, t.last_load_ms * 1000, '1970-01-01 00:00:00') AS last_load_utc,
      (SELECT l.owner FROM idgen_range_log l WHERE l.type_id = t.id ORDER BY l.start_id DESC LIMIT 1) AS last_owner,
      i.name AS redis_instance, t.history AS history, t.version AS version,
      TIMESTAMPADD(MICROSECOND, t.updated_ms * 1000, '1970-01-01 00:00:00') AS updated_utc
    FROM idgen_type t JOIN idgen_redis_instance i ON i.id = t.instance_id
    WHERE t.name = v_name;
END
