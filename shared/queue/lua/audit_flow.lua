#!lua
--[[
  audit_flow: repairs a page of one flow: it holds queued jobs of this flow only; an empty flow is not in the tree.

  KEYS[1]  prefix of the queue
  ARGV[1]  band
  ARGV[2]  tenant
  ARGV[3]  table
  ARGV[4]  offset

  Output: {entries that are left on this page, number of repairs}
]]
-- include: repair
local band, tenant, tbl, offset = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local PAGE = 100
local flow = flow_key(band, tenant, tbl)
local ids = call('ZRANGE', flow, offset, offset + PAGE - 1)
local kept = 0
for i = 1, #ids do
  local job = call('HMGET', job_key(ids[i]), 'state', 'band', 'tenant', 'table')
  if job[1] == 'queued' and job[2] == band and job[3] == tenant and job[4] == tbl then
    kept = kept + 1
  else
    call('ZREM', flow, ids[i])
    count_repair()
  end
end
repair_path(band, tenant, tbl)
return {kept, repaired}
