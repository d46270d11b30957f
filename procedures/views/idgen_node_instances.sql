-- The Redis instances with their URLs in full, secrets included: for the
-- service's account alone. Reads nothing that grows with the number of types:
-- every node asks at its start.
CREATE OR REPLACE VIEW idgen_node_instances AS
SELECT
  i.id AS id,
  i.name AS name,
  i.url AS url,
  i.drain_to AS drain_to
FROM idgen_redis_instance i
