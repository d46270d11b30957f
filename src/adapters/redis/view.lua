-- Reads the state of a type.
--
-- KEYS[1]  the type's hash   KEYS[2]  the hash of its leases
--
-- Answers {replid, age in ms, highest end of the leases, history, start, cur,
-- end, update, next_start, next_end, used, sealed}; fields that are not there are
-- false.

local type = redis.call('HMGET', KEYS[1], 'load_time',
  'history', 'start', 'cur', 'end', 'update', 'next_start', 'next_end', 'used', 'sealed')
local age = type[1] and math.max(0, now_ms() - tonumber(type[1])) or 0
return {replid, text(age), redis.call('HGET', KEYS[2], 'end:0'), unpack(type, 2, 10)}
