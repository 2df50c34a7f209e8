#!lua
--[[
  weight: sets the weight of a band, tenant or table relative to its siblings; it counts from the next claim on.

  KEYS[1]  prefix of the queue
  ARGV[1]  level (band, tenant, table)
  ARGV[2]  name
  ARGV[3]  weight, "" for 1

  Output: 1
]]
-- include: config
local field, config = 'weight:' .. ARGV[1] .. '|' .. ARGV[2], ARGV[1] == 'table' and TABLES_CONFIG or CONFIG
if ARGV[3] == '' then call('HDEL', config, field) else call('HSET', config, field, ARGV[3]) end
return 1
