-- Leases jobs to a worker, each under a token of its own; transitions by time are made first.
-- include: due
-- include: serve

-- Nearly no job has any, and an absent field costs a scan of the hash.
local function crashes_of(id, job)
  return job.attempts ~= '0' and call('HGET', job_key(id), 'crashes') or '0'
end

-- `slot`: token of the first of the jobs that are leased together, nil for a job by itself.
local function lease(job, worker, deadline, slot)
  local id = job.id
  -- Strictly increasing even if the counter was lost: the clock has advanced since.
  last_token = math.max(last_token + 1, now_us)
  local token = int(last_token)
  call('HSET', job_key(id), 'state', 'leased', 'token', token, 'worker', worker, 'started', now_ms)
  if job.closes then call('HSET', job_key(id), 'closes', job.closes) end
  if job.reserved then call('HSET', job_key(id), 'reserved', job.reserved) end
  if slot then call('HSET', job_key(id), 'slot', slot) end
  call('ZADD', LEASES, deadline, id)
  call('HINCRBY', IN_FLIGHT, 'table|' .. job.table, 1)
  call('HINCRBY', IN_FLIGHT, 'tenant|' .. job.tenant, 1)
  return {id, job.table, job.partition, job.kind, job.tenant, job.band, job.prio, token, job.token or '', job.attempts,
    job.revision, job.version, job.extent, job.cost, job.payload, job.first_ms, deadline, crashes_of(id, job),
    call('HGET', refusals_key(job.table), job.partition) or ''}
end

-- args[first .. last]: worker, nonce, slots, lease ms, jobs that share a slot at most, their bytes at most, whether the
-- worker's machine is busy (1 or 0), abilities (none: all). Returns the claims as a JSON list.
local function lease_jobs(args, first, last)
  local worker, slots, deadline = args[first], tonumber(args[first + 2]), int(now_ms + tonumber(args[first + 3]))
  local share = {jobs = tonumber(args[first + 4]), bytes = tonumber(args[first + 5])}
  local abilities = {is_busy = args[first + 6] == '1'}
  for i = first + 7, last do abilities[#abilities + 1] = args[i] end
  leaving = {}
  begin_claims()
  if is_poll_due(last_polled_ms) then
    local moved, more = process_due()
    if moved > 0 then begin_claims() end
    last_polled_ms = more and 0 or now_ms
  end
  return_aside(abilities)
  local claims, served = {}, 0
  for _ = 1, slots + MAX_BANDS * PASSED_PER_BAND do
    if served == slots then break end
    local any, taken = take_next(abilities, share)
    if not any then break end
    if taken then
      served = served + 1
      -- The token that the first of them is about to get.
      local slot = #taken > 1 and int(math.max(last_token + 1, now_us)) or nil
      for i = 1, #taken do claims[#claims + 1] = lease(taken[i], worker, deadline, slot) end
    end
  end
  if #claims > 0 then end_claims() end
  deliver(leaving)
  if #claims == 0 then return '[]' end
  return cjson.encode(claims)
end
