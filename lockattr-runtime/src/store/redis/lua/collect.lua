-- Removes of these keys the records that nothing was done with for long. ARGV: retention, the most to remove.
-- Answers how many.
local removed, most = 0, tonumber(ARGV[2])
for _, key in ipairs(KEYS) do
  if removed == most then break end
  local r = redis.pcall('HMGET', key, 'lockattr', 'expires', 'ttl', 'window')
  if r[1] then
    -- Below zero it is when it became free, above when it ends or has ended.
    local since = math.min(math.abs(r[2]), now + r[3])
    if since + ARGV[1] <= now and tonumber(r[4] or 0) <= now then
      call('PEXPIRE', key, 0)
      removed = removed + 1
    end
  end
end
return removed
