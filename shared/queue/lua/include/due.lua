-- Transitions by time, a few with each claim: expired leases, delays that are over, half-open quarantine. Under load they
-- are polled every few milliseconds and not with each claim, unless more were due than one claim processes.
-- include: run_end
-- include: history
local is_poll_due, process_due
do
  local DUE_PER_CLAIM = 8
  local DUE_EVERY_MS = 10

  -- Calls `act(id, job)` for the due jobs of an index, and returns how many ids were due. An id whose job is in another state
  -- or deleted remains from a truncated log; it is dropped, so that it cannot block the others.
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
      {run_result = 'expired', outcome = outcome, worker = job.worker, cost = 0, result = '{}', error = problem})
  end

  local function make_ready(id, job)
    withdraw(id, job)
    place(id, job, 'queued', nil, 'ready_ms', int(now_ms))
  end

  function is_poll_due(last_polled_ms)
    return now_ms < last_polled_ms or now_ms - last_polled_ms >= DUE_EVERY_MS
  end

  -- Returns how many jobs moved, and whether there may be more.
  function process_due()
    local leases, delays = each_due(LEASES, 'leased', requeue_expired), each_due(DELAYED, 'delayed', make_ready)
    local dead = each_due(QUARANTINED, 'quarantined', make_ready)
    return leases + delays + dead, math.max(leases, delays, dead) == DUE_PER_CLAIM
  end
end
