-- include: keys
local call = redis.call

-- Lua prints numbers with 14 digits; every integer that is stored or returned as text goes through here.
local function int(n) return string.format('%.0f', n) end

local function number(text) return tonumber(text or 0) end
