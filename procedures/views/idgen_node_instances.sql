-- The Redis instances with their URLs in full, secrets included: for the
-- service's account alone.
CREATE OR REPLACE VIEW idgen_node_instances AS
SELECT
  i.id AS id,
  i.name AS name,
  i.url AS url,
  (SELECT COUNT(*) FROM idgen_type t WHERE t.instance_id = i.id) AS types
FROM idgen_redis_instance i
