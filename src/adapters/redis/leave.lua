-- Takes away what a node said of itself.
--
-- KEYS[1]  summaries   KEYS[2]  details   ARGV[1]  node

redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
