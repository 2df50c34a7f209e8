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
  ARGV[10] refusals to remember of its partition, '' for none, '-' to leave them as they are
  ARGV[11] number of counters
  ARGV[12..]  counter, increment · measure, increment

  Output: deleted, requeued, delayed, quarantined or STALE
]]
-- include: finish_run
-- include: reply
local worker, nonce = ARGV[1], ARGV[2]
local outcome = finish_run(ARGV, 1)
-- A call whose run has ended may have been the one that ended it.
if not outcome then return recall(worker, nonce) or 'STALE' end
return remember(worker, nonce, outcome)
