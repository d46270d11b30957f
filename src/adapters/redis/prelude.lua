-- What the scripts share: put before each that needs it.

-- Ids have up to 63 bits, numbers in Lua 53. So ids stay text, Redis itself
-- adds (HINCRBY), and only differences become numbers: split at the ninth
-- digit, a difference below 2^53 is exact, and a larger one has the right sign.
local function minus(a, b)
  local high = (tonumber(string.sub(a, 1, -10)) or 0) - (tonumber(string.sub(b, 1, -10)) or 0)
  return high * 1e9 + (tonumber(string.sub(a, -9)) - tonumber(string.sub(b, -9)))
end

-- A whole number as Redis takes it: Lua would write 1e+14.
local function text(number)
  return string.format('%.0f', number)
end

-- Milliseconds of the Unix epoch by the clock of this server.
local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- The history of this server, now.
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')

