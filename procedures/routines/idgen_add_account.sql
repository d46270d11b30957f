-- Makes the account of a person, and removes the set-up link. With p_setup_hash, only
-- if there is no account yet and that is the hash of the live set-up link. Answers
-- with the row in idgen_accounts.
CREATE PROCEDURE idgen_add_account(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_role VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_password_hash VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_setup_hash VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_name, v_setup_hash VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_lock, v_all, v_links, v_now BIGINT;

  CALL idgen_check_account(p_name, COALESCE(p_role, ''));
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);
  IF p_password_hash IS NULL OR p_password_hash NOT LIKE '$argon2id$%' OR LENGTH(p_password_hash) > 255 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45149,
      MESSAGE_TEXT = 'password must be given as an argon2id hash of at most 255 bytes: use idgen account';
  END IF;

  IF LENGTH(p_setup_hash) <> 64 OR p_setup_hash REGEXP '[^0-9a-f]' THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45143, MESSAGE_TEXT = 'token of the set-up link must be given as 64 hexadecimal digits';
  END IF;
  SET v_setup_hash = p_setup_hash;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT value INTO v_lock FROM idgen_counter WHERE name = 'access' FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    SELECT COUNT(*) INTO v_all FROM idgen_account;
    IF p_setup_hash IS NOT NULL THEN
      SELECT COUNT(*) INTO v_links FROM idgen_credential
        WHERE kind = 'setup' AND secret_hash = v_setup_hash AND expires_ms > v_now;
      IF v_links = 0 OR v_all > 0 THEN
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45015,
          MESSAGE_TEXT = 'this set-up link is not valid: it was used, is older than a day, or a node started later shows another one';
      END IF;
    END IF;
    IF EXISTS (SELECT 1 FROM idgen_account WHERE name = v_name) THEN
      SET v_message = CONCAT('an account called "', v_name, '" exists already');
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45005, MESSAGE_TEXT = v_message;
    END IF;
    IF v_all >= 1000 THEN
      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45016, MESSAGE_TEXT = 'there are 1000 accounts, which is the most';
    END IF;
    DELETE FROM idgen_credential WHERE kind = 'setup';
    INSERT INTO idgen_account (name, role, disabled, password_hash, created_ms, updated_ms, version)
      VALUES (v_name, p_role, 0, p_password_hash, v_now, v_now, 1);
    CALL idgen_note_access(v_now, v_actor, 'add_account', v_name, NULL,
      JSON_OBJECT('role', p_role, 'disabled', JSON_EXTRACT('false', '$'), 'version', 1));
    COMMIT;
  END;

  SELECT * FROM idgen_accounts WHERE name = v_name;
END
