-- Takes all keys or none. ARGV: retention, channel, then for each key its owner, ttl, holder, and empty or the
-- lock delay, number of tokens, least token and window.
-- Answers: the token, when one key is granted for its whole ttl · 1, the shortest time left, the tokens ·
-- 0, index, time left, holder · -1, index: spent · -2, index: not a record of ours · -3, index: no tokens left.
local grants, answer, refusal = {}, {1, -1}, nil

for i = 1, #KEYS do
  local key, a = KEYS[i], 4 * i - 1
  local owner, ttl, rules = ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 3]
  local delay, block, least, once = 0, 1, 0, 0
  if rules ~= '' then
    delay, block, least, once = rules:match('(%d+) (%d+) (%d+) (%d+)')
    once = tonumber(once)
  end
  local r = call('HMGET', key, 'lockattr', 'owner', 'previous', 'expires', 'window')
  if not r[1] and #call('HGETALL', key) > 0 then return {-2, i} end
  local token, expires, left, holder = tonumber(r[1] or 0), tonumber(r[4] or 0), 0, nil
  if expires > 0 and expires + delay > now then
    local more = call('HMGET', key, 'ttl', 'holder')
    holder = more[2]
    if expires > now + more[1] then
      -- The clock went back: nobody counts on more than one ttl.
      expires = now + more[1]
      call('HSET', key, 'expires', format('%.0f', expires))
    end
    left = expires - now
  end

  if r[2] == owner and holder and left > 0 then
    answer[i + 2] = token - block + 1
    ttl = left
  elseif r[2] == owner or r[3] == owner then
    refusal = {-1, i}
    break
  else
    if holder then left = left + delay end
    if left > 0 then
      refusal = {0, i, left, holder or ''}
      break
    end
    local window
    if once > 0 then
      local granted = call('HMGET', key, 'granted')[1]
      if granted and math.floor(granted / once) == math.floor(now / once) then
        refusal = {0, i, once - now % once, ''}
        break
      end
      window = math.max(r[5] or 0, now - now % once + once)
    end
    local first, written = now, at
    if token >= now or rules ~= '' then
      first = math.max(token + 1, now, least)
      local last = first + block - 1
      if last > 9007199254740991 then return {-3, i} end
      written = format('%.0f', last)
    end
    answer[i + 2] = first
    grants[i] = {written, r[2] or '', window, r[1]}
  end
  if answer[2] < 0 or ttl < answer[2] then answer[2] = ttl end
end

if refusal and #KEYS > 1 then
  -- An earlier attempt of the same owner, whose answer was lost, may hold some of them.
  for i, key in ipairs(KEYS) do
    local r = call('HMGET', key, 'owner', 'expires', 'holder', 'window')
    if r[1] == ARGV[4 * i - 1] and tonumber(r[2]) > 0 and r[3] then free(key, r[4]) end
  end
end
if refusal then return refusal end

-- The first command needs memory, so that Redis refuses all when that is full.
for i = 1, #KEYS do
  local grant = grants[i]
  if grant then
    local key, a = KEYS[i], 4 * i - 1
    call('HSET', key, 'lockattr', grant[1], 'owner', ARGV[a], 'previous', grant[2],
      'expires', format('%.0f', now + ARGV[a + 1]), 'ttl', ARGV[a + 1], 'granted', at, 'holder', ARGV[a + 2])
    if grant[3] then
      call('HSET', key, 'window', format('%.0f', grant[3]))
    end
    -- What is held has no key ttl: eviction spares it, under every policy but `allkeys-*`.
    if grant[4] then call('PERSIST', key) end
  end
end
if #KEYS == 1 and grants[1] then return answer[3] end
return answer
