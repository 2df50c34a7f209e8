#!lua
--[[
  limit: sets how many jobs of a tenant or table may run at once. Running jobs continue; a pause remains.

  KEYS[1]  prefix of the queue
  ARGV[1]  level (tenant, table)
  ARGV[2]  name
  ARGV[3]  number of slots, a share of them (25%), or "" for no limit

  Output: 1
]]
-- include: tree
-- include: group
local level, name, limit = ARGV[1], ARGV[2], ARGV[3]
local field, config = 'limit:' .. level .. '|' .. name, level == 'table' and TABLES_CONFIG or CONFIG
if level == 'table' then enter_table(name) end
local pause = (call('HGET', config, field) or ''):sub(1, 1) == '!' and '!' or ''
if pause .. limit == '' then call('HDEL', config, field) else call('HSET', config, field, pause .. limit) end
unthrottle(level, name)
return 1
