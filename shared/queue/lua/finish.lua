#!lua flags=allow-oom
--[[
  finish: a worker reports the end of a run. Its result and the request that arrived meanwhile decide the job's next state;
  the charge is reconciled, history and counters get their entry. A wrong token or state changes nothing.
  Runs also when memory is short: finishing frees memory.

  KEYS[1]  prefix of the queue
  ARGV[1]  worker
  ARGV[2]  nonce
  ARGV[3]  id
  ARGV[4]  token
  ARGV[5]  result (done, fail, quarantine, crashed, yield, cancelled)
  ARGV[6]  actual cost in bytes
  ARGV[7]  newest table version the run planned on
  ARGV[8]  result, opaque
  ARGV[9]  error
  ARGV[10] number of counters
  ARGV[11..]  counter, increment · measure, increment

  Output: deleted, requeued, delayed, quarantined or STALE
]]
-- include: run_end
-- include: history
-- include: charge
-- include: reply
-- include: count
-- include: measure
local worker, nonce, id, token, run_result = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local actual, seen_version, result, problem = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]

local job = read_job(id, ENDED)
-- A call whose run has ended may have been the one that ended it.
if not job or job.state ~= 'leased' or job.token ~= token then return recall(worker, nonce) or 'STALE' end

reconcile_charge(job.band, job.tenant, job.table, tonumber(job.cost), tonumber(actual))
if problem ~= '' then call('HSET', job_key(id), 'error', problem) end
local outcome = end_run(id, job, run_result, seen_version)
write_history(id, job,
  {run_result = run_result, outcome = outcome, worker = worker, cost = actual, result = result, error = problem})
local counters = tonumber(ARGV[10])
-- A table that was unregistered during the run must get no new counters, because they would never be removed.
local is_known = call('EXISTS', table_state_key(job.table)) == 1
count(is_known and job.table or nil, ARGV, 11, counters)
if is_known then measure(job.table, ARGV, 11 + 2 * counters, (#ARGV - 10) / 2 - counters) end
return remember(worker, nonce, outcome)
