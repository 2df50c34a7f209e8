-- Timers of a table, by the time at which they fire; and the index of all tables by the time of their first timer.
-- include: config

-- `how`: set; earlier, which keeps a timer that fires before; stop.
local function set_timer(tbl, name, how, at)
  if how == 'stop' then
    call('ZREM', timers_key(tbl), name)
  elseif how == 'earlier' then
    call('ZADD', timers_key(tbl), 'LT', at, name)
  else
    call('ZADD', timers_key(tbl), at, name)
  end
end

local function index_first_timer(tbl)
  local first = call('ZRANGE', timers_key(tbl), 0, 0, 'WITHSCORES')
  if first[1] then call('ZADD', DUE_TABLES, first[2], tbl) else call('ZREM', DUE_TABLES, tbl) end
end
