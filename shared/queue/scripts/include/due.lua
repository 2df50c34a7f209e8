-- Time's own transitions, a few with every claim: leases that ran out, delays that are over, quarantine half-open.
-- include: run_end
local DUE_PER_CLAIM = 8

-- Calls `act(id, job)` for the jobs of an index whose time has come. An id whose job is elsewhere or gone was left
-- behind by a log cut in the middle; it is dropped, so that it cannot block the others.
local function each_due(index, state, act)
  local ids = call('ZRANGE', index, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, DUE_PER_CLAIM)
  for _, id in ipairs(ids) do
    local job = read_job(id)
    if job and job.state == state then act(id, job) else call('ZREM', index, id) end
  end
end

local function reclaim(id, job)
  event('expired', id, job.worker .. ' ' .. job.token)
  end_run(id, job, 'expired', -1)
end

local function promote(id, job)
  withdraw(id, job)
  place(id, job, 'queued')
end

local function take_up_due()
  each_due(LEASE, 'leased', reclaim)
  each_due(DELAY, 'delayed', promote)
  each_due(DEAD, 'quarantined', promote)
end
