#!lua
--[[
  enqueue: one request becomes a new job, is merged into the waiting one, or is recorded beside the running one.

  KEYS[1]  prefix of the queue
  ARGV[1]  id          ARGV[2]  table      ARGV[3]   partition       ARGV[4]   kind
  ARGV[5]  tenant      ARGV[6]  band       ARGV[7]   priority   ARGV[8]   cost in bytes
  ARGV[9]  version     ARGV[10] payload    ARGV[11]  quiet ms   ARGV[12]  maximum delay ms
  ARGV[13] precedence  ARGV[14] extent     ARGV[15]  trace, '' for none
  ARGV[16] 1 if it may start at any time, 0: in the table's work window

  Output: {outcome (queued, merged, rerun), state}
]]
-- include: upsert
-- include: group
local request = read_request(ARGV, 1)
enter_table(request.table)
return {upsert(request)}
