-- Registers a Redis instance and answers with its number. The URL may hold
-- secrets: they go to no message and to no audit entry.
CREATE PROCEDURE idgen_add_redis_instance(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_url LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_now, v_seq, v_id BIGINT;

  CALL idgen_check_name(p_name);
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);
  IF p_url IS NULL OR LENGTH(p_url) > 1024
    OR NOT (SUBSTRING_INDEX(p_url, '://', 1) IN ('redis', 'rediss', 'redis+sentinel',
      'rediss+sentinel', 'redis+cluster', 'rediss+cluster', 'memory') AND LOCATE('://', p_url) > 0)
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45119,
      MESSAGE_TEXT = 'url of a Redis instance must begin with redis[s]://, redis[s]+sentinel:// or redis[s]+cluster://, at most 1024 bytes';
  END IF;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;

    BEGIN
      DECLARE EXIT HANDLER FOR 1062
      BEGIN
        SET v_message = CONCAT('a Redis instance called "', LEFT(v_name, 64), '" exists already');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45005, MESSAGE_TEXT = v_message;
      END;
      -- Looked for first, because a refused insert uses up a number.
      IF EXISTS (SELECT 1 FROM idgen_redis_instance WHERE name = v_name) THEN
        SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1062, MESSAGE_TEXT = 'duplicate';
      END IF;
      INSERT INTO idgen_redis_instance (name, url, created_ms) VALUES (v_name, p_url, v_now);
    END;
    SET v_id = LAST_INSERT_ID();

    UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
    SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
    INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
      SELECT v_seq, v_now, v_actor, 'add_redis_instance', 'instance', v_name, NULL,
        JSON_OBJECT('id', id, 'name', name, 'url', url)
        FROM idgen_instances WHERE id = v_id;
    COMMIT;
  END;

  SELECT id, name, url, types FROM idgen_instances WHERE id = v_id;
END
