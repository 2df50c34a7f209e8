#!lua
--[[
  decide: applies a decision that no commit led to, in one step: moves its timer, queues its job, appends its record.
  If the timer has changed meanwhile, or a job for the key waits or runs, no job is queued.

  KEYS[1]  prefix of the queue
  ARGV[1]  worker and
  ARGV[2]  nonce, which identifies a repetition
  ARGV[3]  table
  ARGV[4]  timer, '' for none
  ARGV[5]  time at which the timer must fire
  ARGV[6]  time at which it fires again if there is a job already, or if none is requested yet; 0: it is deleted then
  ARGV[7]  record, '' for none
  ARGV[8]  ledger records kept per table
  ARGV[9]  1 if there is a job
  ARGV[10..]  request (16 values, as in enqueue) · counter, increment

  Output: queued, merged, rerun, none (no job was requested), already_queued or timer_changed
]]
-- include: upsert
-- include: count
-- include: reply
-- include: timer
-- include: group
local worker, nonce, tbl, timer, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[7]
local due, again, ledger_kept, has_job = ARGV[5], ARGV[6], ARGV[8], ARGV[9] == '1'
local first = 10

local known = recall(worker, nonce)
if known then return known end
enter_table(tbl)
if timer ~= '' then
  local at = call('ZSCORE', timers_key(tbl), timer)
  if not at or int(tonumber(at)) ~= due then return 'timer_changed' end
  local is_busy = has_job and call('EXISTS', job_key(ARGV[first])) == 1
  local is_put_off = is_busy or (not has_job and again ~= '0')
  set_timer(tbl, timer, is_put_off and 'set' or 'stop', again)
  index_first_timer(tbl)
  if is_busy then return remember(worker, nonce, 'already_queued') end
end
local outcome = 'none'
if has_job then
  outcome = upsert(read_request(ARGV, first))
  first = first + REQUEST_ARGS
end
if record ~= '' then
  call('XADD', ledger_key(tbl), 'MAXLEN', '~', ledger_kept, '*',
    'record', record, 'out', has_job and outcome or '')
end
count(tbl, ARGV, first, (#ARGV - first + 1) / 2)
return remember(worker, nonce, outcome)
