-- How leased ranges are noted; put after the prelude.
--
-- KEYS[1] is the hash of the type's leases. Of each shard it has three fields:
-- `end` and `below` are numbers, '0' for nothing, and `ranges` are up to 16
-- ranges `start-end`, ascending, disjoint, with a blank between them. Nothing
-- in the list starts below `below`, and `end` is the end of the last one, or
-- `below` where the list is empty.
local MOST = 16

-- Shards of types have lower numbers. What is noted under others is not a type's.
local SHARDS = 64

-- The seal of the type whose hash is `key`, if it keeps `shard` from being noted.
local function seal_of(key, shard)
  return tonumber(shard) < SHARDS and redis.call('HGET', key, 'sealed')
end

-- Calls `each(start, stop)` for every range that is listed.
local function listed(ranges, each)
  for start, stop in string.gmatch(ranges, '(%d+)-(%d+)') do
    each(start, stop)
  end
end

local function read_leases(shard)
  local noted = redis.call('HMGET', KEYS[1], 'end:' .. shard, 'below:' .. shard, 'ranges:' .. shard)
  return noted[1] or '0', noted[2] or '0', noted[3] or ''
end

local function write_leases(shard, highest, below, ranges)
  redis.call('HSET', KEYS[1], 'end:' .. shard, highest, 'below:' .. shard, below,
    'ranges:' .. shard, table.concat(ranges, ' '))
end
