-- Closes a type here, for a migration to another instance.
--
-- KEYS[1]  the type's hash   KEYS[2]  the hash of its leases
-- ARGV[1]  generation        ARGV[2]  target
--
-- Answers {seal, end, next_end, cur, end, update, next_start, next_end, shard,
-- end, shard, end, ...}: the seal in force, 'GENERATION TARGET', the ends of what
-- is or was published, what is left if it may still be used (else false, five
-- times), and the highest ends of the leases.

local type = redis.call('HMGET', KEYS[1], 'history', 'sealed', 'sealed_history',
  'cur', 'end', 'update', 'next_start', 'next_end')
local sealed, history = type[2], type[3]
local generation = sealed and string.match(sealed, '^%d+')
if not sealed or minus(generation, ARGV[1]) < 0 then
  -- Without its history nothing of it is live: no script needs a look at the
  -- seal before it hands something out.
  sealed, history = ARGV[1] .. ' ' .. ARGV[2], type[1]
  redis.call('HDEL', KEYS[1], 'history', 'sealed_history')
  redis.call('HSET', KEYS[1], 'sealed', sealed)
  if history then
    redis.call('HSET', KEYS[1], 'sealed_history', history)
  end
end

local answer = {sealed, type[5], type[8]}
local counts = history == replid and sealed == ARGV[1] .. ' ' .. ARGV[2]
for field = 4, 8 do
  answer[field] = counts and type[field]
end
local leases = redis.call('HGETALL', KEYS[2])
for place = 1, #leases, 2 do
  local shard = string.match(leases[place], '^end:(%d+)$')
  if shard and tonumber(shard) < SHARDS then
    table.insert(answer, shard)
    table.insert(answer, leases[place + 1])
  end
end
return answer
