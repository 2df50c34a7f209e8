#!lua flags=no-writes
--[[
  list: a page of the jobs in one state, in the order of that state's index.

  KEYS[1]  prefix of the queue
  ARGV[1]  state
  ARGV[2]  offset
  ARGV[3]  limit

  Output: list of jobs as `view` gives them
]]
-- include: show
local index = timed_index(ARGV[1]) or QUEUED
local offset, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local jobs = {}
for _, id in ipairs(call('ZRANGE', index, offset, offset + limit - 1)) do
  jobs[#jobs + 1] = show(id) or nil
end
return jobs
