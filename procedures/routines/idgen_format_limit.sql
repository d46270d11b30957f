-- The highest number that the padding of a format has room for, as {seq:06} has
-- for 999999; NULL where nothing is padded. For the other procedures; harmless on
-- its own.
CREATE PROCEDURE idgen_format_limit(
  IN p_format LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_highest BIGINT
)
    READS SQL DATA
BEGIN
  DECLARE v_format, v_part LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_radix, v_width INT;
  DECLARE v_power DECIMAL(65, 0) DEFAULT 1;

  SET p_highest = NULL;
  -- A doubled brace is a brace, and begins no part.
  SET v_format = REPLACE(p_format, '{{', '');
  IF LOCATE('{seq', v_format) > 0 THEN
    SET v_part = SUBSTRING_INDEX(SUBSTRING(v_format, LOCATE('{seq', v_format)), '}', 1);
    SET v_radix = CASE SUBSTRING_INDEX(v_part, ':', 1) WHEN '{seq' THEN 10 WHEN '{seq36' THEN 36 WHEN '{seq62' THEN 62 END;
    SET v_part = SUBSTRING(v_part, LOCATE(':', v_part) + 1);
    IF v_radix IS NOT NULL AND LENGTH(v_part) BETWEEN 2 AND 3 AND v_part NOT REGEXP '[^0-9]' THEN
      SET v_width = v_part;
      IF v_width BETWEEN 2 AND 20 THEN
        WHILE v_width > 0 AND v_power <= 9223372036854775806 DO
          SET v_power = v_power * v_radix;
          SET v_width = v_width - 1;
        END WHILE;
        SET p_highest = LEAST(v_power - 1, 9223372036854775806);
      END IF;
    END IF;
  END IF;
END
