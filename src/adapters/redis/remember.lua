-- Keeps a text under a request key, unless something is there.
--
-- KEYS[1]  the request key   KEYS[2]  the type's hash
-- ARGV[1]  the text          ARGV[2]  time to live in ms
--
-- Answers {'kept'}, {'earlier', what is there}, or {'moved', seal}. (SET takes NX
-- and GET together only from Redis 7.0 on.)
local sealed = redis.call('HGET', KEYS[2], 'sealed')
if sealed then
  return {'moved', sealed}
end
local there = redis.call('GET', KEYS[1])
if there then
  return {'earlier', there}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'kept'}
