-- The feed of changes and the audit log: who did what to what, and when. The
-- action `history` (a type's ranges go to a new line of Redis data) is no
-- person's doing, but peers must hear of it.
CREATE OR REPLACE VIEW idgen_changes AS
SELECT
  c.seq AS seq,
  c.at_ms AS at_ms,
  TIMESTAMPADD(MICROSECOND, c.at_ms * 1000, '1970-01-01 00:00:00') AS at_utc,
  c.actor AS actor,
  c.action AS action,
  c.subject_kind AS subject_kind,
  c.subject AS subject,
  c.before_json AS before_json,
  c.after_json AS after_json
FROM idgen_change c
