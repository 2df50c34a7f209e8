#!lua flags=allow-oom
--[[
  claim: up to `slots` jobs are leased to a worker, each under a token of its own; transitions by time are made first.
  Runs also when memory is short: only claiming and finishing free memory.

  KEYS[1]  prefix of the queue
  ARGV[1]  worker
  ARGV[2]  nonce
  ARGV[3]  slots
  ARGV[4]  lease ms
  ARGV[5..]  each ability that the worker has (`format/kind`); none: all

  Output: JSON list of lists (id, table, partition, kind, tenant, band, priority, token, previous token or "", attempts,
          revision, version, extent, cost, payload, first arrival ms, lease until ms, crashes), all as text
]]
-- include: due
-- include: serve
-- include: reply
local worker, nonce, slots, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local PASSED_OVER = 100
local abilities = {}
for i = 5, #ARGV do abilities[#abilities + 1] = ARGV[i] end

local known = recall(worker, nonce)
if known then return known end

local deadline = int(now_ms + lease_ms)

-- Nearly no job has any, and an absent field costs a scan of the hash.
local function crashes_of(id, job)
  return job.attempts ~= '0' and call('HGET', job_key(id), 'crashes') or '0'
end

local function lease(id, job)
  -- Strictly increasing even if the counter was lost: the clock has advanced since.
  last_token = math.max(last_token + 1, now_us)
  local token = int(last_token)
  call('HSET', job_key(id), 'state', 'leased', 'token', token, 'worker', worker, 'started', now_ms)
  call('ZADD', LEASES, deadline, id)
  call('HINCRBY', IN_FLIGHT, 'table|' .. job.table, 1)
  call('HINCRBY', IN_FLIGHT, 'tenant|' .. job.tenant, 1)
  return {id, job.table, job.partition, job.kind, job.tenant, job.band, job.prio, token, job.token or '', job.attempts,
    job.revision, job.version, job.extent, job.cost, job.payload, job.first_ms, deadline, crashes_of(id, job)}
end

begin_claims()
if is_poll_due(last_polled_ms) then
  local moved, more = process_due()
  if moved > 0 then begin_claims() end
  last_polled_ms = more and 0 or now_ms
end
return_aside(abilities)
local claims = {}
for _ = 1, slots + PASSED_OVER do
  if #claims == slots then break end
  local any, id, job = take_next(abilities)
  if not any then break end
  if job then claims[#claims + 1] = lease(id, job) end
end

-- An empty reply may be computed again, so it is not remembered; an idle worker's polls leave no trace.
if #claims == 0 then return '[]' end
end_claims()
return remember(worker, nonce, cjson.encode(claims))
