#!lua flags=allow-oom
--[[
  cancel: a waiting job is deleted; a running one is told to stop with its next heartbeat and does not come back.

  KEYS[1]  prefix of the queue
  ARGV[1]  id

  Output: gone, stopping or unknown
]]
-- include: index
-- include: event
local id = ARGV[1]
local job = read_job(id)
if not job then return 'unknown' end
if job.state == 'leased' then
  if job.stop ~= 'cancel' then event('cancel', id, 'leased') end
  call('HSET', job_key(id), 'stop', 'cancel')
  return 'stopping'
end
event('cancel', id, job.state)
withdraw(id, job)
call('DEL', job_key(id))
return 'gone'
