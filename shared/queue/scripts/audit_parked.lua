#!lua
--[[
  audit_parked: only who is paused or at a limit is parked, and only flows that have jobs.

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

-- What a parked flow's place in the tree would lead to.
local function below(member)
  if level == 'tenant' then return ready_key(leaf_node(member, name)) end
  local band, tenant = member:match('^(%d+)|(.*)$')
  return flow_key(band, tenant, name)
end

local members = call('ZRANGE', key, 0, LOOKED_AT - 1)
for i = 1, #members do
  if call('EXISTS', below(members[i])) == 0 then
    call('ZREM', key, members[i])
    mend()
  end
end
if #members > mended and not is_at(limit_of(call('HGET', CFG, 'limit:' .. level .. '|' .. name)), level, name) then
  unpark(level, name)
  mend()
end
return mended
