#!lua
--[[
  audit_flow: repairs a page of one flow: it holds queued jobs of this flow only, or such that were set aside; an empty flow
  is not in the tree.

  KEYS[1]  prefix of the queue
  ARGV[1]  band
  ARGV[2]  tenant
  ARGV[3]  table
  ARGV[4]  which of its jobs (queued, aside)
  ARGV[5]  offset

  Output: {entries that are left on this page, number of repairs}
]]
-- include: repair
local band, tenant, tbl, which, offset = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local PAGE = 100
local STATES = {queued = 'queued', aside = 'delayed'}
local flow = which == 'queued' and flow_key(band, tenant, tbl) or aside_flow_key(band, tenant, tbl)
local ids = call('ZRANGE', flow, offset, offset + PAGE - 1)
local kept = 0
for i = 1, #ids do
  local job = call('HMGET', job_key(ids[i]), 'state', 'band', 'tenant', 'table', 'ability')
  local is_here = job[2] == band and job[3] == tenant and job[4] == tbl
  if is_here and job[1] == STATES[which] and (which == 'queued' or job[5]) then
    kept = kept + 1
  else
    call('ZREM', flow, ids[i])
    count_repair()
  end
end
repair_path(band, tenant, tbl)
return {kept, repaired}
