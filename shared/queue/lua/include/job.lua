-- A job's hash as a table of texts, and the two copies of a wish that it can hold: its own, and the one that came while
-- it ran (`d_*`), which keeps how long it may be put off, too: that counts only once the run has ended.
-- include: config
local WISH = {'tenant', 'band', 'prio', 'cost', 'version', 'insist', 'facts', 't0', 'reach'}
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

-- The wish that arrived while the job ran, nil if there was none.
local function pending_wish(id, job)
  if not job.d_version then return nil end
  local values, wish = call('HMGET', job_key(id), unpack(PENDING)), {}
  for i = 1, #WISH do wish[WISH[i]] = values[i] end
  wish.insist, wish.reach = wish.insist or '0', wish.reach or '0'
  wish.quiet_ms, wish.max_delay_ms = number(values[#WISH + 1]), number(values[#WISH + 2])
  return wish
end

-- The fields and values of a wish, as HSET takes them; `mark` is '' or 'd_'.
local function plain_fields(wish, mark)
  return mark .. 'tenant', wish.tenant, mark .. 'band', wish.band, mark .. 'prio', wish.prio, mark .. 'cost', wish.cost,
    mark .. 'version', wish.version, mark .. 'facts', wish.facts, mark .. 't0', wish.t0
end

-- With what is zero in nearly every wish, and absent from a new job then: a field costs a microsecond.
local function wish_fields(wish, mark)
  return mark .. 'insist', wish.insist, mark .. 'reach', wish.reach, plain_fields(wish, mark)
end

local function write_wish(id, wish) call('HSET', job_key(id), wish_fields(wish, '')) end

local function write_pending(id, wish)
  call('HSET', job_key(id), 'd_quiet', wish.quiet_ms, 'd_max', wish.max_delay_ms, wish_fields(wish, 'd_'))
end
