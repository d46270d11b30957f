-- Ends the tenure of a worker id at p_used_until_ms, which must be above every
-- time value that was put into an id; outside the tenure it counts as its
-- beginning or its end. Answers with released 1, or 0 where the worker id is not
-- held under the token any more.
CREATE PROCEDURE idgen_release_worker(
  IN p_bits DECIMAL(20, 0),
  IN p_worker DECIMAL(20, 0),
  IN p_token VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_used_until_ms DECIMAL(20, 0)
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_token, v_held VARBINARY(256);
  DECLARE v_bits, v_worker BIGINT;
  DECLARE v_released INT DEFAULT 0;

  CALL idgen_check_number('bits', 45141, p_bits, 1, 20);
  CALL idgen_check_token(p_token);
  SET v_bits = p_bits, v_token = p_token;
  -- What cannot be a worker id is held by nobody.
  SET v_worker = GREATEST(LEAST(p_worker, 1048576), -1);
  IF p_used_until_ms IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45145,
      MESSAGE_TEXT = 'used_until_ms is missing: above every time value that was put into an id';
  END IF;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT token INTO v_held FROM idgen_worker WHERE bits = v_bits AND worker = v_worker FOR UPDATE;
    IF v_held = v_token THEN
      UPDATE idgen_worker
        SET token = NULL, until_ms = GREATEST(from_ms, LEAST(until_ms, p_used_until_ms))
        WHERE bits = v_bits AND worker = v_worker;
      SET v_released = 1;
    END IF;
    COMMIT;
  END;

  SELECT v_released AS released;
END
