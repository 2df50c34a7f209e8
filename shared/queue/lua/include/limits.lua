-- How many jobs of one table or tenant may run at once. The text in cfg is a number of slots, or a share of all slots
-- (`25%`), or either of them behind `!` while paused, so that resuming restores it.
-- include: config

-- Returns nil for no limit; a share is at least one slot, or the table would never be served.
local function limit_of(text)
  if not text then return nil end
  local slots = tonumber(text)
  if slots then return slots end
  if text:sub(1, 1) == '!' then return 0 end
  local slots_known = setting('slots')
  if slots_known == 0 then return nil end
  return math.max(1, math.floor(tonumber(text:sub(1, -2)) * slots_known / 100))
end

local function is_paused(band)
  return paused ~= '' and (paused:sub(1, 3) == 'all' or paused:find(band, 1, true) ~= nil)
end

-- How many more jobs may run below this limit.
local function room(limit, level, name)
  return limit and limit - number(call('HGET', IN_FLIGHT, level .. '|' .. name)) or math.huge
end

local function is_at(limit, level, name) return room(limit, level, name) <= 0 end
