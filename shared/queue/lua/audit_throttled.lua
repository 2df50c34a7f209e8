#!lua
--[[
  audit_throttled: only who is paused or at a limit is parked, and only flows that have jobs.

  KEYS[1]  prefix of the queue
  ARGV[1]  level (tenant, table)
  ARGV[2]  name

  Output: number of things mended
]]
-- include: mend
-- include: limits
local level, name = ARGV[1], ARGV[2]
local key = parked_key(level .. '|' .. name)
local LOOKED_AT = 100

-- Each member is a node: the leaf of a parked table's flow, the band of a parked tenant.
local members = call('ZRANGE', key, 0, LOOKED_AT - 1)
for i = 1, #members do
  if should_be(members[i], name) == 'empty' then
    call('ZREM', key, members[i])
    mend()
  end
  mend_child(members[i], name)
  mend_above(members[i])
end
if #members > mended and not is_at(limit_of(call('HGET', CFG, 'limit:' .. level .. '|' .. name)), level, name) then
  unpark(level, name)
  mend()
end
return mended
