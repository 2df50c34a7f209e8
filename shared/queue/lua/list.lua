#!lua flags=no-writes
--[[
  list: a page of the jobs in one state, in the order of that state's index.

  KEYS[1]  prefix of the queue
  ARGV[1]  state
  ARGV[2]  offset
  ARGV[3]  limit

  Output: list of jobs as `view` returns them
]]
-- include: show
local timed = timed_index(ARGV[1])
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local found = call('ZRANGE', timed or QUEUED, offset, offset + limit - 1, 'WITHSCORES')
local jobs = {}
for i = 1, #found, 2 do
  jobs[#jobs + 1] = show(found[i], timed and found[i + 1] or '') or nil
end
return jobs
