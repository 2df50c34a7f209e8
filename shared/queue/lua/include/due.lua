-- Time's own transitions, a few with a claim: leases that ran out, delays that are over, quarantine half-open. Under load
-- they are looked for every few milliseconds and not with every claim, unless more was due than was taken up.
-- include: run_end
-- include: history
local DUE_PER_CLAIM = 8
local DUE_EVERY_MS = 10

-- Calls `act(id, job)` for the jobs of an index whose time has come, and returns how many there were. An id whose job is
-- elsewhere or gone was left behind by a log cut in the middle; it is dropped, so that it cannot block the others.
local function each_due(index, state, act)
  local ids = call('ZRANGE', index, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, DUE_PER_CLAIM)
  for _, id in ipairs(ids) do
    local job = read_job(id)
    if job and job.state == state then act(id, job) else call('ZREM', index, id) end
  end
  return #ids
end

local function requeue_expired(id, job)
  local problem = 'its actor ' .. (job.worker or '') .. ' was silent for as long as the lease; its own log may say why'
  call('HSET', job_key(id), 'error', problem)
  local outcome = end_run(id, job, 'expired', -1)
  write_history(id, job,
    {verdict = 'expired', outcome = outcome, worker = job.worker, cost = 0, result = '{}', error = problem})
end

local function promote(id, job)
  withdraw(id, job)
  place(id, job, 'queued')
end

local function is_poll_due(last_polled_ms)
  return now_ms < last_polled_ms or now_ms - last_polled_ms >= DUE_EVERY_MS
end

-- Returns how many jobs moved, and whether there may be more.
local function process_due()
  local leases, delays = each_due(LEASE, 'leased', requeue_expired), each_due(DELAY, 'delayed', promote)
  local dead = each_due(DEAD, 'quarantined', promote)
  return leases + delays + dead, math.max(leases, delays, dead) == DUE_PER_CLAIM
end
