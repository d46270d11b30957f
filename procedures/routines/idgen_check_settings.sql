-- Refuses settings of a type that break a rule (src/domain/id_type.rs has the
-- same rules). For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_check_settings(
  IN p_prefix LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_first_id DECIMAL(20, 0),
  IN p_max_id DECIMAL(20, 0),
  IN p_min_range DECIMAL(20, 0),
  IN p_max_range DECIMAL(20, 0),
  IN p_load_interval_ms DECIMAL(20, 0),
  IN p_load_percentage DECIMAL(24, 4),
  IN p_lock_ttl_ms DECIMAL(20, 0)
)
    READS SQL DATA
BEGIN
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  CALL idgen_check_text('prefix', 45103, p_prefix, 64);
  IF LENGTH(p_description) > 65535 THEN
    SET v_message = CONCAT('description has ', LENGTH(p_description), ' bytes; the limit is 65535');
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45104, MESSAGE_TEXT = v_message;
  END IF;

  -- The highest id is 2^63 - 2: the end of a range is one above its last id.
  CALL idgen_check_number('first_id', 45105, p_first_id, 1, 9223372036854775806);
  CALL idgen_check_number('max_id', 45106, p_max_id, p_first_id, 9223372036854775806);
  CALL idgen_check_number('min_range', 45107, p_min_range, 1, 1000000000000);
  CALL idgen_check_number('max_range', 45108, p_max_range, p_min_range, 1000000000000);
  CALL idgen_check_number('load_interval_ms', 45109, p_load_interval_ms, 1, 86400000);
  CALL idgen_check_number('load_percentage', 45110, p_load_percentage, 0, 1);
  CALL idgen_check_number('lock_ttl_ms', 45111, p_lock_ttl_ms, 1000, 600000);
END
