-- Allocates exactly p_count ids, for a bulk load by hand: one transaction, and
-- one row that is read only after it is committed. Leaves the sizing alone. They
-- are positions, where the type has options that make other ids of them. Not for
-- types whose positions are not one plain sequence.
CREATE PROCEDURE idgen_reserve(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_count DECIMAL(20, 0),
  IN p_floor DECIMAL(20, 0),
  IN p_owner VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_owner VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_type BIGINT;
  DECLARE v_state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_mode VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_calendar VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_next, v_max_id, v_max, v_start, v_end, v_floor, v_slices, v_now, v_seq BIGINT;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('owner', p_owner, v_owner);
  CALL idgen_check_number('count', 45118, p_count, 1, 1000000000000);
  CALL idgen_check_number('floor', 45112, COALESCE(p_floor, 0), 0, 9223372036854775807);
  SET v_floor = COALESCE(p_floor, 0);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT id, mode, state, next_id, max_id, COALESCE(max_position, max_id),
        JSON_UNQUOTE(JSON_EXTRACT(options, '$.calendar')), JSON_EXTRACT(options, '$.opaque.slices')
      INTO v_type, v_mode, v_state, v_next, v_max_id, v_max, v_calendar, v_slices
      FROM idgen_type WHERE name = v_name FOR UPDATE;
    IF v_type IS NULL THEN
      SET v_message = CONCAT('no id type is called "', LEFT(v_name, 64), '"');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45001, MESSAGE_TEXT = v_message;
    END IF;
    IF v_state <> 'active' THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 64), '" is retired');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45003, MESSAGE_TEXT = v_message;
    END IF;
    IF v_mode IN ('sharded', 'snowflake') OR v_calendar IS NOT NULL THEN
      SET v_message = CONCAT('mode of id type "', LEFT(v_name, 32), '": ',
        IF(v_calendar IS NULL, CONCAT('a ', v_mode, ' type'), 'a calendar series'), ' has no block to reserve');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45102, MESSAGE_TEXT = v_message;
    END IF;
    CALL idgen_above_floor(v_next, v_floor, v_max, v_slices, v_start);
    IF v_start > v_max THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 64), '" is exhausted: its highest id is ', v_max_id);
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45007, MESSAGE_TEXT = v_message;
    END IF;
    IF p_count > v_max - v_start + 1 THEN
      SET v_message = CONCAT('id type "', LEFT(v_name, 32), '" has ', v_max - v_start + 1, ' ids left up to its highest id ', v_max_id);
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45007, MESSAGE_TEXT = v_message;
    END IF;
    SET v_end = v_start + p_count;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    UPDATE idgen_type SET next_id = v_end WHERE id = v_type;
    INSERT INTO idgen_range_log (type_id, start_id, end_id, at_ms, kind, owner, floor_id)
      VALUES (v_type, v_start, v_end, v_now, 'reserve', v_owner, v_floor);

    -- Every node hears of it, and keeps the end as a witness (the floor) for the
    -- day on which this database comes back from a backup.
    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    -- + 0: a bare variable is text to MariaDB.
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      VALUES (v_seq, v_now, v_owner, 'reserve', 'type', v_name, NULL,
        JSON_OBJECT('start_id', v_start + 0, 'end_id', v_end + 0));
    COMMIT;
  END;

  SELECT v_start AS start_id, v_end AS end_id, v_end - 1 AS last_id, v_end - v_start AS length;
END
