#!lua
--[[
  expedite: a waiting job is ready now, in this band or a better one, at the best priority, also outside of its work window;
  a running one is left alone.

  KEYS[1]  prefix of the queue
  ARGV[1]  id
  ARGV[2]  band

  Output: queued, leased or unknown
]]
-- include: index
-- include: group
local id, band = ARGV[1], ARGV[2]
enter_job(id)
local job = read_job(id)
if not job then return 'unknown' end
if job.state == 'leased' then return 'leased' end
if job.state == 'queued' and job.prio == '0' and job.any_time == '1' and tonumber(job.band) <= tonumber(band) then return 'queued' end
withdraw(id, job)
if tonumber(band) < tonumber(job.band) then job.band = band end
job.prio = '0'
place(id, job, 'queued', nil, 'band', job.band, 'prio', job.prio, 'any_time', '1')
return 'queued'
