-- How far the ranges of a type were noted.
--
-- KEYS[1]  the hash of the type's leases   KEYS[2]  the type's hash
-- ARGV[1]  shard
--
-- Answers {'known', the highest end, '0' if none}, or {'moved', seal} for a type
-- that was sealed here.
local sealed = seal_of(KEYS[2], ARGV[1])
if sealed then
  return {'moved', sealed}
end
return {'known', (read_leases(ARGV[1]))}
