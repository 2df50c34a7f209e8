#!lua
--[[
  audit_jobs: each job is in the one index of its state, and a queued one is on a path from the root. One that waits in a group
  which its table has left follows it.

  KEYS[1]  prefix of the queue
  ARGV[1]  new lease in ms for a running job whose lease is lost
  ARGV[2..]  id of each job

  Output: number of repairs
]]
-- include: repair
-- include: hand_over
local INDEXES = {queued = QUEUED, leased = LEASES, delayed = DELAYED, quarantined = QUARANTINED}

-- A hash from which a truncated log has lost a required field is no job.
local function is_whole(job)
  for i = 1, #REQUEST_FIELDS do
    if not job[REQUEST_FIELDS[i]] then return false end
  end
  return job.table and job.partition and job.kind and job.attempts and job.revision and INDEXES[job.state] and true
end

local function leave_others(id, state)
  for other, index in pairs(INDEXES) do
    if other ~= state and call('ZREM', index, id) == 1 then count_repair() end
  end
end

local function repair_score(index, id, score)
  local found = call('ZSCORE', index, id)
  if found and tonumber(found) == tonumber(score) then return end
  call('ZADD', index, score, id)
  count_repair()
end

local function repair_queued(id, job)
  repair_score(QUEUED, id, job.first_ms)
  repair_score(flow_key(job.band, job.tenant, job.table), id, int(rank_of(job)))
  repair_path(job.band, job.tenant, job.table)
end

-- Once its index is lost, the time at which a job is due is unknown: it is due at once, or after a whole period.
local function repair_timed(id, state)
  if call('ZSCORE', INDEXES[state], id) then return end
  local after_ms = state == 'leased' and tonumber(ARGV[1]) or state == 'quarantined' and setting('half_open_ms') or 0
  call('ZADD', INDEXES[state], now_ms + after_ms, id)
  count_repair()
end

for i = 2, #ARGV do
  local id = ARGV[i]
  local job = read_job(id)
  if job and is_whole(job) then
    leave_others(id, job.state)
    if job.state == 'queued' then repair_queued(id, job) else repair_timed(id, job.state) end
  elseif call('DEL', job_key(id)) == 1 then
    leave_others(id, nil)
    count_repair()
  end
end
local counted = repaired
for i = 2, #ARGV do
  if hand_over(ARGV[i]) then counted = counted + 1 end
end
return counted
