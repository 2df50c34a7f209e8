-- Puts a job into the index of its state and takes it out; every path that queues a job calls `place`.
-- include: job
-- include: tree

-- `at`: when a delayed or quarantined job becomes ready. The rest are fields and values to write with the state.
local function place(id, job, state, at, ...)
  job.state = state
  call('HSET', job_key(id), 'state', state, ...)
  if state == 'queued' then
    local aged = tonumber(job.first_ms) + tonumber(job.prio) * aging_ms
    call('ZADD', flow_key(job.band, job.tenant, job.table), aged, id)
    call('ZADD', QUEUED, job.first_ms, id)
    activate(job.band, job.tenant, job.table)
  elseif state == 'delayed' then
    call('ZADD', DELAYED, at, id)
  else
    call('ZADD', QUARANTINED, at, id)
  end
end

-- Time at which a debounced job is ready: its quiet time after the last arrival, at most its maximum after the first.
local function debounced(first_ms, request)
  return math.min(tonumber(first_ms) + request.max_delay_ms, now_ms + request.quiet_ms)
end

-- The fields and values of a debounced job; its delays are kept for the next arrival.
local function quiet_fields(request)
  return 'why', 'debounce', 'quiet', request.quiet_ms, 'max', request.max_delay_ms
end

-- A flow has one job less, whether it was queued or set aside.
local function leave_flow(job)
  local now = flow_condition(job.band, job.tenant, job.table)
  if now ~= 'ready' then deactivate(job.band, job.tenant, job.table, now) end
end

-- A job no longer waits for an actor with the ability that it needs.
local function forget_aside(id, job)
  local ability = call('HGET', job_key(id), 'ability')
  if not ability then return end
  call('HDEL', job_key(id), 'ability', 'error')
  call('ZREM', aside_jobs_key(ability), id)
  if call('EXISTS', aside_jobs_key(ability)) == 0 then call('SREM', ASIDE, ability) end
  call('ZREM', aside_flow_key(job.band, job.tenant, job.table), id)
  leave_flow(job)
end

local function withdraw(id, job)
  if job.state == 'queued' then
    call('ZREM', flow_key(job.band, job.tenant, job.table), id)
    call('ZREM', QUEUED, id)
    leave_flow(job)
  elseif job.state == 'delayed' then
    call('ZREM', DELAYED, id)
    if job.why == 'ability' then forget_aside(id, job) end
  else
    call('ZREM', QUARANTINED, id)
  end
end
