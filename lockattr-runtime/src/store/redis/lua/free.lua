-- Ends what a record says, and tells those who wait. Its first command takes no memory, so that Redis lets the
-- others run when memory is full ("Scripts in low-memory conditions" in its documentation).
-- ARGV[1] is the retention in milliseconds, ARGV[2] the channel.
local function free(key, window)
  if window and tonumber(window) > now then
    call('PERSIST', key)
  else
    call('PEXPIRE', key, ARGV[1])
  end
  call('HSET', key, 'expires', '-' .. at)
  redis.pcall('PUBLISH', ARGV[2], key)
end
