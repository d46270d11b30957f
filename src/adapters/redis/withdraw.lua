-- Forgets the end of a range that was noted and is about to be given back.
--
-- KEYS[1]  the hash of the type's leases   KEYS[2]  the type's hash
-- ARGV[1]  shard   ARGV[2]  start   ARGV[3]  end
--
-- Answers 1, or 0 where it is not the highest that was noted, begins below what
-- fell out of the list, or the type was sealed here.

if seal_of(KEYS[2], ARGV[1]) then
  return 0
end
local first, stop = ARGV[2], ARGV[3]
local highest, below, ranges = read_leases(ARGV[1])
if ranges == '' or highest ~= stop or minus(first, below) < 0 then
  return 0
end

local kept = {}
highest = below
listed(ranges, function(from, to)
  if minus(from, first) < 0 then
    if minus(to, first) > 0 then
      to = first
    end
    highest = to
    table.insert(kept, from .. '-' .. to)
  end
end)
write_leases(ARGV[1], highest, below, kept)
return 1
