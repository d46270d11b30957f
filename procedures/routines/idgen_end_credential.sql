-- Ends a session, or revokes an API token; only if it belongs to p_account, where that
-- is given. Answers with ended 1, or 0 where there is no live one.
CREATE PROCEDURE idgen_end_credential(
  IN p_kind VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_id VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_account VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_actor VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_id, v_subject VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE v_before LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_lock, v_seq, v_now BIGINT;

  CALL idgen_check_person('actor', p_actor, v_actor);
  SET v_id = p_id;

  BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
      ROLLBACK;
      RESIGNAL;
    END;
    START TRANSACTION;

    SELECT value INTO v_lock FROM idgen_counter WHERE name = 'access' FOR UPDATE;
    SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000;
    SELECT seq, kind, IF(kind = 'token', name, COALESCE(account, '?')),
        IF(kind = 'token',
          JSON_OBJECT('id', id, 'account', account, 'role', role, 'types', JSON_EXTRACT(types, '$'),
            'quota', quota, 'certificate', certificate + 0, 'expires_ms', expires_ms),
          JSON_OBJECT('id', id, 'address', address))
      INTO v_seq, v_kind, v_subject, v_before
      FROM idgen_credential
      WHERE id = v_id AND kind = p_kind AND revoked_ms IS NULL AND (expires_ms IS NULL OR expires_ms > v_now)
        AND (p_account IS NULL OR account = p_account);
    IF v_seq IS NOT NULL THEN
      IF v_kind = 'token' THEN
        UPDATE idgen_credential SET revoked_ms = v_now, live_name = NULL WHERE seq = v_seq;
      ELSE
        DELETE FROM idgen_credential WHERE seq = v_seq;
      END IF;
      CALL idgen_note_access(v_now, v_actor, IF(v_kind = 'token', 'revoke_token', 'end_session'), v_subject, v_before, NULL);
    END IF;
    COMMIT;
  END;

  SELECT v_seq IS NOT NULL AS ended;
END
