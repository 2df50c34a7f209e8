-- A job whose table has moved to another group follows it: in one step it leaves the old group and is placed in the new one,
-- so that it is never lost, and never in both. One that runs ends in the group that it runs in; until then, the new group
-- leases no job for the same work.
-- include: group
-- include: upsert
local take_out, deliver, hand_over, runs_elsewhere
do
  -- A job in no index any more: its hash is deleted and returned, to be delivered in the same call. `at`: when it is due.
  function take_out(id, at)
    local flat, job = call('HGETALL', job_key(id)), {}
    for i = 1, #flat, 2 do job[flat[i]] = flat[i + 1] end
    call('DEL', job_key(id))
    job.precedence, job.extent, job.any_time = job.precedence or '0', job.extent or '0', job.any_time or '0'
    return {id = id, job = job, flat = flat, at = at or now_ms}
  end

  -- Places a job in this group as it was in the other one, or merges it into the one that is here.
  local function receive(one)
    local job = one.job
    if call('EXISTS', job_key(one.id)) == 1 then
      local is_debounced = job.state == 'delayed' and job.why == 'debounce'
      job.id, job.trace = one.id, job.traces or ''
      job.quiet_ms = is_debounced and number(job.quiet) or 0
      job.max_delay_ms = is_debounced and number(job.max) or 0
      upsert(job)
      return
    end
    call('HSET', job_key(one.id), unpack(one.flat))
    local is_free = job.state == 'delayed' and (job.why == 'ability' or job.why == 'moved')
    place(one.id, job, is_free and 'queued' or job.state, one.at)
  end

  -- Delivers jobs that were taken out to the groups of their tables.
  function deliver(taken)
    local here = P
    for i = 1, #taken do
      enter_table(taken[i].job.table)
      receive(taken[i])
    end
    if P ~= here then begin_call(here) end
  end

  -- Has a job that waits follow its table; returns whether it did.
  function hand_over(id)
    local job = read_job(id)
    if not job or job.state == 'leased' or group_prefix(group_of(job.table)) == P then return false end
    local at
    if job.state ~= 'queued' then at = tonumber(call('ZSCORE', job.state == 'delayed' and DELAYED or QUARANTINED, id) or nil) end
    withdraw(id, job)
    deliver({take_out(id, at)})
    return true
  end

  -- Whether a job still runs in a group that its table has left; a lease that is over counts for nothing.
  function runs_elsewhere(id)
    local prefixes = other_prefixes()
    for i = 1, #prefixes do
      local deadline = call('ZSCORE', lease_key_of(prefixes[i]), id)
      if deadline and tonumber(deadline) > now_ms then return true end
    end
    return false
  end
end
