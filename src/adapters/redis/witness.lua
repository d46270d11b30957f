-- Notes a range that a node leased for itself.
--
-- KEYS[1]  the hash of the type's leases   KEYS[2]  the type's hash
-- ARGV[1]  shard   ARGV[2]  start   ARGV[3]  end
--
-- Answers {'noted'} where it is new. Otherwise nothing is noted: {'moved', seal}
-- for a type that was sealed here, or {'overlaps', the highest end}: some of the range may have been leased before, as
-- it overlaps a range of the list, or starts below what fell out of the list.

local sealed = seal_of(KEYS[2], ARGV[1])
if sealed then
  return {'moved', sealed}
end
local first, stop = ARGV[2], ARGV[3]
local highest, below, ranges = read_leases(ARGV[1])
if minus(first, below) < 0 then
  return {'overlaps', highest}
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
  return {'overlaps', highest}
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
return {'noted'}
