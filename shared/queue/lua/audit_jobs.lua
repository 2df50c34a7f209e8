#!lua
--[[
  audit_jobs: each job is in the one index that its state names, and a queued one can be reached from the root.

  KEYS[1]  prefix of the queue
  ARGV[1]  lease ms of a running job whose lease is lost
  ARGV[2..]  id of each job

  Output: number of things mended
]]
-- include: mend
local INDEXES = {queued = QUEUED, leased = LEASE, delayed = DELAY, quarantined = DEAD}

-- A hash that a cut log left without what a job needs is no job.
local function is_whole(job)
  for i = 1, #WISH do
    if not job[WISH[i]] then return false end
  end
  return job.table and job.cell and job.kind and job.attempts and job.generation and INDEXES[job.state] and true
end

local function leave_others(id, state)
  for other, index in pairs(INDEXES) do
    if other ~= state and call('ZREM', index, id) == 1 then mend() end
  end
end

local function mend_score(index, id, score)
  local found = call('ZSCORE', index, id)
  if found and tonumber(found) == tonumber(score) then return end
  call('ZADD', index, score, id)
  mend()
end

local function mend_queued(id, job)
  local aged = int(tonumber(job.t0) + tonumber(job.prio) * aging_ms)
  mend_score(QUEUED, id, job.t0)
  mend_score(flow_key(job.band, job.tenant, job.table), id, aged)
  mend_path(job.band, job.tenant, job.table)
end

-- When a waiting or running job is due cannot be known once its index is lost: at once, or after a whole period.
local function mend_timed(id, state)
  if call('ZSCORE', INDEXES[state], id) then return end
  local after_ms = state == 'leased' and tonumber(ARGV[1]) or state == 'quarantined' and setting('half_open_ms') or 0
  call('ZADD', INDEXES[state], now_ms + after_ms, id)
  mend()
end

for i = 2, #ARGV do
  local id = ARGV[i]
  local job = read_job(id)
  if job and is_whole(job) then
    leave_others(id, job.state)
    if job.state == 'queued' then mend_queued(id, job) else mend_timed(id, job.state) end
  elseif call('DEL', job_key(id)) == 1 then
    leave_others(id, nil)
    mend()
  end
end
return mended
