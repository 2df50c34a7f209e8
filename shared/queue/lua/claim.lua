#!lua flags=allow-oom
--[[
  claim: jobs for up to `slots` slots are leased to a worker, each under a token of its own; transitions by time are made
  first. A slot gets one job, or several of one table that may share a commit.
  Runs also when memory is short: only claiming and finishing free memory.

  KEYS[1]  prefix of the queue
  ARGV[1]  worker
  ARGV[2]  nonce
  ARGV[3]  slots
  ARGV[4]  lease ms
  ARGV[5]  jobs that share a slot at most
  ARGV[6]  their estimated bytes at most, if there are several
  ARGV[7]  1 if the worker's machine is busy, so that it takes no background jobs, else 0
  ARGV[8..]  each ability that the worker has (`format/kind`); none: all

  Output: JSON list of lists (id, table, partition, kind, tenant, band, priority, token, previous token or "", attempts,
          revision, version, extent, cost, payload, first arrival ms, lease until ms, crashes, what is remembered of the partition's
          refused files or ""), all as text
]]
-- include: lease
-- include: reply
local worker, nonce = ARGV[1], ARGV[2]
local known = recall(worker, nonce)
if known then return known end
local claims = lease_jobs(ARGV, 1, #ARGV)
-- An empty reply may be computed again, so it is not remembered; an idle worker's polls leave no trace.
if claims == '[]' then return claims end
return remember(worker, nonce, claims)
