-- The types that are on their way between Redis instances. since_* is when the type
-- was last changed: the beginning, unless its settings were changed after it.
CREATE OR REPLACE VIEW idgen_migrations AS
SELECT
  t.name AS name,
  f.name AS from_instance,
  i.name AS to_instance,
  t.generation AS generation,
  t.updated_ms AS since_ms,
  TIMESTAMPADD(MICROSECOND, t.updated_ms * 1000, '1970-01-01 00:00:00') AS since_utc
FROM idgen_type t
JOIN idgen_redis_instance f ON f.id = t.instance_id
JOIN idgen_redis_instance i ON i.id = t.moving_to
