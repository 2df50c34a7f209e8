#!lua
--[[
  audit_throttled: only who is paused or at a limit is parked, and only flows that have jobs.

  KEYS[1]  prefix of the queue
  ARGV[1]  level (tenant, table)
  ARGV[2]  name

  Output: number of things mended
]]
-- include: repair
-- include: limits
local level, name = ARGV[1], ARGV[2]
local key = throttled_key(level .. '|' .. name)
local LOOKED_AT = 100

-- Each member is a node: the leaf of a parked table's flow, the band of a parked tenant.
local members = call('ZRANGE', key, 0, LOOKED_AT - 1)
for i = 1, #members do
  if expected_condition(members[i], name) == 'empty' then
    call('ZREM', key, members[i])
    count_repair()
  end
  repair_child(members[i], name)
  repair_ancestors(members[i])
end
if #members > repaired and not is_at(limit_of(call('HGET', CFG, 'limit:' .. level .. '|' .. name)), level, name) then
  unthrottle(level, name)
  count_repair()
end
return repaired
