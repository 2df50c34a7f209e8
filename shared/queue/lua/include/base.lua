-- What every script begins with. The library is compiled once and serves many calls, so that what belongs to one call is
-- set here, by `begin`, and nowhere else: a piece that keeps something for a call adds how it is forgotten to `fresh`.
-- include: keys
-- include: time
local call, now_us, now_ms
local fresh = {}

-- Text of an integer; Lua itself prints 14 digits only. Arguments of commands need it not: the server prints 17.
local function int(n) return string.format('%.0f', n) end

local function number(text) return tonumber(text or 0) end
