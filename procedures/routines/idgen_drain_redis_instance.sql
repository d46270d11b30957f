-- Says that all types of a Redis instance go to another one, one after another, and
-- that it gets no new ones; NULL for p_to ends that. The nodes move the types. Both
-- are given by name or number. Answers with the row in idgen_instances.
CREATE PROCEDURE idgen_drain_redis_instance(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_to VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_name, v_to_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_id, v_drain_to, v_to, v_to_drain, v_all, v_now, v_seq BIGINT;

  CALL idgen_check_person('actor', p_actor, v_actor);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    -- All of them, in the order in which everybody locks them, and at once with the
    -- lock that the change needs.
    SELECT COUNT(drain_to) INTO v_all FROM idgen_redis_instance FORCE INDEX (PRIMARY) FOR UPDATE;
    CALL idgen_find_instance(p_name, v_id, v_name, v_drain_to);
    IF p_to IS NOT NULL THEN
      CALL idgen_find_instance(p_to, v_to, v_to_name, v_to_drain);
      IF v_to = v_id THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45116, MESSAGE_TEXT = 'an instance cannot be drained to itself';
      END IF;
      CALL idgen_check_not_drained(v_to_name, v_to_drain);
    END IF;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    UPDATE idgen_redis_instance SET drain_to = v_to WHERE id = v_id;
    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      VALUES (v_seq, v_now, v_actor, 'drain_redis_instance', 'instance', v_name,
        JSON_OBJECT('drain_to', v_drain_to), JSON_OBJECT('drain_to', v_to));
    COMMIT;
  END;

  SELECT id, name, url, types, drain_to FROM idgen_instances WHERE id = v_id;
END
