-- Changes the account of a person; NULL leaves a thing as it is. A new password, and
-- closing the account, end its sessions but p_keep_session. Refused for the last
-- account that is open and administers, if it would not be that any more. Answers
-- with the row in idgen_accounts; with none, where there is no such account.
CREATE PROCEDURE idgen_change_account(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_expected_version DECIMAL(20, 0),
  IN p_role VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_disabled TINYINT,
  IN p_password_hash VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_keep_session VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_role, v_new_role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_disabled, v_new_disabled TINYINT;
  DECLARE v_lock, v_version, v_others, v_now BIGINT;
  DECLARE v_after LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

  CALL idgen_check_account(p_name, p_role);
  SET v_name = p_name;
  CALL idgen_check_person('actor', p_actor, v_actor);
  IF p_password_hash NOT LIKE '$argon2id$%' OR LENGTH(p_password_hash) > 255 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45149,
      MESSAGE_TEXT = 'password must be given as an argon2id hash of at most 255 bytes: use idgen account';
  END IF;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT value INTO v_lock FROM idgen_counter WHERE name = 'access' FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    SELECT role, disabled, version INTO v_role, v_disabled, v_version
      FROM idgen_account WHERE name = v_name FOR UPDATE;
    IF v_version IS NOT NULL THEN
      IF p_expected_version <> v_version THEN
        SET v_message = CONCAT('account "', v_name, '" has version ', v_version, ', not ', p_expected_version);
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45006, MESSAGE_TEXT = v_message;
      END IF;
      SET v_new_role = COALESCE(p_role, v_role), v_new_disabled = COALESCE(p_disabled <> 0, v_disabled);
      SELECT COUNT(*) INTO v_others FROM idgen_account
        WHERE role = 'administer' AND disabled = 0 AND name <> v_name;
      IF v_role = 'administer' AND v_disabled = 0 AND v_others = 0
        AND (v_new_role <> 'administer' OR v_new_disabled <> 0)
      THEN
        SET v_message = CONCAT('account "', v_name, '" is the last one that is open and administers');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45016, MESSAGE_TEXT = v_message;
      END IF;
      UPDATE idgen_account
        SET role = v_new_role, disabled = v_new_disabled,
          password_hash = COALESCE(p_password_hash, password_hash),
          updated_ms = v_now, version = v_version + 1
        WHERE name = v_name;
      IF p_password_hash IS NOT NULL OR p_disabled <> 0 THEN
        DELETE FROM idgen_credential
          WHERE account = v_name AND kind = 'session' AND id <> COALESCE(p_keep_session, '');
      END IF;
      SET v_after = JSON_OBJECT('role', v_new_role, 'disabled', JSON_EXTRACT(IF(v_new_disabled = 0, 'false', 'true'), '$'), 'version', v_version + 1);
      IF p_password_hash IS NOT NULL THEN
        SET v_after = JSON_SET(v_after, '$.password', 'changed');
      END IF;
      CALL idgen_note_access(v_now, v_actor, 'change_account', v_name,
        JSON_OBJECT('role', v_role, 'disabled', JSON_EXTRACT(IF(v_disabled = 0, 'false', 'true'), '$'), 'version', v_version + 0), v_after);
    END IF;
    COMMIT;
  END;

  SELECT * FROM idgen_accounts WHERE name = v_name;
END
