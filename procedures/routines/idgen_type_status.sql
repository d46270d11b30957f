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
  -- What is left is counted in positions: of the newest period of a calendar
  -- series, of all shards together; of a snowflake type nothing is counted.
  SELECT t.name AS name, t.state AS state, t.mode AS mode, t.next_id AS next_id, t.max_id AS max_id,
      CASE
        WHEN t.mode = 'snowflake' THEN NULL
        WHEN t.mode = 'sharded' THEN (SELECT SUM(t.highest - s.next_id + 1) FROM idgen_shard s WHERE s.type_id = t.id)
        ELSE t.highest - t.next_number + 1 END AS ids_left,
      CASE
        WHEN t.mode = 'snowflake' THEN NULL
        WHEN t.mode = 'sharded' THEN (SELECT ROUND(100.0 * SUM(s.next_id - t.first_id) / (64 * (1.0 + t.highest - t.first_id)), 4)
          FROM idgen_shard s WHERE s.type_id = t.id)
        ELSE ROUND(100.0 * (t.next_number - t.first_id) / (1.0 + t.highest - t.first_id), 4) END AS percent_allocated,
      t.last_range AS last_range,
      TIMESTAMPADD(MICROSECOND, t.last_load_ms * 1000, '1970-01-01 00:00:00') AS last_load_utc,
      (SELECT l.owner FROM idgen_range_log l WHERE l.type_id = t.id ORDER BY l.id DESC LIMIT 1) AS last_owner,
      i.name AS redis_instance, t.history AS history, t.version AS version, t.options AS options,
      TIMESTAMPADD(MICROSECOND, t.updated_ms * 1000, '1970-01-01 00:00:00') AS updated_utc
    FROM (SELECT y.*, COALESCE(y.max_position, y.max_id) AS highest,
        IF(JSON_CONTAINS_PATH(y.options, 'one', '$.calendar'), y.next_id MOD 1099511627776, y.next_id) AS next_number
        FROM idgen_type y WHERE y.name = v_name) t
      JOIN idgen_redis_instance i ON i.id = t.instance_id;
END
