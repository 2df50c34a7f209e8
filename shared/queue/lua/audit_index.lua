#!lua
--[[
  audit_index: a page of the index of one state names jobs in that state only.

  KEYS[1]  prefix of the queue
  ARGV[1]  state
  ARGV[2]  offset

  Output: {entries that are left on this page, number of repairs}
]]
-- include: config
local INDEXES = {queued = QUEUED, leased = LEASES, delayed = DELAYED, quarantined = QUARANTINED}
local PAGE = 100
local index, offset = INDEXES[ARGV[1]], tonumber(ARGV[2])
local kept, repaired = 0, 0
local ids = call('ZRANGE', index, offset, offset + PAGE - 1)
for i = 1, #ids do
  if call('HGET', job_key(ids[i]), 'state') == ARGV[1] then
    kept = kept + 1
  else
    call('ZREM', index, ids[i])
    repaired = repaired + 1
  end
end
return {kept, repaired}
