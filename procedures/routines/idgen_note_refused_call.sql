-- Writes into the audit log that a call for ids was refused: to a caller, or to ? where
-- nobody knows who called; by the address that it came from, and why.
CREATE PROCEDURE idgen_note_refused_call(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_address VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_reason VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_address, v_reason VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_now BIGINT;

  IF p_name IS NULL OR p_name <> '?' THEN
    CALL idgen_check_account(p_name, NULL);
  END IF;
  CALL idgen_check_person('actor', p_address, v_address);
  CALL idgen_check_person('reason', COALESCE(p_reason, ''), v_reason);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    CALL idgen_note_access(v_now, v_address, 'refused_call', p_name, NULL, JSON_OBJECT('reason', v_reason));
    COMMIT;
  END;

  SELECT v_now AS at_ms;
END
