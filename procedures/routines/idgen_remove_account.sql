-- Removes the account of a person with its sessions and tokens; refused for the last
-- one that is open and administers. Answers with removed 1, or 0 where there is no
-- such account.
CREATE PROCEDURE idgen_remove_account(
  IN p_name VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_disabled TINYINT;
  DECLARE v_lock, v_version, v_others, v_now BIGINT;

  CALL idgen_check_account(p_name, NULL);
  SET v_name = p_name;
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
    SELECT role, disabled, version INTO v_role, v_disabled, v_version
      FROM idgen_account WHERE name = v_name FOR UPDATE;
    IF v_version IS NOT NULL THEN
      SELECT COUNT(*) INTO v_others FROM idgen_account
        WHERE role = 'administer' AND disabled = 0 AND name <> v_name;
      IF v_role = 'administer' AND v_disabled = 0 AND v_others = 0 THEN
        SET v_message = CONCAT('account "', v_name, '" is the last one that is open and administers');
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 45016, MESSAGE_TEXT = v_message;
      END IF;
      DELETE FROM idgen_credential WHERE account = v_name;
      DELETE FROM idgen_account WHERE name = v_name;
      CALL idgen_note_access(v_now, v_actor, 'remove_account', v_name,
        JSON_OBJECT('role', v_role, 'disabled', JSON_EXTRACT(IF(v_disabled = 0, 'false', 'true'), '$'), 'version', v_version + 0), NULL);
    END IF;
    COMMIT;
  END;

  SELECT v_version IS NOT NULL AS removed;
END
