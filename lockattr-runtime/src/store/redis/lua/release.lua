-- Ends what an owner has of each key. ARGV: retention, channel, minimum hold, then the owners.
-- Answers for each: 1 released, 2 it had been before, 0 not held.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local keep, answers = tonumber(ARGV[3]), {}
for i, key in ipairs(KEYS) do
  local owner = ARGV[i + 3]
  local r = redis.call('HMGET', key, 'owner', 'previous', 'expires', 'ttl', 'granted', 'window', 'holder')
  if r[1] == owner and tonumber(r[3]) > 0 and r[7] then
    local expires = math.min(tonumber(r[3]), now + r[4])
    local kept = math.min(r[5] + keep - now, keep)
    if expires > now and kept > 0 then
      -- Who has no holder is kept: held by nobody, and not free.
      redis.call('HDEL', key, 'holder')
      redis.call('HSET', key, 'expires', string.format('%.0f', now + kept), 'ttl', string.format('%.0f', kept))
    else
      free(key, r[6], now)
    end
    answers[i] = 1
  elseif r[1] == owner or r[2] == owner then
    answers[i] = 2
  else
    answers[i] = 0
  end
end
return answers
