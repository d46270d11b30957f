-- Takes back the positions p_start to p_end - 1, the unused end of a range that
-- was leased without a Redis instance, if nothing was allocated after them; then
-- they are given away again. Answers with given_back 1, or 0 where it leaves
-- everything as it is. Only for who leased the range, and never uses them again
-- whatever the answer: nobody else can know that they are unused.
CREATE PROCEDURE idgen_give_back(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_shard DECIMAL(20, 0),
  IN p_start DECIMAL(20, 0),
  IN p_end DECIMAL(20, 0)
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_type, v_next, v_slices, v_log, v_log_start BIGINT;
  DECLARE v_is_tail BOOLEAN;
  DECLARE v_shard BIGINT DEFAULT -1;
  DECLARE v_start, v_end BIGINT;
  DECLARE v_given_back INT DEFAULT 0;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_number('start', 45140, p_start, 1, 9223372036854775806);
  CALL idgen_check_number('end', 45140, p_end, p_start + 1, 9223372036854775807);

  SET v_start = p_start, v_end = p_end;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT id, mode, next_id, JSON_EXTRACT(options, '$.opaque.slices')
      INTO v_type, v_mode, v_next, v_slices
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    CALL idgen_check_shard(v_name, v_mode, p_shard);
    IF p_shard IS NOT NULL THEN
      SET v_shard = p_shard, v_next = NULL;
      SELECT next_id INTO v_next FROM idgen_shard WHERE type_id = v_type AND shard = v_shard FOR UPDATE;
    END IF;
    -- The row of the type is locked, so nobody else writes to its log.
    SELECT id, start_id, end_id = v_end AND kind = 'next' AND instance_id IS NULL
      INTO v_log, v_log_start, v_is_tail
      FROM idgen_range_log
      WHERE type_id = v_type AND shard = v_shard AND start_id <= v_start
      ORDER BY start_id DESC LIMIT 1;

    -- An opaque type takes nothing back: there a floor above next_id has a meaning
    -- (idgen_above_floor), and nodes remember the ends of ranges.
    IF v_next = v_end AND v_is_tail AND v_slices IS NULL THEN
      IF v_log_start = v_start THEN
        DELETE FROM idgen_range_log WHERE id = v_log;
      ELSE
        UPDATE idgen_range_log SET end_id = v_start WHERE id = v_log;
      END IF;
      IF p_shard IS NULL THEN
        UPDATE idgen_type SET next_id = v_start WHERE id = v_type;
      ELSE
        UPDATE idgen_shard SET next_id = v_start WHERE type_id = v_type AND shard = v_shard;
        UPDATE idgen_type SET next_id = (SELECT MAX(next_id) FROM idgen_shard WHERE type_id = v_type)
          WHERE id = v_type;
      END IF;
      SET v_given_back = 1;
    END IF;
    COMMIT;
  END;

  SELECT v_given_back AS given_back;
END
