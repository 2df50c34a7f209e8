#!lua flags=allow-oom
--[[
  cancel: a waiting job is deleted; a running one is asked to stop with its next heartbeat and is not queued again. All
  requests so far are cancelled with it, also the one recorded beside the run; a later request counts.

  KEYS[1]  prefix of the queue
  ARGV[1]  nonce: a repetition must not cancel what was requested in between
  ARGV[2]  id
  ARGV[3]  newest version that is cancelled, '' for any: a job that was requested at a later version is left alone

  Output: deleted, stopping or unknown (also: left alone)
]]
-- include: index
-- include: event
-- include: reply
-- include: group
local nonce, id, upto = ARGV[1], ARGV[2], ARGV[3]
local CALLER = 'cancel'

local known = recall(CALLER, nonce)
if known then return known end

-- Cancels the job in this group, nil if it is not there.
local function cancel_here()
  local job = read_job(id)
  if not job then return nil end
  if upto ~= '' and math.max(tonumber(job.version), tonumber(job.d_version or -1)) > tonumber(upto) then return nil end
  if job.state == 'leased' then
    if job.stop ~= 'cancel' then event('cancel', id, 'leased') end
    call('HSET', job_key(id), 'stop', 'cancel')
    call('HDEL', job_key(id), unpack(PENDING))
    call('HDEL', job_key(id), 'd_traces')
    return 'stopping'
  end
  event('cancel', id, job.state)
  withdraw(id, job)
  call('DEL', job_key(id))
  return 'deleted'
end

-- It may run in the group that its table has left, and wait in the new one.
local prefixes, outcome = other_prefixes(), cancel_here()
for i = 1, #prefixes do
  begin_call(prefixes[i])
  local there = cancel_here()
  if outcome ~= 'stopping' then outcome = there or outcome end
end
return remember(CALLER, nonce, outcome or 'unknown')
