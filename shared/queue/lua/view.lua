#!lua flags=no-writes
--[[
  view: one job.

  KEYS[1]  prefix of the queue
  ARGV[1]  id

  Output: {id, deadline or ready-at or "", fields and values of the job}, or nil
]]
-- include: show
-- include: group
enter_job(ARGV[1])
return show(ARGV[1])
