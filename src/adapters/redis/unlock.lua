-- Releases: KEYS[1] the lock, ARGV[1] token. Answers 1, or 0 where the lock is
-- not held under the token.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
