#!lua
--[[
  ingest: moves a table's cursor together with its partitions, jobs, ledger and counters, so that none of them can be lost. If
  another caller moved the cursor first, nothing is written.

  KEYS[1]  prefix of the queue
  ARGV[1]  table
  ARGV[2]  `version|policy|rebuilds|digest|queue_limits` that the cursor must have, `-1||||`: none yet
  ARGV[3]  digest of the call, which identifies a repetition
  ARGV[4]  0: keep the other partitions and timers; 1: drop all of them first; else: replace them by those that were staged
           under this name
  ARGV[5]  ledger records kept per table
  ARGV[6]  number of cursor fields
  ARGV[7]  number of partitions to set
  ARGV[8]  number of partitions to drop
  ARGV[9]  number of jobs
  ARGV[10] number of ledger records
  ARGV[11] number of counters
  ARGV[12] number of timers
  ARGV[13] number of partitions that were staged
  ARGV[14] number of timers that were staged
  ARGV[15] number of partitions whose remembered refusals change
  ARGV[16..]  cursor field, value · partition, state · dropped partition · request (16 values, as in enqueue) ·
              record, index of its job from 1 or 0 · counter, increment · timer, set or earlier or stop, time ·
              partition, its refusals as they must be, as they are then ('': none)

  Output: JSON {applied, version now in the store, outcome of each job}
]]
-- include: upsert
-- include: count
-- include: reply
-- include: timer
-- include: refusals
-- include: group
local tbl, expected, nonce, reset, ledger_kept = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local fields, set, dropped = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local jobs, records, counters = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local timers, staged_partitions, staged_timers = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])
local refusals = tonumber(ARGV[15])
local ARGS_PER_CALL = 1000
local first = 16

-- The cursor stores the digest of the last call, which distinguishes a repetition from a race.
local found, policy, rebuilds, digest, limits, last_call, last_ms, last_reply = unpack(call('HMGET', table_state_key(tbl),
  'version', 'policy', 'rebuilds', 'digest', 'queue_limits', 'last_call', 'last_call_ms', 'last_reply'))
if last_call == nonce and now_ms - tonumber(last_ms) < REPLY_TTL_MS then return last_reply end
found = found or '-1'
-- A rebuild may keep the version: partitions that were read before it must not be written after it.
if table.concat({found, policy or '', rebuilds or '', digest or '', limits or ''}, '|') ~= expected then
  return cjson.encode({false, found})
end
local is_staged = reset ~= '0' and reset ~= '1'
-- Staged partitions have a time to live, and a failover may have lost a part of them; then their owner starts over.
if is_staged and (call('HLEN', staged_partitions_key(reset)) ~= staged_partitions
    or call('ZCARD', staged_timers_key(reset)) ~= staged_timers) then
  return cjson.encode({false, found})
end
local FIXED = 15
if #ARGV ~= FIXED + 2 * fields + 2 * set + dropped + REQUEST_ARGS * jobs + 2 * records + 2 * counters + 3 * timers
    + 3 * refusals then
  return redis.error_reply('LWARGS ingest was sent ' .. #ARGV .. ' arguments, which its counts do not explain')
end

-- An actor may have refused files since they were read; then the caller reads them again.
local of_refusals = #ARGV - 3 * refusals + 1
for at = of_refusals, #ARGV, 3 do
  if (call('HGET', refusals_key(tbl), ARGV[at]) or '') ~= ARGV[at + 1] then return cjson.encode({false, found}) end
end

-- Runs `command` on `key` with the next `n` arguments, in slices that fit Lua's stack.
local function with_args(command, key, n)
  for from = first, first + n - 1, ARGS_PER_CALL do
    call(command, key, unpack(ARGV, from, math.min(from + ARGS_PER_CALL, first + n) - 1))
  end
  first = first + n
end

if reset ~= '0' then
  call('UNLINK', partitions_key(tbl), timers_key(tbl))
  call('DEL', table_state_key(tbl))
end
if is_staged then
  call('PERSIST', staged_partitions_key(reset))
  call('RENAME', staged_partitions_key(reset), partitions_key(tbl))
  if call('PERSIST', staged_timers_key(reset)) == 1 then
    call('RENAME', staged_timers_key(reset), timers_key(tbl))
  end
end
with_args('HSET', table_state_key(tbl), 2 * fields)
with_args('HSET', partitions_key(tbl), 2 * set)
with_args('HDEL', partitions_key(tbl), dropped)

enter_table(tbl)
local outcomes = {}
for i = 1, jobs do
  outcomes[i] = upsert(read_request(ARGV, first))
  first = first + REQUEST_ARGS
end
for _ = 1, records do
  call('XADD', ledger_key(tbl), 'MAXLEN', '~', ledger_kept, '*',
    'record', ARGV[first], 'out', outcomes[tonumber(ARGV[first + 1])] or '')
  first = first + 2
end
count(tbl, ARGV, first, counters)
first = first + 2 * counters
for at = first, of_refusals - 1, 3 do set_timer(tbl, ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
index_first_timer(tbl)
for at = of_refusals, #ARGV, 3 do set_refusals(tbl, ARGV[at], ARGV[at + 2]) end
call('ZADD', CHANGED_TABLES, now_ms, tbl)
local reply = cjson.encode({true, call('HGET', table_state_key(tbl), 'version'), unpack(outcomes)})
call('HSET', table_state_key(tbl), 'last_call', nonce, 'last_call_ms', now_ms, 'last_reply', reply)
return reply
