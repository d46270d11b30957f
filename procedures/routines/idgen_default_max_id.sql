-- What max_id is where none is given: the highest that the options of the type
-- allow (NULL for no options). For the other procedures; harmless on its own.
CREATE PROCEDURE idgen_default_max_id(
  IN p_options LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_max_id DECIMAL(20, 0)
)
    READS SQL DATA
BEGIN
  DECLARE v_text LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_highest BIGINT;

  SET p_max_id = 9223372036854775806;
  -- What is no JSON object is refused by idgen_check_options.
  IF JSON_VALID(p_options) THEN
    IF JSON_TYPE(JSON_EXTRACT(p_options, '$.calendar')) <> 'NULL' THEN
      SET p_max_id = 1099511627774;
    END IF;
    IF JSON_TYPE(JSON_EXTRACT(p_options, '$.format')) = 'STRING' THEN
      SET v_text = JSON_UNQUOTE(JSON_EXTRACT(p_options, '$.format'));
      CALL idgen_format_limit(v_text, v_highest);
      SET p_max_id = LEAST(p_max_id, COALESCE(v_highest, p_max_id));
    END IF;
  END IF;
END
