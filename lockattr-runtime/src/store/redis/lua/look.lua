-- What each key is: token, time left (0 when it is free), age and holder (empty when nobody holds it); nil for
-- what is no record of ours.
local answers = {}
for i, key in ipairs(KEYS) do
  local r = redis.pcall('HMGET', key, 'lockattr', 'expires', 'ttl', 'granted', 'holder')
  if r[1] then
    local left = math.max(0, math.min(r[2] - now, tonumber(r[3])))
    answers[i] = {tonumber(r[1]), left, math.max(0, now - r[4]), r[5] or ''}
  else
    answers[i] = false
  end
end
return answers
