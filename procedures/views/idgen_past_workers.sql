-- The tenures of worker ids before the newest, for 400 days: which node made an
-- id of a given time.
CREATE OR REPLACE VIEW idgen_past_workers AS
SELECT
  l.bits AS bits,
  l.worker AS worker,
  l.holder AS holder,
  l.from_ms AS from_ms,
  l.until_ms AS until_ms,
  TIMESTAMPADD(MICROSECOND, l.from_ms * 1000, '1970-01-01 00:00:00') AS from_utc,
  TIMESTAMPADD(MICROSECOND, l.until_ms * 1000, '1970-01-01 00:00:00') AS until_utc
FROM idgen_worker_log l
