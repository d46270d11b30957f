-- The newest tenure of each worker id: who may put which time values, in
-- milliseconds of the Unix epoch, into ids. Without the tokens, which are secret.
CREATE OR REPLACE VIEW idgen_workers AS
SELECT
  w.bits AS bits,
  w.worker AS worker,
  w.holder AS holder,
  w.from_ms AS from_ms,
  w.until_ms AS until_ms,
  TIMESTAMPADD(MICROSECOND, w.from_ms * 1000, '1970-01-01 00:00:00') AS from_utc,
  TIMESTAMPADD(MICROSECOND, w.until_ms * 1000, '1970-01-01 00:00:00') AS until_utc,
  (w.token IS NULL) AS is_released
FROM idgen_worker w
