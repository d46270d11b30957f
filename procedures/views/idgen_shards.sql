-- How far each shard of the sharded types is; next_id is a position.
CREATE OR REPLACE VIEW idgen_shards AS
SELECT
  t.name AS name,
  s.shard AS shard,
  s.next_id AS next_id,
  s.last_range AS last_range,
  s.last_load_ms AS last_load_ms
FROM idgen_shard s
JOIN idgen_type t ON t.id = s.type_id
