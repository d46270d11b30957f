-- The Redis instances, for people: of a URL only what stands after the last @,
-- so that neither user nor password is shown.
CREATE OR REPLACE VIEW idgen_instances AS
SELECT
  i.id AS id,
  i.name AS name,
  CASE
    WHEN LOCATE('@', i.url) = 0 THEN i.url
    ELSE CONCAT(SUBSTRING_INDEX(i.url, '://', 1), '://***@', SUBSTRING_INDEX(i.url, '@', -1))
  END AS url,
  (SELECT COUNT(*) FROM idgen_type t WHERE t.instance_id = i.id) AS types,
  i.drain_to AS drain_to
FROM idgen_redis_instance i
