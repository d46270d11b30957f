-- Tries to get the refill lock of a type.
--
-- KEYS[1]  the type's lock
-- ARGV[1]  token   ARGV[2]  time to live in ms
-- ARGV[3]  silence in ms after which a holder loses it; -1: never
--
-- A holder shows that it lives by setting the time to live anew (renew.lua),
-- so the time to live that is gone is how long it has been silent, by the one
-- clock of this server.

local function hold(answer)
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return answer
end

if redis.call('EXISTS', KEYS[1]) == 0 then
  return hold('acquired')
end
local grace = tonumber(ARGV[3])
local silent = tonumber(ARGV[2]) - redis.call('PTTL', KEYS[1])
if grace >= 0 and silent >= grace then
  return hold('taken over')
end
return 'held'
