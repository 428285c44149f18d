-- Moves the expiry, never back. ARGV: owner, ttl, number of tokens, least token.
-- Answers the time left, or -1: lost.
local key = KEYS[1]
local r = call('HMGET', key, 'owner', 'expires', 'ttl', 'holder', 'lockattr')
if r[1] ~= ARGV[1] or not r[4] then return -1 end
local expires, ttl = math.min(tonumber(r[2]), now + r[3]), tonumber(r[3])
if expires <= now then return -1 end

-- Takes no memory, so that the next one may run when memory is full.
call('PERSIST', key)
-- Only together with the expiry: a ttl below what is left would cut the lease when the clock goes back.
if now + ARGV[2] > expires then expires, ttl = now + ARGV[2], tonumber(ARGV[2]) end
local token = math.max(tonumber(r[5]), math.min(ARGV[4] + ARGV[3] - 1, 9007199254740991))
call('HSET', key, 'expires', string.format('%.0f', expires), 'ttl', string.format('%.0f', ttl),
  'lockattr', string.format('%.0f', token))
return expires - now
