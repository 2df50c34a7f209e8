#!lua
--[[
  audit_throttled: only a tenant or table that is paused or at its limit is throttled, and only flows that have jobs.

  KEYS[1]  prefix of the queue
  ARGV[1]  level (tenant, table)
  ARGV[2]  name

  Output: number of repairs
]]
-- include: repair
-- include: limits
local level, name = ARGV[1], ARGV[2]
local key = throttled_key(level .. '|' .. name)
local MEMBERS = 100

-- Each member is a node: the leaf of a throttled table's flow, the band of a throttled tenant.
local members = call('ZRANGE', key, 0, MEMBERS - 1)
for i = 1, #members do
  if expected_condition(members[i], name) == 'empty' then
    call('ZREM', key, members[i])
    count_repair()
  end
  repair_child(members[i], name)
  repair_ancestors(members[i])
end
local limit = call('HGET', level == 'table' and TABLES_CONFIG or CONFIG, 'limit:' .. level .. '|' .. name)
if #members > repaired and not is_at(limit_of(limit), level, name) then
  unthrottle(level, name)
  count_repair()
end
return repaired
