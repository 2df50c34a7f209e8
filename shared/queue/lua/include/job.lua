-- A job's hash as a table of texts, and the two copies of a request that it can hold: its own, and the one that came while
-- it ran (`d_*`), which keeps how long it may be put off, too: that counts only once the run has ended.
-- include: config
local REQUEST_FIELDS = {'tenant', 'band', 'prio', 'cost', 'version', 'insist', 'facts', 't0', 'reach'}
local PENDING = {'d_tenant', 'd_band', 'd_prio', 'd_cost', 'd_version', 'd_insist', 'd_facts', 'd_t0', 'd_reach', 'd_quiet',
  'd_max'}

-- What scripts read of a job unless they say what they need; `state` comes first, as a job without it is none.
local FIELDS = {'state', 'table', 'cell', 'kind', 'tenant', 'band', 'prio', 'cost', 'version', 'insist', 'facts', 't0',
  'reach', 'attempts', 'generation', 'token', 'worker', 'started', 'stop', 'why', 'd_version'}

-- Each name costs a walk along the hash, an absent one the longest; the frequent scripts bring their own list.
local function read_job(id, names)
  names = names or FIELDS
  local values = call('HMGET', job_key(id), unpack(names))
  if not values[1] then return nil end
  local job = {}
  for i = 1, #names do job[names[i]] = values[i] or nil end
  -- Written only where they are not zero.
  job.insist, job.reach = job.insist or '0', job.reach or '0'
  return job
end

-- The request that arrived while the job ran, nil if there was none.
local function pending_request(id, job)
  if not job.d_version then return nil end
  local values, request = call('HMGET', job_key(id), unpack(PENDING)), {}
  for i = 1, #REQUEST_FIELDS do request[REQUEST_FIELDS[i]] = values[i] end
  request.insist, request.reach = request.insist or '0', request.reach or '0'
  request.quiet_ms, request.max_delay_ms = number(values[#REQUEST_FIELDS + 1]), number(values[#REQUEST_FIELDS + 2])
  return request
end

-- The fields and values of a request, as HSET takes them; `mark` is '' or 'd_'.
local function plain_fields(request, mark)
  return mark .. 'tenant', request.tenant, mark .. 'band', request.band, mark .. 'prio', request.prio,
    mark .. 'cost', request.cost, mark .. 'version', request.version, mark .. 'facts', request.facts, mark .. 't0', request.t0
end

-- With what is zero in nearly every request, and absent from a new job then: a field costs a microsecond.
local function request_fields(request, mark)
  return mark .. 'insist', request.insist, mark .. 'reach', request.reach, plain_fields(request, mark)
end

local function write_request(id, request) call('HSET', job_key(id), request_fields(request, '')) end

local function write_pending(id, request)
  call('HSET', job_key(id), 'd_quiet', request.quiet_ms, 'd_max', request.max_delay_ms, request_fields(request, 'd_'))
end
