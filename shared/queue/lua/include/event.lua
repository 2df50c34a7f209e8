-- Events that no run reports: quarantine, preemption, cancelled jobs.
-- include: config
local EVENTS_KEPT = 1000

local function event(name, id, detail)
  call('XADD', EVENTS, 'MAXLEN', '~', EVENTS_KEPT, '*', 'event', name, 'job', id, 'detail', detail)
end
