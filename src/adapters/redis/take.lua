-- Takes up to ARGV[1] ids from the published ranges of a type.
--
-- KEYS[1]  the type's hash
-- ARGV[1]  how many ids are wanted, at least 1
--
-- Answers {'stale', replid}, {'moved', seal}, or {'taken', replid, due, left, start, count,
-- start, count}: whether the next range is due ('1' or '0'), how many ids are
-- left, and what was taken from the first and from the second range.

local type = redis.call('HMGET', KEYS[1],
  'history', 'cur', 'end', 'update', 'next_start', 'next_end', 'next_update')
local cur, stop, update, next_start = type[2], type[3], type[4], type[5]
if type[1] ~= replid then
  local sealed = redis.call('HGET', KEYS[1], 'sealed')
  return sealed and {'moved', sealed} or {'stale', replid}
end

local wanted = tonumber(ARGV[1])
local left = minus(stop, cur)
local first = math.min(wanted, left)
if first > 0 then
  redis.call('HINCRBY', KEYS[1], 'cur', text(first))
  left = left - first
end

local second = 0
if next_start and first < wanted then
  -- The first range is used up: the second takes its place.
  update = type[7]
  redis.call('HSET', KEYS[1],
    'start', next_start, 'cur', next_start, 'end', type[6], 'update', update)
  redis.call('HDEL', KEYS[1], 'next_start', 'next_end', 'next_update')
  left = minus(type[6], next_start)
  second = math.min(wanted - first, left)
  redis.call('HINCRBY', KEYS[1], 'cur', text(second))
  left = left - second
  if minus(next_start, update) + second < 0 then
    update = nil
  end
elseif next_start then
  left = left + minus(type[6], next_start)
  update = nil
elseif minus(cur, update) + first < 0 then
  update = nil
end

redis.call('HINCRBY', KEYS[1], 'used', text(first + second))
return {'taken', replid, update and '1' or '0', text(left),
  cur, text(first), next_start or '0', text(second)}
