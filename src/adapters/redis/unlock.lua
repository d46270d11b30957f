-- Releases: KEYS[1] the lock, ARGV[1] token. Answers 1, or 0 where the lock is
-- not held under the token.
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^%S+') == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
