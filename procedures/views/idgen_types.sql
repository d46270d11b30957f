-- Every id type: its settings, its state and how far it is. Read by nodes and
-- people. next_id and max_position are positions, the others ids (docs/dba-guide.md).
CREATE OR REPLACE VIEW idgen_types AS
SELECT
  t.name AS name,
  t.mode AS mode,
  t.state AS state,
  t.prefix AS prefix,
  t.description AS description,
  t.first_id AS first_id,
  t.next_id AS next_id,
  t.max_id AS max_id,
  COALESCE(t.max_position, t.max_id) AS max_position,
  t.min_range AS min_range,
  t.max_range AS max_range,
  t.load_interval_ms AS load_interval_ms,
  t.load_percentage AS load_percentage,
  t.lock_ttl_ms AS lock_ttl_ms,
  t.last_range AS last_range,
  t.last_load_ms AS last_load_ms,
  t.instance_id AS instance_id,
  t.history AS history,
  t.version AS version,
  t.created_ms AS created_ms,
  t.updated_ms AS updated_ms,
  t.options AS options,
  t.generation AS generation,
  t.moving_to AS moving_to,
  t.moved_from AS moved_from,
  t.moved_ms AS moved_ms
FROM idgen_type t
