-- A sign of life: KEYS[1] the lock, ARGV[1] token, ARGV[2] time to live in ms.
-- Answers 1, or 0 where the lock is not held under the token.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
