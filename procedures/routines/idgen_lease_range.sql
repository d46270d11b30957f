-- Allocates the next range of a type: one transaction, and one row that is
-- read only after it is committed. For nodes: idgen_next_range is this procedure
-- for types that are neither sharded nor a calendar series. The rule is that of
-- src/domain/allocation.rs.
--
-- p_shard                the sub-sequence, for a sharded type and no other
-- p_period, p_from_ms, p_until_ms  the period that the caller takes for the
--                        current one, and the time that it covers, for a calendar
--                        series and no other; this server's clock must lie in it
-- p_instance, p_history  the Redis instance and the line of its writes that the
--                        range will be published on; both NULL for other uses
-- p_consumed, p_elapsed_ms  ids used, and time, since the last load; both NULL
--                        keeps the length
-- p_floor                the highest range end that the caller knows, or NULL
-- p_owner                who asks, for the range log; NULL is the account
--
-- Numbers come as DECIMAL, one digit wider than BIGINT: a session that is not
-- strict would cut a number that is too large to the largest BIGINT, and the
-- procedure could not tell.
CREATE PROCEDURE idgen_lease_range(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_shard DECIMAL(20, 0),
  IN p_period DECIMAL(20, 0),
  IN p_from_ms DECIMAL(20, 0),
  IN p_until_ms DECIMAL(20, 0),
  IN p_instance DECIMAL(20, 0),
  IN p_history VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_consumed DECIMAL(20, 0),
  IN p_elapsed_ms DECIMAL(20, 0),
  IN p_floor DECIMAL(20, 0),
  IN p_owner VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_new_history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_owner VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type BIGINT;
  DECLARE v_state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_calendar VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_shard BIGINT DEFAULT -1;
  DECLARE v_first, v_next, v_max_id, v_max, v_min_range, v_max_range, v_interval BIGINT;
  DECLARE v_last, v_instance BIGINT;
  DECLARE v_percentage DECIMAL(5, 4);
  DECLARE v_history VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_length, v_start, v_end, v_update, v_now, v_seen, v_seq BIGINT;
  DECLARE v_wanted DECIMAL(65, 0);
  DECLARE v_floor, v_slices BIGINT;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('owner', p_owner, v_owner);
  CALL idgen_check_number('floor', 45112, COALESCE(p_floor, 0), 0, 9223372036854775807);
  SET v_floor = COALESCE(p_floor, 0);
  IF p_consumed IS NOT NULL OR p_elapsed_ms IS NOT NULL THEN
    CALL idgen_check_number('consumed', 45114, p_consumed, 0, 18446744073709551615);
    CALL idgen_check_number('elapsed_ms', 45115, p_elapsed_ms, 0, 18446744073709551615);
  END IF;
  IF p_period IS NOT NULL THEN
    -- The highest that fits above the 40 bits of the number.
    CALL idgen_check_number('period', 45139, p_period, 0, 8388607);
    CALL idgen_check_number('from_ms', 45139, p_from_ms, -9223372036854775808, 9223372036854775807);
    CALL idgen_check_number('until_ms', 45139, p_until_ms, -9223372036854775808, 9223372036854775807);
  END IF;
  IF (p_instance IS NULL) <> (p_history IS NULL) THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45116,
      MESSAGE_TEXT = 'instance and history belong together: give both, or NULL for both';
  END IF;
  IF p_history IS NOT NULL THEN
    CALL idgen_check_history(p_history);
    SET v_new_history = p_history;
  END IF;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT id, mode, state, first_id, next_id, max_id, COALESCE(max_position, max_id), min_range, max_range,
        load_interval_ms, load_percentage, last_range, instance_id, history,
        JSON_UNQUOTE(JSON_EXTRACT(options, '$.calendar')), JSON_EXTRACT(options, '$.opaque.slices')
      INTO v_type, v_mode, v_state, v_first, v_next, v_max_id, v_max, v_min_range, v_max_range,
        v_interval, v_percentage, v_last, v_instance, v_history,
        v_calendar, v_slices
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF v_state <> 'active' THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 64), '" is retired');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = v_message;
    END IF;
    IF v_mode = 'snowflake' THEN
      SET v_message = CONCAT('mode of id type "', LEFT(v_name, 48), '" is snowflake: its ids come in no ranges');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45102, MESSAGE_TEXT = v_message;
    END IF;
    CALL idgen_check_shard(v_name, v_mode, p_shard);
    IF v_calendar IS NULL AND p_period IS NOT NULL THEN
      SET v_message = CONCAT('period is for calendar series only, and "', LEFT(v_name, 48), '" is none');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45139, MESSAGE_TEXT = v_message;
    END IF;
    IF v_calendar IS NOT NULL AND p_period IS NULL THEN
      SET v_message = CONCAT('period is missing: id type "', LEFT(v_name, 48), '" is a calendar series');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45139, MESSAGE_TEXT = v_message;
    END IF;
    -- Read when the row is locked: before that, time may pass without a bound.
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    IF p_period IS NOT NULL AND NOT (p_from_ms <= v_now AND v_now < p_until_ms) THEN
      -- Nodes read the first number of this message.
      SET v_message = CONCAT('the clock is at ', v_now, ' ms, outside the period that was asked for of id type "', LEFT(v_name, 32), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45011, MESSAGE_TEXT = v_message;
    END IF;

    IF v_new_history IS NOT NULL THEN
      IF p_instance <> v_instance THEN
        SET v_message = CONCAT('id type "', LEFT(v_name, 32), '" is assigned to Redis instance ', v_instance, ', not ', p_instance);
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45008, MESSAGE_TEXT = v_message;
      END IF;
      IF v_history IS NULL OR v_history <> v_new_history THEN
        -- The row of the type is locked, so no other caller is here.
        IF EXISTS (SELECT 1 FROM idgen_type_history WHERE type_id = v_type AND history = v_new_history) THEN
          SET v_message = CONCAT('history of id type "', LEFT(v_name, 32), '" was succeeded by another one: the Redis server was replaced');
          SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45009, MESSAGE_TEXT = v_message;
        END IF;
      END IF;
    END IF;

    IF p_shard IS NOT NULL THEN
      SET v_shard = p_shard, v_next = NULL;
      SELECT next_id, last_range INTO v_next, v_last
        FROM idgen_shard WHERE type_id = v_type AND shard = v_shard FOR UPDATE;
    END IF;

    -- Compared before it is divided, so that nothing overflows and DIV, which
    -- answers in BIGINT, rounds down exactly.
    IF v_last IS NULL THEN
      SET v_length = v_min_range;
    ELSEIF p_consumed IS NULL THEN
      SET v_length = LEAST(GREATEST(v_last, v_min_range), v_max_range);
    ELSE
      SET v_wanted = CAST(p_consumed AS DECIMAL(65, 0)) * v_interval;
      IF v_wanted >= CAST(GREATEST(p_elapsed_ms, 1) AS DECIMAL(65, 0)) * v_max_range THEN
        SET v_length = v_max_range;
      ELSE
        SET v_length = GREATEST(v_wanted DIV GREATEST(p_elapsed_ms, 1), v_min_range);
      END IF;
    END IF;

    -- A shard whose row somebody deleted has no next id: NULL all the way, which
    -- the range log refuses.
    CALL idgen_above_floor(v_next, v_floor, v_max, v_slices, v_start);
    IF p_period IS NOT NULL THEN
      -- The upper bits of a position are its period: never back to an earlier one,
      -- and at its first number where a floor is the bare beginning of a later one.
      SET v_start = GREATEST(v_start, p_period * 1099511627776 + v_first);
      SET v_start = GREATEST(v_start, v_start DIV 1099511627776 * 1099511627776 + v_first);
      SET v_max = v_start DIV 1099511627776 * 1099511627776 + v_max;
    END IF;
    IF v_start > v_max THEN
      SET v_message = IF(p_period IS NULL,
        CONCAT('id type "', LEFT(v_name, 64), '" is exhausted: its highest id is ', v_max_id),
        CONCAT('id type "', LEFT(v_name, 32), '" has used up its period, whose highest number is ', v_max_id));
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45007, MESSAGE_TEXT = v_message;
    END IF;
    -- A range takes at most a hundredth of what is left, but min_range in any
    -- case: a burst must not use up a type that has few ids.
    SET v_length = LEAST(v_length, GREATEST((v_max - v_start + 1) DIV 100, v_min_range));
    -- v_max is at most 2^63 - 2 and v_start at most v_max: no step overflows.
    SET v_length = LEAST(v_length, v_max - v_start + 1);
    SET v_end = v_start + v_length;
    SET v_update = v_start + FLOOR(v_length * v_percentage);

    IF p_shard IS NOT NULL THEN
      UPDATE idgen_shard SET next_id = v_end, last_range = v_length, last_load_ms = v_now
        WHERE type_id = v_type AND shard = v_shard;
    END IF;
    -- Of a sharded type, the highest of its shards.
    UPDATE idgen_type
      SET next_id = GREATEST(next_id, v_end), last_range = v_length, last_load_ms = v_now,
        history = COALESCE(v_new_history, history)
      WHERE id = v_type;
    INSERT INTO idgen_range_log
        (type_id, shard, start_id, end_id, at_ms, kind, owner, instance_id, history, consumed, elapsed_ms, floor_id)
      VALUES
        (v_type, v_shard, v_start, v_end, v_now, 'next', v_owner, p_instance, v_new_history, p_consumed, p_elapsed_ms, v_floor);

    IF v_new_history IS NOT NULL AND (v_history IS NULL OR v_history <> v_new_history) THEN
      -- Ascends whatever the clock does: it tells which history of an instance is the last.
      SELECT GREATEST(v_now, COALESCE(MAX(first_seen_ms) + 1, 0)) INTO v_seen
        FROM idgen_type_history WHERE type_id = v_type;
      INSERT INTO idgen_type_history (type_id, history, instance_id, first_seen_ms)
        VALUES (v_type, v_new_history, v_instance, v_seen);
      UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
      SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
      INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
        VALUES (v_seq, v_now, v_owner, 'history', 'type', v_name,
          IF(v_history IS NULL, NULL, JSON_OBJECT('history', v_history)),
          JSON_OBJECT('history', v_new_history));
    END IF;
    COMMIT;
  END;

  SELECT v_start AS start_id, v_end AS end_id, v_update AS update_id,
    v_length AS length, v_now AS load_time_ms;
END
