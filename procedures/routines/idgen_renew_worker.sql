-- Lets the tenure of a worker id end p_ttl_ms from now, and never earlier than it
-- does already. Answers with the tenure. One that has ended, and that nobody
-- followed, goes on.
CREATE PROCEDURE idgen_renew_worker(
  IN p_bits DECIMAL(20, 0),
  IN p_worker DECIMAL(20, 0),
  IN p_token VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_ttl_ms DECIMAL(20, 0)
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_token, v_held VARBINARY(256);
  DECLARE v_bits, v_worker BIGINT;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_from, v_until, v_now BIGINT;

  CALL idgen_check_number('bits', 45141, p_bits, 1, 20);
  CALL idgen_check_token(p_token);
  SET v_bits = p_bits, v_token = p_token;
  -- What cannot be a worker id is held by nobody.
  SET v_worker = GREATEST(LEAST(p_worker, 1048576), -1);
  CALL idgen_check_number('ttl_ms', 45144, p_ttl_ms, 1000, 86400000);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT token, from_ms, until_ms INTO v_held, v_from, v_until
      FROM idgen_worker WHERE bits = v_bits AND worker = v_worker FOR UPDATE;
    IF NOT v_held <=> v_token THEN
      SET v_message = CONCAT('worker id ', COALESCE(p_worker, 'NULL'), ' of ', p_bits, ' bits is not held under this token any more');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45013, MESSAGE_TEXT = v_message;
    END IF;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    SET v_until = GREATEST(v_until, v_now + p_ttl_ms);
    UPDATE idgen_worker SET until_ms = v_until WHERE bits = v_bits AND worker = v_worker;
    COMMIT;
  END;

  SELECT v_bits AS bits, v_worker AS worker, v_from AS from_ms, v_until AS until_ms, v_now AS now_ms;
END
