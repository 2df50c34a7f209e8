-- A request becomes a new job, is merged into the waiting one, or is recorded beside the running one, whose snapshot never
-- changes. Repeating a request changes nothing.
-- include: index
-- include: merge
-- include: trace
local REQUEST_ARGS = 16
local read_request, upsert
do
  local MERGED = {'state', 'table', 'tenant', 'band', 'prio', 'cost', 'version', 'precedence', 'payload', 'first_ms', 'extent',
    'any_time', 'why', 'd_version', 'holder'}

  -- Reads one request from the arguments first .. first + REQUEST_ARGS - 1.
  function read_request(args, first)
    return {
      id = args[first], table = args[first + 1], partition = args[first + 2], kind = args[first + 3],
      tenant = args[first + 4], band = args[first + 5], prio = args[first + 6], cost = args[first + 7],
      version = args[first + 8], payload = args[first + 9], first_ms = int(now_ms),
      quiet_ms = tonumber(args[first + 10]), max_delay_ms = tonumber(args[first + 11]), precedence = args[first + 12],
      extent = args[first + 13], trace = args[first + 14], any_time = args[first + 15],
    }
  end

  local function insert_new(request)
    local at = debounced(request.first_ms, request)
    local state = at > now_ms and 'delayed' or 'queued'
    place(request.id, request, state, at, 'table', request.table, 'partition', request.partition, 'kind', request.kind,
      'attempts', '0', 'revision', '1', plain_fields(request, ''))
    if request.precedence ~= '0' or request.extent ~= '0' or request.any_time ~= '0' then
      call('HSET', job_key(request.id), 'precedence', request.precedence, 'extent', request.extent, 'any_time', request.any_time)
    end
    if state == 'delayed' then call('HSET', job_key(request.id), quiet_fields(request)) end
    add_trace(request, 'traces')
    return 'queued', request.state
  end

  local function request_rerun(job, request)
    local pending = pending_request(request.id, job)
    local merged, changed = request, true
    if pending then merged, changed = merge_pending(pending, request) end
    if changed then
      call('HSET', job_key(request.id), 'd_quiet', merged.quiet_ms, 'd_max', merged.max_delay_ms, request_fields(merged, 'd_'))
      call('HINCRBY', job_key(request.id), 'revision', 1)
    end
    add_trace(request, 'd_traces')
    return 'rerun', 'leased'
  end

  local function is_of_other_flow(a, b) return a.band ~= b.band or a.tenant ~= b.tenant end

  local function moved(a, b) return is_of_other_flow(a, b) or a.prio ~= b.prio or a.first_ms ~= b.first_ms end

  -- The shortest requested delay counts. Returns it, and whether it is shorter than the stored one.
  local function shorter_delay(request)
    local kept = call('HMGET', job_key(request.id), 'quiet', 'max')
    local quiet_ms, max_ms = tonumber(kept[1] or request.quiet_ms), tonumber(kept[2] or request.max_delay_ms)
    local delay = {quiet_ms = math.min(quiet_ms, request.quiet_ms), max_delay_ms = math.min(max_ms, request.max_delay_ms)}
    return delay, delay.quiet_ms < quiet_ms or delay.max_delay_ms < max_ms
  end

  local function merge_into_waiting(job, request)
    local merged, changed = merge(job, request)
    local state, at = job.state, nil
    if state == 'delayed' and job.why == 'debounce' then
      local delay, is_shorter = shorter_delay(request)
      -- A wait that is over does not begin again, although no claim has come since to see it.
      if number(call('ZSCORE', DELAYED, request.id)) <= now_ms then
        at = now_ms
      elseif changed or is_shorter then
        at = debounced(merged.first_ms, delay)  -- A request that was merged before is no new arrival.
      end
      if at and at <= now_ms then
        state = 'queued'
        call('HSET', job_key(request.id), 'ready_ms', int(now_ms))
      end
      if is_shorter then call('HSET', job_key(request.id), quiet_fields(delay)) end
    elseif state == 'delayed' and job.why == 'ability' and (is_of_other_flow(job, merged) or job.any_time ~= merged.any_time) then
      -- It was set aside in its old flow, or as a background job; an actor without the ability sets it aside again.
      state = 'queued'
    elseif state == 'delayed' and (job.why == 'window' or job.why == 'budget') and merged.any_time == '1' then
      state = 'queued'
    end
    local move = at or (state == 'queued' and (job.state ~= 'queued' or moved(job, merged)))
    if move then withdraw(request.id, job) end
    if changed then
      write_request(request.id, merged)
      call('HINCRBY', job_key(request.id), 'revision', 1)
      -- A further commit may have added what the limit of amplification waits for: that shows when the job asks again.
      if state == 'delayed' and job.why == 'budget' and job.holder:find('^!?amplification|') then
        call('HSET', job_key(request.id), 'opens', call('ZSCORE', DELAYED, request.id))
      end
    end
    if move then
      merged.table = job.table
      place(request.id, merged, state, at)
    end
    add_trace(request, 'traces')
    return 'merged', state
  end

  function upsert(request)
    local job = read_job(request.id, MERGED)
    if not job then return insert_new(request) end
    if job.state == 'leased' then return request_rerun(job, request) end
    return merge_into_waiting(job, request)
  end
end
