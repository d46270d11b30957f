-- Answers what nodes said of themselves, and removes what is too old.
--
-- KEYS[1]  summaries   KEYS[2]  details
-- ARGV[1]  1 for the details too   ARGV[2]  most age in ms   ARGV[3]  most entries
--
-- Answers {node, age in ms, summary, details, node, …}; details that are not there,
-- or not wanted, are false.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local found = redis.call('HGETALL', KEYS[1])
local answer = {}
for i = 1, #found, 2 do
  local node = found[i]
  local stamp, summary = string.match(found[i + 1], '^(%d+) (.*)$')
  local age = stamp and math.max(0, now - tonumber(stamp))
  if not age or age > tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[1], node)
    redis.call('HDEL', KEYS[2], node)
  elseif #answer < 4 * tonumber(ARGV[3]) then
    answer[#answer + 1] = node
    answer[#answer + 1] = string.format('%.0f', age)
    answer[#answer + 1] = summary
    answer[#answer + 1] = ARGV[1] == '1' and redis.call('HGET', KEYS[2], node)
  end
end
return answer
