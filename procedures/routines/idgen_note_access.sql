-- Writes an entry about access into the audit log, in the transaction of the
-- caller. For the other procedures; by hand it writes an entry that is not true.
CREATE PROCEDURE idgen_note_access(
  IN p_now BIGINT,
  IN p_actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_action VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
  IN p_subject VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
  IN p_before LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN p_after LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_seq BIGINT;
  UPDATE idgen_counter SET value = value + 1 WHERE name = 'change';
  SELECT value INTO v_seq FROM idgen_counter WHERE name = 'change';
  INSERT INTO idgen_change (seq, at_ms, actor, action, subject_kind, subject, before_json, after_json)
    VALUES (v_seq, p_now, p_actor, p_action, 'access', p_subject, p_before, p_after);
END
