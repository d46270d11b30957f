-- Every range that was given away: which positions (ids, of a plain type), when,
-- to whom, and why so long. shard is -1 where the type is not sharded.
CREATE OR REPLACE VIEW idgen_ranges AS
SELECT
  l.id AS id,
  t.name AS name,
  l.shard AS shard,
  l.start_id AS start_id,
  l.end_id AS end_id,
  l.end_id - l.start_id AS length,
  l.at_ms AS at_ms,
  TIMESTAMPADD(MICROSECOND, l.at_ms * 1000, '1970-01-01 00:00:00') AS at_utc,
  l.kind AS kind,
  l.owner AS owner,
  l.instance_id AS instance_id,
  l.history AS history,
  l.consumed AS consumed,
  l.elapsed_ms AS elapsed_ms,
  l.floor_id AS floor_id
FROM idgen_range_log l
JOIN idgen_type t ON t.id = l.type_id
