-- Leases a worker id of p_bits bits to p_holder until p_ttl_ms from now: the
-- lowest that nobody had, else the one that is free for longest. Answers with
-- the tenure: the holder may put the time values from_ms to until_ms - 1 into
-- ids, and nobody else ever may. Who holds one under p_token already gets that
-- one again, renewed, so that a call may be repeated.
--
-- The row of the pool is locked first, so that leases come one after the other.
-- Renewals and releases lock nothing but the row of their worker id, and lock
-- it by its key: so nobody waits for one who waits.
CREATE PROCEDURE idgen_lease_worker(
  IN p_bits DECIMAL(20, 0),
  IN p_holder VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_token VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_ttl_ms DECIMAL(20, 0)
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_token, v_held VARBINARY(256);
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_holder VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_bits, v_fresh, v_floor, v_worker, v_from, v_until, v_now BIGINT;
  DECLARE v_candidate, v_seen, v_next BIGINT;
  DECLARE v_seen_until BIGINT DEFAULT -1;

  CALL idgen_check_number('bits', 45141, p_bits, 1, 20);
  IF p_holder IS NULL OR LENGTH(p_holder) = 0 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45142,
      MESSAGE_TEXT = 'holder is missing: it must have 1 to 128 printable characters';
  END IF;
  CALL idgen_check_text('holder', 45142, p_holder, 128);
  CALL idgen_check_token(p_token);
  SET v_bits = p_bits, v_token = p_token;
  CALL idgen_check_number('ttl_ms', 45144, p_ttl_ms, 1000, 86400000);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT next_worker, floor_ms INTO v_fresh, v_floor
      FROM idgen_worker_pool WHERE bits = v_bits FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    SELECT worker INTO v_candidate FROM idgen_worker WHERE bits = v_bits AND token = v_token LIMIT 1;
    IF v_candidate IS NOT NULL THEN
      SELECT token, from_ms, until_ms INTO v_held, v_from, v_until
        FROM idgen_worker WHERE bits = v_bits AND worker = v_candidate FOR UPDATE;
      -- Unless it was released a moment ago.
      IF v_held = v_token THEN
        SET v_worker = v_candidate;
        SET v_until = GREATEST(v_until, v_now + p_ttl_ms);
        UPDATE idgen_worker SET until_ms = v_until WHERE bits = v_bits AND worker = v_worker;
      END IF;
    END IF;

    IF v_worker IS NULL AND v_fresh < (1 << v_bits) AND v_floor <= v_now THEN
      SET v_worker = v_fresh, v_from = v_floor, v_until = v_now + p_ttl_ms;
      UPDATE idgen_worker_pool SET next_worker = next_worker + 1 WHERE bits = v_bits;
      INSERT INTO idgen_worker (bits, worker, holder, token, from_ms, until_ms)
        VALUES (v_bits, v_worker, p_holder, v_token, v_from, v_until);
    END IF;

    -- Found without a lock, then locked and looked at again, because it may have
    -- been renewed meanwhile; then the next one is looked at.
    WHILE v_worker IS NULL DO
      SET v_candidate = NULL;
      SELECT worker, until_ms INTO v_candidate, v_until FROM idgen_worker
        WHERE bits = v_bits AND until_ms <= v_now AND v_floor <= v_now
          AND (until_ms > v_seen_until OR (until_ms = v_seen_until AND worker > v_seen))
        ORDER BY until_ms, worker LIMIT 1;
      IF v_candidate IS NULL THEN
        SELECT MIN(until_ms) INTO v_next FROM idgen_worker WHERE bits = v_bits AND until_ms > v_now;
        SET v_message = CONCAT('all ', 1 << v_bits, ' worker ids of ', v_bits, ' bits are taken; the next one becomes free in ',
          GREATEST(COALESCE(v_next, v_now), v_floor, v_now) - v_now, ' ms');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45012, MESSAGE_TEXT = v_message;
      END IF;
      SET v_seen = v_candidate, v_seen_until = v_until;
      SELECT holder, from_ms, until_ms INTO v_holder, v_from, v_until
        FROM idgen_worker WHERE bits = v_bits AND worker = v_candidate FOR UPDATE;
      IF v_until <= v_now THEN
        SET v_worker = v_candidate;
        -- Only for people. One that was released without use has nothing to tell.
        IF v_from < v_until THEN
          INSERT INTO idgen_worker_log (bits, worker, from_ms, until_ms, holder)
            VALUES (v_bits, v_worker, v_from, v_until, v_holder);
          DELETE FROM idgen_worker_log
            WHERE bits = v_bits AND worker = v_worker
              AND from_ms < v_now - 34560000000 AND until_ms < v_now - 34560000000
            ORDER BY from_ms LIMIT 100;
        END IF;
        SET v_from = GREATEST(v_until, v_floor), v_until = v_now + p_ttl_ms;
        UPDATE idgen_worker SET holder = p_holder, token = v_token, from_ms = v_from, until_ms = v_until
          WHERE bits = v_bits AND worker = v_worker;
      END IF;
    END WHILE;
    COMMIT;
  END;

  SELECT v_bits AS bits, v_worker AS worker, v_from AS from_ms, v_until AS until_ms, v_now AS now_ms;
END
