-- Notes a range that a node leased for itself.
--
-- KEYS[1]  the hash of the type's leases
-- ARGV[1]  shard   ARGV[2]  start   ARGV[3]  end
--
-- Answers false where it is new. Otherwise nothing is noted, and the answer is
-- the highest end that was: some of the range may have been leased before, as
-- it overlaps a range of the list, or starts below what fell out of the list.

local first, stop = ARGV[2], ARGV[3]
local highest, below, ranges = read_leases(ARGV[1])
if minus(first, below) < 0 then
  return highest
end

local kept, overlaps, placed = {}, false, false
listed(ranges, function(from, to)
  if minus(first, to) < 0 and minus(from, stop) < 0 then
    overlaps = true
  end
  -- Nodes come in any order: a range may belong below others.
  if not placed and minus(first, from) < 0 then
    placed = true
    table.insert(kept, first .. '-' .. stop)
  end
  table.insert(kept, from .. '-' .. to)
end)
if overlaps then
  return highest
end
if not placed then
  table.insert(kept, first .. '-' .. stop)
  highest = stop
end
if #kept > MOST then
  -- The lowest one falls out. Its end is above all that fell out before.
  below = string.match(table.remove(kept, 1), '%d+$')
end
write_leases(ARGV[1], highest, below, kept)
return false
