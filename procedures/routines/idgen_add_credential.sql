-- Keeps a session, an API token or a set-up link: of its secret the SHA-256, in
-- hexadecimal. For nodes, which draw the secret. A session needs the version of its
-- account, so that a password that was changed meanwhile lets nobody in; a set-up
-- link replaces the one before. A token with p_certificate 1 is the name of a client's
-- certificate, and takes the place of an ended one. What need not be kept any more is removed. Answers
-- with the row in idgen_credentials.
CREATE PROCEDURE idgen_add_credential(
  IN p_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_kind VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_secret_hash VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_account VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_account_version DECIMAL(20, 0),
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_role VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_types LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_quota DECIMAL(20, 0),
  IN p_certificate TINYINT,
  IN p_agent VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_address VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_ttl_ms DECIMAL(20, 0),
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_id, v_account, v_name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_lock, v_version, v_count, v_expires, v_now BIGINT;

  IF p_kind IS NULL OR p_kind NOT IN ('session', 'token', 'setup') THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45150, MESSAGE_TEXT = 'kind is not known: it must be session, token or setup';
  END IF;
  IF p_id IS NULL OR LENGTH(p_id) NOT BETWEEN 1 AND 64
    OR p_secret_hash IS NULL OR LENGTH(p_secret_hash) <> 64 OR p_secret_hash REGEXP '[^0-9a-f]'
  THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45143, MESSAGE_TEXT = 'token: its id must have 1 to 64 bytes and its hash 64 hexadecimal digits';
  END IF;
  -- The role issue is for tokens alone.
  CALL idgen_check_account(IF(p_kind = 'token', p_name, 'x'),
    IF(p_kind = 'token' AND p_role = 'issue', NULL, COALESCE(p_role, '')));
  IF p_quota IS NOT NULL THEN
    CALL idgen_check_number('quota', 45151, p_quota, 1, 1000000000);
  END IF;
  SET v_id = p_id, v_name = IF(p_kind = 'token', p_name, '');
  IF p_account IS NOT NULL OR p_kind = 'session' THEN
    CALL idgen_check_account(p_account, NULL);
    SET v_account = p_account;
  END IF;
  IF p_ttl_ms IS NOT NULL THEN
    CALL idgen_check_number('ttl_ms', 45144, p_ttl_ms, 1, 9000000000000);
  END IF;
  CALL idgen_check_person('actor', p_actor, v_actor);

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT value INTO v_lock FROM idgen_counter WHERE name = 'access' FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    SET v_expires = v_now + p_ttl_ms;

    IF p_kind = 'setup' THEN
      SELECT COUNT(*) INTO v_count FROM idgen_account;
      IF v_count > 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45016, MESSAGE_TEXT = 'there are accounts already';
      END IF;
      DELETE FROM idgen_credential WHERE kind = 'setup';
    END IF;

    IF v_account IS NOT NULL THEN
      SELECT version INTO v_version FROM idgen_account WHERE name = v_account AND disabled = 0 FOR UPDATE;
      IF v_version IS NULL OR (p_kind = 'session' AND v_version <> COALESCE(p_account_version, 0)) THEN
        SET v_message = CONCAT('account "', v_account, '" was changed meanwhile: log in again');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45006, MESSAGE_TEXT = v_message;
      END IF;
    END IF;

    IF p_kind = 'session' THEN
      UPDATE idgen_account SET last_login_ms = v_now WHERE name = v_account;
      -- Room for this one.
      SELECT COUNT(*) INTO v_count FROM idgen_credential WHERE account = v_account AND kind = 'session';
      WHILE v_count >= 20 DO
        DELETE FROM idgen_credential WHERE account = v_account AND kind = 'session' ORDER BY seq LIMIT 1;
        SET v_count = v_count - 1;
      END WHILE;
    END IF;

    IF p_kind = 'token' THEN
      UPDATE idgen_credential SET live_name = NULL WHERE live_name IS NOT NULL AND expires_ms <= v_now;
      IF EXISTS (SELECT 1 FROM idgen_credential WHERE live_name = v_name) THEN
        SET v_message = CONCAT('a token called "', v_name, '" exists already');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45005, MESSAGE_TEXT = v_message;
      END IF;
      SELECT COUNT(live_name) INTO v_count FROM idgen_credential;
      IF v_count >= 1000 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45016, MESSAGE_TEXT = 'there are 1000 tokens, which is the most';
      END IF;
    END IF;

    DELETE FROM idgen_credential
      WHERE LEAST(COALESCE(expires_ms, revoked_ms), COALESCE(revoked_ms, expires_ms))
        + IF(kind = 'token', 2592000000, 0) <= v_now;
    DELETE FROM idgen_credential
      WHERE secret_hash = p_secret_hash AND certificate = 1 AND live_name IS NULL;
    INSERT INTO idgen_credential (id, kind, secret_hash, account, name, live_name, role, types, quota, certificate,
        agent, address, created_by, created_ms, expires_ms)
      VALUES (v_id, p_kind, p_secret_hash, v_account, v_name,
        IF(p_kind = 'token', v_name, NULL), p_role, COALESCE(p_types, '[]'), p_quota, COALESCE(p_certificate, 0),
        COALESCE(p_agent, ''), COALESCE(p_address, ''), v_actor, v_now, v_expires);

    IF p_kind = 'session' THEN
      CALL idgen_note_access(v_now, v_actor, 'log_in', v_account, NULL,
        JSON_OBJECT('id', p_id, 'address', p_address));
    END IF;
    IF p_kind = 'token' THEN
      CALL idgen_note_access(v_now, v_actor, 'add_token', v_name, NULL,
        JSON_OBJECT('id', p_id, 'account', v_account, 'role', p_role, 'types', JSON_EXTRACT(COALESCE(p_types, '[]'), '$'),
          'quota', p_quota + 0, 'certificate', COALESCE(p_certificate, 0) + 0, 'expires_ms', v_expires + 0));
    END IF;
    COMMIT;
  END;

  SELECT * FROM idgen_credentials WHERE id = v_id;
END
