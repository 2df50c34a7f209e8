-- What no worker reports and people want to know of: expired leases, quarantine, cancelled jobs.
-- include: config
local EVENTS_KEPT = 1000

local function event(name, id, detail)
  call('XADD', EVENTS, 'MAXLEN', '~', EVENTS_KEPT, '*', 'event', name, 'job', id, 'detail', detail)
end
