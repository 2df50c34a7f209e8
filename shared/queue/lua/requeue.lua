#!lua
--[[
  requeue: a delayed or quarantined job is ready now, with its attempts reset: the cause of its failures has been fixed.

  KEYS[1]  prefix of the queue
  ARGV[1]  id

  Output: queued, leased or unknown
]]
-- include: index
-- include: group
local id = ARGV[1]
enter_job(id)
local job = read_job(id)
if not job then return 'unknown' end
if job.state == 'leased' or job.state == 'queued' then return job.state end
withdraw(id, job)
call('HDEL', job_key(id), 'error', 'crashes')
place(id, job, 'queued', nil, 'attempts', '0')
return 'queued'
