#!lua flags=allow-oom
--[[
  finish_and_claim: a finish, and then the claim that its worker would make next, in one round trip. A finish that is
  refused claims nothing: it changes nothing, and its worker calls again with what it learned.
  Runs also when memory is short: only claiming and finishing free memory.

  KEYS[1]  prefix of the queue
  ARGV[1]  number of arguments of the claim
  ARGV[2..]  arguments of `claim` · arguments of `finish`, whose worker and nonce this call uses

  Output: outcome as of `finish`, a blank, claims as of `claim`
]]
-- include: finish_run
-- include: lease
-- include: reply
local of_claim = tonumber(ARGV[1])
local of_finish = of_claim + 2
local worker, nonce = ARGV[of_finish], ARGV[of_finish + 1]
local outcome = finish_run(ARGV, of_finish)
-- A call whose run has ended may have been the one that ended it; then it has claimed, too.
if not outcome then return recall(worker, nonce) or 'STALE []' end
return remember(worker, nonce, outcome .. ' ' .. lease_jobs(ARGV, 2, of_claim + 1))
