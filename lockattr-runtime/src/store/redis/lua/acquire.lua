-- Takes all keys or none. ARGV: retention, channel, then for each key its owner, ttl, lock delay, number of
-- tokens, least token, window and holder.
-- Answers: 1, the shortest time left, the tokens · 0, index, time left, holder · -1, index: spent ·
-- -2, index: not a record of ours · -3, index: no tokens left.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local records, answer, refusal = {}, {1, -1}, nil

for i, key in ipairs(KEYS) do
  local a = 7 * i - 4
  local owner, ttl, block = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 3])
  local r = redis.call('HMGET', key, 'lockattr', 'owner', 'previous', 'expires', 'ttl', 'granted', 'window', 'holder')
  if not r[1] and #redis.call('HGETALL', key) > 0 then return {-2, i} end
  local token, expires = tonumber(r[1] or '0'), tonumber(r[4] or '0')
  if r[1] and expires > now + r[5] then
    -- The clock went back: nobody counts on more than one ttl.
    expires = now + r[5]
    redis.call('HSET', key, 'expires', string.format('%.0f', expires))
  end
  local left, once = 0, tonumber(ARGV[a + 5])
  if expires > 0 then left = expires - now end

  if r[2] == owner and r[8] and left > 0 then
    answer[i + 2] = token - block + 1
    ttl = left
  elseif r[2] == owner or r[3] == owner then
    refusal = {-1, i}
    break
  else
    local held = expires > 0 and r[8]
    if held then left = left + ARGV[a + 2] end
    if left > 0 then
      refusal = {0, i, left, held or ''}
      break
    end
    if once > 0 and r[1] and math.floor(r[6] / once) == math.floor(now / once) then
      refusal = {0, i, once - now % once, ''}
      break
    end
    local first = math.max(token + 1, now, tonumber(ARGV[a + 4]))
    if first + block - 1 > 9007199254740991 then return {-3, i} end
    answer[i + 2] = first
    records[i] = {first + block - 1, r[2] or '', r[7] or '0', r[1]}
    if once > 0 then records[i][3] = math.max(r[7] or 0, now - now % once + once) end
  end
  if answer[2] < 0 or ttl < answer[2] then answer[2] = ttl end
end

if refusal and #KEYS > 1 then
  -- An earlier attempt of the same owner, whose answer was lost, may hold some of them.
  for i, key in ipairs(KEYS) do
    local r = redis.call('HMGET', key, 'owner', 'expires', 'holder', 'window')
    if r[1] == ARGV[7 * i - 4] and tonumber(r[2]) > 0 and r[3] then free(key, r[4], now) end
  end
end
if refusal then return refusal end

-- The first command needs memory, so that Redis refuses all when that is full.
for i, record in pairs(records) do
  local a = 7 * i - 4
  redis.call('HSET', KEYS[i],
    'lockattr', string.format('%.0f', record[1]), 'owner', ARGV[a], 'previous', record[2],
    'expires', string.format('%.0f', now + ARGV[a + 1]), 'ttl', ARGV[a + 1],
    'granted', string.format('%.0f', now), 'window', string.format('%.0f', record[3]), 'holder', ARGV[a + 6])
end
for i, record in pairs(records) do
  -- What is held has no key ttl: eviction spares it, under every policy but `allkeys-*`.
  if record[4] then redis.call('PERSIST', KEYS[i]) end
end
return answer
