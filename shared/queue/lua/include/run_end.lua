-- A run ends: its worker reports a result, or its lease expires. A request that arrived meanwhile (`d_*`) is applied FIRST,
-- whatever the result: dropping it with a failed or cancelled run would lose an event.
-- include: index
-- include: merge
-- include: event
-- include: trace
-- include: mark

local ENDED, end_run
do
  -- After this many crashes and expired leases, the job runs alone in its actor. If the engine crashes then, the job is taken
  -- to be the cause. As in limits.CRASHES_UNTIL_EXCLUSIVE.
  local CRASHES_UNTIL_EXCLUSIVE = 2

  ENDED = {'state', 'token', 'table', 'partition', 'kind', 'tenant', 'band', 'prio', 'cost', 'version', 'first_ms',
    'attempts', 'started', 'stop', 'extent', 'any_time', 'd_version', 'reserved'}

  -- Decrements the two counts of a run, and deletes a count that reaches zero.
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

  -- Releases the lease and its counts; the job is then in no index until it is placed or deleted.
  local function release(id, job)
    call('ZREM', LEASES, id)
    local of_table, of_tenant = 'table|' .. job.table, 'tenant|' .. job.tenant
    decrement_in_flight(of_table, of_tenant)
    if call('EXISTS', throttled_key(of_table), throttled_key(of_tenant)) > 0 then
      unthrottle('table', job.table)
      unthrottle('tenant', job.tenant)
    end
  end

  -- A job that continues keeps no field of the run.
  local function forget_run(id)
    call('HDEL', job_key(id), 'worker', 'started', 'progress', 'stop', 'd_tenant', 'd_band', 'd_prio', 'd_cost',
      'd_version', 'd_precedence', 'd_payload', 'd_first_ms', 'd_extent', 'd_any_time', 'd_quiet', 'd_max',
      'revoked', 'slot', 'closes', 'reserved')
  end

  -- Doubles per attempt; up to half of it is taken off by a hash of job and attempt, so that jobs which failed together
  -- do not return together, and tests can compute the time. `shared/retry.py` has the same rule.
  local function backoff_ms(id, attempts)
    local full = math.min(setting('backoff_cap_ms'), setting('backoff_base_ms') * 2 ^ (attempts - 1))
    local jitter = tonumber(redis.sha1hex(id .. ':' .. int(attempts)):sub(1, 8), 16) / 2 ^ 32
    return math.floor(full * (1 - jitter / 2))
  end

  -- Places the request that arrived during the run as a new job would be, or deletes the job if there is none.
  local function restart_or_delete(id, job, pending)
    if not pending then
      call('DEL', job_key(id))
      return 'deleted'
    end
    forget_run(id)
    call('HDEL', job_key(id), 'token', 'error', 'preempted', 'crashes')
    move_traces(id, true)
    pending.table = job.table
    local at = debounced(pending.first_ms, pending)
    if at > now_ms then
      place(id, pending, 'delayed', at, 'attempts', '0', request_fields(pending, ''))
      call('HSET', job_key(id), quiet_fields(pending))
      return 'delayed'
    end
    place(id, pending, 'queued', nil, 'attempts', '0', request_fields(pending, ''))
    return 'requeued'
  end

  -- Counts a run that its engine or its actor did not survive; returns whether the job caused the crash.
  local function count_crash(id, run_result)
    if run_result ~= 'crashed' and run_result ~= 'expired' then return false end
    local crashes = call('HINCRBY', job_key(id), 'crashes', 1)
    return run_result == 'crashed' and crashes > CRASHES_UNTIL_EXCLUSIVE
  end

  local function count_attempt(id, job, run_result)
    local attempts = number(job.attempts) + 1
    local is_deadly = count_crash(id, run_result)
    if run_result == 'quarantine' or is_deadly or attempts >= setting('max_attempts') then
      event('quarantined', id, int(attempts))
      mark(job.table, 'quarantined', job.kind)
      place(id, job, 'quarantined', now_ms + setting('half_open_ms'), 'attempts', attempts)
      return 'quarantined'
    end
    if run_result == 'expired' then
      place(id, job, 'queued', nil, 'attempts', attempts)
      return 'requeued'
    end
    place(id, job, 'delayed', now_ms + backoff_ms(id, attempts), 'why', 'backoff', 'attempts', attempts)
    return 'delayed'
  end

  -- `run_result`: done, fail, quarantine, crashed, yield, cancelled or expired; `seen_version`: the newest version that the
  -- run planned on.
  -- Returns deleted, requeued, delayed or quarantined.
  function end_run(id, job, run_result, seen_version)
    local pending = pending_request(id, job)
    if job.stop == 'cancel' and run_result ~= 'done' then run_result = 'cancelled' end
    release(id, job)
    if run_result == 'done' and pending and tonumber(pending.version) <= seen_version
      and tonumber(pending.extent) <= tonumber(job.extent) then
      pending = nil
    end
    if run_result == 'done' or run_result == 'cancelled' then return restart_or_delete(id, job, pending) end
    forget_run(id)
    if pending then
      local tbl, attempts = job.table, job.attempts
      local rest = call('HMGET', job_key(id), 'payload', 'precedence')
      job.payload, job.precedence = rest[1], rest[2] or '0'
      job = merge(job, pending)
      job.table, job.attempts = tbl, attempts
      write_request(id, job)
      move_traces(id, false)
    end
    if run_result == 'yield' then
      place(id, job, 'queued')
      return 'requeued'
    end
    return count_attempt(id, job, run_result)
  end
end
