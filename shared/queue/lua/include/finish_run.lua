-- A worker reports the end of a run. Its result and the request that arrived meanwhile decide the job's next state; the
-- charge is reconciled, history and counters get their entry. A wrong token or state changes nothing.
-- include: run_end
-- include: history
-- include: charge
-- include: count
-- include: measure
-- include: refusals
-- include: budget
-- include: hand_over

-- args[first ..]: worker, nonce, id, token, result, actual cost in bytes, newest version planned on, result, error, refusals
-- to remember of its partition ('-': unchanged), number of counters; then counter, increment · measure, increment. Returns
-- the outcome; nil: the run is not this worker's.
local function finish_run(args, first)
  local worker, id, token, run_result = args[first], args[first + 2], args[first + 3], args[first + 4]
  local actual, seen_version, problem = args[first + 5], tonumber(args[first + 6]), args[first + 8]
  local job = read_job(id, ENDED)
  if not job or job.state ~= 'leased' or job.token ~= token then return nil end

  reconcile_charge(job.band, job.tenant, job.table, tonumber(job.cost), tonumber(actual))
  local counters, at = tonumber(args[first + 10]), first + 11
  local usage = read_usage(args, at, counters)
  local is_known, group = unpack(call('HMGET', table_state_key(job.table), 'version', 'group'))
  reconcile_budgets(job, usage, is_known)
  if problem ~= '' then call('HSET', job_key(id), 'error', problem) end
  local outcome = end_run(id, job, run_result, seen_version)
  write_history(id, job, {run_result = run_result, outcome = outcome, worker = worker, cost = actual,
    result = args[first + 7], error = problem})
  -- A table that was unregistered during the run must get no new counters, because they would never be removed.
  count(is_known and job.table or nil, args, at, counters)
  if is_known then
    measure(job.table, args, at + 2 * counters, (#args - at + 1) / 2 - counters)
    if usage and run_result == 'done' then learn_usage(job, usage) end
    if args[first + 9] ~= '-' then set_refusals(job.table, job.partition, args[first + 9]) end
  end
  if outcome ~= 'deleted' and group_prefix(group or '') ~= P then hand_over(id) end
  return outcome
end
