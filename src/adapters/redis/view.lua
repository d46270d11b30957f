-- Reads the state of a type.
--
-- KEYS[1]  the type's hash
--
-- Answers {replid, age in ms, history, start, cur, end, update, next_start,
-- next_end, used}; fields that are not there are false.

local type = redis.call('HMGET', KEYS[1], 'load_time',
  'history', 'start', 'cur', 'end', 'update', 'next_start', 'next_end', 'used')
local age = type[1] and math.max(0, now_ms() - tonumber(type[1])) or 0
return {replid, text(age), unpack(type, 2, 9)}
