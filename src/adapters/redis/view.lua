-- Reads the state of a type.
--
-- KEYS[1]  the type's hash
--
-- Answers {replid, age in ms, history, start, cur, end, update, next_start,
-- next_end, used}; fields that are not there are false.

local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local type = redis.call('HMGET', KEYS[1], 'load_time',
  'history', 'start', 'cur', 'end', 'update', 'next_start', 'next_end', 'used')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local age = type[1] and math.max(0, now - tonumber(type[1])) or 0
return {replid, string.format('%.0f', age), unpack(type, 2, 9)}
