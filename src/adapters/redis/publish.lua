-- Publishes a range that a refill got from the range store.
--
-- KEYS[1]  the type's hash        KEYS[2]  the type's lock
-- ARGV[1]  start   ARGV[2]  end   ARGV[3]  update id
-- ARGV[4]  the history under which the refill began
-- ARGV[5]  the token under which it holds the lock
-- ARGV[6]  the channel            ARGV[7]  the message for it
-- ARGV[8]  '1': drop what is published and live
-- ARGV[9]  the generation of the type
--
-- Answers 'published', or why not: 'history', 'token', 'moved', 'full', 'order'. What
-- is refused is burnt: these checks, not the lock, keep an old range dead.

if replid ~= ARGV[4] then
  return 'history'
end
local held = redis.call('GET', KEYS[2])
if not held or string.match(held, '^%S+') ~= ARGV[5] then
  return 'token'
end
local type = redis.call('HMGET', KEYS[1],
  'history', 'cur', 'end', 'next_start', 'next_end', 'sealed')
if type[6] and minus(string.match(type[6], '^%d+'), ARGV[9]) >= 0 then
  return 'moved'
end
local live = type[1] == replid and ARGV[8] ~= '1'
if live and type[4] then
  return 'full'
end
-- Dead ranges count here too: their ends are witnesses. Of a type that left and has
-- come back, what was not taken here before may come back with it.
if type[6] then
  type[3], type[5] = type[2], nil
end
if type[3] and minus(ARGV[1], type[3]) < 0 then
  return 'order'
end
if type[5] and minus(ARGV[1], type[5]) < 0 then
  return 'order'
end

local now = text(now_ms())
if live and minus(type[3], type[2]) > 0 then
  redis.call('HSET', KEYS[1], 'next_start', ARGV[1], 'next_end', ARGV[2], 'next_update', ARGV[3],
    'used', '0', 'load_time', now)
else
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'start', ARGV[1], 'cur', ARGV[1], 'end', ARGV[2],
    'update', ARGV[3], 'history', replid, 'used', '0', 'load_time', now)
end
redis.call('PUBLISH', ARGV[6], ARGV[7])
return 'published'
