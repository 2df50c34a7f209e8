-- State of one call. The library is compiled once and serves many calls, so the state of a call is set by `begin_call`
-- alone; an include that keeps state for a call resets it in `on_call_start`.
-- include: keys
-- include: time
local call, now_us, now_ms
local on_call_start = {}

-- Text of an integer; Lua itself prints 14 digits only. Arguments of commands need it not: the server prints 17.
local function int(n) return string.format('%.0f', n) end

local function number(text) return tonumber(text or 0) end
