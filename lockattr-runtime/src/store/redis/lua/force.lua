-- Ends the lease that has this token. ARGV: retention, channel, token. Answers 1, or 0: it has another.
local r = call('HMGET', KEYS[1], 'lockattr', 'expires', 'window')
if r[1] ~= ARGV[3] or tonumber(r[2]) <= 0 then return 0 end
free(KEYS[1], r[3])
call('HSET', KEYS[1], 'lockattr', string.format('%.0f', r[1] + 1))
return 1
