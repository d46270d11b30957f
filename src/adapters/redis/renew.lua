-- A sign of life: KEYS[1] the lock, ARGV[1] token, ARGV[2] time to live in ms.
-- Answers 1, or 0 where the lock is not held under the token.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^%S+') == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[2])
  return 1
end
return 0
