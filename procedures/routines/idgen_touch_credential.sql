-- Notes that a session or a token was used now. A session lives on for p_idle_ms from
-- now, at most until p_whole_ms after it began. One that has ended stays ended.
CREATE PROCEDURE idgen_touch_credential(
  IN p_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_idle_ms DECIMAL(20, 0),
  IN p_whole_ms DECIMAL(20, 0)
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_now BIGINT;

  CALL idgen_check_number('ttl_ms', 45144, p_idle_ms, 1, 9000000000000);
  CALL idgen_check_number('ttl_ms', 45144, p_whole_ms, 1, 9000000000000);
  -- As its column is, so that the index is used.
  SET v_id = p_id;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
  UPDATE idgen_credential
    SET last_used_ms = v_now,
      expires_ms = IF(kind = 'session', LEAST(v_now + p_idle_ms, created_ms + p_whole_ms), expires_ms)
    WHERE id = v_id AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > v_now);
  SELECT v_now AS now_ms;
END
