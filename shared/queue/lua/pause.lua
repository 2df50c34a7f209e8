#!lua flags=allow-oom
--[[
  pause: stops dispatching jobs of a queue, band, tenant or table until it is resumed; running jobs continue, new ones wait.

  KEYS[1]  prefix of the queue
  ARGV[1]  level (queue, band, tenant, table)
  ARGV[2]  name, "" for the queue
  ARGV[3]  1: pause, 0: resume

  Output: 1
]]
-- include: tree
-- include: group
-- include: mark
local level, name, is_pause = ARGV[1], ARGV[2], ARGV[3] == '1'

-- `before` without the mark of this pause, and with it if the name is to be paused. A paused queue keeps its bands' digits
-- behind the word.
local function pause_top()
  local before, mark = paused, level == 'queue' and 'all' or name
  local after = before:gsub(mark, '')
  if is_pause then after = level == 'queue' and mark .. after or after .. mark end
  if after == '' then call('HDEL', CONFIG, 'paused') else call('HSET', CONFIG, 'paused', after) end
end

local function pause_child()
  local field, config = 'limit:' .. level .. '|' .. name, level == 'table' and TABLES_CONFIG or CONFIG
  local before = call('HGET', config, field) or ''
  local limit, marks_of_pause = before:gsub('^!', '')
  if level == 'table' then
    enter_table(name)
    if is_pause ~= (marks_of_pause == 1) then mark(name, is_pause and 'paused' or 'resumed', '') end
  end
  if is_pause then
    call('HSET', config, field, '!' .. limit)
  else
    if limit == '' then call('HDEL', config, field) else call('HSET', config, field, limit) end
    unthrottle(level, name)
  end
end

if level == 'queue' or level == 'band' then pause_top() else pause_child() end
return 1
