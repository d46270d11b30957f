-- Removes an older seal; what it closed stays dead.
--
-- KEYS[1]  the type's hash   ARGV[1]  generation
--
-- Answers 1 where there is no seal now, else 0.
local sealed = redis.call('HGET', KEYS[1], 'sealed')
if not sealed then
  return 1
end
if minus(string.match(sealed, '^%d+'), ARGV[1]) < 0 then
  redis.call('HDEL', KEYS[1], 'sealed', 'sealed_history')
  return 1
end
return 0
