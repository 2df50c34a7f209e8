-- The server's clock is the only one: workers and deciders may be hours off.
local clock = redis.call('TIME')
local now_us = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
