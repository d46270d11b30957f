-- Becomes the witness of what was given away elsewhere.
--
-- KEYS[1]  the hash of the type's leases
-- ARGV     shard, end, shard, end, ...
--
-- Answers the history of this server.

for place = 1, #ARGV, 2 do
  local highest, below, ranges = read_leases(ARGV[place])
  local adopted = ARGV[place + 1]
  if minus(below, adopted) < 0 then
    below = adopted
  end
  local kept = {}
  listed(ranges, function(from, to)
    if minus(from, below) >= 0 then
      table.insert(kept, from .. '-' .. to)
    elseif minus(below, to) < 0 then
      below = to
    end
  end)
  if minus(highest, below) < 0 then
    highest = below
  end
  write_leases(ARGV[place], highest, below, kept)
end
return replid
