-- Puts a job into the index of its state and takes it out; every path that queues a job calls `place`.
-- A queued job's rank is a time: its arrival, and an ageing interval for each step of priority, a factor of two in benefit
-- per cost. The least rank is served first.
-- include: job
-- include: tree

local function rank_of(job) return tonumber(job.first_ms) + tonumber(job.prio) * aging_ms end

-- `at`: when a delayed or quarantined job becomes ready. The rest are fields and values to write with the state.
local function place(id, job, state, at, ...)
  job.state = state
  call('HSET', job_key(id), 'state', state, ...)
  if state == 'queued' then
    local rank, flow = rank_of(job), flow_key(job.band, job.tenant, job.table)
    local _, before = first_of(flow)
    call('ZADD', flow, rank, id)
    call('ZADD', QUEUED, job.first_ms, id)
    if not before then
      activate(job.band, job.tenant, job.table, rank)
    elseif rank < before then
      move_turn(job.band, job.tenant, job.table, 'LT', rank)
    end
  elseif state == 'delayed' then
    call('ZADD', DELAYED, at, id)
  else
    call('ZADD', QUARANTINED, at, id)
  end
end

-- Time at which a debounced job is ready: its quiet time after the last arrival, at most its maximum after the first. A
-- wait of 30 s and more ends with a second, so that jobs of a table which are to be ready at one moment are claimed together.
local function debounced(first_ms, request)
  local at = math.min(tonumber(first_ms) + request.max_delay_ms, now_ms + request.quiet_ms)
  return request.max_delay_ms < 30000 and at or math.ceil(at / 1000) * 1000
end

-- The fields and values of a debounced job; its delays are kept for the next arrival.
local function quiet_fields(request)
  return 'why', 'debounce', 'quiet', request.quiet_ms, 'max', request.max_delay_ms
end

-- A flow has one job less, whether it was queued or set aside.
local function leave_flow(job)
  local _, rank = first_of(flow_key(job.band, job.tenant, job.table))
  if rank then
    move_turn(job.band, job.tenant, job.table, 'GT', rank)
  else
    deactivate(job.band, job.tenant, job.table, flow_condition(job.band, job.tenant, job.table))
  end
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
