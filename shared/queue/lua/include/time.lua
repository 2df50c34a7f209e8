-- The server's clock is the only one: workers and deciders may be hours off.
local function clock_us()
  local clock = redis.call('TIME')
  return tonumber(clock[1]) * 1000000 + tonumber(clock[2])
end
