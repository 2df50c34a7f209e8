-- A job's hash as a table of texts, and the two requests that it can hold: its own, and the one that arrived while it ran
-- (`d_*`). The second one keeps its debounce, too, which counts only once the run has ended.
-- include: config
local REQUEST_FIELDS = {'tenant', 'band', 'prio', 'cost', 'version', 'precedence', 'payload', 'first_ms', 'extent',
  'any_time'}
local PENDING = {'d_tenant', 'd_band', 'd_prio', 'd_cost', 'd_version', 'd_precedence', 'd_payload', 'd_first_ms', 'd_extent',
  'd_any_time', 'd_quiet', 'd_max'}

-- The fields that scripts read unless they name others; `state` is first, because a hash without it is no job.
local FIELDS = {'state', 'table', 'partition', 'kind', 'tenant', 'band', 'prio', 'cost', 'version', 'precedence', 'payload',
  'first_ms', 'extent', 'any_time', 'attempts', 'revision', 'token', 'worker', 'started', 'stop', 'why', 'd_version'}

-- Each name costs a scan of the hash, an absent one the longest; the frequent scripts pass their own list.
local function read_job(id, names)
  names = names or FIELDS
  local values = call('HMGET', job_key(id), unpack(names))
  if not values[1] then return nil end
  local job = {}
  for i = 1, #names do job[names[i]] = values[i] or nil end
  -- Written only where they are not zero.
  job.precedence, job.extent, job.any_time = job.precedence or '0', job.extent or '0', job.any_time or '0'
  return job
end

-- The request that arrived while the job ran, nil if there was none.
local function pending_request(id, job)
  if not job.d_version then return nil end
  local values, request = call('HMGET', job_key(id), unpack(PENDING)), {}
  for i = 1, #REQUEST_FIELDS do request[REQUEST_FIELDS[i]] = values[i] end
  request.precedence, request.extent = request.precedence or '0', request.extent or '0'
  request.any_time = request.any_time or '0'
  request.quiet_ms, request.max_delay_ms = number(values[#REQUEST_FIELDS + 1]), number(values[#REQUEST_FIELDS + 2])
  return request
end

-- The fields and values of a request, as HSET takes them; `mark` is '' or 'd_'.
local function plain_fields(request, mark)
  return mark .. 'tenant', request.tenant, mark .. 'band', request.band, mark .. 'prio', request.prio,
    mark .. 'cost', request.cost, mark .. 'version', request.version, mark .. 'payload', request.payload,
    mark .. 'first_ms', request.first_ms
end

-- With the fields that are zero in nearly every request and then absent from a new job: a field costs a microsecond.
local function request_fields(request, mark)
  return mark .. 'precedence', request.precedence, mark .. 'extent', request.extent, mark .. 'any_time', request.any_time,
    plain_fields(request, mark)
end

local function write_request(id, request) call('HSET', job_key(id), request_fields(request, '')) end
