-- Keeps a text under a request key, unless something is there.
--
-- KEYS[1]  the request key   ARGV[1]  the text   ARGV[2]  time to live in ms
--
-- Answers false, or what is there. (SET takes NX and GET together only from
-- Redis 7.0 on.)
local there = redis.call('GET', KEYS[1])
if not there then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return there
