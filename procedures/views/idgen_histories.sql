-- Every history under which a range of a type was allocated, and whether it is
-- the current one. A node that meets one that is not talks to a replaced server.
CREATE OR REPLACE VIEW idgen_histories AS
SELECT
  t.name AS name,
  h.history AS history,
  h.instance_id AS instance_id,
  h.first_seen_ms AS first_seen_ms,
  (t.history IS NOT NULL AND t.history = h.history) AS is_current
FROM idgen_type_history h
JOIN idgen_type t ON t.id = h.type_id
