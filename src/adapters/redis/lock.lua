-- Tries to get the refill lock of a type.
--
-- KEYS[1]  the type's lock
-- ARGV[1]  token (without a blank)   ARGV[2]  time to live in ms
-- ARGV[3]  silence in ms after which a holder loses it; -1: never
--
-- The lock holds its token and its time to live, with a blank between them. A
-- holder shows that it lives by setting the time to live anew (renew.lua), so
-- what is gone of it is how long the holder has been silent, by the one clock
-- of this server.

local function hold(answer)
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[2])
  return answer
end

local held = redis.call('GET', KEYS[1])
if not held then
  return hold('acquired')
end
local grace = tonumber(ARGV[3])
local ttl = tonumber(string.match(held, ' (%d+)$')) or tonumber(ARGV[2])
local silent = ttl - redis.call('PTTL', KEYS[1])
if grace >= 0 and silent >= grace then
  return hold('taken over')
end
return 'held'
