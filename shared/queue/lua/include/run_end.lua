-- A run ends, by its worker's word or because its lease ran out. What arrived meanwhile (`d_*`) is taken up FIRST,
-- whatever the verdict: dropping it with a failed or cancelled run would lose an event.
-- include: index
-- include: merge
-- include: event

-- Runs of a job under which an engine died, or an actor fell silent, until the job runs alone in its actor; an engine
-- that dies under it then died of it. As in limits.DEATHS_UNTIL_ALONE.
local CRASHES_UNTIL_EXCLUSIVE = 2

local ENDED = {'state', 'token', 'table', 'cell', 'kind', 'tenant', 'band', 'prio', 'cost', 'version', 't0', 'attempts',
  'started', 'stop', 'reach', 'd_version'}

-- Takes one from the two counts of a run; nothing is kept of a count that is over.
local function decrement_in_flight(of_table, of_tenant)
  local counts = call('HMGET', IN_FLIGHT, of_table, of_tenant)
  local tables, tenants = number(counts[1]) - 1, number(counts[2]) - 1
  if tables <= 0 and tenants <= 0 then
    call('HDEL', IN_FLIGHT, of_table, of_tenant)
    return
  end
  call('HSET', IN_FLIGHT, of_table, tables, of_tenant, tenants)
  if tables <= 0 then call('HDEL', IN_FLIGHT, of_table) end
  if tenants <= 0 then call('HDEL', IN_FLIGHT, of_tenant) end
end

-- Gives back the lease and what goes with it; the job is then in no index until it is placed or deleted.
local function release(id, job)
  call('ZREM', LEASE, id)
  local of_table, of_tenant = 'table|' .. job.table, 'tenant|' .. job.tenant
  decrement_in_flight(of_table, of_tenant)
  if call('EXISTS', throttled_key(of_table), throttled_key(of_tenant)) > 0 then
    unthrottle('table', job.table)
    unthrottle('tenant', job.tenant)
  end
end

-- A job that goes on keeps nothing of the run.
local function forget_run(id)
  call('HDEL', job_key(id), 'worker', 'started', 'progress', 'stop', 'd_tenant', 'd_band', 'd_prio', 'd_cost',
    'd_version', 'd_insist', 'd_facts', 'd_t0', 'd_reach', 'd_quiet', 'd_max', 'revoked')
end

-- Doubles per attempt; up to half of it is taken off by a hash of job and attempt, so that jobs which failed together
-- do not return together, and tests can compute the time. The rule is that of `shared/retry.py`.
local function backoff_ms(id, attempts)
  local full = math.min(setting('backoff_cap_ms'), setting('backoff_base_ms') * 2 ^ (attempts - 1))
  local jitter = tonumber(redis.sha1hex(id .. ':' .. int(attempts)):sub(1, 8), 16) / 2 ^ 32
  return math.floor(full * (1 - jitter / 2))
end

-- The run left nothing to do but what arrived while it ran, if anything; that waits as a new job would.
local function start_anew(id, job, pending)
  if not pending then
    call('DEL', job_key(id))
    return 'deleted'
  end
  forget_run(id)
  call('HDEL', job_key(id), 'token', 'error', 'preempted', 'deaths')
  pending.table = job.table
  local at = debounced(pending.t0, pending)
  if at > now_ms then
    place(id, pending, 'delayed', at, 'attempts', '0', request_fields(pending, ''))
    call('HSET', job_key(id), quiet_fields(pending))
    return 'delayed'
  end
  place(id, pending, 'queued', nil, 'attempts', '0', request_fields(pending, ''))
  return 'requeued'
end

-- Counts a run that its engine or its actor did not survive; says whether the job is what the engine died of.
local function count_crash(id, verdict)
  if verdict ~= 'crashed' and verdict ~= 'expired' then return false end
  local deaths = call('HINCRBY', job_key(id), 'deaths', 1)
  return verdict == 'crashed' and deaths > CRASHES_UNTIL_EXCLUSIVE
end

local function count_attempt(id, job, verdict)
  local attempts = number(job.attempts) + 1
  local is_deadly = count_crash(id, verdict)
  if verdict == 'quarantine' or is_deadly or attempts >= setting('max_attempts') then
    event('quarantined', id, int(attempts))
    place(id, job, 'quarantined', now_ms + setting('half_open_ms'), 'attempts', attempts)
    return 'quarantined'
  end
  if verdict == 'expired' then
    place(id, job, 'queued', nil, 'attempts', attempts)
    return 'requeued'
  end
  place(id, job, 'delayed', now_ms + backoff_ms(id, attempts), 'why', 'backoff', 'attempts', attempts)
  return 'delayed'
end

-- `verdict`: done, fail, quarantine, crashed, yield, cancelled or expired; `seen_version`: the newest version that the
-- run planned on.
-- Returns gone, requeued, delayed or quarantined.
local function end_run(id, job, verdict, seen_version)
  local pending = pending_request(id, job)
  if job.stop == 'cancel' and verdict ~= 'done' then verdict = 'cancelled' end
  release(id, job)
  if verdict == 'done' and pending and tonumber(pending.version) <= seen_version
    and tonumber(pending.reach) <= tonumber(job.reach) then
    pending = nil
  end
  if verdict == 'done' or verdict == 'cancelled' then return start_anew(id, job, pending) end
  forget_run(id)
  if pending then
    local tbl, attempts = job.table, job.attempts
    local rest = call('HMGET', job_key(id), 'facts', 'insist')
    job.facts, job.insist = rest[1], rest[2] or '0'
    job = merge(job, pending)
    job.table, job.attempts = tbl, attempts
    write_request(id, job)
  end
  if verdict == 'yield' then
    place(id, job, 'queued')
    return 'requeued'
  end
  return count_attempt(id, job, verdict)
end
