-- Writes into the audit log that somebody at an address did not know the password of
-- an account, which need not exist; ? stands for what no account can be called.
CREATE PROCEDURE idgen_note_failed_login(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_address VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_address VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_now BIGINT;

  IF p_name IS NULL OR p_name <> '?' THEN
    CALL idgen_check_account(p_name, NULL);
  END IF;
  CALL idgen_check_person('actor', p_address, v_address);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    CALL idgen_note_access(v_now, v_address, 'failed_login', p_name, NULL, NULL);
    COMMIT;
  END;

  SELECT v_now AS at_ms;
END
