-- What every script begins with: the server's time in microseconds, as a number, and as text, since Lua is
-- slow to write large numbers.
local call, format = redis.call, string.format
local time = call('TIME')
local at = time[1] .. ('00000' .. time[2]):sub(-6)
local now = time[1] * 1000000 + time[2]
