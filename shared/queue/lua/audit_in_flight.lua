#!lua
--[[
  audit_in_flight: the counts of running jobs equal the leases. All leases are read at once, because a count cannot be
  repaired page by page; if there are more than the bound, nothing is done.

  KEYS[1]  prefix of the queue
  ARGV[1]  maximum number of leases

  Output: number of repairs, -1 if there are too many leases
]]
-- include: config
local most = tonumber(ARGV[1])
if call('ZCARD', LEASES) > most then return -1 end
local counts, repaired = {}, 0
local ids = call('ZRANGE', LEASES, 0, most - 1)
for i = 1, #ids do
  local job = call('HMGET', job_key(ids[i]), 'table', 'tenant')
  if job[1] and job[2] then
    local of_table, of_tenant = 'table|' .. job[1], 'tenant|' .. job[2]
    counts[of_table] = (counts[of_table] or 0) + 1
    counts[of_tenant] = (counts[of_tenant] or 0) + 1
  end
end
local found = call('HGETALL', IN_FLIGHT)
for i = 1, #found, 2 do
  if not counts[found[i]] then
    call('HDEL', IN_FLIGHT, found[i])
    repaired = repaired + 1
  elseif counts[found[i]] == tonumber(found[i + 1]) then
    counts[found[i]] = nil
  end
end
for name, count in pairs(counts) do
  call('HSET', IN_FLIGHT, name, count)
  repaired = repaired + 1
end
return repaired
