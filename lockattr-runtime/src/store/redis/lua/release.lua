-- Ends what an owner has of each key. ARGV: retention, channel, minimum hold, then the owners.
-- Answers for each: 1 released, 2 it had been before, 0 not held; without a list for one key.
local answers = {}
for i = 1, #KEYS do
  local key, owner = KEYS[i], ARGV[i + 3]
  local r = call('HMGET', key, 'owner', 'expires', 'holder', 'window')
  local ours = r[1] == owner
  if ours and r[3] and tonumber(r[2]) > 0 then
    local expires, kept = tonumber(r[2]), 0
    if ARGV[3] ~= '0' then
      local more = call('HMGET', key, 'ttl', 'granted')
      expires = math.min(expires, now + more[1])
      kept = math.min(more[2] + ARGV[3] - now, tonumber(ARGV[3]))
    end
    if expires > now and kept > 0 then
      -- Who has no holder is kept: held by nobody, and not free.
      call('HDEL', key, 'holder')
      call('HSET', key, 'expires', string.format('%.0f', now + kept), 'ttl', string.format('%.0f', kept))
    else
      free(key, r[4])
    end
    answers[i] = 1
  else
    ours = ours or call('HMGET', key, 'previous')[1] == owner
    answers[i] = ours and 2 or 0
  end
end
return #KEYS == 1 and answers[1] or answers
