-- A wish becomes a new job, is merged into the waiting one, or is noted beside the running one, whose snapshot is never
-- touched. Replaying a wish changes nothing.
-- include: index
-- include: merge
local SPEC_ARGS = 14
local MERGED = {'state', 'table', 'tenant', 'band', 'prio', 'cost', 'version', 'insist', 'facts', 't0', 'reach', 'why',
  'd_version'}

-- Reads one wish from the arguments first .. first + SPEC_ARGS - 1.
local function read_spec(args, first)
  return {
    id = args[first], table = args[first + 1], cell = args[first + 2], kind = args[first + 3],
    tenant = args[first + 4], band = args[first + 5], prio = args[first + 6], cost = args[first + 7],
    version = args[first + 8], facts = args[first + 9], t0 = int(now_ms),
    quiet_ms = tonumber(args[first + 10]), max_delay_ms = tonumber(args[first + 11]), insist = args[first + 12],
    reach = args[first + 13],
  }
end

local function put_new(spec)
  local at = debounced(spec.t0, spec)
  local state = at > now_ms and 'delayed' or 'queued'
  place(spec.id, spec, state, at, 'table', spec.table, 'cell', spec.cell, 'kind', spec.kind,
    'attempts', '0', 'generation', '1', plain_fields(spec, ''))
  if spec.insist ~= '0' or spec.reach ~= '0' then
    call('HSET', job_key(spec.id), 'insist', spec.insist, 'reach', spec.reach)
  end
  if state == 'delayed' then call('HSET', job_key(spec.id), quiet_fields(spec)) end
  return 'queued', spec.state
end

local function put_beside_running(job, spec)
  local pending = pending_wish(spec.id, job)
  local wish, changed = spec, true
  if pending then wish, changed = merge_pending(pending, spec) end
  if changed then
    write_pending(spec.id, wish)
    call('HINCRBY', job_key(spec.id), 'generation', 1)
  end
  return 'rerun', 'leased'
end

local function moved(a, b)
  return a.band ~= b.band or a.tenant ~= b.tenant or a.prio ~= b.prio or a.t0 ~= b.t0
end

-- Whoever does not want to wait is not kept waiting by the others. Returns the least delay, and whether it is a new one.
local function least_delay(spec)
  local kept = call('HMGET', job_key(spec.id), 'quiet', 'max')
  local quiet_ms, max_ms = tonumber(kept[1] or spec.quiet_ms), tonumber(kept[2] or spec.max_delay_ms)
  local delay = {quiet_ms = math.min(quiet_ms, spec.quiet_ms), max_delay_ms = math.min(max_ms, spec.max_delay_ms)}
  return delay, delay.quiet_ms < quiet_ms or delay.max_delay_ms < max_ms
end

local function put_waiting(job, spec)
  local wish, changed = merge(job, spec)
  local state, at = job.state, nil
  if state == 'delayed' and job.why == 'debounce' then
    local delay, is_shorter = least_delay(spec)
    -- A wish that was noted already is no new arrival.
    if changed or is_shorter then at = debounced(wish.t0, delay) end
    if at and at <= now_ms then state = 'queued' end
    if is_shorter then call('HSET', job_key(spec.id), quiet_fields(delay)) end
  end
  local move = at or (state == 'queued' and moved(job, wish))
  if move then withdraw(spec.id, job) end
  if changed then
    write_wish(spec.id, wish)
    call('HINCRBY', job_key(spec.id), 'generation', 1)
  end
  if move then
    wish.table = job.table
    place(spec.id, wish, state, at)
  end
  return 'merged', state
end

local function put(spec)
  local job = read_job(spec.id, MERGED)
  if not job then return put_new(spec) end
  if job.state == 'leased' then return put_beside_running(job, spec) end
  return put_waiting(job, spec)
end
