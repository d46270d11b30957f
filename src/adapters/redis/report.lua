-- Keeps what a node says of itself, with the time of this server.
--
-- KEYS[1]  summaries   KEYS[2]  details
-- ARGV[1]  node   ARGV[2]  summary   ARGV[3]  details   ARGV[4]  life in ms

local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
